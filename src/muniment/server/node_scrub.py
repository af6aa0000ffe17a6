"""The scrub of a node: the checks of its copy of the published documents and of its exports, and their progress."""

import fcntl
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from muniment.config import Config
from muniment.declared_fields import instance_schema
from muniment.durable_files import replacing
from muniment.scrub.checks import Check, Damage, Slice, in_order
from muniment.scrub.instance import EVERY_S, PASS_S
from muniment.scrub.progress import Progress, turn
from muniment.server.observability.metrics import Metrics
from muniment.store.exports.files import MANIFEST
from muniment.store.tables import FILE_NAME, comparing, following
from muniment.store.tables.form import Form
from muniment.store.verifying import export_files, sqlite_file

EXPORTS: Final = "exports"
PAGES: Final = "pages of this node's copy"
DOCUMENTS: Final = "documents of this node's copy"
TABLES: Final = "tables of this node"
_REBUILDS: Final = "the server of this node builds its copy again from PostgreSQL"
_DELETE: Final = "stop the server of this node, delete {file}, and start it: it is built again from PostgreSQL"
_TABLES_MADE_AGAIN: Final = "the server of this node makes its tables again"
_DELETE_TABLES: Final = "stop the server of this node, delete {file}, and start it: the tables are made again"
_MADE_AGAIN: Final = "the server makes the exports again"


def node_checks(config: Config) -> list[Check]:
    folder, file = config.data / "exports", config.published_file
    exports = Check(
        name=EXPORTS,
        fine="each file has the digest of its list",
        count=lambda: len(export_files.listed(folder)) + 1,
        look=partial(_look_at_exports, folder),
    )
    of_all = [exports, *_table_checks(config)]
    if not config.on_postgresql or not file.exists():
        return of_all
    from muniment.store.verifying import node_copy  # imports psycopg, 6 MB

    pages = Check(
        name=PAGES,
        fine="every page, index and search index is whole",
        count=lambda: len(sqlite_file.parts(file)),
        look=partial(_look_at_pages, file),
    )
    documents = Check(
        name=DOCUMENTS,
        fine="each is as in PostgreSQL",
        count=lambda: node_copy.count(config.database_url),
        look=partial(_look_at_documents, config.database_url, file),
    )
    return [pages, documents, *of_all]


def _table_checks(config: Config) -> list[Check]:
    file = config.published_file.with_name(FILE_NAME)
    if not file.exists() or not config.published_file.exists():
        return []
    tables = Check(
        name=TABLES,
        fine="each row is as in the published documents",
        count=lambda: comparing.count(config.published_file),
        look=partial(_look_at_tables, config, file),
    )
    return [tables]


def _look_at_tables(config: Config, file: Path, after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    form = Form(instance_schema(config))
    pages = sqlite_file.faults(file, sqlite_file.WHOLE) if not after else []
    if pages:
        found = comparing.Compared(1, [(file.name, "; ".join(pages[:3]))], None)
    else:
        found = comparing.compare(config.published_file, file, form, after, limit)
    remedy = _TABLES_MADE_AGAIN if mend else _DELETE_TABLES.format(file=file)
    damages = []
    for subject, says in found.faults:
        damages.append(Damage(check=TABLES, subject=subject, says=says, remedy=remedy, is_mended=mend))
    if pages and mend:
        following.remove(file)
    elif damages and mend:
        following.make_again(file)
    return Slice(found.examined, damages, found.after)


def _look_at_exports(folder: Path, after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    files = {file.name: file for file in export_files.listed(folder)}
    names, last = in_order(sorted(files), after, max(1, limit // 10))
    damages = []
    for name in names:
        if not export_files.is_whole(folder, files[name]):
            if mend:
                export_files.discard(folder, name)
            remedy = _MADE_AGAIN if mend else f"delete {folder / name} and {folder / MANIFEST}; {_MADE_AGAIN}"
            says = "does not have the digest of the list"
            damages.append(Damage(check=EXPORTS, subject=name, says=says, remedy=remedy, is_mended=mend))
    return Slice(len(names), damages, last)


def _look_at_pages(file: Path, after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    names, last = in_order(sqlite_file.parts(file), after, max(1, limit // 50))
    damages = []
    for name in names:
        faults = sqlite_file.faults(file, name)
        if faults:
            damages.append(_of_copy(PAGES, file, name, "; ".join(faults[:3]), mend=mend))
    return Slice(len(names), damages, last)


def _look_at_documents(database_url: str, file: Path, after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    from muniment.store.verifying import node_copy

    found = node_copy.compare(database_url, file, after, limit)
    damages = [_of_copy(DOCUMENTS, file, subject, says, mend=mend) for subject, says in found.faults]
    return Slice(found.examined, damages, found.after)


def _of_copy(check: str, file: Path, subject: str, says: str, *, mend: bool) -> Damage:
    if mend:
        from muniment.store.verifying import node_copy

        node_copy.build_again(file)
    remedy = _REBUILDS if mend else _DELETE.format(file=file)
    return Damage(check=check, subject=subject, says=says, remedy=remedy, is_mended=mend)


log = logging.getLogger(__name__)
STATE: Final = "scrub.json"


class NodeScrub:
    """Continues the pass of this node every ten minutes; its progress is in the data folder."""

    def __init__(self, config: Config, metrics: Metrics, *, clock: Callable[[], float] = time.time) -> None:
        self._config = config
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)
        self._damaged = 0
        explanation = "Damages in the copy and the exports of this node that could not be mended."
        metrics.gauge("muniment_scrub_node_damaged", explanation, lambda: self._damaged)

    def start(self) -> "NodeScrub":
        self._thread.start()
        return self

    def close(self) -> None:
        """Ask the thread to stop; a part that is running ends with the process."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(EVERY_S):
            try:
                self.take_turn()
            except Exception:
                log.exception("the scrub of this node failed; it continues in %d s", EVERY_S)

    def take_turn(self) -> None:
        """Continue the pass, unless another process of the node does."""
        state, checks = self._config.data / STATE, node_checks(self._config)
        with (self._config.data / ".scrub.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            progress = turn(
                _stored(state),
                checks,
                at=self._clock(),
                pass_s=PASS_S,
                between=lambda progress: _store(state, progress),
            )
            _store(state, progress)
        self._damaged = len(progress.open(checks))


def _stored(state: Path) -> Progress:
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(state.read_bytes(), type=Progress)
    return Progress()


def _store(state: Path, progress: Progress) -> None:
    with replacing(state) as file:
        file.write(msgspec.json.encode(progress))
