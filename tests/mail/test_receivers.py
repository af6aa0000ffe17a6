"""Mail is in the language of its receiver, not of who causes it."""

import pytest
from django.test import Client
from django.utils.translation import gettext

from make.accounts import PASSWORD, Letters, account
from make.declared import declared
from muniment.accounts import personal_data
from muniment.accounts.tokens import create_token
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.languages.speaking import speaking
from muniment.mail.receivers import in_language_at
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db(transaction=True)
OWNER = "ottoline@harbour.example"


@pytest.fixture
def letters(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    return Letters()


@pytest.fixture
def owner():
    found = account(OWNER)
    found.remember_language("de")
    return found


def test_an_owner_reads_german_about_what_an_english_reviewer_decides(owner, letters):
    company = listings.create_company(owner.actor("web"), CompanyChange(name="Tidal Works"))
    workflow.submit_company(owner.actor("web"), company.slug)
    letters.to(OWNER)
    reviewer = account("reviewer@harbour.example", "reviewer")
    with speaking("en"):
        workflow.approve_company(reviewer.actor("web"), company.slug)
    subject, text = letters.to(OWNER)[-1]
    assert "Tidal Works" in subject
    assert "veröffentlicht" in text.lower()
    assert "was" not in text.split()


def test_mail_about_a_token_and_a_deletion_is_in_the_language_of_the_account(owner, letters):
    create_token(owner.actor("web"), "Script", permitted=SCOPES, days=30)
    assert "Name: Script" in letters.to(OWNER)[-1][1]
    assert "Token" in letters.to(OWNER)[-1][0]
    personal_data.request_deletion(owner.actor("web"))
    subject, text = letters.to(OWNER)[-1]
    assert "Ihr Konto wird gelöscht" in subject
    assert "Konto" in text


def test_an_account_without_a_language_gets_the_default(letters):
    stranger = account("stranger@harbour.example")
    with speaking("de"):
        personal_data.request_deletion(stranger.actor("web"))
    assert "Your account will be deleted" in letters.to(stranger.email)[-1][0]
    with declared(registry={"languages": ["de", "en"]}):
        personal_data.cancel_deletion(stranger.actor("web"))
    assert "Ihr Konto bleibt" in letters.to(stranger.email)[-1][0]


def test_an_address_without_an_account_gets_the_default(owner):
    for address, word in ((OWNER.upper(), "Anmelden"), ("nobody@harbour.example", "Sign in")):
        with speaking("de"), in_language_at(address):
            assert gettext("Sign in") == word


@pytest.mark.usefixtures("letters")
def test_signing_in_remembers_the_language_of_that_visitor_for_that_account():
    found, stranger = account(OWNER, password=PASSWORD), account("stranger@harbour.example")
    client = Client(headers={"Accept-Language": "de"})
    client.post("/accounts/login/", {"login": OWNER, "password": PASSWORD})
    found.refresh_from_db()
    stranger.refresh_from_db()
    assert (found.language, stranger.language) == ("de", "")


def test_a_sign_in_code_is_in_the_language_of_the_account_that_asks(owner, letters):
    Client(headers={"Accept-Language": "en"}).post("/accounts/login/code/", {"email": OWNER})
    assert "Ihr Anmeldecode" in letters.to(OWNER)[-1][0]


def test_a_former_account_has_no_language(owner):
    personal_data.delete_account(COMMAND, OWNER)
    owner.refresh_from_db()
    assert owner.language == ""
