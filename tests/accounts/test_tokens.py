"""Personal access tokens: shown once, kept as a digest, ended everywhere at once."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from click.testing import CliRunner
from django.db import connection, transaction
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from make.accounts import Letters, account, signed_in
from make.apps import App
from muniment.accounts import revocation, scopes, tokens
from muniment.accounts.models import PersonalToken
from muniment.cli import main
from muniment.jobs import handlers
from muniment.kernel.actor import COMMAND, SCOPES, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.kernel.tokens import is_personal, mint_personal, token_digest
from muniment.oauth import token_authentication
from muniment.oauth.models import Grant
from services.ports import wait_until

RESOURCE = "http://testserver/api/manage/mcp"


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner(db):
    return account("owner@harbour.example")


@pytest.fixture
def stranger(db):
    return account("stranger@harbour.example")


def opens(text):
    return token_authentication.resolve(text, resource=RESOURCE, client="suite").actor


@pytest.mark.requirement("tokens.personal")
def test_a_token_has_its_prefix_and_a_checksum_that_tells_real_ones():
    text = mint_personal()
    assert re.fullmatch(r"mun_pat_[0-9A-Za-z]{36}", text)
    assert is_personal(text)
    assert mint_personal() != text


@given(st.integers(0, 43), st.sampled_from("0123456789abcXYZ_é\0"))
def test_one_changed_character_is_seen(place, character):
    text = mint_personal()
    changed = text[:place] + character + text[place + 1 :]
    assert is_personal(changed) == (changed == text)


@pytest.mark.requirement("tokens.personal")
@pytest.mark.requirement("auth.token")
def test_a_new_token_acts_for_its_owner_within_its_scopes(owner):
    minted = tokens.create_token(owner.actor("web"), "  my   laptop ", permitted=["companies:read"])
    actor = opens(minted.text)
    assert (actor.account_id, actor.via, actor.credential) == (owner.pk, "token", "my laptop")
    assert actor.scopes == {"companies:read"}
    assert minted.row.digest == token_digest(minted.text)
    assert abs(minted.row.expires_at - now() - timedelta(days=90)) < timedelta(minutes=1)
    assert minted.text not in repr(minted)
    assert minted.text not in str(vars(minted.row))


def test_a_token_never_works_as_a_reviewer(db):
    """The tool server is for what one owns, whatever the account may do on the pages."""
    reviewer = account("reviewer@harbour.example", role="reviewer")
    minted = tokens.create_token(reviewer.actor("web"), "laptop", permitted=SCOPES)
    assert not opens(minted.text).is_reviewer


@pytest.mark.requirement("tokens.personal")
@pytest.mark.parametrize("days", [30, 90, 365, None])
def test_lifetimes_that_can_be_chosen(owner, days):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES, days=days)
    if days is None:
        assert minted.row.expires_at is None
        return
    PersonalToken.objects.update(expires_at=now() + timedelta(seconds=60))
    assert opens(minted.text)
    PersonalToken.objects.update(expires_at=now())
    assert opens(minted.text) is None


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "  "},
        {"name": "x" * 81},
        {"name": "a\0b"},
        {"name": "a\u202eb"},
        {"days": 7},
        {"days": 0},
        {"days": -1},
        {"permitted": []},
        {"permitted": ["admin"]},
        {"permitted": ["companies:read", "companies:admin"]},
    ],
)
def test_a_token_that_cannot_be_is_refused(owner, wrong):
    with pytest.raises(BadRequest):
        tokens.create_token(owner.actor("web"), **{"name": "laptop", "permitted": SCOPES, **wrong})
    assert not PersonalToken.objects.exists()


def test_a_token_makes_no_token_and_ends_none(owner):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    by_token = opens(minted.text)
    for attempt in (
        lambda: tokens.create_token(by_token, "more", permitted=SCOPES),
        lambda: tokens.regenerate_token(by_token, minted.row.pk),
        lambda: tokens.revoke_token(by_token, minted.row.pk),
        lambda: tokens.create_token(VISITOR, "more", permitted=SCOPES),
    ):
        with pytest.raises((Forbidden, NotFound)):
            attempt()


def test_only_an_operator_creates_a_token_for_another_account(owner, stranger):
    reviewer = account("reviewer@harbour.example", role="reviewer")
    for other in (stranger.actor("web"), stranger.actor("token"), reviewer.actor("web"), VISITOR):
        with pytest.raises(Forbidden):
            tokens.create_token(other, "laptop", permitted=SCOPES, account=owner)
    assert not PersonalToken.objects.exists()
    assert opens(tokens.create_token(COMMAND, "laptop", permitted=SCOPES, account=owner).text).account_id == owner.pk


def test_a_session_that_has_not_confirmed_its_identity_creates_no_token(owner):
    stale = replace(owner.actor("web"), confirmed=False)
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    with pytest.raises(Forbidden, match="Confirm that it's you first"):
        tokens.create_token(stale, "more", permitted=SCOPES)
    with pytest.raises(Forbidden, match="Confirm that it's you first"):
        tokens.regenerate_token(stale, minted.row.pk)
    assert opens(minted.text)
    assert PersonalToken.objects.count() == 1


def test_making_tokens_has_a_bucket_and_an_end(owner, monkeypatch):
    monkeypatch.setattr(tokens, "MADE_AN_HOUR", 2)
    actor = owner.actor("web")
    with pytest.raises(TooMany) as refused:
        [tokens.create_token(actor, "laptop", permitted=SCOPES) for _ in range(6)]
    assert refused.value.headers["Retry-After"]
    monkeypatch.setattr(tokens, "MAX_LIVE", PersonalToken.objects.count())
    with pytest.raises(Conflict):
        tokens.create_token(COMMAND, "laptop", permitted=SCOPES, account=owner)


@pytest.mark.requirement("tokens.personal")
@pytest.mark.postgresql  # on SQLite one of the two waits before it counts
@pytest.mark.django_db(transaction=True)
def test_two_tokens_made_at_once_do_not_pass_the_limit_together(owner, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_LIVE", 1)

    def make():
        try:
            return tokens.create_token(COMMAND, "second", permitted=["companies:read"], account=owner)
        except Conflict as refusal:
            return refusal
        finally:
            connection.close()

    def waits():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            return cursor.fetchone()[0] > 0

    with ThreadPoolExecutor(1) as beside:
        with transaction.atomic():  # what the one makes is not committed yet when the other counts
            tokens.create_token(COMMAND, "first", permitted=["companies:read"], account=owner)
            second = beside.submit(make)
            wait_until(lambda: second.done() or waits(), within_s=30, what="the other to wait, or to be done")
        assert isinstance(second.result(30), Conflict)
    assert PersonalToken.objects.count() == 1


def test_a_renewed_token_has_a_new_text_and_the_old_one_is_dead(owner):
    first = tokens.create_token(owner.actor("web"), "laptop", permitted=["profile:read"], days=30)
    PersonalToken.objects.update(expires_at=now() + timedelta(days=1), warned_at=now())
    before = revocation.epoch()
    second = tokens.regenerate_token(owner.actor("web"), first.row.pk)
    assert opens(first.text) is None
    assert opens(second.text).scopes == {"profile:read"}
    assert second.row.expires_at > now() + timedelta(days=29)
    assert second.row.warned_at is None
    assert revocation.epoch() == before + 1


def test_an_expired_token_is_not_renewed_past_the_limit(owner, monkeypatch):
    monkeypatch.setattr(tokens, "MAX_LIVE", 2)
    old, live = (tokens.create_token(owner.actor("web"), name, permitted=SCOPES).row for name in ("old", "live"))
    PersonalToken.objects.filter(pk=old.pk).update(expires_at=now() - timedelta(days=1))
    newest = tokens.create_token(owner.actor("web"), "newest", permitted=SCOPES).row
    with pytest.raises(Conflict, match="already has 2 tokens"):
        tokens.regenerate_token(owner.actor("web"), old.pk)
    tokens.regenerate_token(owner.actor("web"), live.pk)
    tokens.revoke_token(owner.actor("web"), newest.pk)
    assert opens(tokens.regenerate_token(owner.actor("web"), old.pk).text)


@pytest.mark.requirement("tokens.personal")
def test_a_stranger_neither_sees_renews_nor_ends_a_token(owner, stranger):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    assert tokens.list_tokens(stranger.actor("web")) == []
    for attempt in (tokens.regenerate_token, tokens.revoke_token):
        with pytest.raises(NotFound):
            attempt(stranger.actor("web"), minted.row.pk)
    assert opens(minted.text)
    before = revocation.epoch()
    tokens.revoke_token(owner.actor("web"), minted.row.pk)
    assert opens(minted.text) is None
    assert revocation.epoch() == before + 1
    assert tokens.list_tokens(owner.actor("web")) == []


@pytest.mark.requirement("tokens.personal")
def test_a_token_can_be_revoked_by_presenting_it(owner):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    letters = Letters()
    for text in (minted.text[:-1], minted.text[:-1] + "?", mint_personal()):
        Client().post("/oauth/revoke", f"token={text}", content_type="application/x-www-form-urlencoded")
    assert opens(minted.text)
    answer = Client().post("/oauth/revoke", f"token={minted.text}", content_type="application/x-www-form-urlencoded")
    assert (answer.status_code, answer.content) == (200, b"")
    assert opens(minted.text) is None
    [(subject, text)] = letters.to(owner.email)
    assert "revoked" in subject
    assert minted.text not in text


def test_a_mail_comes_seven_days_before_the_end_and_only_once(owner):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES, days=30)
    letters = Letters()
    assert tokens.warn_of_expiry(now() + timedelta(days=22)) == 0
    assert tokens.warn_of_expiry(now() + timedelta(days=24)) == 1
    assert tokens.warn_of_expiry(now() + timedelta(days=25)) == 0
    [(subject, text)] = letters.to(owner.email)
    assert "expires soon" in subject
    assert "laptop" in text
    assert minted.text not in text
    periodic = {"accounts.tokens_near_end", "accounts.tokens_ended", "oauth.clients_unused", "oauth.grants_ended"}
    assert periodic <= handlers.periodic().keys()


def test_a_mail_announces_a_new_token_without_the_token(owner):
    letters = Letters()
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    [(subject, text)] = letters.to(owner.email)
    assert "token was created" in subject
    assert minted.text not in text
    assert "mun_pat_" not in text
    assert "- Edit your listings" in text
    assert "companies:write" not in text
    assert f"Account: {owner.email}" in text
    assert "Time: " in text


def test_rows_of_tokens_that_ended_are_swept_after_a_month(owner):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    tokens.revoke_token(owner.actor("web"), minted.row.pk)
    assert tokens.sweep_tokens() == 0
    PersonalToken.objects.update(revoked_at=now() - timedelta(days=31))
    assert tokens.sweep_tokens() == 1


@pytest.mark.requirement("tokens.personal")
def test_day_and_client_of_the_last_use_are_kept(owner, django_assert_num_queries):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    token_authentication.resolve(minted.text, resource=RESOURCE, client="cursor/1.2 " + "x" * 200)
    row = PersonalToken.objects.get()
    assert row.last_used_on == now().date()
    assert row.last_used_by.startswith("cursor/1.2")
    with django_assert_num_queries(2):  # the edition and the row; nothing is written again that day
        token_authentication.resolve(minted.text, resource=RESOURCE, client="cursor/1.2 " + "x" * 200)


def test_a_closed_account_closes_its_tokens(owner):
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    owner.is_active = False
    owner.save()
    assert opens(minted.text) is None


# ---------------------------------------------------------------------- the page


@pytest.mark.requirement("web.tokens")
def test_the_page_makes_a_token_and_shows_it_once(owner):
    browser = signed_in(owner)
    answer = browser.post("/manage/tokens", {"name": "laptop", "lifetime": "365", "access": "read"})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    [text] = set(re.findall(r"mun_pat_[0-9A-Za-z]{36}", answer.content.decode()))
    assert opens(text).scopes == scopes.READ_SCOPES
    assert text not in browser.get("/manage/tokens").content.decode()
    shown = answer.content.decode()
    for client in ("Claude Code", "Cursor", "VS Code", "mcp-remote", "streamable-http", "reconnect"):
        assert client in shown
    assert shown.count("data-copy data-done=") == 6


@pytest.mark.requirement("web.tokens")
def test_the_page_renews_revokes_and_disconnects(owner, stranger):
    browser = signed_in(owner)
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    app = App()
    given_ = app.connect(browser)
    page = browser.get("/manage/tokens").content.decode()
    assert "laptop" in page
    assert "Harbour Agent" in page
    grant_id = re.search(r"/manage/tokens/apps/(\d+)/disconnect", page)[1]
    for path in (f"{minted.row.pk}/regenerate", f"{minted.row.pk}/revoke", f"apps/{grant_id}/disconnect"):
        assert browser.get(f"/manage/tokens/{path}").status_code == 405
        assert Client().post(f"/manage/tokens/{path}").status_code == 302
        assert signed_in(stranger).post(f"/manage/tokens/{path}").status_code == 404
    assert opens(minted.text)
    assert opens(given_["access_token"])
    renewed = browser.post(f"/manage/tokens/{minted.row.pk}/regenerate").content.decode()
    [text] = set(re.findall(r"mun_pat_[0-9A-Za-z]{36}", renewed))
    assert opens(text)
    assert opens(minted.text) is None
    assert browser.post(f"/manage/tokens/{minted.row.pk}/revoke", follow=True).status_code == 200
    assert opens(text) is None
    browser.post(f"/manage/tokens/apps/{grant_id}/disconnect")
    assert opens(given_["access_token"]) is None
    assert browser.post(f"/manage/tokens/{10**30}/revoke").status_code == 404


def test_connected_apps_come_in_pages_and_a_renewed_token_leads_to_the_same_ones(owner):
    browser = signed_in(owner)
    App().connect(browser)
    first = Grant.objects.get()
    for number in range(29):
        first.pk, first.handle = None, f"{number:016}"
        first.save(force_insert=True)
    shown = [browser.get("/manage/tokens", {"apps": page}).content.decode() for page in (1, 2, 3)]
    assert [page.count("/disconnect") for page in shown] == [25, 5, 0]
    assert "Go to the first page" in shown[2]
    minted = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    renewed = browser.post(f"/manage/tokens/{minted.row.pk}/regenerate?apps=0").content.decode()
    for page in (shown[0], renewed):
        assert 'href="/manage/tokens?apps=2"' in page


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": "", "lifetime": "90", "access": "all"},
        {"name": "x", "lifetime": "7", "access": "all"},
        {"name": "x", "lifetime": "90", "access": "root"},
        {"name": "x", "lifetime": "90", "access": "chosen"},
        {"name": "x", "lifetime": "90", "access": "chosen", "chosen": "admin"},
        {"name": "a\0b", "lifetime": "90", "access": "all"},
    ],
)
def test_the_page_says_what_is_wrong(owner, fields):
    answer = signed_in(owner).post("/manage/tokens", fields)
    assert answer.status_code == 400
    assert b"mun_pat_" not in answer.content
    assert b'class="fault"' in answer.content or b'role="alert"' in answer.content


def test_the_page_needs_a_session_and_its_own_form(owner):
    assert Client().get("/manage/tokens")["Location"].startswith("/accounts/login/")
    answer = signed_in(owner, enforce_csrf_checks=True).post(
        "/manage/tokens", {"name": "x", "lifetime": "90", "access": "all"}
    )
    assert answer.status_code == 403
    assert not PersonalToken.objects.exists()


# ---------------------------------------------------------------------- the command


@pytest.mark.requirement("tokens.personal")
def test_the_command_prints_a_token_and_nothing_else(db):
    assert command("create", "owner@harbour.example", "--no-password").exit_code == 0
    done = command("token", "owner@harbour.example", "--name", "agent", "--read-only")
    assert done.exit_code == 0
    assert is_personal(done.stdout.removesuffix("\n"))
    unknown = command("token", "unknown@harbour.example", "--name", "agent")
    assert unknown.exit_code == 1
    assert "not found" in unknown.stderr
    wrong = command("token", "owner@harbour.example", "--name", "a", "--scope", "root")
    assert wrong.exit_code == 1
    assert "root" in wrong.stderr
    assert wrong.stdout == ""


def command(*words):
    return CliRunner().invoke(main, ["user", *words])
