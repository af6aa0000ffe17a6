"""
A report is submitted to the company that runs its program, which reads it and answers.

Source: assessment-spec/1, report; decision 15.
"""

from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from muniment.accounts import mail
from muniment.assessments.models import Application, Report
from muniment.assessments.operations import get_report
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.texts import text_fault
from muniment.registry import history
from muniment.registry.company.editing import decides
from muniment.registry.models import Company, Framework

MAX_NOTE: Final = 2_000
_WAY: Final = "The page of applications shows how each of them stands."
State = Application.State
NEWEST: Final = ("-submitted_at", "-pk")


def submit_application(actor: Actor, run_id: str) -> Application:
    """
    Let the company that runs the program of this run's framework read its report.

    Raises:
        NotFound: the run is unknown, or not the actor's.
        Conflict: there is no report; the program has been closed; an application to it waits; this report
            was submitted before.
        BadRequest: the framework is no program.
    """
    report = get_report(actor, run_id)
    run = report.run
    if run.framework.kind != Framework.Kind.PROGRAM or run.framework.company is None:
        raise BadRequest(
            "This framework is no program: nobody receives applications to it.", "Share the report by a link instead."
        )
    if run.framework.closed:
        raise Conflict("The program has been closed: it takes no applications.", "Share the report by a link instead.")
    assert actor.account_id is not None  # noqa: S101 - whoever has a report has an account
    made = Application(
        report=report,
        framework=run.framework,
        applicant=run.company,
        receiver=run.framework.company,
        account_id=actor.account_id,
    )
    try:
        with transaction.atomic():
            made.save(force_insert=True)
            _remember(actor, "application submitted", run.company, f"To {run.framework.name}.")
            _tell(
                made.receiver,
                gettext("%(applicant)s applied to %(program)s") % _names(made),
                gettext("%(applicant)s submitted a report to %(program)s. Read it here:") % _names(made),
                made,
            )
    except IntegrityError:
        raise _second(report, run.company, run.framework) from None
    return made


def withdraw_application(actor: Actor, application_id: str) -> Application:
    """
    Take an application back that nobody has decided. Repeating it succeeds.

    Raises:
        NotFound: unknown, or not of one of the actor's companies.
        Conflict: it has been decided.
    """
    with transaction.atomic():
        found = _locked(_sent(actor), application_id)
        if found.state == State.WITHDRAWN:
            return found
        _undecided(found)
        found.state, found.decided_at, found.decided_by_id = State.WITHDRAWN, now(), actor.account_id
        found.save(update_fields=["state", "decided_at", "decided_by"])
        _remember(actor, "application withdrawn", found.applicant, f"From {found.framework.name}.")
        _tell(
            found.receiver,
            gettext("%(applicant)s withdrew its application to %(program)s") % _names(found),
            gettext("%(applicant)s withdrew its application to %(program)s. Open applications:") % _names(found),
        )
    return found


def decide_application(actor: Actor, application_id: str, *, accept: bool, note: str = "") -> Application:
    """
    Accept or decline an application; its owners are told, with the note.

    Raises:
        NotFound: unknown, or received by no company of the actor's.
        Conflict: it has been decided, or withdrawn.
        BadRequest: the note is too long or no text.
    """
    said = note.strip()
    if len(said) > MAX_NOTE or text_fault(said):
        raise BadRequest(f"The note is no text of at most {MAX_NOTE:,} characters.", "A few sentences are enough.")
    with transaction.atomic():
        found = _locked(_received(actor), application_id)
        _undecided(found)
        found.state, found.note = (State.ACCEPTED if accept else State.DECLINED), said
        found.decided_at, found.decided_by_id = now(), actor.account_id
        found.save(update_fields=["state", "note", "decided_at", "decided_by"])
        _remember(
            actor, f"application {found.state}", found.receiver, f"{found.applicant.name} to {found.framework.name}."
        )
        told = (
            gettext("Your application to %(program)s is accepted.")
            if accept
            else gettext("Your application to %(program)s is declined.")
        )
        noted = f"{gettext('Note:')}\n{said}\n\n" if said else ""
        _tell(
            found.applicant,
            (gettext("%(program)s: accepted") if accept else gettext("%(program)s: declined")) % _names(found),
            f"{told % _names(found)}\n\n{noted}{gettext('Your applications:')}",
        )
    return found


def list_sent(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[Application]:
    """Give the applications of the actor's companies, newest first."""
    return Page.of(_sent(actor).order_by(*NEWEST), page, page_size)


def list_received(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[Application]:
    """Give the applications that the actor's companies received, newest first; reviewers see everybody's."""
    return Page.of(_received(actor).order_by(*NEWEST), page, page_size)


def get_received(actor: Actor, application_id: str) -> Application:
    """
    Give an application whose report the actor may read.

    Raises:
        NotFound: unknown, withdrawn, or received by no company of the actor's.
    """
    found = _received(actor).exclude(state=State.WITHDRAWN).filter(pk=application_id).first()
    if found is None:
        raise _missing(application_id)
    return found


def application_of(report: Report) -> Application | None:
    """Give the latest application with this report, for those who may read it anyway."""
    return _joined().filter(report=report).order_by("-submitted_at", "-pk").first()


def _joined() -> QuerySet[Application]:
    return Application.objects.select_related("report", "framework", "applicant", "receiver")


def _sent(actor: Actor) -> QuerySet[Application]:
    if actor.account_id is None:
        return Application.objects.none()
    return _joined().filter(applicant__ownerships__account_id=actor.account_id)


def _received(actor: Actor) -> QuerySet[Application]:
    if decides(actor):
        return _joined()
    if actor.account_id is None:
        return Application.objects.none()
    return _joined().filter(receiver__ownerships__account_id=actor.account_id)


def _locked(among: QuerySet[Application], application_id: str) -> Application:
    found = among.select_for_update(of=("self",)).filter(pk=application_id).first()
    if found is None:
        raise _missing(application_id)
    return found


def _missing(application_id: str) -> NotFound:
    return NotFound(f"You have no application {application_id[:60]!r}.", _WAY)


def _undecided(application: Application) -> None:
    if application.state != State.SUBMITTED:
        raise Conflict(f"This application is {application.state} already.", _WAY)


def _second(report: Report, applicant: Company, framework: Framework) -> Conflict:
    if Application.objects.filter(applicant=applicant, framework=framework, state=State.SUBMITTED).exists():
        return Conflict("An application to this program waits for its answer.", "Withdraw it to submit another.")
    return Conflict(
        f"The report {report.pk} was submitted before, and answered.", "Run the framework again to apply again."
    )


def _remember(actor: Actor, action: str, company: Company, note: str) -> None:
    history.entry(actor, action, before={}, after={}, company=company, note=note).save()


def _names(application: Application) -> dict[str, str]:
    return {"applicant": application.applicant.name, "program": application.framework.name}


def _tell(company: Company, subject: str, text: str, application: Application | None = None) -> None:
    """Mail every owner of *company* after the commit."""
    where = f"{settings.BASE_URL}/manage/applications" + (f"/{application.pk}" if application else "")

    def send() -> None:
        for owner in company.owners.filter(is_active=True):
            mail.send(owner.email, subject, f"{text}\n{where}\n")

    transaction.on_commit(send)
