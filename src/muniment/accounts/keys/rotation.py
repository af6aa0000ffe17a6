"""
Adopt a key, rotate it, and remove a former one.

A rotation waits for every running process to have the new key, makes it the current one for all of them at once, waits
until all sign with it, and then seals everything again in batches. Each step can be repeated after a crash.

Source: decision 39.
"""

import logging
import os
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.functions import Now

from muniment import config
from muniment.accounts.keys import kept, key_file, keyring, sealed
from muniment.accounts.keys.key_file import fingerprint, is_strong, listed, new_key
from muniment.accounts.models import KeptSecret, KeyHolder, SecretKey
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict

LIVE_FOR: Final = timedelta(seconds=45)
AGAIN_S: Final = 15.0
log = logging.getLogger(__name__)


class Holder(NamedTuple):
    """A process that reported within the last 45 seconds."""

    name: str
    keys: frozenset[str]
    signs_with: str


class Reporter:
    """Follows the database's current key, and reports the keys of this process when they change and every 15 s."""

    def __init__(self) -> None:
        self._reported: tuple[str, str] | None = None
        self._again_at = 0.0
        self._is_lacking = False

    def look(self) -> None:
        """Follow and report; the worker of each process calls this every few seconds."""
        has_current = keyring.follow()
        if not has_current and not self._is_lacking:
            log.error("the database's current secret key is missing here; give this node both keys and restart it")
        self._is_lacking = not has_current
        state = (" ".join(keyring.own_keys()), fingerprint(settings.SECRET_KEY))
        if state == self._reported and time.monotonic() < self._again_at:
            return
        KeyHolder.objects.update_or_create(
            name=_process_name(), defaults={"fingerprints": state[0], "signs_with": state[1], "seen_at": Now()}
        )
        self._reported, self._again_at = state, time.monotonic() + AGAIN_S

    def leave(self) -> None:
        """Report the end of this process."""
        if self._reported is not None:
            KeyHolder.objects.filter(name=_process_name()).delete()


def live_processes() -> list[Holder]:
    """Return the processes that are running; those that were silent for a day are forgotten."""
    KeyHolder.objects.filter(seen_at__lt=Now() - timedelta(days=1)).delete()
    rows = KeyHolder.objects.filter(seen_at__gt=Now() - LIVE_FOR).order_by("name")
    return [Holder(row.name, frozenset(row.fingerprints.split()), row.signs_with) for row in rows]


def _process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"[:200]


WAIT_S: Final = 90.0
LOOK_S: Final = 0.5
Tell = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """
    A key as the operator sees it.

    Args:
        state: current, former, or "" if the database does not use it.
        needed_by: how many sealed rows of each kind need it.
        signed_until: what it signed is accepted until then; only for a former key.
    """

    fingerprint: str
    state: str
    is_here: bool
    needed_by: dict[str, int]
    signed_until: datetime | None

    @property
    def can_go(self) -> bool:
        return self.state == "former" and not any(self.needed_by.values()) and (self.signed_until or now()) <= now()


@dataclass(frozen=True, slots=True)
class Status:
    """The keys of the instance, and what none of the keys here opens."""

    keys: list[KeyStatus]
    unopened: dict[str, int]
    processes: list[Holder]


def status() -> Status:
    own = keyring.own_keys()
    rows = {row.fingerprint: row for row in SecretKey.objects.order_by("state", "-since")}
    key_ids = dict.fromkeys([*rows, *keyring.listed_keys()])
    keys = [own[key_id] for key_id in key_ids if key_id in own]
    counts = {kind.words: Counter(kind.keys_of(keys)) for kind in sealed.KINDS}
    statuses = []
    for key_id in key_ids:
        row = rows.get(key_id)
        needed_by = {}
        if key_id in own:
            needed_by = {words: count[own[key_id]] for words, count in counts.items()}
        signed_until = None
        if row is not None and row.state == SecretKey.State.FORMER:
            signed_until = row.since + kept.longest_signed()
        statuses.append(KeyStatus(key_id, row.state if row else "", key_id in own, needed_by, signed_until))
    return Status(statuses, {words: count[""] for words, count in counts.items()}, live_processes())


def adopt(actor: Actor, *, replace: bool = False) -> str:
    """
    Make this node's key the instance's key, and return its fingerprint.

    Args:
        replace: also if the database uses another key, or sealed things do not open. Those sessions end; second
            factors that do not open stay until their accounts or the operator remove them.

    Raises:
        Conflict: the database uses another key, or something sealed does not open with this one.
    """
    own = keyring.own_keys()
    row = SecretKey.objects.filter(state=keyring.CURRENT).first()
    if row is not None and row.fingerprint in own:
        keyring.follow()
        return row.fingerprint
    # The first key of the list, unless what is sealed opens with another reading of the text.
    found = sealed.survey(dict.fromkeys([*listed(settings.SECRET_KEYS_TEXT), *own.values()]))
    key = next((each for each in found if each), listed(settings.SECRET_KEYS_TEXT)[0])
    if (row is not None or found[""]) and not replace:
        says = f"The database uses the key {row.fingerprint}." if row else f"{found['']:,} sealed rows do not open."
        raise Conflict(
            says,
            "Set that key on this node. If it is lost, repeat with --replace: everybody signs in again, and second"
            " factors that do not open must be removed and set up again.",
        )
    with transaction.atomic():
        SecretKey.objects.all().delete()
        SecretKey.objects.create(fingerprint=fingerprint(key), state=keyring.CURRENT)
        if replace:
            _drop_unopened(key)
        record(Event.KEYS_ROTATED, actor=actor, detail={"adopted": fingerprint(key)})
    keyring.follow()
    return fingerprint(key)


def _drop_unopened(key: str) -> None:
    for model, purpose, column in ((Session, "session", "session_data"), (KeptSecret, kept.PURPOSE, "sealed")):
        for pk, content in model.objects.values_list("pk", column):
            if not sealed.opens(key, content, purpose):
                model.objects.filter(pk=pk).delete()


def rotate(actor: Actor, *, tell: Tell = lambda _: None, wait_s: float = WAIT_S) -> None:
    """
    Make the new key the current one, and seal everything again under it. Finishes a rotation that was interrupted.

    Raises:
        BadRequest: there is no new key to rotate to.
        Conflict: the database has no fingerprint, or a running process lacks the new key.
    """
    current = SecretKey.objects.filter(state=keyring.CURRENT).first()
    if current is None:
        raise Conflict("The database has no fingerprint of its key.", "Run muniment keys adopt first.")
    new = _new_key()
    if new is not None:
        tell(f"waiting until every process has the key {fingerprint(new)}")
        _wait_for(lambda each: fingerprint(new) in each.keys, "lacks the new key", wait_s)
        _switch(actor, current.fingerprint, new)
    keyring.follow()
    now_current = fingerprint(settings.SECRET_KEY)
    tell(f"waiting until every process signs with {now_current}")
    _wait_for(lambda each: each.signs_with == now_current, "still signs with the former key", wait_s)
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    for kind in sealed.KINDS:
        tell(f"sealing {kind.words} again")
        count = kind.reseal(keys)
        tell(f"{count:,} {kind.words} sealed again")


def _new_key() -> str | None:
    """Return the key to rotate to; None if the last rotation is unfinished. In a key file, it is made here."""
    states = dict(SecretKey.objects.values_list("fingerprint", "state"))
    listing = keyring.listed_keys()
    unused = [key for each, key in listing.items() if each not in states]
    settings_now = config.current()
    if unused:
        if not is_strong(unused[0]):
            raise BadRequest("The new key is shorter than 32 characters.", "Make one with muniment keys new.")
        return unused[0]
    if any(state == SecretKey.State.FORMER for state in states.values()) and _is_unfinished():
        return None
    if settings_now.secret_key:
        raise BadRequest(
            "MUNIMENT_SECRET_KEY lists no new key.",
            "Make one with muniment keys new, set MUNIMENT_SECRET_KEY=NEW,PRESENT on every node, restart them, then"
            " run this again.",
        )
    new = new_key()
    key_file.write(key_file.path_of(settings_now), [new, *keyring.listed_keys().values()])
    keyring.own_keys()
    return new


def _is_unfinished() -> bool:
    own = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    found = sealed.survey(own)
    return any(found[key] for key in own[1:])


def _switch(actor: Actor, former: str, new: str) -> None:
    own = keyring.own_keys()
    with transaction.atomic():
        row = SecretKey.objects.select_for_update().filter(fingerprint=former, state=keyring.CURRENT).first()
        if row is None:
            raise Conflict("Another rotation has just taken place.", "Run muniment keys.")
        kept.keep(own[former], new)
        row.state, row.since = SecretKey.State.FORMER, now()
        row.save(update_fields=["state", "since"])
        SecretKey.objects.create(fingerprint=fingerprint(new), state=keyring.CURRENT)
        record(Event.KEYS_ROTATED, actor=actor, detail={"from": former, "to": fingerprint(new)})


def _wait_for(is_done: Callable[[Holder], bool], what: str, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while waiting := [each.name for each in live_processes() if not is_done(each)]:
        if time.monotonic() > deadline:
            raise Conflict(
                f"A running process {what}: {', '.join(waiting)}.",
                "Restart it with both keys, then run muniment keys rotate again.",
            )
        time.sleep(LOOK_S)


def drop(actor: Actor, of: str) -> bool:
    """
    Remove a former key, from the key file too; return whether the file held it.

    Raises:
        BadRequest: the database does not use it as a former key.
        Conflict: something still depends on it.
    """
    former = next((key for key in status().keys if key.fingerprint == of), None)
    if former is None or former.state != SecretKey.State.FORMER:
        raise BadRequest(f"{of[:40]} is not a former key.", "Run muniment keys.")
    if not former.can_go:
        reason = ", ".join(f"{count:,} {words}" for words, count in former.needed_by.items() if count)
        if not reason and former.signed_until:
            reason = f"what it signed is valid until {former.signed_until:%Y-%m-%d %H:%M} UTC"
        raise Conflict(f"The key {of} is still needed: {reason}.", "Run muniment keys rotate, or wait until then.")
    present = keyring.listed_keys()
    with transaction.atomic():
        SecretKey.objects.filter(fingerprint=of).delete()
        record(Event.KEYS_ROTATED, actor=actor, detail={"removed": of})
    settings_now = config.current()
    if settings_now.secret_key or of not in present:
        return False
    key_file.write(key_file.path_of(settings_now), [key for each, key in present.items() if each != of])
    keyring.follow()
    return True
