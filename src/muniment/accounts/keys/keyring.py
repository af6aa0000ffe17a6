"""
The keys of this process, which of them the database uses, and how they are adopted, rotated and removed.

A setting or file lists keys; the database names its current and former keys by fingerprint. A process signs and seals
with the key that the database calls current, whatever the order of its own list, so that nodes with different lists
agree.

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
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from muniment import config
from muniment.accounts.keys import kept, key_file, sealed
from muniment.accounts.keys.key_file import candidates, fingerprint, is_plain, is_strong, listed, new_key, parts
from muniment.accounts.models import KeptSecret, KeyHolder, SecretKey
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict

log = logging.getLogger(__name__)
CURRENT: Final = SecretKey.State.CURRENT
LIVE_FOR: Final = timedelta(seconds=45)
AGAIN_S: Final = 15.0
WAIT_S: Final = 90.0
LOOK_S: Final = 0.5
Tell = Callable[[str], object]


class WrongKey(Exception):  # noqa: N818 - its message is for the operator
    """The database uses a key that this process lacks. The message says which, and what to do."""

    def __init__(self, lacking: str, own: list[str]) -> None:
        super().__init__(
            f"This database uses the secret key with the fingerprint {lacking}, which this node lacks; it has"
            f" {', '.join(own)}. Set MUNIMENT_SECRET_KEY, or keys/{key_file.NAME} in the data folder, to the key of the"
            " other nodes, then start again. If that key is lost, see muniment keys adopt --replace."
        )
        self.lacking = lacking


def own_keys() -> dict[str, str]:
    """Return every key that this process may mean, by fingerprint; its file is read again."""
    current = config.current()
    if not current.secret_key and key_file.path_of(current).exists():  # a running process makes no new key
        settings.SECRET_KEYS_TEXT = key_file.secret_text(current)
    return {fingerprint(key): key for key in candidates(settings.SECRET_KEYS_TEXT)}


def listed_keys() -> dict[str, str]:
    """Return the keys that the text lists, by fingerprint; it is read as the database knows its keys."""
    own = own_keys()
    key_ids = SecretKey.objects.values_list("fingerprint", flat=True)
    known = {key_id: own[key_id] for key_id in key_ids if key_id in own}
    # A known key may contain separators; what is between them is then no key.
    pieces: set[str] = set()
    for key in known.values():
        if not is_plain(key):
            pieces.update(parts(key))
    listing = {}
    for key in listed(settings.SECRET_KEYS_TEXT):
        key_id = fingerprint(key)
        # A reading with separators inside is only a guess, which the database confirms if it knows any key.
        is_certain = is_plain(key) or key_id in known or not known
        if key not in pieces and is_certain:
            listing[key_id] = key
    return listing | known


def settle(*, is_new: bool = False) -> None:
    """
    Use the keys that the database uses, and record its fingerprint if it has none and ours opens what is sealed.

    Args:
        is_new: the instance was created just now, so its first key is ours.

    Raises:
        WrongKey: the database uses a key that this process lacks.
    """
    if not SecretKey.objects.filter(state=CURRENT).exists():
        _record_first(is_new=is_new)
    if not follow():
        lacking = SecretKey.objects.get(state=CURRENT).fingerprint
        raise WrongKey(lacking, [fingerprint(key) for key in listed(settings.SECRET_KEYS_TEXT)])


def follow() -> bool:
    """Sign with the key that the database calls current; return whether this process has it."""
    states = dict(SecretKey.objects.values_list("fingerprint", "state"))
    own = own_keys()
    current = next((key_id for key_id, state in states.items() if state == CURRENT), "")
    if not current:
        return True
    if current not in own:
        return False
    known = [key for key_id, key in own.items() if key_id in states]
    # A key that the database does not name yet is accepted too: other nodes may begin to sign with it.
    strong = [key for key in listed_keys().values() if is_strong(key)]
    others = dict.fromkeys([*known, *strong])
    others.pop(own[current], None)
    _use(own[current], list(others))
    return True


def _use(key: str, others: list[str]) -> None:
    """Change Django's keys; at every moment the new and the old one are accepted."""
    if key == settings.SECRET_KEY and others == settings.SECRET_KEY_FALLBACKS:
        return
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY, key, *others]
    settings.SECRET_KEY = key
    settings.SECRET_KEY_FALLBACKS = others


def _record_first(*, is_new: bool) -> None:
    text = settings.SECRET_KEYS_TEXT
    if is_new:
        record_current(fingerprint(listed(text)[0]))
        return
    # Versions without fingerprints knew one key: the whole text.
    rows_by_key = sealed.survey(dict.fromkeys((text, *candidates(text))))
    if not rows_by_key:
        log.info("no fingerprint of the secret key is recorded; run: muniment keys adopt")
    elif len(rows_by_key) == 1 and "" not in rows_by_key:
        record_current(fingerprint(next(iter(rows_by_key))))
        log.info("the fingerprint of the secret key is recorded")
    else:
        log.warning(
            "nodes of this database have used different secret keys: not everything that is sealed opens with the key"
            " of this node. Give every node the same MUNIMENT_SECRET_KEY, then run: muniment keys adopt."
            " The next version refuses to start"
        )


def record_current(of: str) -> bool:
    """Record the current key of a database without one; return whether this call did."""
    try:
        with transaction.atomic():
            SecretKey.objects.create(fingerprint=of, state=CURRENT)
    except IntegrityError:  # another node was first
        return False
    return True


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
        has_current = follow()
        if not has_current and not self._is_lacking:
            log.error("the database's current secret key is missing here; give this node both keys and restart it")
        self._is_lacking = not has_current
        state = (" ".join(own_keys()), fingerprint(settings.SECRET_KEY))
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
        if self.state != "former" or any(self.needed_by.values()):
            return False
        return self.signed_until is None or self.signed_until <= now()


@dataclass(frozen=True, slots=True)
class Status:
    """The keys of the instance, and what none of the keys here opens."""

    keys: list[KeyStatus]
    unopened: dict[str, int]
    processes: list[Holder]


def status() -> Status:
    own = own_keys()
    rows = {row.fingerprint: row for row in SecretKey.objects.order_by("state", "-since")}
    key_ids = dict.fromkeys([*rows, *listed_keys()])
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
    own = own_keys()
    row = SecretKey.objects.filter(state=CURRENT).first()
    if row is not None and row.fingerprint in own:
        follow()
        return row.fingerprint
    # The first key of the list, unless what is sealed opens with another reading of the text.
    rows_by_key = sealed.survey(dict.fromkeys([*listed(settings.SECRET_KEYS_TEXT), *own.values()]))
    unopened = rows_by_key[""]
    key = next((key for key in rows_by_key if key), listed(settings.SECRET_KEYS_TEXT)[0])
    if (row is not None or unopened) and not replace:
        raise Conflict(
            f"The database uses the key {row.fingerprint}." if row else f"{unopened:,} sealed rows do not open.",
            "Set that key on this node. If it is lost, repeat with --replace: everybody signs in again, and second"
            " factors that do not open must be removed and set up again.",
        )
    with transaction.atomic():
        SecretKey.objects.all().delete()
        SecretKey.objects.create(fingerprint=fingerprint(key), state=CURRENT)
        if replace:
            _drop_unopened(key)
        record(Event.KEYS_ROTATED, actor=actor, detail={"adopted": fingerprint(key)})
    follow()
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
    current = SecretKey.objects.filter(state=CURRENT).first()
    if current is None:
        raise Conflict("The database has no fingerprint of its key.", "Run muniment keys adopt first.")
    new = _new_key()
    if new is not None:
        tell(f"waiting until every process has the key {fingerprint(new)}")
        _wait_for(lambda process: fingerprint(new) in process.keys, "lacks the new key", wait_s)
        _switch(actor, current.fingerprint, new)
    follow()
    now_current = fingerprint(settings.SECRET_KEY)
    tell(f"waiting until every process signs with {now_current}")
    _wait_for(lambda process: process.signs_with == now_current, "still signs with the former key", wait_s)
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    for kind in sealed.KINDS:
        tell(f"sealing {kind.words} again")
        count = kind.reseal(keys)
        tell(f"{count:,} {kind.words} sealed again")


def _new_key() -> str | None:
    """Return the key to rotate to; None if the last rotation is unfinished. In a key file, it is made here."""
    states = dict(SecretKey.objects.values_list("fingerprint", "state"))
    listing = listed_keys()
    unused = [key for key_id, key in listing.items() if key_id not in states]
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
    key_file.write(key_file.path_of(settings_now), [new, *listing.values()])
    own_keys()  # this process reads the file again
    return new


def _is_unfinished() -> bool:
    formers = settings.SECRET_KEY_FALLBACKS
    rows_by_key = sealed.survey([settings.SECRET_KEY, *formers])
    return any(rows_by_key[key] for key in formers)


def _switch(actor: Actor, former: str, new: str) -> None:
    own = own_keys()
    with transaction.atomic():
        row = SecretKey.objects.select_for_update().filter(fingerprint=former, state=CURRENT).first()
        if row is None:
            raise Conflict("Another rotation has just taken place.", "Run muniment keys.")
        kept.keep(own[former], new)
        row.state, row.since = SecretKey.State.FORMER, now()
        row.save(update_fields=["state", "since"])
        SecretKey.objects.create(fingerprint=fingerprint(new), state=CURRENT)
        record(Event.KEYS_ROTATED, actor=actor, detail={"from": former, "to": fingerprint(new)})


def _wait_for(is_done: Callable[[Holder], bool], lack: str, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while waiting := [process.name for process in live_processes() if not is_done(process)]:
        if time.monotonic() > deadline:
            raise Conflict(
                f"A running process {lack}: {', '.join(waiting)}.",
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
    _require_unneeded(former)
    present = listed_keys()
    with transaction.atomic():
        SecretKey.objects.filter(fingerprint=of).delete()
        record(Event.KEYS_ROTATED, actor=actor, detail={"removed": of})
    settings_now = config.current()
    if settings_now.secret_key or of not in present:
        return False
    key_file.write(key_file.path_of(settings_now), [key for key_id, key in present.items() if key_id != of])
    follow()
    return True


def _require_unneeded(former: KeyStatus) -> None:
    if former.can_go:
        return
    reason = ", ".join(f"{count:,} {words}" for words, count in former.needed_by.items() if count)
    if not reason and former.signed_until:
        reason = f"what it signed is valid until {former.signed_until:%Y-%m-%d %H:%M} UTC"
    raise Conflict(
        f"The key {former.fingerprint} is still needed: {reason}.", "Run muniment keys rotate, or wait until then."
    )
