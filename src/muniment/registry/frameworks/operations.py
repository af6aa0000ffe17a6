"""
Frameworks: made, described, authored, opened and closed by reviewers.

Source: decisions, section 2, isOpen; assessment-spec/1.
"""

from typing import Any

from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now, slug_fault, slug_from_name
from muniment.kernel.problems import Forbidden, NotFound
from muniment.kernel.texts import first_text_fault
from muniment.kernel.wire import UNSET, Unset
from muniment.registry import history
from muniment.registry.company.company_change import BadFields
from muniment.registry.company.editing import decides
from muniment.registry.exchange.frameworks import next_version
from muniment.registry.frameworks.specification import faults_of
from muniment.registry.models import Company, Framework, FrameworkSpecification, GivenSlug
from muniment.registry.publishing.publisher import Touched, publish
from muniment.schema.framework import KINDS
from muniment.schema.validation import Fault


def _need_reviewer(actor: Actor) -> None:
    if not decides(actor):
        raise Forbidden("Only reviewers author frameworks.", "Ask the operator of this registry for the role.")


def _framework(framework_id: str) -> Framework:
    found = Framework.objects.select_for_update(of=("self",)).filter(slug=framework_id).first()
    if found is None:
        raise NotFound(
            f"There is no framework with the frameworkId {framework_id[:200]!r}.",
            "GET /api/v1/frameworks lists them.",
        )
    return found


def _company(slug: str | None) -> Company | None:
    if not slug:
        return None
    found = Company.objects.filter(slug=slug).first()
    if found is None:
        raise BadFields([Fault("company", f"{slug!r} is no company here")], "GET /api/v1/companies lists the slugs.")
    return found


def create_framework(
    actor: Actor, *, name: str, kind: str, description: str = "", company: str | None = None, framework_id: str = ""
) -> Framework:
    """
    Make a framework: listed at once, not runnable until it is authored.

    Args:
        actor: a reviewer.
        name: what it is called.
        kind: ``score`` or ``program``.
        description: the public summary, markdown.
        company: slug of the company behind it; a program needs one.
        framework_id: its address for ever; made from the name when empty.

    Raises:
        Forbidden: the actor is no reviewer.
        BadFields: a value that its field does not take; an id that is taken.
    """
    _need_reviewer(actor)
    chosen = framework_id or slug_from_name(name)
    faults = [Fault("name", "is empty")] if not name.strip() else []
    if kind not in KINDS:
        faults.append(Fault("kind", f"is {kind!r}, which is none of {', '.join(KINDS)}"))
    if fault := slug_fault(chosen):
        faults.append(Fault("frameworkId", fault))
    if kind == "program" and not company:
        faults.append(Fault("company", "is missing: a program is run by a company"))
    if found := first_text_fault({"name": name, "description": description}):
        faults.append(Fault(*found))
    if faults:
        raise BadFields(faults, "A framework has a name, a kind, a summary and, as a program, a company.")
    try:
        with transaction.atomic():
            GivenSlug.objects.create(kind="framework", slug=chosen)
            framework = Framework.objects.create(
                slug=chosen, name=name.strip(), kind=kind, description=description, company=_company(company)
            )
            after = {"name": framework.name, "kind": kind, "description": description or None, "company": company}
            history.entry(actor, "created", before={}, after=after, framework=framework).save()
            publish(Touched().framework(framework.pk))
            return framework
    except IntegrityError:
        raise BadFields([Fault("frameworkId", f"{chosen!r} is taken")], "Choose another.") from None


def update_framework(
    actor: Actor,
    framework_id: str,
    *,
    name: str | Unset = UNSET,
    description: str | Unset = UNSET,
    run_cost: int | Unset | None = UNSET,
    listed: bool | Unset = UNSET,
    closed: bool | Unset = UNSET,
) -> Framework:
    """
    Change what is given of a framework.

    Args:
        actor: a reviewer.
        framework_id: which.
        name: what it is called.
        description: the public summary.
        run_cost: credits that a run costs; None for the registry's setting.
        listed: whether it is shown.
        closed: whether no run can be started although it is authored.

    Raises:
        Forbidden: the actor is no reviewer.
        NotFound: there is none of that id.
        BadFields: a value that its field does not take.
    """
    _need_reviewer(actor)
    given = {"name": name, "description": description, "run_cost": run_cost, "listed": listed, "closed": closed}
    values = {key: value for key, value in given.items() if value is not UNSET}
    faults = [Fault(*found)] if (found := first_text_fault(values)) else []
    if "name" in values and not str(values["name"]).strip():
        faults.append(Fault("name", "is empty"))
    if isinstance(run_cost, int) and not 0 <= run_cost < 2**31:
        faults.append(Fault("runCost", "is not a whole number from 0"))
    if faults:
        raise BadFields(faults, "A framework has a name, a summary and a price.")
    with transaction.atomic():
        framework = _framework(framework_id)
        after = {key: value for key, value in values.items() if getattr(framework, key) != value}
        if after:
            before = {key: getattr(framework, key) for key in after}
            for key, value in after.items():
                setattr(framework, key, value)
            _write(actor, framework, "updated", history.wire_values(before), history.wire_values(after))
        return framework


def author_framework(actor: Actor, framework_id: str, document: dict[str, Any]) -> FrameworkSpecification:
    """
    Store the next version of a framework's private specification; the framework is then open.

    The same document as the standing version makes no new one.

    Raises:
        Forbidden: the actor is no reviewer.
        NotFound: there is no framework of that id.
        BadFields: the document misses the form; has the path of each fault.
    """
    _need_reviewer(actor)
    faults = [Fault(path, why) for path, why in faults_of(document)]
    if faults:
        raise BadFields(faults, "The form is described as assessment-spec/1.")
    with transaction.atomic():
        framework = _framework(framework_id)
        latest = FrameworkSpecification.objects.filter(framework=framework).order_by("-version").first()
        if latest is not None and {**document, "version": latest.version} == latest.document:
            return latest
        specification = next_version(framework, document, latest, actor)
        specification.save()
        before = {"specificationVersion": latest.version if latest else None}
        _write(actor, framework, "authored", before, {"specificationVersion": specification.version})
        return specification


def current_specification(framework_id: str) -> FrameworkSpecification | None:
    """
    Give the standing version of a framework's specification, or None before it is authored.

    For whoever runs an assessment, and for reviewers: what it holds is private.
    """
    found = FrameworkSpecification.objects.filter(framework__slug=framework_id).select_related("framework")
    return found.order_by("-version").first()


def _write(actor: Actor, framework: Framework, action: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    framework.version += 1
    framework.updated_at = now()
    framework.save()
    history.entry(actor, action, before=before, after=after, framework=framework).save()
    publish(Touched().framework(framework.pk))
