"""The operator's console belongs to operators: for other accounts its pages do not exist."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import get_resolver
from django.urls.resolvers import URLPattern

from make.accounts import account, signed_in
from muniment.web.views.operate.addresses import OPERATE
from muniment.web.views.operate.frame import ENTRIES

pytestmark = pytest.mark.django_db
VALUES = {
    "number": 1,
    "key": 1,
    "part": "team",
    "job_id": "0" * 26,
    "form": "csv",
    "endpoint_id": "0" * 26,
    "delivery_id": 1,
    "action": "",
    "name": "brand",
    "slug": "open-votes",
    "of": "company",
}
ACTIONS = {
    "accounts": "disable",
    "jobs": "retry",
    "invitations": "revoke",
    "maintenance": "renew-feed",
    "webhooks": "test",
}


def addresses() -> list[str]:
    """Return an address of each page of the console."""
    found = []
    for pattern in OPERATE:
        assert isinstance(pattern, URLPattern)
        text, _ = get_resolver("muniment.web.urls").reverse_dict.getlist(pattern.callback)[0][0][0]
        room = text.split("/")[1] if "/" in text else ""
        found.append("/" + text % {**VALUES, "action": ACTIONS.get(room, "")})
    return found


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_other_accounts_find_no_page_of_the_console(role):
    client = signed_in(account(f"{role}@harbour.example", role))
    for address in addresses():
        assert client.get(address).status_code == 404, address
        assert client.post(address).status_code == 404, address


def test_a_visitor_is_led_to_sign_in():
    for entry in ENTRIES:
        answer = Client().get(entry.address)
        assert answer.status_code == 302, entry
        assert answer["Location"].startswith("/accounts/login/"), entry


def test_every_entry_of_the_navigation_opens_and_is_current():
    client = signed_in(account("operator@harbour.example", "operator"))
    for entry in ENTRIES:
        answer = client.get(entry.address)
        assert answer.status_code == 200, entry
        assert f'<a href="{entry.address}" aria-current="page">' in answer.content.decode(), entry


def test_every_page_of_the_table_of_tasks_exists():
    table = (Path(__file__).parents[4] / "docs" / "OPERATIONS.md").read_text().partition("## Tasks")[2]
    rows = [line.split("|") for line in table.partition("## Limits")[0].splitlines() if line.startswith("| ")][1:]
    pages = {page for row in rows for page in re.findall(r"`(/[^`]+)`", row[2])}
    client = signed_in(account("operator@harbour.example", "operator"))
    for page in pages:
        assert client.get(page, follow=True).status_code == 200, page
