"""Ask the plugins about the rows of an import: a refused row is reported like one that breaks a rule."""

from collections.abc import Mapping

from muniment.kernel.json import JSONObject
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.models import Company, Person, State
from muniment.registry.plugged import checking


def is_company_refused(
    run: BatchRun,
    line: int,
    company: Company,
    columns: JSONObject,
    *,
    lists: tuple[JSONObject, JSONObject],
    paths: Mapping[str, str],
) -> bool:
    """
    Return whether a plugin refuses what a row changes, and report why.

    Args:
        columns: those of the row; empty for a new listing, which has them.
        lists: the lists beside the listing's object, as they are stored and as the row gives them, in wire form.
        paths: where a line has the members.
    """
    stored, given = lists
    changed = {name: each for name, each in given.items() if each != (stored.get(name) or [])}
    parts = ({name: stored[name] for name in changed if name in stored}, changed)
    is_public = columns.get("state", company.state) == State.PUBLISHED
    change = checking.of_company(run.actor, company, columns, parts, is_public=is_public, is_import=True)
    faults = checking.faults_of(change) if change.fields else []
    for fault in faults:
        beside = fault.field if fault.field in {*given, "distribution"} else f"company.{fault.field}"
        run.tell(line, fault._replace(field=paths.get(fault.field, beside)))
    return bool(faults)


def is_person_refused(run: BatchRun, line: int, person: Person, columns: JSONObject) -> bool:
    """Return whether a plugin refuses what a row changes, and report why; *columns* are empty for a new person."""
    if is_unchecked(run):
        return False
    change = checking.of_person(run.actor, person, columns, publishes=not run.draft, is_import=True)
    faults = checking.faults_of(change) if change.fields else []
    for fault in faults:
        run.tell(line, fault)
    return bool(faults)


def is_unchecked(run: BatchRun) -> bool:
    """Return whether no plugin checks the rows of an import."""
    return run.restores or not checking.is_needed()  # an undo brings back what was there
