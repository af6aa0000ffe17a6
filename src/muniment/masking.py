"""Mask secrets in texts that are logged or shown."""

import re
from typing import Final
from urllib.parse import unquote

_IN_TEXT: Final = (
    re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic)?\s*)[^\s'\",;]+"),
    re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(r"(?i)((?:cookie|set-cookie)['\"]?\s*[:=]\s*['\"]?)[^\r\n]+"),
)
_IN_WORDS: Final = (
    # Tokens of this software anywhere in a text, some with underscores inside, also percent-encoded.
    re.compile(r"(?i)(mun(?:_|%5f)[a-z]+(?:_|%5f))[a-z0-9_%.~-]+"),
    re.compile(r"\b((?:sk|rk)_(?:live|test)_|whsec_)[A-Za-z0-9_*]+"),  # Stripe's
    re.compile(r"(?i)([?&;](?:token|code|key|secret|state|access_token|refresh_token|code_verifier)=)[^&\s'\"]+"),
    re.compile(r"(?i)(\b(?:[a-z]+_)?(?:password|passwd|sslpassword|secret)=)\S+"),
    # Some links carry their secret in the path; a sign-in on the way repeats it in its query. What follows the secret
    # is masked with it.
    re.compile(
        r"(?i)((?:/|\\|%2f)(?:uploads|downloads|confirm-email|key|invitations|shared|setup)(?:(?:/|\\|%2f)\.{0,2})+)"
        r"[^\s?&'\"]+"
    ),
)
_WORD: Final = re.compile(r"[^\s]*[%@=/\\_][^\s]*")
"""A word that can contain a secret; a word without any of these characters contains none."""
_MOST_ENCODED: Final = 10


def masked(text: str) -> str:
    """
    Replace every secret in *text*, also in addresses that are percent-encoded any number of times.

    A text without a secret is returned as it is, so that a phrase stays one and can be translated.
    """
    hidden = text
    for pattern in _IN_TEXT:
        hidden = pattern.sub(r"\1***", hidden)
    hidden = _WORD.sub(lambda found: _masked_word(found[0]), hidden)
    return text if hidden == text else hidden


def _masked_word(word: str) -> str:
    shown = plain = _masked_once(word)
    for _ in range(_MOST_ENCODED):
        decoded = unquote(plain)
        if decoded == plain:
            return shown
        plain = _masked_once(decoded)
        if plain != decoded:
            shown = plain  # a secret was disguised
    return "***"


def _masked_once(word: str) -> str:
    for pattern in _IN_WORDS:
        word = pattern.sub(r"\1***", word)
    # A password in an address may contain "/" and "@": it reaches from the first colon to the last "@".
    begins = word.find("://")
    colon, ends = word.find(":", begins + 3), word.rfind("@")
    return f"{word[: colon + 1]}***{word[ends:]}" if 0 <= begins < colon < ends else word
