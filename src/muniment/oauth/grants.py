"""
Grants: issue codes, redeem them for connections, refresh, revoke, and detect stolen tokens.

Each decision is made inside one transaction that locks the row, and each error is raised after it: raising inside would
roll back the revocation.

A refresh token is ``mun_rt_<handle>_<secret><tag>``. Each pair but the first is derived, with the instance's key, from
the presented refresh token. A retry within the window therefore gets the same pair; the database contains no usable
token, and the database and the key together do not reveal a current token without the previous one.

The tag is keyed: it distinguishes an issued token from one that was made up for a known handle. The current token is
recognized by its digest alone, so that a connection does not depend on the key under which its token was made.

Source: RFC 6749, sections 4.1 and 6; RFC 7009; RFC 7636; RFC 9700, section 4.14; decisions, section 4, lifetimes.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext

from muniment.accounts import revocation, scopes
from muniment.accounts.models import Account
from muniment.accounts.personal_data import ArchiveEntry, Part
from muniment.accounts.security import mailing
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.accounts.tokens import revoke_presented
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.problems import Forbidden, NotFound
from muniment.kernel.tokens import (
    ACCESS,
    CODE,
    MAX_TOKEN_CHARACTERS,
    PERSONAL,
    REFRESH,
    base62,
    random_text,
    token_digest,
)
from muniment.kernel.wire import timestamp
from muniment.mail import outgoing
from muniment.mail.receivers import in_language_of
from muniment.oauth.errors import Refusal
from muniment.oauth.models import AuthorizationCode, Client, Grant

CODE_LIFETIME: Final = timedelta(seconds=60)
ACCESS_LIFETIME: Final = timedelta(hours=1)
REFRESH_LIFETIME: Final = timedelta(days=90)
WINDOW: Final = timedelta(seconds=120)
KEPT_AFTER_END: Final = timedelta(days=30)
HANDLE_CHARACTERS: Final = 16
SECRET_CHARACTERS: Final = 43  # 256 bits
TAG_CHARACTERS: Final = 12  # 71 bits
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_ACCESS = re.compile(r"mun_at_([0-9A-Za-z]{16})_[0-9A-Za-z]{43}")
_REFRESH = re.compile(r"mun_rt_([0-9A-Za-z]{16})_([0-9A-Za-z]{43})([0-9A-Za-z]{12})")
_NOT_ISSUED: Final = "The refresh token was not issued to this client."


class TokenPair(NamedTuple):
    """Both tokens as returned to the client."""

    access: str
    refresh: str

    def __repr__(self) -> str:
        return "Pair(…)"  # keeps the tokens out of logs


@dataclass(frozen=True, slots=True)
class Issued:
    """The response of the token endpoint."""

    pair: TokenPair
    expires_in_s: int
    scopes: str


def check_challenge(challenge: str, method: str) -> str:
    """
    Return the challenge of an authorization request; refuse `plain`, and requests without PKCE, as invalid_request.

    Source: RFC 7636, sections 4.2 to 4.4.1; OAuth 2.1, section 4.1.1.
    """
    if not challenge:
        raise Refusal("invalid_request", "code_challenge is missing; PKCE with S256 is required.")
    if method != "S256":
        raise Refusal("invalid_request", "code_challenge_method must be S256.")
    if not _CHALLENGE.fullmatch(challenge):
        raise Refusal("invalid_request", "code_challenge must be the base64url of a SHA-256 digest (43 characters).")
    return challenge


def issue_code(
    actor: Actor,
    client: Client,
    *,
    redirect_uri: str,
    challenge: str,
    permitted: Iterable[str],
    resource: str,
) -> str:
    """
    Issue a code for the consent just given on the website; raise Forbidden for any other actor.

    Scopes that do more than read need a confirmed identity.
    """
    if actor.via != "web" or actor.account_id is None:
        raise Forbidden("Only a signed-in user can connect an app.", "Sign in and try again.")
    agreed = scopes.read(scopes.written(permitted))
    if not agreed <= scopes.READ_SCOPES:
        require_confirmed(actor)
    code = CODE + random_text(SECRET_CHARACTERS)
    held = scopes.written(agreed)
    with transaction.atomic():
        AuthorizationCode.objects.create(
            digest=token_digest(code),
            client=client,
            account_id=actor.account_id,
            redirect_uri=redirect_uri,
            challenge=challenge,
            scopes=held,
            resource=resource,
            expires_at=now() + CODE_LIFETIME,
        )
        detail = {"app": str(client), "scopes": held.split()}
        record(Event.APP_PERMITTED, account=actor.account_id, actor=actor, detail=detail)
    return code


def redeem(code: str, *, client_id: str, redirect_uri: str, verifier: str, resource: str | None) -> Issued:
    """
    Redeem a code for a connection, once; a second attempt revokes it. Raise a Refusal: invalid_grant or invalid_target.

    Args:
        redirect_uri: repeated by the client; "" if not (OAuth 2.1 no longer requires it).
        resource: requested by the client; None uses the one consented to.

    Source: RFC 6749, sections 4.1.2 and 4.1.3; RFC 7636, section 4.6; RFC 8707, section 2.2.
    """
    outcome: Refusal | tuple[Grant, TokenPair]
    with transaction.atomic():
        row = _held_code(code)
        if row is None or row.client.identifier != client_id:
            outcome = Refusal("invalid_grant", "The code was not issued to this client.")
        elif row.grant is not None:
            end_grant(row.grant, "code used twice")
            outcome = Refusal("invalid_grant", "The code was already used; its tokens have been revoked.")
        elif now() >= row.expires_at:
            outcome = Refusal("invalid_grant", "The code has expired; start again.")
        elif redirect_uri and redirect_uri != row.redirect_uri:
            outcome = Refusal("invalid_grant", "redirect_uri differs from the one in the authorization request.")
        elif not proves(verifier, row.challenge):
            outcome = Refusal("invalid_grant", "code_verifier does not match the code_challenge.")
        elif resource is not None and resource != row.resource:
            outcome = Refusal("invalid_target", "resource is not the one the user agreed to.")
        elif not row.account.is_active:
            outcome = Refusal("invalid_grant", "The account is closed.")
        else:
            outcome = _connect(row)
    if isinstance(outcome, Refusal):
        raise outcome
    grant, pair = outcome
    _mail_new_app(grant)
    return Issued(pair, int(ACCESS_LIFETIME.total_seconds()), grant.scopes)


def _held_code(code: str) -> AuthorizationCode | None:
    if not code.startswith(CODE) or len(code) > MAX_TOKEN_CHARACTERS:
        return None
    # Only this row is locked: PostgreSQL re-reads a locked row after a wait, but not a joined one.
    return AuthorizationCode.objects.select_for_update().filter(digest=token_digest(code)).first()


def proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.fullmatch(verifier):
        return False
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(made, challenge)


def _connect(row: AuthorizationCode) -> tuple[Grant, TokenPair]:
    handle, at = random_text(HANDLE_CHARACTERS), now()
    pair = _first_pair(handle)
    grant = Grant.objects.create(
        handle=handle,
        account=row.account,
        client=row.client,
        scopes=row.scopes,
        resource=row.resource,
        access_digest=token_digest(pair.access),
        access_expires_at=at + ACCESS_LIFETIME,
        refresh_digest=token_digest(pair.refresh),
        refresh_expires_at=at + REFRESH_LIFETIME,
    )
    row.grant = grant
    row.save(update_fields=["grant"])
    detail = {"app": str(grant.client), "scopes": grant.scopes.split()}
    record(Event.APP_CONNECTED, account=grant.account_id, actor=_app(grant), detail=detail)
    return grant, pair


def _first_pair(handle: str) -> TokenPair:
    return _pair(handle, random_text(SECRET_CHARACTERS), random_text(SECRET_CHARACTERS), settings.SECRET_KEY)


def next_pair(handle: str, presented: str, *, key: str = "") -> TokenPair:
    """Derive the pair that follows the refresh token *presented*; always the same one under one secret key."""
    key = key or settings.SECRET_KEY
    return _pair(handle, _keyed("access", presented, key), _keyed("refresh", presented, key), key)


def _next_pairs(handle: str, presented: str) -> Iterator[TokenPair]:
    """Derive what followed *presented* under the current and each former secret key."""
    return (next_pair(handle, presented, key=key) for key in _keys())


def _handle_of(refresh_token: str) -> str | None:
    """Return the handle that a refresh token names; None if it does not look like one."""
    match = _REFRESH.fullmatch(refresh_token)
    return match[1] if match else None


def was_issued(refresh_token: str) -> bool:
    """Return whether a refresh token was ever issued here, under the current or a former secret key."""
    match = _REFRESH.fullmatch(refresh_token)
    if match is None:
        return False
    handle, secret, tag = match.groups()
    return any(hmac.compare_digest(tag, _tag(handle, secret, key)) for key in _keys())


def _access_handle(access_token: str) -> str | None:
    match = _ACCESS.fullmatch(access_token)
    return match[1] if match else None


def _keys() -> tuple[str, ...]:
    return (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)


def _pair(handle: str, access: str, refresh: str, key: str) -> TokenPair:
    return TokenPair(f"{ACCESS}{handle}_{access}", f"{REFRESH}{handle}_{refresh}{_tag(handle, refresh, key)}")


def _tag(handle: str, secret: str, key: str) -> str:
    return _keyed("tag", f"{handle}_{secret}", key, TAG_CHARACTERS)


def _keyed(purpose: str, text: str, key: str, characters: int = SECRET_CHARACTERS) -> str:
    made = salted_hmac(f"muniment.oauth.{purpose}", text, secret=key, algorithm="sha256").digest()
    return base62(int.from_bytes(made), characters)


def refresh(token: str, *, client_id: str, resource: str | None, narrower: str = "") -> Issued:
    """
    Issue the next pair, or raise a Refusal: invalid_grant, invalid_scope or invalid_target.

    The previous token returns the same pair for two minutes, with the scopes of the first answer; older ones revoke
    the connection.

    Args:
        narrower: scopes that the client requests for the access token. Those that the user did not agree to are left
            out; the refresh token keeps all, so that a later access token can have them again.

    Source: RFC 6749, section 6; RFC 9700, section 4.14.2; decisions, section 4, lifetimes.
    """
    handle = _handle_of(token) if len(token) <= MAX_TOKEN_CHARACTERS else None
    outcome: Issued | Refusal = Refusal("invalid_grant", _NOT_ISSUED)
    if handle is not None:
        with transaction.atomic():
            rows = Grant.objects.select_related("client", "account").select_for_update(of=("self",))
            grant = rows.filter(handle=handle, client__identifier=client_id).first()
            if grant is not None:
                outcome = _renewed(grant, token, resource=resource, asked=narrower)
    if isinstance(outcome, Refusal):
        raise outcome
    return outcome


def _renewed(grant: Grant, token: str, *, resource: str | None, asked: str) -> Issued | Refusal:
    at, presented = now(), token_digest(token)
    is_current = _is_current(grant, presented)
    if not grant.is_live(at) or not grant.account.is_active:
        return Refusal("invalid_grant", "The connection has ended; ask the user to connect again.")
    if not is_current and not _is_retry(grant, presented, at):
        return _used_again(grant, token)
    if resource is not None and resource != grant.resource:
        return Refusal("invalid_target", "resource is not the one the user agreed to.")
    wanted = scopes.read(asked) & scopes.read(grant.scopes)
    if asked.split() and not wanted:
        return Refusal("invalid_scope", "The user agreed to none of these scopes.")
    pair = next_pair(grant.handle, token) if is_current else _replacing_pair(grant, token)
    if pair is None:
        # The secret key has changed since, so that pair cannot be derived again.
        return Refusal("invalid_grant", "The refresh token was replaced; use the newer one.")
    if is_current:
        _rotate(grant, pair, access_scopes=scopes.written(wanted), at=at)
    left = int((grant.access_expires_at - at).total_seconds())
    return Issued(pair, max(left, 0), grant.access_scopes or grant.scopes)


def _is_current(grant: Grant, presented: str) -> bool:
    """Return whether *presented* is the digest of the refresh token that the client uses next."""
    return hmac.compare_digest(presented, grant.refresh_digest)


def _is_replaced(grant: Grant, presented: str) -> bool:
    """Return whether *presented* is the digest of the refresh token before the current one."""
    return hmac.compare_digest(presented, grant.replaced_refresh_digest)


def _is_retry(grant: Grant, presented: str, at: datetime) -> bool:
    """Return whether a client repeats the last refresh: its answer can have been lost."""
    was_just_rotated = grant.rotated_at is not None and at < grant.rotated_at + WINDOW
    return was_just_rotated and _is_replaced(grant, presented)


def _replacing_pair(grant: Grant, token: str) -> TokenPair | None:
    """Return the pair that replaced *token*, perhaps under a former secret key; None if no key here derives it."""
    for pair in _next_pairs(grant.handle, token):
        if _is_current(grant, token_digest(pair.refresh)):
            return pair
    return None


def _rotate(grant: Grant, pair: TokenPair, *, access_scopes: str, at: datetime) -> None:
    """Replace the tokens of a connection by *pair*; the former ones are remembered for the length of the window."""
    grant.replaced_access_digest = grant.access_digest
    grant.replaced_access_expires_at = min(grant.access_expires_at, at + WINDOW)
    grant.replaced_access_scopes, grant.access_scopes = grant.access_scopes, access_scopes
    grant.replaced_refresh_digest = grant.refresh_digest
    grant.access_digest, grant.refresh_digest = token_digest(pair.access), token_digest(pair.refresh)
    grant.access_expires_at, grant.refresh_expires_at = at + ACCESS_LIFETIME, at + REFRESH_LIFETIME
    grant.rotated_at = at
    grant.save()


def _used_again(grant: Grant, token: str) -> Refusal:
    """Refuse a token that is not current, and end its connection if it was issued: a thief would use it so late."""
    if not _is_replaced(grant, token_digest(token)) and not was_issued(token):
        return Refusal("invalid_grant", _NOT_ISSUED)
    end_grant(grant, "refresh token used again")
    return Refusal("invalid_grant", "The refresh token was replaced long ago; the connection has been revoked.")


def revoke(token: str) -> None:
    """
    Revoke the connection or personal token that *token* belongs to.

    It does not reveal whether there was one. A token that was never issued revokes nothing.

    Source: RFC 7009, sections 2.1 and 2.2.
    """
    if len(token) > MAX_TOKEN_CHARACTERS:
        return
    if token.startswith(PERSONAL):
        revoke_presented(token)
        return
    presented = token_digest(token)
    with transaction.atomic():
        rows = Grant.objects.select_for_update(of=("self",)).filter(revoked_at=None)
        grant = None
        if token.startswith(ACCESS):
            grant = rows.filter(Q(access_digest=presented) | Q(replaced_access_digest=presented)).first()
        elif token.startswith(REFRESH):
            handle = _handle_of(token)
            grant = rows.filter(handle=handle).first() if handle else None
            if grant is not None and not _belongs_to(grant, token):
                grant = None
        if grant is not None:
            end_grant(grant, "revoked by the app")


def _belongs_to(grant: Grant, refresh_token: str) -> bool:
    """Return whether a refresh token with the grant's handle was issued, rather than made up."""
    presented = token_digest(refresh_token)
    return _is_current(grant, presented) or _is_replaced(grant, presented) or was_issued(refresh_token)


def list_connections(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[Grant]:
    if actor.account_id is None:
        return Page([], page, page_size, 0)
    live = _live(actor.account_id)
    return Page.of(live.order_by("-created_at", "-pk"), page, page_size)


def live_names(account_id: int) -> list[str]:
    """Return the names of the apps that are connected to an account."""
    return [str(grant.client) for grant in _live(account_id).order_by("-created_at", "-pk")]


def _live(account_id: int) -> QuerySet[Grant]:
    rows = Grant.objects.select_related("client")
    return rows.filter(account_id=account_id, revoked_at=None, refresh_expires_at__gt=now())


def disconnect(actor: Actor, grant_id: int) -> Grant:
    """Disconnect an app everywhere within a second; raise NotFound if it is not connected to the account."""
    with transaction.atomic():
        grant = _own(actor, grant_id)
        end_grant(grant, "disconnected", actor)
    return grant


def _own(actor: Actor, grant_id: int) -> Grant:
    if actor.via != "web" or actor.account_id is None:
        raise Forbidden("Only a signed-in user can change connected apps.", "Open /manage/tokens.")
    rows = Grant.objects.select_related("client").select_for_update(of=("self",))
    grant = rows.filter(pk=grant_id, account_id=actor.account_id, revoked_at=None).first()
    if grant is None:
        raise NotFound("Connected app not found.", "Your connected apps are at /manage/tokens.")
    return grant


def sweep_grants() -> int:
    at = now()
    gone = AuthorizationCode.objects.filter(expires_at__lt=at - timedelta(days=1)).delete()[0]
    ended = Q(revoked_at__lt=at - KEPT_AFTER_END) | Q(refresh_expires_at__lt=at - KEPT_AFTER_END)
    return gone + Grant.objects.filter(ended).delete()[0]


def _app(grant: Grant) -> Actor:
    """Return the app as the actor of what it did at the token endpoint, from an address of its own."""
    return Actor(account_id=None, role="owner", via="app", credential=str(grant.client), scopes=frozenset())


def end_grant(grant: Grant, because: str, actor: Actor | None = None) -> None:
    """Disconnect an app, in the caller's transaction."""
    if grant.revoked_at is None:
        grant.revoked_at, grant.revoked_because = now(), because
        grant.save(update_fields=["revoked_at", "revoked_because"])
        revocation.bump()
        detail = {"app": str(grant.client), "reason": because}
        record(Event.APP_DISCONNECTED, account=grant.account_id, actor=actor or _app(grant), detail=detail)


def _mail_new_app(grant: Grant) -> None:
    with in_language_of(grant.account):
        lines = [
            gettext("%(app)s was connected to your account. It can:")
            % {"app": grant.client.name or gettext("An unnamed app")},
            "",
            *(f"- {scopes.WORDS[scope]}" for scope in grant.scopes.split() if scope in scopes.WORDS),
            "",
            *mailing.ways_to_review(
                grant.account.email,
                gettext("Review your apps"),
                gettext("If you didn't do this, disconnect the app and change your password."),
            ),
        ]
        outgoing.send(grant.account.email, gettext("An app was connected to your account"), "\n".join(lines))


def live_access(text: str, at: datetime) -> Grant | None:
    presented = token_digest(text)
    handle = _access_handle(text)
    grant = Grant.objects.select_related("client", "account").filter(handle=handle).first() if handle else None
    if grant is None or grant.revoked_at is not None or not grant.account.is_active:
        return None
    return grant if access_end(grant, presented, at) is not None else None


def access_end(grant: Grant, presented: str, at: datetime) -> datetime | None:
    """Return when the access token with this digest ends; None if it is not one of the grant's, or has ended."""
    if hmac.compare_digest(presented, grant.access_digest):
        end: datetime | None = grant.access_expires_at
    elif hmac.compare_digest(presented, grant.replaced_access_digest):
        end = grant.replaced_access_expires_at
    else:
        return None
    return end if end is not None and at < end else None


def access_scopes(grant: Grant, presented: str) -> str:
    """Return the scopes of the access token with this digest."""
    is_current = hmac.compare_digest(presented, grant.access_digest)
    return (grant.access_scopes if is_current else grant.replaced_access_scopes) or grant.scopes


def _export_apps(account: Account) -> Iterator[ArchiveEntry]:
    grants = Grant.objects.filter(account=account).select_related("client").order_by("pk")
    yield ArchiveEntry("apps.json", [_exported(grant) for grant in grants])


def _exported(grant: Grant) -> JSONObject:
    return {
        "app": str(grant.client),
        "scopes": grant.scopes,
        "createdAt": timestamp(grant.created_at),
        "lastUsedOn": grant.last_used_on,
        "lastUsedBy": grant.last_used_by,
        "revokedAt": timestamp(grant.revoked_at) if grant.revoked_at else None,
    }


def _delete_apps(account: Account) -> None:
    AuthorizationCode.objects.filter(account=account).delete()
    Grant.objects.filter(account=account).delete()


PERSONAL_DATA: Final = Part(name="oauth", export=_export_apps, delete=_delete_apps)
