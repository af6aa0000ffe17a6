"""Maintenance, and what operators take from an account or give it."""

import pytest

from make.accounts import Letters, account, age, signed_in
from muniment.accounts.models import PersonalToken, SecurityEvent
from muniment.accounts.tokens import create_token, revoke_all
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden
from muniment.oauth.clients import disconnect_all
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company
from muniment.registry.models import Ownership
from muniment.registry.people import suppression
from muniment.registry.publishing import publisher, signed_log, witnesses
from muniment.registry.publishing.witnesses import WitnessStatus

pytestmark = pytest.mark.django_db
HOME = "/operate/maintenance"


@pytest.fixture
def browser():
    return signed_in(account("operator@harbour.example", "operator"))


def test_it_shows_keys_feed_logos_and_suppressions(browser):
    feed = publisher.head()[1].rpartition(":")[2]
    page = browser.get(HOME).content.decode()
    assert feed in page
    assert "are not fetched" in page
    assert "No person was erased" in page
    suppression.suppress_former_name("quillmere", "Quill")
    assert "1 note keeps erased people" in browser.get(HOME).content.decode()


def test_it_shows_the_public_log_and_what_its_witnesses_have_cosigned(browser, monkeypatch):
    signed_log.settle()
    origin = signed_log.current_state().origin
    page = browser.get(HOME).content.decode()
    assert origin in page
    assert "No witness cosigns this log" in page
    states = [
        WitnessStatus("k", "fresh.example", "https://fresh.example", 0, 3, None, "", ""),
        WitnessStatus("k", "good.example", "https://good.example", 1200, 0, now(), "", ""),
        WitnessStatus("k", "mute.example", "https://mute.example", 1, 1199, now(), witnesses.SILENT, "<no answer>"),
        WitnessStatus("k", "other.example", "https://o.example", 7, 0, now(), witnesses.OTHER_HISTORY, "422 no"),
    ]
    monkeypatch.setattr(witnesses, "statuses", lambda: states)
    page = browser.get(HOME).content.decode()
    for words in ("Not asked yet", "1,200 leaves cosigned on", "Not cosigned", "1,199 behind", "&lt;no answer&gt;"):
        assert words in page
    assert page.count("Disputes the log") == 1
    assert witnesses.TROUBLES[witnesses.OTHER_HISTORY] in page
    assert "No witness cosigns this log" not in page


def test_the_identity_of_the_feed_is_renewed_after_a_question(browser):
    before = publisher.head()[1]
    assert b"Renew the identity of the change feed?" in browser.get(f"{HOME}/renew-feed").content
    assert publisher.head()[1] == before
    assert browser.post(f"{HOME}/renew-feed")["Location"] == HOME
    assert publisher.head()[1] != before
    assert SecurityEvent.objects.filter(event="command_run", detail__command="feed renew").count() == 1


def test_an_old_session_confirms_its_identity_first(browser):
    age(browser)
    for action in ("renew-feed", "remove-logos"):
        assert "/accounts/reauthenticate/" in browser.post(f"{HOME}/{action}")["Location"]
    assert not SecurityEvent.objects.filter(event="command_run").exists()


@pytest.mark.parametrize("action", ["retry-logos", "remove-logos"])
def test_logos_are_tried_again_or_removed(browser, action):
    assert browser.get(f"{HOME}/{action}").status_code == 200
    browser.post(f"{HOME}/{action}")
    command = {"retry-logos": "logos fetch --again", "remove-logos": "logos remove"}[action]
    assert SecurityEvent.objects.filter(event="command_run", detail__command=command).exists()


def test_every_token_of_an_account_is_revoked_and_its_owner_told(browser):
    owner = account()
    for name in ("laptop", "server"):
        create_token(owner.actor("web"), name, permitted=SCOPES)
    letters = Letters()
    assert b"Revoke all tokens and apps" in browser.get(f"/operate/accounts/{owner.pk}/tokens").content
    browser.post(f"/operate/accounts/{owner.pk}/tokens")
    assert not PersonalToken.objects.filter(revoked_at=None).exists()
    assert "revoked every personal access token" in letters.to(owner.email)[-1][1]
    for take in (revoke_all, disconnect_all):
        assert take(COMMAND, owner.email) == 0
        with pytest.raises(Forbidden):
            take(owner.actor("web"), owner.email)


def test_an_account_becomes_an_owner_of_a_listing(browser):
    owner, other = account(), account("other@harbour.example")
    slug = create_company(owner.actor("web"), CompanyChange(name="Clock House")).slug
    browser.post(f"/operate/accounts/{other.pk}/listing", {"slug": slug})
    assert Ownership.objects.filter(account=other, company__slug=slug).exists()
    browser.post(f"/operate/accounts/{other.pk}/listing", {"slug": "no-such"})
    assert b"There is no listing with the slug no-such." in browser.get(f"/operate/accounts/{other.pk}").content
