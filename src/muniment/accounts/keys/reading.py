"""Secret keys: how one setting or file lists several, and the fingerprint by which a database names one."""

import hashlib
import re
import secrets
from typing import Final

MIN_CHARACTERS: Final = 32
"""Of the first key of a list; also of any other key that is used without the database naming it."""
_SEPARATORS: Final = re.compile(r"[,\r\n]")
_FIRST: Final = re.compile(rf"[A-Za-z0-9_-]{{{MIN_CHARACTERS},}}")


def new_key() -> str:
    return secrets.token_urlsafe(48)


def parts(text: str) -> tuple[str, ...]:
    """Return what is between the separators of *text*."""
    return tuple(part for part in (part.strip() for part in _SEPARATORS.split(text)) if part)


def is_plain(key: str) -> bool:
    """Return whether a list can have *key* at any place; it can have one other key, as its end."""
    return parts(key) == (key,)


def listed(text: str) -> tuple[str, ...]:
    """
    Return the keys that *text* lists, separated by commas or line breaks.

    It is a list only if its first key has at least 32 letters, digits, hyphens and underscores; any other text is one
    key, with its commas and line breaks.
    """
    found = parts(text)
    return (text,) if len(found) < 2 or not _FIRST.fullmatch(found[0]) else tuple(dict.fromkeys(found))


def candidates(text: str) -> tuple[str, ...]:
    """
    Return every key that *text* may mean: those it lists, each rest of the list as one key, and the text as one key.

    A key may itself contain the separator. The database names the key it uses by its fingerprint, and then only that
    reading is used.
    """
    found = listed(text)
    if len(found) == 1:
        return found
    rests = [text[match.end() :] for match in _SEPARATORS.finditer(text)]
    return tuple(dict.fromkeys(key for key in (*found, *rests, *(rest.strip() for rest in rests), text) if key))


def is_strong(key: str) -> bool:
    return len(key) >= MIN_CHARACTERS


def fingerprint(key: str) -> str:
    """Return 64 bits of a keyed digest of nothing: it names the key and does not reveal it."""
    inner = hashlib.blake2b(key.encode()).digest()
    return hashlib.blake2b(key=inner, digest_size=8, person=b"fingerprint").hexdigest()
