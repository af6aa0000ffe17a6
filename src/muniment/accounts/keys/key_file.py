"""
The secret keys of this process as text: the setting, or a file in the data folder. No Django.

One text can list several keys; a database names a key by its fingerprint.
"""

import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Final

from muniment.config import Config, ConfigError
from muniment.durable_files import replacing, sync

MIN_CHARACTERS: Final = 32
"""Minimum characters of the first key of a list, and of any other key used without the database naming it."""
_SEPARATORS: Final = re.compile(r"[,\r\n]")
_FIRST: Final = re.compile(rf"[A-Za-z0-9_-]{{{MIN_CHARACTERS},}}")


def new_key() -> str:
    return secrets.token_urlsafe(48)


def parts(text: str) -> tuple[str, ...]:
    """Return what is between the separators of *text*."""
    return tuple(filter(None, map(str.strip, _SEPARATORS.split(text))))


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
    if len(found) < 2 or not _FIRST.fullmatch(found[0]):
        return (text,)
    return tuple(dict.fromkeys(found))


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
    keys = (*found, *rests, *map(str.strip, rests), text)
    return tuple(dict.fromkeys(filter(None, keys)))


def is_strong(key: str) -> bool:
    return len(key) >= MIN_CHARACTERS


def fingerprint(key: str) -> str:
    """Return 64 bits of a keyed digest of nothing: it names the key and does not reveal it."""
    inner = hashlib.blake2b(key.encode()).digest()
    return hashlib.blake2b(key=inner, digest_size=8, person=b"fingerprint").hexdigest()


NAME: Final = "django.key"


def path_of(config: Config) -> Path:
    return config.data / "keys" / NAME


def secret_text(config: Config) -> str:
    """
    Return the keys of this process as text; create the file with one key at the first start.

    Raises:
        ConfigError: the file is empty or no text.
    """
    if config.secret_key:
        return config.secret_key
    file = path_of(config)
    if not file.exists():
        _create(file)
    try:
        text = file.read_text()
    except UnicodeDecodeError:
        text = ""
    if not text.strip():
        message = (
            f"The key file {file} is empty or damaged. Put the file of a backup there, or set MUNIMENT_SECRET_KEY."
        )
        raise ConfigError(message)
    return text


def write(file: Path, keys: list[str]) -> None:
    """
    Write one key on each line, atomically.

    A key that contains a separator, such as the line break with which an editor ended the file, is written as the end.

    Raises:
        ValueError: there are two such keys.
    """
    plain, other = [key for key in keys if is_plain(key)], [key for key in keys if not is_plain(key)]
    if len(other) > 1:
        message = "a key file can have one key with line breaks or commas"
        raise ValueError(message)
    with replacing(file) as out:
        out.write("\n".join([*plain, *other]).encode())


def _create(file: Path) -> None:
    file.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.parent.mkdir(mode=0o700, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    with replacing(draft) as out:
        out.write(new_key().encode())
    try:
        file.hardlink_to(draft)  # atomic: the first of several starting processes wins
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync(file.parent)
