"""The sign-in page of visitors without cookies is kept, but never a token or anything that a visitor brought."""

import re

import pytest
from django.test import Client

from muniment.accounts.models import Account
from muniment.web.requests import page_cache

PAGE = "/accounts/login/"
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nothing_is_kept():
    page_cache.parts.clear()


def shown(client, address=PAGE, **headers):
    response = client.get(address, headers=headers)
    return response, TOKEN.findall(response.content.decode())


def test_each_visitor_gets_a_token_of_their_own_that_works():
    Account.objects.create_user(email="ada@example.org", password="a long enough password")
    pages = []
    tokens = set()
    for _ in range(2):
        client = Client(enforce_csrf_checks=True)
        response, found = shown(client)
        assert len(found) == 2
        assert len(set(found)) == 1
        assert response["Cache-Control"] == "max-age=0, no-cache, no-store, must-revalidate, private"
        assert "Cookie" in response["Vary"]
        tokens.add(found[0])
        pages.append(TOKEN.sub("", response.content.decode()))
        form = {"login": "ada@example.org", "password": "wrong", "csrfmiddlewaretoken": found[0]}
        assert client.post(PAGE, form).status_code == 200
        assert client.post(PAGE, {**form, "csrfmiddlewaretoken": "x" * 64}).status_code == 403
    assert len(tokens) == 2
    assert pages[0] == pages[1]


def test_the_page_of_a_visitor_who_brings_something_is_not_kept():
    client = Client()
    assert "list your organization" in shown(client, f"{PAGE}?next=/manage/companies/new")[0].content.decode()
    assert not page_cache.parts
    client.cookies["messages"] = "x"
    shown(client)
    shown(Client(), accept="application/json")
    assert not page_cache.parts
    assert "list your organization." not in shown(Client())[0].content.decode()
    assert page_cache.parts
