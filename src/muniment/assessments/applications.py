"""Applications: owners submit reports to programs, which answer. Source: assessment-spec/1, report; decision 15."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from muniment.assessments.models import Application, Report
from muniment.assessments.operations import get_report, is_runnable
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.texts import text_fault
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry import history
from muniment.registry.models import Company, Framework

MAX_NOTE: Final = 2_000
_SHARE: Final = "Share the report by a link instead."
_HINT: Final = "See your applications and their states at /manage/applications."
State = Application.State
NEWEST: Final = ("-submitted_at", "-pk")


def submit_application(actor: Actor, run_id: str) -> Application:
    """Submit a run's report to the company that runs the framework's program. Raises like `submission`."""
    with submission(actor, run_id) as application:
        return application


@contextmanager
def submission(actor: Actor, run_id: str) -> Iterator[Application]:
    """
    Yield the application that a run's report would make, and submit it at the end of the block.

    Raises:
        NotFound: the run is unknown, or not the actor's.
        Conflict: there is no report; the program is closed; another application to it is open; this report was
            submitted before.
        BadRequest: the framework is not a program.
    """
    report = get_report(actor, run_id)
    run = report.run
    if run.framework.kind != Framework.Kind.PROGRAM or run.framework.company is None:
        raise BadRequest("This framework is not a program and takes no applications.", _SHARE)
    if run.framework.closed or not is_runnable(run.framework):
        raise Conflict("The program is closed and takes no applications.", _SHARE)
    is_open = Q(applicant=run.company, framework=run.framework, state=State.SUBMITTED)
    if Application.objects.filter(is_open | Q(report=report) & ~Q(state=State.WITHDRAWN)).exists():
        raise _already_submitted(report, run.company, run.framework)
    assert actor.account_id is not None  # noqa: S101 - a report belongs to an account
    sides = {"applicant": run.company, "receiver": run.framework.company}
    application = Application(report=report, framework=run.framework, account_id=actor.account_id, **sides)
    yield application
    try:
        with transaction.atomic():
            application.save(force_insert=True)
            _record_history(actor, "application submitted", run.company, f"To {run.framework.name}.")
            _notify_owners(
                application.receiver,
                lambda: (
                    gettext("%(applicant)s applied to %(program)s") % _names(application),
                    gettext("%(applicant)s submitted a report to %(program)s. Read it here:") % _names(application),
                ),
                application,
            )
    except IntegrityError:
        raise _already_submitted(report, run.company, run.framework) from None


def withdraw_application(actor: Actor, application_id: str) -> Application:
    """
    Withdraw an application that is not decided yet. Repeating it succeeds.

    Raises:
        NotFound: unknown, or not of one of the actor's companies.
        Conflict: it was decided.
    """
    with transaction.atomic():
        application = _locked(_sent(actor), application_id)
        if application.state == State.WITHDRAWN:
            return application
        _require_open(application)
        application.state = State.WITHDRAWN
        application.decided_at = now()
        application.decided_by_id = actor.account_id
        application.save(update_fields=["state", "decided_at", "decided_by"])
        _record_history(actor, "application withdrawn", application.applicant, f"From {application.framework.name}.")
        _notify_owners(
            application.receiver,
            lambda: (
                gettext("%(applicant)s withdrew its application to %(program)s") % _names(application),
                gettext("%(applicant)s withdrew its application to %(program)s. View all applications:")
                % _names(application),
            ),
        )
    return application


def withdraw_report(actor: Actor, run_id: str) -> Application:
    """Withdraw the latest application with a run's report. Raises like `get_report` and `withdraw_application`."""
    application = application_of(get_report(actor, run_id))
    if application is None:
        raise Conflict("This report was not submitted to a program.", "Nothing is to be withdrawn.")
    return withdraw_application(actor, application.pk)


def decide_application(actor: Actor, application_id: str, *, accept: bool, note: str = "") -> Application:
    """
    Accept or decline an application and notify its owners, with the note.

    Raises:
        NotFound: unknown, or not received by one of the actor's companies.
        Conflict: it was decided or withdrawn.
        BadRequest: the note is too long or has invalid characters.
    """
    note_text = note.strip()
    if len(note_text) > MAX_NOTE or text_fault(note_text):
        raise BadRequest(
            Phrase("The note must be text of at most {limit:,} characters.", limit=MAX_NOTE),
            "Shorten it to a few sentences.",
        )
    with transaction.atomic():
        application = _locked(_received(actor), application_id)
        _require_open(application)
        application.state = State.ACCEPTED if accept else State.DECLINED
        application.note = note_text
        application.decided_at = now()
        application.decided_by_id = actor.account_id
        application.save(update_fields=["state", "note", "decided_at", "decided_by"])
        route = f"{application.applicant.name} to {application.framework.name}."
        _record_history(actor, f"application {application.state}", application.receiver, route)
        _notify_owners(application.applicant, lambda: _decided(application, accept=accept))
    return application


def list_sent(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[Application]:
    """List the applications of the actor's companies, newest first."""
    return Page.of(_sent(actor).order_by(*NEWEST), page, page_size)


def list_received(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[Application]:
    """List the applications that the actor's companies received, newest first; reviewers see all of them."""
    return Page.of(_received(actor).order_by(*NEWEST), page, page_size)


def get_received(actor: Actor, application_id: str) -> Application:
    """Return an application whose report the actor may read; raise NotFound if it was withdrawn or is another's."""
    return _found(_received(actor).exclude(state=State.WITHDRAWN), application_id)


def application_of(report: Report) -> Application | None:
    """Return the latest application with this report; callers must be allowed to read the report."""
    return _joined().filter(report=report).order_by("-submitted_at", "-pk").first()


def states_of(run_ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return state and note of the latest application by run; callers must be allowed to read the runs."""
    earliest_first = Application.objects.filter(report__run_id__in=list(run_ids)).order_by("submitted_at", "pk")
    latest = {}
    for run_id, state, note in earliest_first.values_list("report__run_id", "state", "note"):
        latest[run_id] = (state, note)
    return latest


def _joined() -> QuerySet[Application]:
    return Application.objects.select_related("report", "framework", "applicant", "receiver")


def _sent(actor: Actor) -> QuerySet[Application]:
    if actor.account_id is None:
        return Application.objects.none()
    return _joined().filter(applicant__ownerships__account_id=actor.account_id)


def _received(actor: Actor) -> QuerySet[Application]:
    if actor.decides:
        return _joined()
    if actor.account_id is None:
        return Application.objects.none()
    return _joined().filter(receiver__ownerships__account_id=actor.account_id)


def _locked(among: QuerySet[Application], application_id: str) -> Application:
    return _found(among.select_for_update(of=("self",)), application_id)


def _found(among: QuerySet[Application], application_id: str) -> Application:
    application = among.filter(pk=application_id).first()
    if application is None:
        raise NotFound(Phrase("Application {id!r} not found.", id=application_id[:60]), _HINT)
    return application


def _require_open(application: Application) -> None:
    if application.state != State.SUBMITTED:
        raise Conflict(Phrase("This application is already {state}.", state=Phrase(application.state)), _HINT)


def _already_submitted(report: Report, applicant: Company, framework: Framework) -> Conflict:
    if Application.objects.filter(applicant=applicant, framework=framework, state=State.SUBMITTED).exists():
        return Conflict("You already have an open application to this program.", "Withdraw it to submit another.")
    return Conflict(
        Phrase("Report {id} was submitted before and decided.", id=report.pk),
        "Run the framework again to apply again.",
    )


def _record_history(actor: Actor, action: str, company: Company, note: str) -> None:
    history.entry(actor, action, before={}, after={}, company=company, note=note).save()


def _names(application: Application) -> dict[str, str]:
    return {"applicant": application.applicant.name, "program": application.framework.name}


def _decided(application: Application, *, accept: bool) -> tuple[str, str]:
    """Return the subject and the text of the mail about a decision."""
    if accept:
        subject = gettext("%(program)s: accepted")
        outcome = gettext("Your application to %(program)s was accepted.")
    else:
        subject = gettext("%(program)s: declined")
        outcome = gettext("Your application to %(program)s was declined.")
    text = f"{outcome % _names(application)}\n\n"
    if application.note:
        text += f"{gettext('Note:')}\n{outgoing.one_block(application.note)}\n\n"
    return subject % _names(application), text


def _notify_owners(
    company: Company, mail: Callable[[], tuple[str, str]], application: Application | None = None
) -> None:
    """Mail every owner of *company* the subject and the text that *mail* returns, in the owner's language."""
    page = "/manage/applications"
    if application:
        page += f"/{application.pk}"
    for owner in company.owners.filter(is_active=True):
        with in_language_of(owner):
            subject, text = mail()
            link = places.link(gettext("Open your applications"), page)
            outgoing.send(owner.email, subject, f"{text.rstrip()}\n\n{link}\n")
