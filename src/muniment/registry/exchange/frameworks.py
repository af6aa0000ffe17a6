"""Import a batch of frameworks with their private specifications."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.exchange.batch import (
    BatchCounts,
    BatchRun,
    existing_rows,
    history_entry,
    insert_rows,
    update_row,
    update_rows,
    without_used_slugs,
)
from muniment.registry.exchange.edits import Edits, edits_of, remember
from muniment.registry.exchange.keeping import settle_columns
from muniment.registry.exchange.rows import FrameworkRow
from muniment.registry.models import Company, Framework, FrameworkSpecification, HistoryEntry
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.validation import Fault

_SPECIFICATION: Final = "specificationVersion"
_PATHS: Final = {
    **{name: f"framework.{name}" for name in ("description", "kind")},
    "name": "framework.frameworkName",
    "closed": "framework.isOpen",
    _SPECIFICATION: "specification",
}
"""Members that have another name in a file."""


def import_frameworks(run: BatchRun, rows: list[tuple[int, FrameworkRow]]) -> BatchCounts:
    """Write a batch of frameworks, with a new version of the specification if it differs."""
    existing = existing_rows(Framework, (row.slug for _, row in rows), lock=not run.dry)
    rows = _with_company(run, without_used_slugs(run, "framework", rows, existing))
    named = {row.company for _, row in rows if row.company}
    companies = dict(Company.objects.filter(slug__in=named).values_list("slug", "pk"))
    keys = _keys(existing.values())
    batch = _FrameworkBatch(run, companies, edits_of("framework", keys), _latest_versions(keys))
    for line, row in rows:
        framework = existing.get(row.slug)
        if run.skips(line, framework):
            batch.counts.unchanged += 1
        elif framework is None:
            batch.add(line, row)
        else:
            batch.change(line, row, framework)
    batch.counts.new, batch.counts.changed = len(batch.made), len(batch.changed)
    if not run.dry:
        batch.store()
    return batch.counts


@dataclass(slots=True)
class _FrameworkBatch:
    """
    The frameworks of a batch, as their rows are read, until they are written together.

    Args:
        companies: the keys of the companies that the rows name, by slug.
        edits: what people changed of the stored frameworks, by primary key.
        latest_versions: the latest version of the specification of each of these, by primary key.
    """

    run: BatchRun
    companies: Mapping[str, int]
    edits: dict[int, Edits]
    latest_versions: Mapping[int, FrameworkSpecification]
    counts: BatchCounts = field(default_factory=BatchCounts)
    made: list[Framework] = field(default_factory=list)
    changed: list[Framework] = field(default_factory=list)
    entries: list[HistoryEntry] = field(default_factory=list)
    specifications: list[FrameworkSpecification] = field(default_factory=list)

    def add(self, line: int, row: FrameworkRow) -> None:
        """Add a framework that is not stored."""
        columns = self._columns(line, row, None)
        columns.setdefault("listed", False)
        framework = Framework(slug=row.slug, updated_at=row.updated_at or now(), **columns)
        self.made.append(framework)
        if row.specification is not None:
            self.specifications.append(next_version(framework, row.specification, None, self.run.actor))
        self.entries.append(history_entry(self.run, {}, {}, framework=framework))

    def change(self, line: int, row: FrameworkRow, framework: Framework) -> None:
        """Change a stored framework by a row, except what was changed here since."""
        run = self.run
        latest = self.latest_versions.get(framework.pk)
        columns = self._columns(line, row, latest)
        document = row.specification
        edits = self.edits.get(framework.pk)
        if edits:
            _settle(run, line, framework, edits, columns)
            if document is not None and latest is not None and _SPECIFICATION in edits.brought:
                document = edits.settle(_SPECIFICATION, latest.document, document, overwrite=run.overwrite)
            run.report_kept(line, edits, _PATHS, self.counts)
        if latest is not None and document == latest.document:
            document = None
        before = update_row(framework, columns, row.updated_at, other_changes=document is not None)
        if before is None:
            self.counts.unchanged += 1
            return
        self.changed.append(framework)
        after = {name: columns[name] for name in before}
        if document is not None:
            specification = next_version(framework, document, latest, run.actor)
            self.specifications.append(specification)
            if latest is not None:
                before[_SPECIFICATION] = latest.version
                after[_SPECIFICATION] = specification.version
        self.entries.append(history_entry(run, before, after, edits=edits, framework=framework))

    def _columns(self, line: int, row: FrameworkRow, latest: FrameworkSpecification | None) -> JSONObject:
        columns = {**row.columns, "company_id": self.companies.get(row.company)}
        is_authored = row.specification is not None or latest is not None
        if row.is_open and not is_authored:
            self.run.warn(line, Fault("framework.isOpen", "is true without a specification; published as false"))
        if row.is_open is not None and is_authored:
            columns["closed"] = not row.is_open
        if not self.run.draft:
            columns["listed"] = True
        return columns

    def store(self) -> None:
        """Write new and changed frameworks with their specifications and history, and publish them."""
        insert_rows("framework", self.made)
        update_rows(self.changed)
        FrameworkSpecification.objects.bulk_create(self.specifications)
        HistoryEntry.objects.bulk_create(self.entries)
        remember("framework", self.edits)
        publish(AffectedRows().framework(*_keys(self.made)).framework_with_companies(*_keys(self.changed)))


def _keys(frameworks: Iterable[Framework]) -> list[int]:
    return [framework.pk for framework in frameworks]


def _latest_versions(keys: list[int]) -> dict[int, FrameworkSpecification]:
    """Return the latest version of each framework's specification."""
    versions = FrameworkSpecification.objects.filter(framework_id__in=keys).order_by("framework_id", "version")
    # Of the versions of a framework, the last one stays.
    return {specification.framework_id: specification for specification in versions}


def _with_company(run: BatchRun, rows: list[tuple[int, FrameworkRow]]) -> list[tuple[int, FrameworkRow]]:
    named = {row.company for _, row in rows if row.company}
    existing = {"", *run.names["company"], *Company.objects.filter(slug__in=named).values_list("slug", flat=True)}
    kept = []
    for line, row in rows:
        if row.company in existing:
            kept.append((line, row))
        else:
            run.tell(
                line,
                Fault("framework.company.id", Phrase("is unknown: no company has the slug {slug!r}", slug=row.company)),
            )
    return kept


def _settle(run: BatchRun, line: int, framework: Framework, edits: Edits, columns: JSONObject) -> None:
    """Keep what reviewers changed since the last import: members, and that it is unlisted."""
    listed = columns.pop("listed", None)
    settle_columns(run, edits, framework, columns, None)
    if listed and not framework.listed and "listed" in edits.brought and not run.relist:
        run.warn(
            line, Fault("", Phrase("{slug!r} is unlisted and stays so; --relist publishes it", slug=framework.slug))
        )
    elif listed is not None:
        columns["listed"] = listed


def next_version(
    framework: Framework, document: JSONObject, latest: FrameworkSpecification | None, actor: Actor
) -> FrameworkSpecification:
    """Return the next, unsaved version of a specification; keeps the document's number if it is higher."""
    version = document["version"]
    if latest is not None and version <= latest.version:
        version = latest.version + 1
        document = {**document, "version": version}
    return FrameworkSpecification(framework=framework, version=version, document=document, author_id=actor.account_id)
