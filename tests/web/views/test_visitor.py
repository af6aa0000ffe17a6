"""The account menu of public pages, the cookie that makes their script ask for it, and its privacy."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from make.accounts import PASSWORD, account, signed_in
from muniment.accounts.sessions import HINT_COOKIE, SessionStore
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Person
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    me = account("ida@kelp.example")
    listings.create_company(me.actor("web"), CompanyChange(name="Harbour", description="Tides."), slug="harbour")
    workflow.submit_company(me.actor("web"), "harbour")
    workflow.approve_company(COMMAND, "harbour")
    return me


def asked(client, page="/"):
    answer = client.get("/accounts/menu", {"page": page})
    assert answer["Cache-Control"] == "private, no-store"
    return answer.json()


def test_a_visitor_without_an_account_is_told_that_nobody_is_signed_in():
    assert asked(Client(), "/companies/harbour") == {"account": None}


def test_an_owner_gets_a_menu_and_where_to_edit_the_listing(owner):
    told = asked(signed_in(owner), "/companies/harbour")
    assert told["account"] == "ida@kelp.example"
    assert told["page"] == {"label": "Edit listing", "address": "/manage/companies/harbour"}
    for address in ("/manage", "/manage/companies/harbour", "/accounts/logout/"):
        assert f'href="{address}"' in told["menu"]
    assert "/review" not in told["menu"]


def test_a_stranger_is_told_nothing_of_a_listing_that_belongs_to_somebody_else(owner):
    stranger = signed_in(account("theo@reef.example"))
    known, unknown = asked(stranger, "/companies/harbour"), asked(stranger, "/companies/no-such-company")
    assert known == unknown
    assert known["page"] is None
    assert owner.email not in str(known)


def test_a_person_edits_the_own_profile_only():
    me = account("mara@tide.example")
    Person.objects.create(slug="mara", name="Mara", account=me, listed=True)
    Person.objects.create(slug="nils", name="Nils", listed=True)
    client = signed_in(me)
    assert asked(client, "/people/mara")["page"] == {"label": "Edit profile", "address": "/manage/profile"}
    assert asked(client, "/people/nils")["page"] is None


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("/companies/harbour", "/review/companies/harbour"),
        ("/people/%C3%A9mile", "/review/people/%C3%A9mile"),
        ("/frameworks/tide-score", "/review/frameworks/tide-score"),
    ],
)
@pytest.mark.usefixtures("owner")
def test_a_reviewer_is_led_to_the_review_of_what_is_shown(page, address):
    told = asked(signed_in(account("judge@registry.example", "reviewer")), page)
    assert told["page"]["address"] == address
    assert 'href="/review"' in told["menu"]


@pytest.mark.parametrize(
    "page", ["", "/", "/companies", "/companies/a/b", "//elsewhere.example/x", "javascript:alert(1)"]
)
def test_other_pages_have_no_link_of_their_own(page):
    assert asked(signed_in(account("judge@registry.example", "reviewer")), page)["page"] is None


def test_the_menu_is_only_read():
    assert Client().post("/accounts/menu").status_code == 405


def test_the_cookie_for_scripts_comes_with_a_sign_in_and_goes_with_the_sign_out():
    account("ida@kelp.example", password=PASSWORD)
    client = Client()
    assert HINT_COOKIE not in client.get(reverse("account_login")).cookies
    answer = client.post(reverse("account_login"), {"login": "ida@kelp.example", "password": PASSWORD})
    hint, session = answer.cookies[HINT_COOKIE], answer.cookies[settings.SESSION_COOKIE_NAME]
    assert (hint.value, hint["httponly"], hint["samesite"]) == ("1", "", "Lax")
    assert hint["max-age"] == session["max-age"]
    answer = client.post(reverse("account_logout"))
    assert answer.cookies[HINT_COOKIE]["max-age"] == 0


def test_a_browser_that_was_signed_in_before_the_cookie_existed_gets_it(owner):
    client = signed_in(owner)
    assert client.get("/manage").cookies[HINT_COOKIE].value == "1"
    assert HINT_COOKIE not in client.get("/manage").cookies


def test_the_cookie_goes_when_the_session_was_ended_elsewhere(owner):
    client = signed_in(owner)
    client.get("/manage")
    SessionStore.get_model_class().objects.all().delete()
    answer = client.get("/accounts/menu")
    assert answer.json() == {"account": None}
    assert answer.cookies[HINT_COOKIE]["max-age"] == 0
