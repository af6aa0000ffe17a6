"""
Ask the plugins about a change of a company or a person, in the transaction of the change, and about rows of an import.

It fails closed: where a plugin cannot be loaded, or fails itself, nothing is stored. A refused row of an import is
reported like one that breaks a rule.
"""

import copy
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Unavailable
from muniment.plugins.loading import installed
from muniment.plugins.values import Change, Kind
from muniment.registry.company.changes import BadFields
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.models import Company, Person, State
from muniment.schema.validation import MAX_FAULTS, Fault

HINT: Final = "This rule is one of this registry: ask its operator if it is unclear."
MESSAGE_CHARACTERS: Final = 500
RETRY_S: Final = 60
log = logging.getLogger(__name__)


class PluginFailed(Unavailable):
    """A plugin that checks changes does not work."""

    def __init__(self, name: str) -> None:
        super().__init__(
            Phrase(
                "The plugin {name} of this registry does not work, so changes cannot be checked; nothing was saved.",
                name=name,
            ),
            "Tell the operator: the log has the cause, and muniment plugins lists the plugins. A plugin that is left"
            " out of MUNIMENT_PLUGINS checks nothing.",
            retry_after_s=RETRY_S,
        )


def is_needed() -> bool:
    """Return whether a plugin checks changes, or would perhaps if it could be loaded."""
    plugins = installed()
    return bool(plugins.failed or plugins.calls("validate_change"))


def refuse_company(
    actor: Actor, company: Company, columns: JSONMapping, parts: tuple[JSONMapping, JSONMapping] = ({}, {})
) -> None:
    """
    Ask the plugins about a listing that is edited, or that takes a step.

    Args:
        columns: those that change.
        parts: the lists that change, before and after, in wire form.

    Raises:
        BadFields: a plugin refuses the change.
        PluginFailed: a plugin does not work.
    """
    if is_needed():
        _refuse(of_company(actor, company, columns, parts))


def refuse_step(actor: Actor, company: Company, end: str) -> None:
    """Ask the plugins about a listing that is going to be public, or asks for it; as :func:`refuse_company`."""
    if end in {State.SUBMITTED, State.PUBLISHED} and is_needed():
        _refuse(of_company(actor, company, {}, is_public=True))


def refuse_person(actor: Actor, person: Person, columns: JSONMapping, *, publishes: bool = False) -> None:
    """Ask the plugins about a person who is edited, or whose profile is published; as :func:`refuse_company`."""
    if is_needed():
        _refuse(of_person(actor, person, columns, publishes=publishes))


def of_company(
    actor: Actor,
    company: Company,
    columns: JSONMapping,
    parts: tuple[JSONMapping, JSONMapping] = ({}, {}),
    *,
    is_public: bool = False,
    is_import: bool = False,
) -> Change:
    parts_before, parts_after = parts
    before: JSONObject = {}
    if company.pk and company.version:
        before = {**_members_of_company(vars(company)), **parts_before}
    after = {**_members_of_company({**vars(company), **columns}), **parts_after}
    is_public = is_public or company.state not in {State.DRAFT, State.CHANGES_REQUESTED, State.REJECTED}
    return _change("company", company.slug, before, after, actor, is_public=is_public, is_import=is_import)


def of_person(
    actor: Actor, person: Person, columns: JSONMapping, *, publishes: bool = False, is_import: bool = False
) -> Change:
    before = _members(settings.SCHEMA.person, vars(person)) if person.pk else {}
    after = _members(settings.SCHEMA.person, {**vars(person), **columns})
    is_public = publishes or person.published or person.listed
    return _change("person", person.slug, before, after, actor, is_public=is_public, is_import=is_import)


def faults_of(change: Change) -> list[Fault]:
    """
    Return why plugins refuse a change.

    Raises:
        PluginFailed: one could not be loaded, or raises.
    """
    plugins = installed()
    for failed in plugins.failed:
        raise PluginFailed(failed.name)
    faults: list[Fault] = []
    for call in plugins.calls("validate_change"):
        try:
            refusals = list(call(change=change) or ())
            faults += [Fault(str(each.field), str(each.message)[:MESSAGE_CHARACTERS]) for each in refusals]
        except Exception:
            log.exception("plugin %s failed in validate_change of %s %s", call.plugin, change.kind, change.id)
            raise PluginFailed(call.plugin) from None
    return faults[:MAX_FAULTS]


def _refuse(change: Change) -> None:
    if faults := faults_of(change):
        raise BadFields(faults, HINT)


def _members_of_company(columns: JSONMapping) -> JSONObject:
    return {**_members(settings.SCHEMA.company, columns), "distribution": columns["distribution"]}


def _members(record: Any, columns: JSONMapping) -> JSONObject:
    return {**record.exact(columns), **(columns["extra"] or {})}


def _change(
    kind: Kind, slug: str, before: JSONObject, after: JSONObject, actor: Actor, *, is_public: bool, is_import: bool
) -> Change:
    names = before.keys() | after.keys()
    return Change(
        kind=kind,
        id=slug,
        # Copies: what a plugin does with them must not reach the rows.
        before=MappingProxyType(copy.deepcopy(before)),
        after=MappingProxyType(copy.deepcopy(after)),
        fields=frozenset(name for name in names if before.get(name) != after.get(name)),
        is_public=is_public,
        via=actor.via,
        is_import=is_import,
    )


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
        columns: the columns of the row; empty for a new listing, which has them.
        lists: the lists beside the listing's object, as they are stored and as the row gives them, in wire form.
        paths: where a line has the members.
    """
    stored, given = lists
    after = {name: rows for name, rows in given.items() if rows != (stored.get(name) or [])}
    before = {name: stored[name] for name in after if name in stored}
    parts = (before, after)
    is_public = columns.get("state", company.state) == State.PUBLISHED
    change = of_company(run.actor, company, columns, parts, is_public=is_public, is_import=True)
    faults = faults_of(change) if change.fields else []
    for fault in faults:
        beside = fault.field if fault.field in {*given, "distribution"} else f"company.{fault.field}"
        run.tell(line, fault._replace(field=paths.get(fault.field, beside)))
    return bool(faults)


def is_person_refused(run: BatchRun, line: int, person: Person, columns: JSONObject) -> bool:
    """Return whether a plugin refuses what a row changes, and report why; *columns* are empty for a new person."""
    if is_unchecked(run):
        return False
    change = of_person(run.actor, person, columns, publishes=not run.draft, is_import=True)
    faults = faults_of(change) if change.fields else []
    for fault in faults:
        run.tell(line, fault)
    return bool(faults)


def is_unchecked(run: BatchRun) -> bool:
    """Return whether no plugin checks the rows of an import."""
    return run.restores or not is_needed()  # an undo brings back what was there
