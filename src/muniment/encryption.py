"""Encryption at rest for secrets that must be read again, with a key that is not in the database."""

import base64
import hashlib
from collections.abc import Iterable
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


def seal(content: bytes, purpose: str) -> str:
    """Encrypt *content* for one *purpose*, at most 16 ASCII characters; it opens for no other."""
    return seal_under(settings.SECRET_KEY, content, purpose)


def unseal(sealed: bytes | str, purpose: str) -> bytes:
    """Decrypt *sealed* with the current or a former key, or raise InvalidToken. Never continue with an empty secret."""
    return unseal_under((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS), sealed, purpose)[1]


def seal_under(key: str, content: bytes, purpose: str) -> str:
    return _box(key, purpose).encrypt(content).decode()


def unseal_under(keys: Iterable[str], sealed: bytes | str, purpose: str) -> tuple[str, bytes]:
    """Return which of *keys* opens *sealed*, and its content; raise InvalidToken if none does."""
    for key in keys:
        try:
            return key, _box(key, purpose).decrypt(sealed)
        except InvalidToken:
            continue
    raise InvalidToken


@lru_cache(maxsize=32)
def _box(key: str, purpose: str) -> Fernet:
    derived = hashlib.blake2b(key.encode(), digest_size=32, person=purpose.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))
