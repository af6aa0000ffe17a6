"""
Token auth: find the account that a bearer token authenticates.

`resolve` queries the database. `TokenAuthenticator` caches its results while the epoch of all credentials (see
`accounts.revocation`) is unchanged since before the query; it checks the epoch twice per second while in use, and at
once after a change by this process.

Source: RFC 6750; decisions, section 4: revocation holds within 1 s everywhere.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from django.db import DatabaseError

from muniment.accounts import revocation, scopes
from muniment.accounts.models import PersonalToken
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.tokens import MAX_TOKEN_CHARACTERS, is_personal, token_digest
from muniment.oauth import grants, resources
from muniment.oauth.models import Grant
from muniment.store.database.faults import disk_fault

CHECK_INTERVAL_S: Final = 0.4
MAX_REMEMBERED: Final = 10_000
MAX_CLIENT_CHARACTERS: Final = 120


class Resolved(NamedTuple):
    """A token's actor, the time when it ends at the latest, and the epoch and day of the query."""

    actor: Actor | None
    ends_at: float
    epoch: int
    day: date


Bridge = Callable[..., Awaitable[Any]]
"""Runs a synchronous function in a thread that may use the ORM."""


def resolve(text: str, *, resource: str | None, client: str) -> Resolved:
    """
    Look up the actor of the token *text*, and record the day and the app of its use.

    Args:
        resource: the URL of this tool server; tokens bound to another one are invalid. None accepts any host.
        client: the app's User-Agent.
    """
    epoch = revocation.epoch()  # read before the row, so that a later change has a later epoch
    at = now()
    today, client = at.date(), client[:MAX_CLIENT_CHARACTERS]
    end: datetime | None
    if is_personal(text):
        token = PersonalToken.objects.select_related("account").filter(digest=token_digest(text)).first()
        if token is None or not token.is_live(at) or not token.account.is_active:
            return Resolved(None, 0.0, epoch, today)
        _note(PersonalToken, token, today, client)
        actor = _actor(token, "token", token.name, token.scopes)
        end = token.expires_at
    else:
        grant = grants.live_access(text, at)
        if grant is None or not _is_for(grant.resource, resource):
            return Resolved(None, 0.0, epoch, today)
        _note(Grant, grant, today, client)
        presented = token_digest(text)
        held = grants.access_scopes(grant, presented)
        actor = _actor(grant, "app", grant.client.name or grant.client.identifier, held)
        end = grants.access_end(grant, presented, at)
    return Resolved(actor, end.timestamp() if end else float("inf"), epoch, today)


def _actor(row: PersonalToken | Grant, via: Any, credential: str, held: str) -> Actor:
    # Always as an owner, regardless of the account's role: the tool server serves only owned listings.
    return Actor(row.account_id, "owner", via, credential, scopes.read(held), credential_id=f"{via} {row.pk}")


def _is_for(bound: str, resource: str | None) -> bool:
    return bound == resource if resource is not None else bound.endswith(resources.PATH)


def _note(model: Any, row: Any, today: Any, client: str) -> None:
    """Record the day and the app of the last use: one write per day, and one when the app changes."""
    if (row.last_used_on, row.last_used_by) == (today, client):
        return
    try:
        model.objects.filter(pk=row.pk).update(last_used_on=today, last_used_by=client)
    except DatabaseError as error:
        if not disk_fault(error):  # the owner can read on, and the next use is recorded
            raise


class TokenAuthenticator:
    """Caches the actors of tokens; *bridge* runs the database queries."""

    def __init__(self, bridge: Bridge, *, resource: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bridge = bridge
        self._resource = resource
        self._clock = clock
        self._cache: dict[tuple[str, str], Resolved] = {}
        self._valid: set[str] = set()
        """Digests of tokens whose last query found them valid; they grant nothing by themselves."""
        self._epoch = -1
        self._changes = self._seen_changes = 0
        self._checked_at = float("-inf")
        revocation.revoked.connect(self.recheck)

    def recheck(self, **_: object) -> None:
        """Check the epoch before the next result: this process has just changed it."""
        self._changes += 1

    def is_known(self, text: str) -> bool:
        """Return whether the last query of this process found the token valid, which may have changed since."""
        return len(text) <= MAX_TOKEN_CHARACTERS and token_digest(text) in self._valid

    async def __call__(self, text: str, client: str = "") -> Actor | None:
        """Return the actor of a token, or None if it is invalid."""
        if len(text) > MAX_TOKEN_CHARACTERS:
            return None
        began, changes = self._clock(), self._changes
        if began - self._checked_at > CHECK_INTERVAL_S or changes != self._seen_changes:
            epoch = await self._bridge(revocation.epoch)
            if epoch != self._epoch:
                self._cache.clear()
                self._epoch = epoch
            # As of the start: a change during the query is checked again.
            self._checked_at, self._seen_changes = began, changes
        key = (token_digest(text), client)
        known = self._cache.get(key)
        if known is None or time.time() >= known.ends_at or known.day != now().date():
            known = await self._bridge(self._resolve, text, client)
            self._note_validity(key[0], is_valid=known.actor is not None)
            if known.actor is not None and known.epoch == self._epoch:
                if len(self._cache) >= MAX_REMEMBERED:
                    self._cache.clear()
                self._cache[key] = known
        return known.actor

    def _note_validity(self, digest: str, *, is_valid: bool) -> None:
        if not is_valid:
            self._valid.discard(digest)
            return
        if len(self._valid) >= MAX_REMEMBERED:
            self._valid.clear()
        self._valid.add(digest)

    def _resolve(self, text: str, client: str) -> Resolved:
        return resolve(text, resource=self._resource, client=client)
