"""
Export the published registry in the form that import reads, oldest publication first.

All files are one snapshot, taken without blocking writers; each file appears only when complete. Drafts, accounts and
history are not exported: a backup contains them.

Source: decisions, section 6.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from django.conf import settings

from muniment.durable_files import replacing
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.registry.company import pictures
from muniment.registry.exchange.list_files import LISTS, line_of
from muniment.registry.models import Company, Framework, FrameworkSpecification, Person, State
from muniment.registry.publishing.documents import (
    CompanyView,
    companies_with_long_lists,
    company_line,
    company_object,
    company_reference,
    company_views,
    rows_of_list,
)
from muniment.store.database.snapshots import snapshot

CHUNK: Final = 500
LONG_LIST_ROWS: Final = 5_000
LONG_LIST_BYTES: Final = 1 << 20
"""A longer list has lines of its own, so that the line of its company is within the limit of an import."""
_encode = msgspec.json.Encoder().encode


def export_registry(
    folder: Path, *, private: bool = False, progress: Callable[[str, int], object] = lambda _kind, _rows: None
) -> dict[str, int]:
    """
    Write companies.jsonl, people.jsonl, frameworks.jsonl and pictures into *folder*; return the numbers by kind.

    The long lists of companies are in captable.jsonl, positions.jsonl and proposals.jsonl, if there are any.

    Args:
        folder: created if needed; existing files of those names are replaced.
        private: include the private specifications and prices of frameworks.
        progress: called with the kind and the number of rows written.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    counts = {}
    with snapshot():
        with _list_files(folder) as lists:
            counts["companies"] = _write(folder / "companies.jsonl", _companies(lists), partial(progress, "companies"))
        for kind, rows in (("people", _people()), ("frameworks", _frameworks(private))):
            counts[kind] = _write(folder / f"{kind}.jsonl", rows, partial(progress, kind))
        counts |= lists.counts
        written = _write_pictures(folder / "pictures")
        if written:
            counts["pictures"] = written
    return counts


def is_long(rows: Collection[Any]) -> bool:
    """Return whether a list of a company gets lines of its own."""
    return len(rows) > LONG_LIST_ROWS or sum(len(_encode(row)) for row in rows) > LONG_LIST_BYTES


class _ListFiles:
    """The files with the long lists of companies, and the number of their rows by kind."""

    def __init__(self, files: dict[str, IO[bytes]]) -> None:
        self.counts: dict[str, int] = {}
        self._files = files

    def write(self, kind: str, company: str, rows: Iterable[Any]) -> None:
        file, count = self._files[kind], self.counts.get(kind, 0)
        for row in rows:
            file.write(_encode(line_of(kind, company, row)) + b"\n")
            count += 1
        self.counts[kind] = count


@contextmanager
def _list_files(folder: Path) -> Iterator[_ListFiles]:
    """Provide the files with the long lists of companies; those that get no row are removed, also of former exports."""
    paths = {kind: folder / f"{kind}.jsonl" for kind in LISTS}
    with ExitStack() as stack:
        lists = _ListFiles({kind: stack.enter_context(replacing(path)) for kind, path in paths.items()})
        yield lists
    for kind, path in paths.items():
        if kind not in lists.counts:
            path.unlink(missing_ok=True)


def _write_pictures(folder: Path) -> int:
    """Write the logos and portraits of published rows, and remove those of earlier exports."""
    shown = {"published": True}
    addresses = list(Company.objects.filter(icon__startswith="/pictures/", **shown).values_list("icon", flat=True))
    people = Person.objects.filter(extra__contains="/pictures/", **shown).values_list("extra", flat=True)
    addresses += [extra["picture"] for extra in people if isinstance(extra.get("picture"), str)]
    digests = pictures.digests_of(addresses)
    for file in folder.glob("*.webp"):  # without the folder, none
        former = pictures.digests_of([f"/pictures/{file.name}"])
        # A file of another form was not written by an export, and stays.
        if former and not former & digests:
            file.unlink()
    return pictures.write_files(folder, digests)


def _write(path: Path, rows: Iterator[JSONObject], progress: Callable[[int], object]) -> int:
    done = 0
    with replacing(path) as out:
        for row in rows:
            out.write(_encode(row) + b"\n")
            done += 1
            if done % CHUNK == 0:
                progress(done)
    progress(done)
    return done


def _chunks(keys: list[int]) -> Iterator[list[int]]:
    for start in range(0, len(keys), CHUNK):
        yield keys[start : start + CHUNK]


def _companies(lists: _ListFiles) -> Iterator[JSONObject]:
    published = Company.objects.filter(state=State.PUBLISHED).order_by("publication_number")
    for keys in _chunks(list(published.values_list("pk", flat=True))):
        long_lists = companies_with_long_lists(keys, LONG_LIST_ROWS)
        views = company_views(keys, without=long_lists)
        for key in keys:
            line = _company(views[key])
            for kind, (member, _) in LISTS.items():
                if key in long_lists[member]:
                    lists.write(kind, views[key].columns["slug"], rows_of_list(member, key))
                    del line[member]  # an import keeps the list of a company whose line has none
                elif is_long(line[member]):
                    lists.write(kind, views[key].columns["slug"], line.pop(member))
            yield line


def _company(view: CompanyView) -> JSONObject:
    row = view.columns
    company = company_object(view, settings.SCHEMA)
    company |= settings.SCHEMA.company.retired(row)
    # Derived from the rounds; updatedAt is a member of the line; owners, their proofs and what was fetched belong to
    # this instance.
    for name in ("raising", "updatedAt", "maintainedByOwner", "verifiedDomain", "logo"):
        company.pop(name, None)
    company.pop("teamSize", None)  # an import counts the people in the positions again
    if row["team_size"] is not None:
        company["teamSize"] = row["team_size"]
    if row["treasury_minor"] is not None:  # exact here too, for readers that do not know treasuryAmount
        company["treasury"] = settings.SCHEMA.company.by_name["treasury"].kind.wire(row["treasury_minor"])
    return {**company_line(view, company, settings.SCHEMA), "updatedAt": timestamp(row["updated_at"])}


def _people() -> Iterator[JSONObject]:
    published = Person.objects.filter(published=True).order_by("publication_number")
    for keys in _chunks(list(published.values_list("pk", flat=True))):  # a snapshot cannot use server-side cursors
        for person in published.filter(pk__in=keys):
            row = vars(person)
            yield {**settings.SCHEMA.person.published(row, {}), **settings.SCHEMA.person.retired(row)}


def _frameworks(private: bool) -> Iterator[JSONObject]:  # noqa: FBT001 - private to this module
    published = Framework.objects.filter(published=True).select_related("company").order_by("publication_number")
    for framework in published:
        latest = FrameworkSpecification.objects.filter(framework=framework).order_by("-version").first()
        company = framework.company
        if company is not None and company.state != State.PUBLISHED:
            company = None
        derived = {
            "isOpen": latest is not None and not framework.closed,
            "company": company_reference(vars(company)) if company else None,
        }
        shown = settings.SCHEMA.framework.published(vars(framework), derived)
        updated_at = shown.pop("updatedAt")
        line: JSONObject = {"framework": shown}
        if private and latest is not None:
            line["specification"] = latest.document
        if private and framework.run_cost is not None:
            line["runCost"] = framework.run_cost
        yield {**line, "updatedAt": updated_at}
