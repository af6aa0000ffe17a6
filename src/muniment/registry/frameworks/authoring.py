"""
Create, update and author frameworks, and keep drafts of their specifications, by reviewers.

A draft is what a reviewer has edited section by section and not published yet.

Source: decisions, section 2, isOpen; assessment-spec/1.
"""

from typing import Final, cast

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now, slug_from_name
from muniment.kernel.json import JSONObject, bytes_of
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.texts import first_text_fault
from muniment.kernel.wire import UNSET, Unset
from muniment.registry import history, provenance
from muniment.registry.company.access import require_reviewer
from muniment.registry.company.changes import BadFields
from muniment.registry.exchange.frameworks import next_version
from muniment.registry.frameworks.specification import faults_of
from muniment.registry.models import Company, Framework, FrameworkSpecification, GivenSlug, SpecificationDraft
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.framework import check_dates
from muniment.schema.validation import Fault, Validation

MAX_DRAFT_BYTES: Final = 2_000_000


_TASK: Final = "author frameworks"
_DAYS: Final = {"opensOn": "opens_on", "closesOn": "closes_on"}


def _framework(framework_id: str) -> Framework:
    found = Framework.objects.select_for_update(of=("self",)).filter(slug=framework_id).first()
    if found is None:
        message = Phrase("There is no framework with the frameworkId {id!r}.", id=framework_id[:200])
        raise NotFound(message, "GET /api/v1/frameworks lists the ids.")
    return found


def _company(slug: str | None) -> Company | None:
    if not slug:
        return None
    found = Company.objects.filter(slug=slug).first()
    if found is None:
        fault = Fault("company", Phrase("is unknown: no company has the slug {slug!r}", slug=slug))
        raise BadFields([fault], "GET /api/v1/companies lists the slugs.")
    return found


def _refuse(validation: Validation, document: JSONObject) -> None:
    """Raise BadFields if anything was found, under the names that the forms have."""
    text_fault = first_text_fault(document)
    if text_fault:
        validation.faults.append(Fault(*text_fault))
    if not validation.faults:
        return
    faults = []
    for fault in validation.faults:
        faults.append(Fault("name", fault.reason) if fault.field == "frameworkName" else fault)
    raise BadFields(faults, "A framework has a name, a kind, a summary and, if it is a program, a company.")


def create_framework(
    actor: Actor, *, name: str, kind: str, description: str = "", company: str | None = None, framework_id: str = ""
) -> Framework:
    """
    Create a framework: listed at once, runnable once it is authored.

    Args:
        description: the public summary, Markdown.
        company: the slug of the company behind it; a program needs one.
        framework_id: the permanent id; derived from the name when empty.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadFields: a value is invalid, or the id is taken.
    """
    require_reviewer(actor, _TASK)
    chosen = framework_id or slug_from_name(name)
    document = {"frameworkId": chosen, "frameworkName": name, "kind": kind, "description": description}
    whole: JSONObject = dict(document)
    if company:
        whole["company"] = {"slug": company}
    validation = Validation(change=False)
    validation.read(settings.SCHEMA.framework, whole)
    _refuse(validation, document)
    try:
        with transaction.atomic():
            GivenSlug.objects.create(kind="framework", slug=chosen)
            framework = Framework(
                slug=chosen, name=name.strip(), kind=kind, description=description, company=_company(company)
            )
            provenance.reviewed(framework)
            framework.save()
            after = {"name": framework.name, "kind": kind, "description": description or None, "company": company}
            history.entry(actor, "created", before={}, after=after, framework=framework).save()
            publish(AffectedRows().framework(framework.pk))
            _record(actor, framework, "created", after)
            return framework
    except IntegrityError:
        raise BadFields(
            [Fault("frameworkId", Phrase("{chosen!r} is taken", chosen=chosen))], "Choose another id."
        ) from None


def update_framework(  # noqa: PLR0913 - each field of a framework that a reviewer may change
    actor: Actor,
    framework_id: str,
    *,
    name: str | Unset = UNSET,
    description: str | Unset = UNSET,
    run_cost: int | Unset | None = UNSET,
    opens_on: str | Unset | None = UNSET,
    closes_on: str | Unset | None = UNSET,
    listed: bool | Unset = UNSET,
    closed: bool | Unset = UNSET,
) -> Framework:
    """
    Change the fields given.

    Args:
        run_cost: the credits that a run costs; None for the registry's setting.
        opens_on: the first day of a program's applications, such as 2026-09-01; None for no such day.
        closes_on: the last day.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown framework.
        BadFields: a value is invalid.
    """
    require_reviewer(actor, _TASK)
    values = _given(name=name, description=description, run_cost=run_cost, listed=listed, closed=closed)
    document = _given(frameworkName=name, description=description, opensOn=opens_on, closesOn=closes_on)
    validation = Validation(change=True)
    read = validation.read(settings.SCHEMA.framework_change, document) or {}
    if "run_cost" in values:
        settings.SCHEMA.framework_line.by_name["runCost"].read(values["run_cost"], ("runCost",), validation)
    _refuse(validation, document)
    with transaction.atomic():
        framework = _framework(framework_id)
        # The days are judged together with the stored ones: a change may give one of the two.
        dated: JSONObject = {"kind": framework.kind}
        for wire_name, column in _DAYS.items():
            if wire_name in read:
                values[column] = read[wire_name]
            dated[wire_name] = values.get(column, getattr(framework, column))
        check_dates(dated, (), validation)
        _refuse(validation, document)
        before, after = _set_columns(framework, values)
        if after:
            _write(actor, framework, "updated", history.wire_values(before), history.wire_values(after))
        return framework


def _given(**values: object) -> JSONObject:
    """Return the values that a caller has given; None is one."""
    return {name: value for name, value in values.items() if value is not UNSET}


def _set_columns(framework: Framework, values: JSONObject) -> tuple[JSONObject, JSONObject]:
    """Set columns of a framework, and return those that change, before and after."""
    before: JSONObject = {}
    after: JSONObject = {}
    for column, value in values.items():
        stored = getattr(framework, column)
        if stored != value:
            before[column] = stored
            after[column] = value
            setattr(framework, column, value)
    return before, after


def author_framework(
    actor: Actor, framework_id: str, document: JSONObject, *, expected_version: int | None = None
) -> FrameworkSpecification:
    """
    Store the next version of a framework's private specification; the framework is then open.

    A document equal to the current version does not create a new one.

    Args:
        expected_version: the version that the document was made from; 0 if there was none.

    Raises:
        Conflict: another version was published since.
        Forbidden: the actor is not a reviewer.
        NotFound: unknown framework.
        BadFields: the document is invalid; has the path of each fault.
    """
    require_reviewer(actor, _TASK)
    faults = [Fault(path, why) for path, why in faults_of(document)]
    if faults:
        raise BadFields(faults, "See the format assessment-spec/1.")
    with transaction.atomic():
        framework = _framework(framework_id)
        latest = FrameworkSpecification.objects.filter(framework=framework).order_by("-version").first()
        present = latest.version if latest else 0
        if expected_version is not None and expected_version != present:
            raise Conflict(
                Phrase("Version {present} was published in the meantime.", present=present),
                "Open the form again in another tab, and make your changes there.",
            )
        if latest is not None and {**document, "version": latest.version} == latest.document:
            return latest
        specification = next_version(framework, document, latest, actor)
        specification.save()
        before = {"specificationVersion": latest.version if latest else None}
        _write(actor, framework, "authored", before, {"specificationVersion": specification.version})
        return specification


def current_specification(framework_id: str) -> FrameworkSpecification | None:
    """Return a framework's current specification, or None. Private: only assessments and reviewers may use it."""
    found = FrameworkSpecification.objects.filter(framework__slug=framework_id).select_related("framework")
    return found.order_by("-version").first()


def _write(actor: Actor, framework: Framework, action: str, before: JSONObject, after: JSONObject) -> None:
    moment = now()
    provenance.edited(framework, actor, before, after, on=moment)
    framework.version += 1
    framework.updated_at = moment
    framework.save()
    history.entry(actor, action, before=before, after=after, framework=framework, at=moment).save()
    affected = AffectedRows().framework(framework.pk)
    if "name" in after:  # companies show it with their scores
        affected.framework_with_companies(framework.pk)
    publish(affected)
    _record(actor, framework, action, after)


def _record(actor: Actor, framework: Framework, action: str, after: JSONObject) -> None:
    detail = {"action": action, "fields": sorted(after)}
    record(Event.FRAMEWORK_CHANGED, actor=actor, subject=f"frameworks/{framework.slug}", detail=detail)


def find_draft(actor: Actor, framework: Framework) -> SpecificationDraft | None:
    """Return the actor's draft; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _TASK)
    return SpecificationDraft.objects.filter(framework=framework, account=actor.account_id).first()


def save_draft(
    actor: Actor, framework: Framework, document: JSONObject, *, version: int, revision: int
) -> SpecificationDraft:
    """
    Store the actor's draft.

    Args:
        version: the published version that it was made from.
        revision: the revision of the draft that was edited; 0 if there was none.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: the document is too large.
        Conflict: the draft was changed since, in another tab.
    """
    require_reviewer(actor, _TASK)
    if bytes_of(document) > MAX_DRAFT_BYTES:
        raise BadRequest("The specification has more than 2 MB.", "Shorten its texts.")
    with transaction.atomic():
        kept = SpecificationDraft.objects.select_for_update().filter(framework=framework, account=actor.account_id)
        draft = kept.first()
        if (draft.revision if draft else 0) != revision:
            raise Conflict("Your draft was changed in another tab.", "Open the page again and repeat the last change.")
        if draft is None:
            account_id = cast("int", actor.account_id)  # commands have no drafts
            draft = SpecificationDraft(framework=framework, account_id=account_id, version=version, revision=0)
        draft.document, draft.revision, draft.changed_at = document, draft.revision + 1, now()
        draft.save()
    return draft


def discard_draft(actor: Actor, framework: Framework) -> None:
    """Delete the actor's draft; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _TASK)
    SpecificationDraft.objects.filter(framework=framework, account=actor.account_id).delete()
