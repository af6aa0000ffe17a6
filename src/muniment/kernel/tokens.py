"""Bearer tokens: generate, recognize and hash them; only the hash is stored."""

import hashlib
import re
import secrets
import zlib
from typing import Final

PERSONAL: Final = "mun_pat_"
ACCESS: Final = "mun_at_"
REFRESH: Final = "mun_rt_"
CODE: Final = "mun_ac_"
MAX_TOKEN_CHARACTERS: Final = 200
"""Longer than any token; a longer value is rejected before it is hashed."""

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PERSONAL = re.compile(r"mun_pat_([0-9A-Za-z]{30})([0-9A-Za-z]{6})")


def base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def random_text(length: int) -> str:
    """Return *length* random base-62 characters, 5.95 bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def checksum(text: str) -> str:
    """Return the CRC32 of *text* in six characters, by which a secret scanner recognizes real tokens."""
    return base62(zlib.crc32(text.encode()), 6)


def mint_personal() -> str:
    """Generate a personal access token, 178 random bits and a checksum (decisions, section 4)."""
    body = random_text(30)
    return f"{PERSONAL}{body}{checksum(PERSONAL + body)}"


def is_personal(text: str) -> bool:
    """Return whether *text* has the form and the checksum of a personal access token."""
    match = _PERSONAL.fullmatch(text)
    return match is not None and checksum(PERSONAL + match[1]) == match[2]


def token_digest(text: str) -> str:
    """Return the stored form of a token. Tokens are long and random, so a plain SHA-256 cannot be reversed."""
    return hashlib.sha256(text.encode()).hexdigest()
