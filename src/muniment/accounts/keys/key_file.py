"""The text of this process's secret keys: the setting, or a file in the data folder. No Django."""

import os
from pathlib import Path
from typing import Final

from muniment.accounts.keys.reading import is_plain, new_key
from muniment.config import Config, ConfigError
from muniment.durable_files import replacing, sync

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
