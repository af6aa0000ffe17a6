"""Codes and tokens: redeemed once, renewed alike for everyone who asks in time, ended after a theft."""

import base64
import hashlib
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.dispatch import receiver

from make.accounts import Letters, account, signed_in
from make.apps import REDIRECT, App, proof
from muniment.accounts import revocation
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden, NotFound
from muniment.kernel.tokens import token_digest
from muniment.oauth import clients, grants, resources, token_authentication
from muniment.oauth.errors import Refusal
from muniment.oauth.models import AuthorizationCode, Grant
from muniment.oauth.models import Client as App_

pytestmark = pytest.mark.django_db
BOUND = "http://testserver/api/manage/mcp"


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def app(owner):
    return Connection(owner)


class Connection:
    """An app on its way to the owner's account, without HTTP."""

    def __init__(self, owner, name="Harbour Agent"):
        self.owner = owner
        self.client, _ = clients.register_client({"redirect_uris": [REDIRECT], "client_name": name})
        self.proof = proof()

    def code(self, permitted=SCOPES, actor=None):
        return grants.issue_code(
            actor or self.owner.actor("web"),
            self.client,
            redirect_uri=REDIRECT,
            challenge=self.proof.challenge,
            permitted=permitted,
            resource=BOUND,
        )

    def redeem(self, code, **change):
        known = {
            "client_id": self.client.identifier,
            "redirect_uri": REDIRECT,
            "verifier": self.proof.verifier,
            "resource": BOUND,
        }
        return grants.redeem(code, **{**known, **change})

    def refresh(self, token, **change):
        return grants.refresh(token, **{"client_id": self.client.identifier, "resource": None, **change})

    def connect(self):
        return self.redeem(self.code()).pair

    def opens(self, access):
        return token_authentication.resolve(access, resource=BOUND, client="suite").actor is not None

    def may(self, access):
        return set(token_authentication.resolve(access, resource=BOUND, client="suite").actor.scopes)

    def later(self, **ago):
        """Let time pass: everything that the rows know was that much earlier."""
        step = timedelta(**ago)
        for row in Grant.objects.all():
            for name in ("access_expires_at", "refresh_expires_at", "replaced_access_expires_at", "rotated_at"):
                if getattr(row, name):
                    setattr(row, name, getattr(row, name) - step)
            row.save()
        for row in AuthorizationCode.objects.all():
            row.expires_at -= step
            row.save()


def refused(error):
    return pytest.raises(Refusal, match=f"^{error}: ")


@pytest.mark.requirement("oauth.lifetimes")
def test_a_code_becomes_a_connection_once_and_a_second_try_ends_it(app):
    """RFC 6749, 4.1.2: a code used twice is denied, and what it gave is revoked."""
    code = app.code()
    pair = app.redeem(code).pair
    assert app.opens(pair.access)
    with refused("invalid_grant"):
        app.redeem(code)
    assert not app.opens(pair.access)
    with refused("invalid_grant"):
        app.refresh(pair.refresh)
    assert Grant.objects.get().revoked_because == "code used twice"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"verifier": proof().verifier}, "invalid_grant"),
        ({"verifier": ""}, "invalid_grant"),
        ({"verifier": "short"}, "invalid_grant"),
        ({"verifier": "é" * 50}, "invalid_grant"),
        ({"client_id": "mun_client_other"}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:33418/other"}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:33419/callback"}, "invalid_grant"),
        ({"resource": "http://testserver/api/mcp"}, "invalid_target"),
    ],
)
def test_a_code_is_worth_nothing_without_what_belongs_to_it(app, change, error):
    """RFC 7636, 4.6; RFC 6749, 4.1.3; RFC 8707, 2.2."""
    code = app.code()
    with refused(error):
        app.redeem(code, **change)
    assert not Grant.objects.exists()
    assert app.redeem(code).pair.access


def test_a_code_of_another_app_is_refused(app, owner):
    """RFC 6749, 4.1.3: the code was issued to the client that presents it."""
    other = Connection(owner, "Other Agent")
    with refused("invalid_grant"):
        app.redeem(other.code(), verifier=other.proof.verifier)
    assert not Grant.objects.exists()


def test_a_code_lives_a_minute(app):
    code = app.code()
    app.later(seconds=61)
    with refused("invalid_grant"):
        app.redeem(code)


@pytest.mark.parametrize("text", ["", "mun_ac_", "mun_ac_" + "x" * 43, "nonsense", "mun_ac_" + "x" * 100_000, "\0"])
def test_a_text_that_is_no_code_of_ours_is_refused(app, text):
    with refused("invalid_grant"):
        app.redeem(text)


@pytest.mark.requirement("oauth.lifetimes")
def test_an_access_token_lives_an_hour_and_a_refresh_token_ninety_days(app):
    pair = app.connect()
    row = Grant.objects.get()
    assert abs(row.access_expires_at - now() - timedelta(hours=1)) < timedelta(seconds=20)
    assert abs(row.refresh_expires_at - now() - timedelta(days=90)) < timedelta(seconds=20)
    app.later(hours=1)
    assert not app.opens(pair.access)
    newer = app.refresh(pair.refresh).pair
    assert app.opens(newer.access)
    app.later(days=90)
    with refused("invalid_grant"):
        app.refresh(newer.refresh)
    assert Grant.objects.get().revoked_at is None


@pytest.mark.requirement("oauth.lifetimes")
def test_within_two_minutes_the_replaced_token_gives_the_same_pair(app):
    first = app.connect()
    second = app.refresh(first.refresh)
    assert second.pair != first
    again = app.refresh(first.refresh)
    assert again.pair == second.pair
    assert 3_500 < again.expires_in_s <= 3_600
    assert app.opens(first.access)
    assert app.opens(second.pair.access)


@pytest.mark.requirement("oauth.lifetimes")
def test_after_the_window_the_replaced_token_ends_the_connection(app):
    """RFC 9700, 4.14.2: a replaced token that comes back was stolen, by whom we cannot tell."""
    first = app.connect()
    second = app.refresh(first.refresh).pair
    app.later(seconds=121)
    assert not app.opens(first.access)
    assert app.opens(second.access)
    with refused("invalid_grant"):
        app.refresh(first.refresh)
    assert not app.opens(second.access)
    with refused("invalid_grant"):
        app.refresh(second.refresh)
    assert Grant.objects.get().revoked_because == "refresh token used again"


def test_the_oldest_token_of_three_ends_the_connection(app):
    first = app.connect()
    second = app.refresh(first.refresh).pair
    third = app.refresh(second.refresh).pair
    with refused("invalid_grant"):
        app.refresh(first.refresh)
    assert not app.opens(third.access)


def test_a_token_that_was_never_issued_ends_nothing(app):
    """Whoever has seen a handle, for example in an expired access token, cannot cut the owner off."""
    pair = app.connect()
    handle = pair.refresh[len("mun_rt_") :].partition("_")[0]
    forged = [
        f"mun_rt_{handle}_{'A' * 55}",
        pair.refresh[:-1] + ("A" if pair.refresh[-1] != "A" else "B"),
        pair.refresh[:-5],
        pair.access.replace("mun_at_", "mun_rt_"),
        pair.refresh + "x",
        pair.refresh + "\0",
        "mun_rt_" + "x" * 100_000,
    ]
    for text in forged:
        with refused("invalid_grant"):
            app.refresh(text)
        grants.revoke(text)
    assert app.opens(pair.access)
    assert app.refresh(pair.refresh).pair


def test_a_refresh_token_of_another_app_is_refused_and_ends_nothing(app, owner):
    pair = app.connect()
    with refused("invalid_grant"):
        app.refresh(pair.refresh, client_id=Connection(owner, "Other Agent").client.identifier)
    assert app.opens(pair.access)


def test_a_refresh_for_another_resource_or_for_more_is_refused(app):
    pair = app.connect()
    with refused("invalid_target"):
        app.refresh(pair.refresh, resource="http://testserver/api/mcp")
    with refused("invalid_scope"):
        app.refresh(pair.refresh, narrower="admin")


def test_a_refresh_for_less_gives_less_and_the_next_one_may_have_all_again(app):
    """RFC 6749, 6: the access token has the requested scopes, the refresh token keeps those of the grant."""
    first = app.connect()
    less = app.refresh(first.refresh, narrower="companies:read profile:read")
    assert less.scopes == "companies:read profile:read"
    assert app.may(less.pair.access) == {"companies:read", "profile:read"}
    assert app.may(first.access) == set(SCOPES)
    assert Grant.objects.get().scopes == " ".join(SCOPES)
    more = app.refresh(less.pair.refresh)
    assert more.scopes == " ".join(SCOPES)
    assert app.may(more.pair.access) == set(SCOPES)
    assert app.may(less.pair.access) == {"companies:read", "profile:read"}


def test_a_refresh_never_gives_more_than_was_agreed_to(app):
    pair = app.redeem(app.code({"companies:read", "profile:read"})).pair
    newer = app.refresh(pair.refresh, narrower="companies:read companies:write admin")
    assert newer.scopes == "companies:read"
    assert app.may(newer.pair.access) == {"companies:read"}
    with refused("invalid_scope"):
        app.refresh(newer.pair.refresh, narrower="companies:write")
    assert app.may(app.refresh(newer.pair.refresh).pair.access) == {"companies:read", "profile:read"}


@pytest.mark.parametrize(
    ("asked", "again"), [("profile:read", "profile:read"), ("profile:read", ""), ("", "reports:run")]
)
def test_a_retry_gets_the_same_pair_with_the_scopes_that_it_has(app, asked, again):
    first = app.connect()
    second = app.refresh(first.refresh, narrower=asked)
    retried = app.refresh(first.refresh, narrower=again)
    assert (retried.pair, retried.scopes) == (second.pair, second.scopes)
    assert app.may(second.pair.access) == set(retried.scopes.split())


def test_a_changed_key_refuses_the_retry_and_ends_nothing(app, settings):
    first = app.connect()
    second = app.refresh(first.refresh).pair
    kept = settings.SECRET_KEY
    settings.SECRET_KEY = "another key of this instance"
    with refused("invalid_grant"):
        app.refresh(first.refresh)
    settings.SECRET_KEY = kept
    assert app.opens(second.access)
    assert app.refresh(second.refresh).pair


def test_a_retry_works_across_a_rotation_and_a_connection_needs_no_former_key(app, settings):
    first = app.connect()
    second = app.refresh(first.refresh).pair
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the next key of this instance", [settings.SECRET_KEY]
    assert app.refresh(first.refresh).pair == second
    settings.SECRET_KEY_FALLBACKS = []
    third = app.refresh(second.refresh).pair
    assert app.opens(third.access)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "yet another key", ["the next key of this instance"]
    app.refresh(third.refresh)
    with refused("invalid_grant"):
        app.refresh(f"mun_rt_{Grant.objects.get().handle}_{'A' * 55}")  # made up, so nothing ends
    assert Grant.objects.get().revoked_at is None


def test_a_stolen_token_of_before_a_rotation_ends_the_connection(app, settings):
    first = app.connect()
    app.refresh(app.refresh(first.refresh).pair.refresh)
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "the next key of this instance", [settings.SECRET_KEY]
    with refused("invalid_grant"):
        app.refresh(first.refresh)
    assert Grant.objects.get().revoked_because == "refresh token used again"


def test_an_app_ends_its_connection_with_a_token_of_a_key_that_is_gone(app, settings):
    pair = app.connect()
    settings.SECRET_KEY = "the next key of this instance"
    grants.revoke(pair.refresh)
    assert Grant.objects.get().revoked_because == "revoked by the app"


def test_neither_the_rows_nor_the_key_give_a_token(app):
    """What follows is derived from the presented token, of which the database has the digest only."""
    pair = app.connect()
    row = Grant.objects.get()
    kept = " ".join(str(value) for value in vars(row).values()) + settings.SECRET_KEY
    for secret in (pair.access.rpartition("_")[2], pair.refresh.rpartition("_")[2]):
        assert secret not in kept
        assert secret[:20] not in kept
    assert row.access_digest == token_digest(pair.access)
    assert grants.next_pair(row.handle, row.refresh_digest) != grants.next_pair(row.handle, pair.refresh)


def test_the_app_itself_may_end_its_connection_by_either_token(app):
    """RFC 7009, 2.1."""
    for kind in ("access", "refresh"):
        pair = app.connect()
        grants.revoke(getattr(pair, kind))
        assert not app.opens(pair.access)
        with refused("invalid_grant"):
            app.refresh(pair.refresh)


def test_the_owner_disconnects_and_a_stranger_cannot(app):
    pair = app.connect()
    stranger = account("stranger@harbour.example")
    [listed] = grants.list_connections(app.owner.actor("web")).items
    assert grants.list_connections(stranger.actor("web")).items == []
    with pytest.raises(NotFound):
        grants.disconnect(stranger.actor("web"), listed.pk)
    assert app.opens(pair.access)
    with pytest.raises(Forbidden):
        grants.disconnect(token_authentication.resolve(pair.access, resource=BOUND, client="").actor, listed.pk)
    grants.disconnect(app.owner.actor("web"), listed.pk)
    assert not app.opens(pair.access)
    assert grants.list_connections(app.owner.actor("web")).items == []
    with pytest.raises(NotFound):
        grants.disconnect(app.owner.actor("web"), listed.pk)


def test_only_the_account_at_the_page_can_approve_an_app(app):
    for actor in (app.owner.actor("token"), app.owner.actor("app"), COMMAND):
        with pytest.raises(Forbidden):
            grants.issue_code(actor, app.client, redirect_uri=REDIRECT, challenge="", permitted=SCOPES, resource=BOUND)


def test_a_session_that_has_not_confirmed_its_identity_approves_only_reading(app):
    """The operation refuses it too, so that the rule does not depend on the page."""
    stale = replace(app.owner.actor("web"), confirmed=False)
    for permitted in (SCOPES, ["companies:write"], ["companies:read", "reports:run"]):
        with pytest.raises(Forbidden, match="Confirm that it's you first"):
            app.code(permitted, actor=stale)
    assert not AuthorizationCode.objects.exists()
    connection = app.redeem(app.code(["companies:read", "profile:read"], actor=stale))
    assert app.may(connection.pair.access) == {"companies:read", "profile:read"}


def test_connected_apps_are_listed_latest_first_also_those_of_one_moment(app, owner):
    names = ["Oldest", "Middle", "Newest"]
    for name in names:
        Connection(owner, name).connect()
    at = now()
    ages_days = dict(zip(names, (1, 3, 2), strict=True))
    for name, days in ages_days.items():
        Grant.objects.filter(client__name=name).update(created_at=at - timedelta(days=days))

    def listed():
        return [str(grant.client) for grant in grants.list_connections(owner.actor("web")).items]

    assert listed() == grants.live_names(owner.pk) == ["Oldest", "Newest", "Middle"]
    Grant.objects.update(created_at=at)
    assert listed() == grants.live_names(owner.pk) == ["Newest", "Middle", "Oldest"]
    assert [str(row.client) for row in grants.list_connections(owner.actor("web"), page=2, page_size=2).items] == [
        "Oldest"
    ]


def test_a_token_opens_only_the_resource_it_was_bound_to(app):
    """RFC 8707, 2; RFC 9700, 2.3."""
    pair = app.connect()
    other = resources.manage_server("https://other.example")
    assert token_authentication.resolve(pair.access, resource=other, client="").actor is None
    Grant.objects.update(resource="http://testserver/api/other")
    assert token_authentication.resolve(pair.access, resource=BOUND, client="").actor is None
    assert token_authentication.resolve(pair.access, resource=None, client="").actor is None


def test_a_closed_account_closes_its_apps(app):
    pair = app.connect()
    code = app.code()
    app.owner.is_active = False
    before = revocation.epoch()
    app.owner.save()
    assert revocation.epoch() == before + 1
    assert not app.opens(pair.access)
    for attempt in (lambda: app.refresh(pair.refresh), lambda: app.redeem(code)):
        with refused("invalid_grant"):
            attempt()


def test_every_end_moves_the_edition_that_caches_follow(app, django_capture_on_commit_callbacks):
    pair = app.connect()
    before = revocation.epoch()
    told = []

    @receiver(revocation.revoked)
    def hear(**_):
        told.append(1)

    with django_capture_on_commit_callbacks(execute=True):
        grants.revoke(pair.access)
    assert revocation.epoch() == before + 1
    assert told == [1]


def test_the_owner_is_told_of_a_new_app_without_any_secret(app):
    letters = Letters()
    pair = app.connect()
    [(subject, text)] = letters.to(app.owner.email)
    assert "app was connected" in subject
    assert "Harbour Agent" in text
    assert "Edit your listings" in text
    assert "mun_" not in text
    assert pair.access not in text


def test_the_last_use_of_a_token_is_kept_by_day(app):
    pair = app.connect()
    token_authentication.resolve(pair.access, resource=BOUND, client="claude-code/2.1")
    row = Grant.objects.get()
    assert (row.last_used_on, row.last_used_by) == (now().date(), "claude-code/2.1")


def test_unused_apps_and_old_rows_are_swept(app):
    pair = app.connect()
    idle, _ = clients.register_client({"redirect_uris": [REDIRECT], "client_name": "Idle"})
    App_.objects.update(created_at=now() - timedelta(days=2))
    fresh, _ = clients.register_client({"redirect_uris": [REDIRECT], "client_name": "Fresh"})
    assert clients.reap_clients() == 1
    assert set(App_.objects.all()) == {app.client, fresh}
    assert idle not in App_.objects.all()
    grants.revoke(pair.access)
    Grant.objects.update(revoked_at=now() - timedelta(days=31))
    app.later(days=2)
    assert grants.sweep_grants() == 2
    assert clients.reap_clients() == 1


def test_the_refusal_leaves_what_it_did_committed(app):
    """The trap: a refusal raised inside the transaction would undo the revocation."""
    code = app.code()
    app.redeem(code)
    with refused("invalid_grant"):
        app.redeem(code)
    assert Grant.objects.filter(revoked_at=None).count() == 0


def test_the_whole_way_through_http(owner):
    app = App()
    given = app.connect(signed_in(owner))
    assert set(given) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
    assert given["token_type"] == "Bearer"
    assert given["expires_in"] == 3_600
    newer = app.refresh(given["refresh_token"]).json()
    assert newer["access_token"] != given["access_token"]


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def test_the_example_of_the_rfc_proves_itself():
    """RFC 7636, appendix B."""
    challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    assert grants.check_challenge(challenge, "S256") == challenge
    assert grants.proves("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", challenge)


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("challenge", "method"),
    [
        ("", "S256"),
        ("a" * 43, "plain"),
        ("a" * 43, ""),
        ("a" * 42, "S256"),
        ("a" * 44, "S256"),
        ("a" * 42 + "=", "S256"),
        ("a" * 42 + "+", "S256"),
    ],
)
def test_any_other_challenge_is_refused(challenge, method):
    with pytest.raises(Refusal) as refused:
        grants.check_challenge(challenge, method)
    assert refused.value.error == "invalid_request"


@pytest.mark.parametrize(
    ("verifier", "is_proof"),
    [
        ("a" * 43, True),
        ("-._~" * 32, True),
        ("a" * 42, False),
        ("a" * 129, False),
        ("a" * 43 + "\n", False),
        ("é" * 43, False),
    ],
)
def test_a_verifier_has_43_to_128_unreserved_characters(verifier, is_proof):
    assert grants.proves(verifier, challenge_of(verifier)) is is_proof


def test_another_verifier_proves_nothing():
    assert not grants.proves("b" * 43, challenge_of("a" * 43))
    assert not grants.proves("a" * 43, "a" * 43)
