"""
Access and refresh token pairs of a connection.

A refresh token is ``mun_rt_<handle>_<secret><tag>``. Each pair but the first is derived, with the instance's key, from
the presented refresh token. A retry within the window therefore gets the same pair; the database contains no usable
token, and the database and the key together do not reveal a current token without the previous one.

The tag is keyed: it distinguishes an issued token from one that was made up for a known handle.
"""

import hmac
import re
from typing import Final, NamedTuple

from django.utils.crypto import salted_hmac

from muniment.kernel.tokens import ACCESS, REFRESH, base62, random_text

HANDLE_CHARACTERS: Final = 16
SECRET_CHARACTERS: Final = 43  # 256 bits
TAG_CHARACTERS: Final = 12  # 71 bits
_ACCESS = re.compile(r"mun_at_([0-9A-Za-z]{16})_[0-9A-Za-z]{43}")
_REFRESH = re.compile(r"mun_rt_([0-9A-Za-z]{16})_([0-9A-Za-z]{43})([0-9A-Za-z]{12})")


class TokenPair(NamedTuple):
    """Both tokens as returned to the client."""

    access: str
    refresh: str

    def __repr__(self) -> str:
        return "Pair(…)"  # keeps the tokens out of logs


def first_pair(handle: str) -> TokenPair:
    return _pair(handle, random_text(SECRET_CHARACTERS), random_text(SECRET_CHARACTERS))


def next_pair(handle: str, presented: str) -> TokenPair:
    """Derive the pair that follows the refresh token *presented*; always the same one."""
    return _pair(handle, _keyed("access", presented), _keyed("refresh", presented))


def handle_of(refresh: str) -> str | None:
    """Return the handle of a refresh token that was ever issued here; None for anything else."""
    match = _REFRESH.fullmatch(refresh)
    if match is None or not hmac.compare_digest(match[3], _tag(match[1], match[2])):
        return None
    return match[1]


def access_handle(access: str) -> str | None:
    match = _ACCESS.fullmatch(access)
    return match[1] if match else None


def _pair(handle: str, access: str, refresh: str) -> TokenPair:
    return TokenPair(f"{ACCESS}{handle}_{access}", f"{REFRESH}{handle}_{refresh}{_tag(handle, refresh)}")


def _tag(handle: str, secret: str) -> str:
    return _keyed("tag", f"{handle}_{secret}", TAG_CHARACTERS)


def _keyed(purpose: str, text: str, characters: int = SECRET_CHARACTERS) -> str:
    made = salted_hmac(f"muniment.oauth.{purpose}", text, algorithm="sha256").digest()
    return base62(int.from_bytes(made), characters)
