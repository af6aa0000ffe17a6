"""
The pair of tokens of a connection.

A refresh token is ``mun_rt_<handle>_<secret><tag>``. Each pair but the first is derived, under the instance's
key, from the refresh token that is presented for it. So whoever asks again within the window gets the same
pair, nothing that could be used stands in the database, and neither the database nor the key, nor both, give
a current token to whoever does not hold the one before.

The tag is keyed: it tells a token that was once issued from one that was made up from a handle somebody saw.
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
    """Both tokens, as they are given to the client."""

    access: str
    refresh: str

    def __repr__(self) -> str:
        return "Pair(…)"  # never into a log


def new_handle() -> str:
    """Make the name under which a connection's tokens find its row."""
    return random_text(HANDLE_CHARACTERS)


def first_pair(handle: str) -> TokenPair:
    """Make the first pair of a connection, at random."""
    return _pair(handle, random_text(SECRET_CHARACTERS), random_text(SECRET_CHARACTERS))


def next_pair(handle: str, presented: str) -> TokenPair:
    """Give the pair that follows the refresh token *presented*: always the same one."""
    return _pair(handle, _derived("access", presented), _derived("refresh", presented))


def handle_of(refresh: str) -> str | None:
    """Give the handle of a refresh token that was issued here, now or once; None for anything else."""
    match = _REFRESH.fullmatch(refresh)
    if match is None or not hmac.compare_digest(match[3], _tag(match[1], match[2])):
        return None
    return match[1]


def access_handle(access: str) -> str | None:
    """Give the handle that an access token names; None for what has another form."""
    match = _ACCESS.fullmatch(access)
    return match[1] if match else None


def _pair(handle: str, access: str, refresh: str) -> TokenPair:
    return TokenPair(f"{ACCESS}{handle}_{access}", f"{REFRESH}{handle}_{refresh}{_tag(handle, refresh)}")


def _derived(purpose: str, presented: str) -> str:
    made = salted_hmac(f"muniment.oauth.{purpose}", presented, algorithm="sha256").digest()
    return base62(int.from_bytes(made), SECRET_CHARACTERS)


def _tag(handle: str, secret: str) -> str:
    made = salted_hmac("muniment.oauth.tag", f"{handle}_{secret}", algorithm="sha256").digest()
    return base62(int.from_bytes(made), TAG_CHARACTERS)
