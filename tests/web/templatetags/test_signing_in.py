"""Why a sign-in is asked: the page that leads there says it in words."""

import pytest
from django.test import Client

from make.accounts import account
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.review import workflow
from muniment.web.templatetags.signing_in import reason_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def slugs():
    owner = account()
    change = CompanyChange(name="Tidal & <Works>", positions=[{"title": "Chair", "person": {"name": "Ada Reef"}}])
    published = listings.create_company(owner.actor("web"), change).slug
    workflow.submit_company(owner.actor("web"), published)
    workflow.approve_company(account("reviewer@harbour.example", "reviewer").actor("web"), published)
    return published, listings.create_company(owner.actor("web"), CompanyChange(name="Secret Works")).slug


def test_a_visitor_who_claims_a_listing_reads_why_a_sign_in_is_asked(slugs):
    published, draft = slugs
    client = Client()
    page = client.get(f"/companies/{published}/claim")["Location"]
    assert "You need an account to claim Tidal &amp; &lt;Works&gt;." in client.get(page).content.decode()
    assert (
        "You need an account to claim the profile of Ada Reef."
        in client.get("/accounts/signup/?next=/people/ada-reef/claim").content.decode()
    )
    assert "Secret" not in client.get(f"/accounts/login/?next=/companies/{draft}/claim").content.decode()


def test_a_name_that_is_not_public_any_more_is_not_said(slugs):
    path = f"/companies/{slugs[0]}/claim"
    assert "Tidal" in reason_of(path)
    workflow.unlist_company(account("operator@harbour.example", "reviewer").actor("web"), slugs[0], "Closed.")
    assert not reason_of(path)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/manage/companies/new", "To list your organization, you need an account, then its name, type, website"),
        ("/manage/companies/tidal/edit/about", "edit your listing"),
        ("/oauth/authorize", "connect the app"),
        ("/manage", ""),
        ("", ""),
        ("/elsewhere", ""),
    ],
)
def test_other_pages_say_it_too(path, words):
    assert words in reason_of(path)


def test_a_broken_address_says_nothing():
    answer = Client().get("/accounts/login/?next=http://[")
    assert answer.status_code == 200
    assert "reason" not in answer.content.decode()
