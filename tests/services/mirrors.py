"""A mirror as a process: made, followed, killed and continued."""

import json
import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from services.ports import wait_until
from services.product import Product, environment, started

FOLDERS = {"company": "companies", "person": "people", "framework": "frameworks"}


class Following:
    """``muniment mirror --follow`` of *origin* into *folder*."""

    def __init__(self, origin: Product, folder: Path) -> None:
        self._origin, self._folder = origin, folder
        self._log = folder.parent / f"{folder.name}-follow.log"
        self._process: Any = None

    def start(self) -> "Following":
        arguments = ["mirror", self._origin.url, str(self._folder), "--follow"]
        with self._log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            files = nothing.fileno(), log.fileno(), log.fileno()
            self._process = started(arguments, environment(self._folder.parent / "elsewhere"), files)
        return self

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        self._process.terminate() if isinstance(self._process, subprocess.Popen) else self._process.send_signal(15)
        return int(self._process.wait(20))  # an origin may take 50 s to answer a follower

    def wait_for(self, edition: int, *, within_s: float = 120) -> None:
        wait_until(lambda: edition_of(self._folder) >= edition, within_s=within_s, what=f"a mirror at {edition}")


def edition_of(folder: Path) -> int:
    """Return the edition of a mirror, or of an origin; -1 if there is none yet."""
    file = _published(folder)
    if not file.exists():
        return -1
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as own:
            return int(own.execute("SELECT edition FROM published_meta").fetchone()[0])
    except sqlite3.OperationalError:
        return -1


def differences(origin: Product, mirror: Product) -> list[str]:
    """Return the addresses of documents that *mirror* serves otherwise than *origin*, and what only one has."""
    keys = [_keys(product.data) for product in (origin, mirror)]
    found = [f"only one has {kind} {key}" for kind, key in sorted(keys[0] ^ keys[1])]
    for kind, key in sorted(keys[0] & keys[1]):
        path = f"/api/v1/{FOLDERS[kind]}/{quote(key, safe='')}"
        answers = [product.get(path) for product in (origin, mirror)]
        if answers[0].body != answers[1].body or answers[0].status != 200:
            found.append(path)
    return found


def _published(data: Path) -> Path:
    """Return the file of the published documents: a mirror's copy, or the database of an instance."""
    own = data / "muniment.sqlite3"
    return own if own.exists() and not (data / "mirror.json").exists() else data / "published.sqlite3"


def _keys(data: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(f"file:{_published(data)}?mode=ro", uri=True, timeout=10)) as opened:
        return set(opened.execute("SELECT kind, key FROM published_document"))


def with_descriptions(lines: list[dict[str, Any]], description: str) -> bytes:
    """Return lines of companies with another description, as a file to import."""
    changed = [{"company": {**line["company"], "description": description}} for line in lines]
    return b"".join(json.dumps(line).encode() + b"\n" for line in changed)
