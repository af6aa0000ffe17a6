"""
Export the published registry in the form that import reads, oldest publication first.

All files are one snapshot, taken without blocking writers; each file appears only when complete. Drafts, accounts and
history are not exported: a backup contains them.

Source: decisions, section 6.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from django.conf import settings

from muniment.durable_files import replacing
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.registry.company import pictures
from muniment.registry.models import Company, Framework, FrameworkSpecification, Person, State
from muniment.registry.publishing.documents import company_views
from muniment.registry.publishing.rendering import CompanyView, company_line, company_object, company_reference
from muniment.store.database.snapshots import snapshot

CHUNK: Final = 500
_encode = msgspec.json.Encoder().encode


def export_registry(
    folder: Path, *, private: bool = False, progress: Callable[[str, int], object] = lambda _kind, _rows: None
) -> dict[str, int]:
    """
    Write companies.jsonl, people.jsonl, frameworks.jsonl and pictures into *folder*; return the numbers by kind.

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
        for kind, rows in (("companies", _companies()), ("people", _people()), ("frameworks", _frameworks(private))):
            counts[kind] = _write(folder / f"{kind}.jsonl", rows, partial(progress, kind))
        if written := _write_pictures(folder / "pictures"):
            counts["pictures"] = written
    return counts


def _write_pictures(folder: Path) -> int:
    """Write the logos and portraits of published rows, and remove those of earlier exports."""
    shown = {"published": True}
    addresses = list(Company.objects.filter(icon__startswith="/pictures/", **shown).values_list("icon", flat=True))
    people = Person.objects.filter(extra__contains="/pictures/", **shown).values_list("extra", flat=True)
    addresses += [extra["picture"] for extra in people if isinstance(extra.get("picture"), str)]
    digests = pictures.digests_of(addresses)
    for file in folder.glob("*.webp") if folder.is_dir() else ():
        if (former := pictures.digests_of([f"/pictures/{file.name}"])) and not former & digests:
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


def _companies() -> Iterator[JSONObject]:
    published = Company.objects.filter(state=State.PUBLISHED).order_by("publication_number")
    for keys in _chunks(list(published.values_list("pk", flat=True))):
        views = company_views(keys)
        yield from (_company(views[key]) for key in keys)


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
        company = framework.company if framework.company and framework.company.state == State.PUBLISHED else None
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
