"""
Access and refresh token pairs of a connection.

A refresh token is ``mun_rt_<handle>_<secret><tag>``. Each pair but the first is derived, with the instance's key, from
the presented refresh token. A retry within the window therefore gets the same pair; the database contains no usable
token, and the database and the key together do not reveal a current token without the previous one.

The tag is keyed: it distinguishes an issued token from one that was made up for a known handle. The current token is
recognized by its digest alone, so that a connection does not depend on the key under which its token was made.
"""

import hmac
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from django.conf import settings
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
    return _pair(handle, random_text(SECRET_CHARACTERS), random_text(SECRET_CHARACTERS), settings.SECRET_KEY)


def next_pair(handle: str, presented: str, *, key: str = "") -> TokenPair:
    """Derive the pair that follows the refresh token *presented*; always the same one under one secret key."""
    key = key or settings.SECRET_KEY
    return _pair(handle, _keyed("access", presented, key), _keyed("refresh", presented, key), key)


def next_pairs(handle: str, presented: str) -> Iterator[TokenPair]:
    """Derive what followed *presented* under the current and each former secret key."""
    return (next_pair(handle, presented, key=key) for key in _keys())


def handle_of(refresh: str) -> str | None:
    """Return the handle that a refresh token names; None if it does not look like one."""
    match = _REFRESH.fullmatch(refresh)
    return match[1] if match else None


def was_issued(refresh: str) -> bool:
    """Return whether a refresh token was ever issued here, under the current or a former secret key."""
    match = _REFRESH.fullmatch(refresh)
    return match is not None and any(hmac.compare_digest(match[3], _tag(match[1], match[2], key)) for key in _keys())


def access_handle(access: str) -> str | None:
    match = _ACCESS.fullmatch(access)
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
