"""
Secrets that stay when the secret key is rotated, for keyed digests whose texts are not stored.

Until the first rotation such a secret is derived from the secret key; the rotation stores it, sealed under the new
key. Digests made before and after therefore match.

What is signed and not sealed needs its key for as long as it is accepted: each feature registers that time.
"""

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from cryptography.fernet import InvalidToken
from django.conf import settings

from muniment.accounts.models import KeptSecret
from muniment.encryption import seal_under, unseal_under

PURPOSE: Final = "kept secret"
_names: set[str] = set()


def register(name: str) -> None:
    """Keep the secret *name*, at most 16 ASCII characters, when the key is rotated."""
    _names.add(name)


def secrets_for(name: str, keys: Iterable[str] = ()) -> list[bytes]:
    """Return the secrets for *name*, the one for new digests first; *keys* replace those of this process."""
    own = list(keys) or [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    found = [_derived(key, name) for key in own]
    for sealed in KeptSecret.objects.filter(name=name).values_list("sealed", flat=True):
        try:
            found.insert(0, unseal_under(own, sealed, PURPOSE)[1])
        except InvalidToken:
            continue
    return list(dict.fromkeys(found))


def keep(former: str, current: str) -> None:
    """Store every secret that is still derived from the *former* key, sealed under the *current* one."""
    known = set(KeptSecret.objects.values_list("name", flat=True))
    for name in sorted(_names - known):
        KeptSecret.objects.create(name=name, sealed=seal_under(current, _derived(former, name), PURPOSE))


def _derived(key: str, name: str) -> bytes:
    return hashlib.blake2b(key.encode(), digest_size=32, person=name.encode()).digest()


_lifetimes: dict[str, timedelta] = {}


def accept_signed(what: str, lifetime: timedelta) -> None:
    _lifetimes[what] = lifetime


def longest_signed() -> timedelta:
    return max(_lifetimes.values(), default=timedelta())
