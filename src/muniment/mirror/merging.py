"""
Merge kinds of another registry into this one: its exports first, then its changes, by the rules of an import.

What the other registry brings is written by the importer, so that fields that people change here stay, what was erased
here stays erased, and an undo works. What this registry has from elsewhere under the same slug is another organization
or person as far as anyone knows: it stays as it is, and nothing that is merged refers to it.

A note beside the database says how far the other registry was read. It is written after the rows of a page are stored,
so a page may be imported twice, which changes nothing.
"""

import gzip
import hashlib
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from muniment.durable_files import replacing
from muniment.kernel.actor import COMMAND
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.mirror.copying import Entry, Following, Number, Page, Place, Snapshot, lines_of
from muniment.mirror.origin import Origin
from muniment.registry.exchange.batch import merged_slugs
from muniment.registry.exchange.edits import IMPORTED
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.exchange.reading import RowFault
from muniment.registry.models import Company, Framework, HistoryEntry, ImportRun, Person
from muniment.registry.review.pruning import Pruning, plan_pruning_of
from muniment.schema.objects import Schema
from muniment.store.published_document import KINDS, Kind

FOLDER: Final = "followed"
"""The folder of the notes, in the data folder."""
_FILES: Final[dict[Kind, str]] = {"person": "people", "company": "companies", "framework": "frameworks"}
_MODELS: Final[dict[Kind, type[Company] | type[Person] | type[Framework]]] = {
    "company": Company,
    "person": Person,
    "framework": Framework,
}
_CHUNK: Final = 5_000


class _Note(msgspec.Struct, rename="camel"):
    """
    How far a registry was read.

    Args:
        kinds: those that were read; with others, the exports are read again.
    """

    origin: str
    kinds: tuple[Kind, ...]
    feed_id: str
    after: Number
    chain: str | None = None


class _Company(msgspec.Struct):
    id: str


class _CompanyLine(msgspec.Struct):
    company: _Company


class _PersonLine(msgspec.Struct):
    slug: str


class _Framework(msgspec.Struct, rename="camel"):
    framework_id: str


class _FrameworkLine(msgspec.Struct):
    framework: _Framework


class Merge(Following):
    """
    What *origin* publishes of some kinds, as rows of this registry. Django must be set up.

    Args:
        data: the data folder of this registry.
        kinds: what is merged.
        limit: the greatest number of rows that reading the exports again may unlist; None: a tenth of each kind.
        restarts: the exports are read again whatever was read before.
    """

    def __init__(
        self,
        origin: Origin,
        data: Path,
        kinds: Collection[Kind] = KINDS,
        *,
        limit: int | None = None,
        restarts: bool = False,
        tells: Callable[[str], None] = lambda _: None,
    ) -> None:
        name = hashlib.sha256(origin.address.encode()).hexdigest()[:16]
        super().__init__(origin, data / FOLDER / name, tells=tells)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._note = self.folder / "note.json"
        self._kinds = tuple(kind for kind in KINDS if kind in kinds)
        self._limit, self._restarts = limit, restarts
        self._options = ImportOptions(origin=origin.address)

    def place(self) -> Place | None:
        if self._restarts or not self._note.exists():
            return None
        try:
            note = msgspec.json.decode(self._note.read_bytes(), type=_Note)
        except msgspec.MsgspecError:
            raise BadRequest(
                Phrase("{path} is damaged.", path=self._note),
                "Add --restart: the exports are read again, and rows without changes stay as they are.",
            ) from None
        if note.kinds != self._kinds:
            return None
        return Place(note.feed_id, note.after, note.chain)

    def build(self, snapshot: Snapshot, schema: Schema) -> None:  # noqa: ARG002 - a copy needs it
        """Import the exports, and unlist what an earlier reading brought and they no longer hold."""
        keys: dict[str, set[str]] = {}
        for kind in self._kinds:
            keys[kind] = {_key_of(kind, line) for line in self._lines(snapshot, kind)}
        self._imported({kind: self._lines(snapshot, kind) for kind in self._kinds}, keys)
        brought: dict[str, list[int]] = {kind: self._brought_rows(kind) for kind in self._kinds}
        gone = self._without_owned(plan_pruning_of(keys, among=brought, limit=self._limit))
        gone.check()
        for row in gone.rows:
            self._tells(f"{row} is unlisted: the origin no longer has it")
        gone.unlist(COMMAND, self._run())
        self._write_note(snapshot.place)
        for path in snapshot.files.values():
            path.unlink(missing_ok=True)
        self._restarts = False

    def apply(self, place: Place, page: Page, schema: Schema) -> None:  # noqa: ARG002 - a copy needs both
        """Import the documents of a page of changes, and unlist what the origin has unlisted."""
        last: dict[tuple[Kind, str], Entry] = {}
        for entry in page.data:
            if entry.kind in self._kinds:
                last[entry.kind, entry.id] = entry
        lines: dict[Kind, list[bytes]] = {kind: [] for kind in self._kinds}
        gone: dict[Kind, set[str]] = {kind: set() for kind in self._kinds}
        for (kind, key), entry in last.items():
            data = None if entry.change == "unlisted" else self.data(entry)
            if data is None:
                gone[kind].add(key)
            else:
                lines[kind].append(_line_of(kind, data))
        if any(lines.values()):
            keys: dict[str, set[str]] = {}
            for kind in self._kinds:
                keys[kind] = {_key_of(kind, line) for line in lines[kind]}
            self._imported(lines, keys)
        self._unlist(gone)
        self._write_note(Place(page.feed_id, page.next_after, page.chain))

    def other_history(self, place: Place) -> Phrase:
        return Phrase(
            "{address} has another history than the one that was merged until change {number}: it was restored, or its"
            " history was rewritten. What was merged stays as it is.",
            address=self._origin.address,
            number=place.after,
        )

    # ------------------------------------------------------------------ rows

    def _lines(self, snapshot: Snapshot, kind: Kind) -> Iterator[bytes]:
        """Yield the lines of an export, which are as many as its list says."""
        path, count = snapshot.files[kind], 0
        for line in lines_of(path):
            count += 1
            yield line
        if count != snapshot.rows[kind]:
            raise self._foreign(f"{path.name} has {count} rows, and its list says {snapshot.rows[kind]}")

    def _imported(self, lines: Mapping[Kind, Iterable[bytes]], keys: Mapping[str, set[str]]) -> None:
        """Import lines, without those whose slug is of a row from elsewhere, and without references to such rows."""
        own: dict[str, set[str]] = {"person": set(), "company": set()}
        for kind in self._kinds:
            foreign = self._from_elsewhere(kind, keys[kind])
            for key in sorted(foreign):
                self._tells(f"{kind} {key} is kept: it exists here, and did not come from {self._origin.address}")
            own[kind] = keys[kind] - foreign
        folder = self.folder / "import"
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        folder.mkdir(mode=0o700)
        try:
            for kind in self._kinds:
                with gzip.open(folder / f"{_FILES[kind]}.jsonl.gz", "wb", compresslevel=1) as file:
                    for line in lines[kind]:
                        if _key_of(kind, line) in own[kind]:
                            file.write(self._with_own_references(kind, line, own) + b"\n")
            summary = import_registry(folder, self._options, tell=self._tell_fault, warn=self._tell_fault)
        finally:
            shutil.rmtree(folder)
        former = self._options.follows
        self._options = replace(self._options, follows=summary if former is None else former + summary)
        self._tells(str(summary))

    def _with_own_references(self, kind: Kind, line: bytes, own: Mapping[str, set[str]]) -> bytes:
        """Return a line that names people and companies by slug only if they came from the origin."""
        if kind == "person":
            return line  # its positions follow from the companies
        row = msgspec.json.decode(line)
        if kind == "company":
            people = list(_people_of(row))
            slugs = {person["slug"] for person in people}
            unknown = slugs - own["person"]
            unknown -= self._brought("person", unknown).keys()
            for person in people:
                if person["slug"] in unknown:
                    del person["slug"]
            return msgspec.json.encode(row)
        company = row["framework"].get("company")
        if isinstance(company, dict):
            # The importer takes the one or the other.
            named = {company[name] for name in ("slug", "id") if isinstance(company.get(name), str)}
            if named - own["company"] - self._brought("company", named).keys():
                row["framework"]["company"] = None
        return msgspec.json.encode(row)

    def _unlist(self, gone: Mapping[Kind, set[str]]) -> None:
        """Unlist what the origin has unlisted, if it came from there."""
        for kind, keys in gone.items():
            brought = self._brought(kind, keys)
            if brought:
                missing = plan_pruning_of({kind: ()}, among={kind: list(brought.values())}, limit=len(brought))
                count = self._without_owned(missing).unlist(COMMAND, self._run())
                self._tells(f"{count} {_FILES[kind]} that the origin has unlisted are unlisted")

    def _run(self) -> int | None:
        """Return the key of the record of this run; None as long as it has imported nothing."""
        return None if self._options.follows is None else self._options.follows.import_run

    def _without_owned(self, gone: Pruning) -> Pruning:
        """Return what is gone without listings that have an owner here, whose to end they are."""
        for row in gone.rows:
            if row.has_owner:
                self._tells(f"{row} stays public, and the origin no longer has it")
        rows = [row for row in gone.rows if not row.has_owner]
        refusal = gone.refusal if rows else ""
        return Pruning(rows, refusal)

    def _from_elsewhere(self, kind: Kind, keys: Collection[str]) -> set[str]:
        """Return those of the *keys* that rows have here which the origin did not bring."""
        present: set[str] = set()
        for chunk in _chunks(keys):
            present |= set(_MODELS[kind]._default_manager.filter(slug__in=chunk).values_list("slug", flat=True))  # noqa: SLF001 - Django's public name
        elsewhere = present - self._brought(kind, present).keys()
        if kind == "person":
            # Lines of people who were merged into others here would change those.
            for chunk in _chunks(keys):
                elsewhere |= merged_slugs(chunk).keys()
        return elsewhere

    def _brought(self, kind: Kind, keys: Collection[str]) -> dict[str, int]:
        """Return slug and primary key of those of the rows with these *keys* that the origin has brought."""
        runs = ImportRun.objects.filter(files=[self._origin.address])
        brought: dict[str, int] = {}
        for chunk in _chunks(keys):
            entries = HistoryEntry.objects.filter(action=IMPORTED, import_run__in=runs, **{f"{kind}__slug__in": chunk})
            brought.update(entries.values_list(f"{kind}__slug", kind).distinct())
        return brought

    def _brought_rows(self, kind: Kind) -> list[int]:
        """Return the primary keys of all rows that the origin has brought."""
        runs = ImportRun.objects.filter(files=[self._origin.address])
        entries = HistoryEntry.objects.filter(action=IMPORTED, import_run__in=runs, **{f"{kind}__isnull": False})
        return list(entries.values_list(kind, flat=True).distinct())

    def _tell_fault(self, fault: RowFault) -> None:
        self._tells(f"warning: {fault}")

    def _write_note(self, place: Place) -> None:
        note = _Note(self._origin.address, self._kinds, place.feed_id, place.after, place.chain)
        with replacing(self._note) as file:
            file.write(msgspec.json.encode(note) + b"\n")


def _chunks(keys: Collection[str]) -> Iterator[list[str]]:
    """Yield the keys in parts that a statement can hold."""
    sorted_keys = sorted(keys)
    for start in range(0, len(sorted_keys), _CHUNK):
        yield sorted_keys[start : start + _CHUNK]


def _people_of(row: JSONObject) -> Iterator[JSONObject]:
    """Yield the people whom the positions of a company name by slug; the importer refuses what has another form."""
    positions = row.get("positions")
    if not isinstance(positions, list):
        return
    for position in positions:
        person = position.get("person") if isinstance(position, dict) else None
        if isinstance(person, dict) and isinstance(person.get("slug"), str):
            yield person


def _key_of(kind: Kind, line: bytes) -> str:
    """Return the slug by which the importer finds the row of a line."""
    try:
        match kind:
            case "company":
                return msgspec.json.decode(line, type=_CompanyLine).company.id
            case "person":
                return msgspec.json.decode(line, type=_PersonLine).slug
            case "framework":
                return msgspec.json.decode(line, type=_FrameworkLine).framework.framework_id
    except (msgspec.MsgspecError, RecursionError):
        raise BadRequest(Phrase("A line of the exports is no {kind}.", kind=kind), "Nothing of it was used.") from None


def _line_of(kind: Kind, data: bytes) -> bytes:
    """Return the line of an import that has a document of the API."""
    return b'{"framework":' + data + b"}" if kind == "framework" else data
