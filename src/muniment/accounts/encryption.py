"""Encryption at rest for secrets that must be read again, with a key that is not in the database."""

import base64
import hashlib
from functools import lru_cache

from cryptography.fernet import Fernet
from django.conf import settings


def seal(content: bytes, purpose: str) -> str:
    """Encrypt *content* for one *purpose*, at most 16 ASCII characters; it opens for no other."""
    return _box(settings.SECRET_KEY, purpose).encrypt(content).decode()


def unseal(sealed: bytes | str, purpose: str) -> bytes:
    """Decrypt *sealed*, or raise InvalidToken. Never continue with an empty secret instead."""
    return _box(settings.SECRET_KEY, purpose).decrypt(sealed)


@lru_cache(maxsize=8)
def _box(key: str, purpose: str) -> Fernet:
    derived = hashlib.blake2b(key.encode(), digest_size=32, person=purpose.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))
