"""Import a batch of frameworks with their private specifications."""

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
    counts = BatchCounts()
    existing = existing_rows(Framework, (row.slug for _, row in rows), lock=not run.dry)
    rows = _with_company(run, without_used_slugs(run, "framework", rows, existing))
    named = {row.company for _, row in rows if row.company}
    companies = dict(Company.objects.filter(slug__in=named).values_list("slug", "pk"))
    keys = [each.pk for each in existing.values()]
    edits = edits_of("framework", keys)
    authored = _latest_versions(keys)
    made: list[Framework] = []
    changed: list[Framework] = []
    entries: list[HistoryEntry] = []
    specifications: list[FrameworkSpecification] = []
    for line, row in rows:
        framework = existing.get(row.slug)
        if run.skips(line, framework):
            counts.unchanged += 1
            continue
        latest = authored.get(framework.pk) if framework else None
        columns = {**_columns(run, line, row, latest), "company_id": companies.get(row.company)}
        if framework is not None and (found := edits.get(framework.pk)):
            _settle(run, line, framework, found, columns)
            if row.specification is not None and latest is not None and _SPECIFICATION in found.brought:
                row.specification = found.settle(
                    _SPECIFICATION, latest.document, row.specification, overwrite=run.overwrite
                )
            run.report_kept(line, found, _PATHS, counts)
        text = row.specification if latest is None or row.specification != latest.document else None
        if framework is None:
            columns.setdefault("listed", False)
            framework = Framework(slug=row.slug, updated_at=row.updated_at or now(), **columns)
            made.append(framework)
            before: JSONObject = {}
        elif (former := update_row(framework, columns, row.updated_at, other_changes=text is not None)) is not None:
            before = former
            changed.append(framework)
        else:
            counts.unchanged += 1
            continue
        after = {name: columns[name] for name in before}
        if text is not None:
            specifications.append(next_version(framework, text, latest, run.actor))
            if latest is not None:
                before[_SPECIFICATION], after[_SPECIFICATION] = latest.version, specifications[-1].version
        entries.append(history_entry(run, before, after, edits=edits.get(framework.pk), framework=framework))
    counts.new, counts.changed = len(made), len(changed)
    if run.dry:
        return counts
    insert_rows("framework", made)
    update_rows(changed)
    FrameworkSpecification.objects.bulk_create(specifications)
    HistoryEntry.objects.bulk_create(entries)
    remember("framework", edits)
    publish(AffectedRows().framework(*_keys(made)).framework_with_companies(*_keys(changed)))
    return counts


def _keys(frameworks: list[Framework]) -> list[int]:
    return [framework.pk for framework in frameworks]


def _latest_versions(keys: list[int]) -> dict[int, FrameworkSpecification]:
    versions = FrameworkSpecification.objects.filter(framework_id__in=keys)
    return {each.framework_id: each for each in versions.order_by("framework_id", "version")}


def _with_company(run: BatchRun, rows: list[tuple[int, FrameworkRow]]) -> list[tuple[int, FrameworkRow]]:
    named = {row.company for _, row in rows if row.company}
    known = {"", *run.names["company"], *Company.objects.filter(slug__in=named).values_list("slug", flat=True)}
    kept = []
    for line, row in rows:
        if row.company in known:
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


def _columns(run: BatchRun, line: int, row: FrameworkRow, latest: FrameworkSpecification | None) -> JSONObject:
    columns = dict(row.columns)
    authored = row.specification is not None or latest is not None
    if row.is_open and not authored:
        run.warn(line, Fault("framework.isOpen", "is true without a specification; published as false"))
    if row.is_open is not None and authored:
        columns["closed"] = not row.is_open
    if not run.draft:
        columns["listed"] = True
    return columns


def next_version(
    framework: Framework, document: JSONObject, latest: FrameworkSpecification | None, actor: Actor
) -> FrameworkSpecification:
    """Return the next, unsaved version of a specification; keeps the document's number if it is higher."""
    version = document["version"]
    if latest is not None and version <= latest.version:
        version = latest.version + 1
        document = {**document, "version": version}
    return FrameworkSpecification(framework=framework, version=version, document=document, author_id=actor.account_id)
