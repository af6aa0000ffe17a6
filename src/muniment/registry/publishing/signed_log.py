"""
Sign the checkpoints of the public log, and rotate the key that signs them.

The key is made at the first start. Its private part is encrypted under the secret key of the instance. A key that
is rotated names the next one by a note, and both sign checkpoints for 90 days, so that a reader with the former key
accepts the new one.
"""

from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cryptography.fernet import InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.db.models import QuerySet

from muniment import config
from muniment.config import Config
from muniment.encryption import seal, unseal
from muniment.kernel.ids import now
from muniment.kernel.problems import Unavailable
from muniment.kernel.signed_notes import Checkpoint, Succession, sign, vkey
from muniment.registry.models import LogKey
from muniment.registry.publishing import publisher
from muniment.store import public_log
from muniment.store.public_log import LogState

PURPOSE: Final = "log key"
BOTH_SIGN_FOR: Final = timedelta(days=90)
NAMELESS: Final = "muniment"
"""Begins the origin of a log whose instance had no public URL when it was first asked for."""


class SignedLog(NamedTuple):
    """
    The log as strangers know it.

    Args:
        keys: the verifier keys of those that sign, the newest first.
        successions: the notes by which former keys name the next ones, the oldest first.
    """

    state: LogState
    keys: list[str]
    successions: list[str]


def sealed_rows() -> QuerySet[LogKey]:
    return LogKey.objects.exclude(sealed="")


def read_log(raw: Any) -> SignedLog | None:
    """Return the log; None if it has no name or no key yet: call :func:`settle`."""
    state = public_log.state(raw)
    signing = _signing()
    if state is None or not state.origin or not signing:
        return None
    keys = [vkey(state.origin, bytes(key.public_key)) for key in signing]
    noted = LogKey.objects.exclude(succession="").order_by("pk").values_list("succession", flat=True)
    # A log that began again has another name, in which no former key has spoken.
    successions = [note for note in noted if note.startswith(f"{state.origin}\n")]
    return SignedLog(state, keys, successions)


def current_state() -> LogState | None:
    """Return the state of the log; None if it has not begun."""
    connection.ensure_connection()
    return public_log.state(connection.connection)


def prepare() -> None:
    """Make the name and the key of the log at the first start, so that no reader waits for them."""
    connection.ensure_connection()
    if read_log(connection.connection) is None:
        settle()


def settle() -> None:
    """Make the name and the key of the log where they are missing."""
    with transaction.atomic():
        publisher.lock()
        raw = connection.connection
        if public_log.state(raw) is None:
            publisher.continue_log()
        public_log.name_origin(raw, host_of(config.current()))
        if not LogKey.objects.filter(ended_at=None).exists():
            _make_key()


def host_of(config: Config) -> str:
    """Return the public host of the instance, by which its log is named once and for all."""
    is_public = config.origins["base_url"] != "default"
    return urlsplit(config.base_url).netloc if is_public else NAMELESS


def _signing() -> list[LogKey]:
    """Return the keys that sign, the newest first."""
    keys = []
    for key in sealed_rows().order_by("-pk"):
        if key.ended_at is None or key.ended_at > now() - BOTH_SIGN_FOR:
            keys.append(key)
    return keys


def sign_checkpoint(checkpoint: Checkpoint) -> str:
    """
    Return the signed note of a checkpoint.

    Raises:
        Unavailable: the secret key of this process does not open the private key.
    """
    privates = []
    for key in _signing():
        try:
            privates.append(_private(key.sealed))
        except InvalidToken:
            if key.ended_at is None:
                raise Unavailable(
                    "The key of the log cannot be opened.",
                    "The operator must set the secret key that it was made with, or run muniment log rotate-key.",
                ) from None
    return sign(checkpoint.text(), checkpoint.origin, *privates)


@lru_cache(maxsize=8)
def _private(sealed: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(unseal(sealed, PURPOSE))


def _make_key() -> tuple[LogKey, str]:
    """Make a key, and return it with its verifier key."""
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    sealed = seal(private.private_bytes_raw(), PURPOSE)
    key = LogKey.objects.create(public_key=public, sealed=sealed, made_at=now())
    state = public_log.state(connection.connection)
    assert state is not None  # noqa: S101 - the caller has read it
    return key, vkey(state.origin, public)


class Rotated(NamedTuple):
    """
    The result of a rotation.

    Args:
        key: the verifier key that signs from now on.
        is_vouched: whether the former key names it; otherwise that could not be opened.
    """

    key: str
    is_vouched: bool


def rotate_key() -> Rotated:
    """Let another key sign from now on, named by the former one, which signs too for 90 days."""
    settle()
    with transaction.atomic():
        publisher.lock()
        former = LogKey.objects.get(ended_at=None)
        key, verifier = _make_key()
        state = public_log.state(connection.connection)
        assert state is not None  # noqa: S101 - it is settled
        try:
            private = _private(former.sealed)
            key.succession = sign(Succession(state.origin, verifier).text(), state.origin, private)
        except InvalidToken:
            former.sealed = ""
        key.save(update_fields=["succession"])
        former.ended_at = now()
        former.save(update_fields=["sealed", "ended_at"])
        LogKey.objects.filter(ended_at__lt=now() - BOTH_SIGN_FOR).update(sealed="")
    return Rotated(verifier, is_vouched=bool(key.succession))
