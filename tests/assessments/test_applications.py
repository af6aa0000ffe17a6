"""Applications: who may submit, read, withdraw and answer, and that no other account learns of them."""

import pytest

from make.accounts import Letters
from make.registry import agent_of, owner, reviewer
from make.reports import company, do_jobs, finished, framework, program
from muniment.assessments import applications
from muniment.assessments import operations as runs
from muniment.assessments.models import Application
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry.company.listings import add_owner
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.models import Company, Framework, HistoryEntry
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _stand(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def sides():
    """Return the applicant, the runner of a program, the program, and a finished run of it."""
    me, runner = owner("applicant@example.org"), owner("runner@example.org")
    of = program(runner)
    return me, runner, of, finished(me, of=of).run_id


def actions(slug):
    return list(
        HistoryEntry.objects.filter(company__slug=slug, action__startswith="application").values_list("action", "note")
    )


@pytest.mark.requirement("reports.applications")
def test_an_application_is_received_read_and_answered(sides, django_capture_on_commit_callbacks):
    me, runner, of, run_id = sides
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        made = applications.submit_application(me, run_id)
    assert [each.pk for each in applications.list_received(runner).items] == [made.pk]
    assert applications.get_received(runner, made.pk).report.run_id == run_id
    [(subject, text)] = letters.to("runner@example.org")
    assert "applied to" in subject
    assert f"/manage/applications/{made.pk}" in text
    assert letters.to("applicant@example.org") == []
    with django_capture_on_commit_callbacks(execute=True):
        applications.decide_application(runner, made.pk, accept=True, note=" Welcome aboard. ")
    [(subject, text)] = letters.to("applicant@example.org")
    assert subject.endswith("accepted")
    assert "Welcome aboard." in text
    assert "runner@" not in text
    [sent] = applications.list_sent(me).items
    assert (sent.state, sent.note) == ("accepted", "Welcome aboard.")
    name = Framework.objects.get(slug=of).name
    assert actions(made.applicant.slug) == [("application submitted", f"To {name}.")]
    assert actions(made.receiver.slug) == [("application accepted", f"{made.applicant.name} to {name}.")]
    for act in (applications.withdraw_application, lambda *of: applications.decide_application(*of, accept=False)):
        with pytest.raises(Conflict, match="already accepted"):
            act(me if act is applications.withdraw_application else runner, made.pk)
    with pytest.raises(Conflict, match="submitted before and decided"):
        applications.submit_application(me, run_id)


def test_a_program_whose_company_is_unlisted_takes_no_applications(sides):
    me, runner, of, run_id = sides
    workflow.unlist_own_company(runner, Framework.objects.get(slug=of).company.slug)
    with pytest.raises(Conflict, match="closed"):
        applications.submit_application(me, run_id)
    assert not Application.objects.exists()


def test_the_applicant_is_mailed_a_declined_application(sides, django_capture_on_commit_callbacks):
    me, runner, _, run_id = sides
    made = applications.submit_application(me, run_id)
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        applications.decide_application(runner, made.pk, accept=False)
    [(subject, text)] = letters.to("applicant@example.org")
    assert subject.endswith("declined")
    assert "declined" in text
    assert "Note:" not in text


def test_a_withdrawn_application_is_read_no_more_and_may_be_made_again(sides, django_capture_on_commit_callbacks):
    me, runner, of, run_id = sides
    made = applications.submit_application(me, run_id)
    with pytest.raises(Conflict, match="already have an open application"):
        applications.submit_application(me, run_id)
    again = finished(me, made.applicant.slug, of).run_id
    with pytest.raises(Conflict, match="already have an open application"):
        applications.submit_application(me, again)
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        applications.withdraw_application(me, made.pk)
    assert "withdrew" in letters.to("runner@example.org")[0][0]
    assert applications.withdraw_application(me, made.pk).state == "withdrawn"
    for who in (runner, reviewer()):
        with pytest.raises(NotFound):
            applications.get_received(who, made.pk)
        with pytest.raises(Conflict, match="already withdrawn"):
            applications.decide_application(who, made.pk, accept=True)
    assert applications.submit_application(me, run_id).state == "submitted"
    assert [each[0] for each in actions(made.applicant.slug)] == [
        "application submitted",
        "application withdrawn",
        "application submitted",
    ]


@pytest.mark.parametrize("stranger", ["visitor", "another owner", "an applicant", "a reviewer's agent"])
def test_a_stranger_learns_of_no_application(sides, stranger):
    me, _, of, run_id = sides
    made = applications.submit_application(me, run_id)
    who = {
        "visitor": lambda: VISITOR,
        "another owner": owner,
        "an applicant": owner,
        "a reviewer's agent": lambda: agent_of(reviewer()),
    }[stranger]()
    if stranger == "an applicant":
        applications.submit_application(who, finished(who, of=of).run_id)
    for act in (
        lambda: applications.submit_application(who, run_id),
        lambda: applications.withdraw_application(who, made.pk),
        lambda: applications.get_received(who, made.pk),
        lambda: applications.decide_application(who, made.pk, accept=True),
    ):
        with pytest.raises(NotFound):
            act()
    assert applications.list_received(who).items == []
    assert made.pk not in {each.pk for each in applications.list_sent(who).items}
    assert Application.objects.get(pk=made.pk).state == "submitted"


def test_neither_side_does_what_is_the_others(sides):
    me, runner, _, run_id = sides
    made = applications.submit_application(me, run_id)
    with pytest.raises(NotFound):
        applications.withdraw_application(runner, made.pk)
    with pytest.raises(NotFound):
        applications.decide_application(me, made.pk, accept=True)
    with pytest.raises(NotFound):
        runs.get_report(runner, run_id)  # what was received is read as an application, and no other way
    assert applications.decide_application(reviewer(), made.pk, accept=False).state == "declined"


def test_a_program_that_moves_takes_no_application_with_it(sides):
    me, runner, of, run_id = sides
    made = applications.submit_application(me, run_id)
    later = owner()
    Framework.objects.filter(slug=of).update(company=Company.objects.get(slug=company(later)))
    assert applications.list_received(later).items == []
    assert applications.get_received(runner, made.pk).pk == made.pk
    partner = owner()
    add_owner(reviewer(), made.receiver.slug, partner.account_id)
    assert applications.get_received(partner, made.pk).pk == made.pk


def test_an_application_that_cannot_be_submitted_says_why(sides):
    me, runner, of, run_id = sides
    with pytest.raises(BadRequest, match="not a program"):
        applications.submit_application(me, finished(me, of=framework()).run_id)
    waiting = runs.start_run(me, company(me), of).run.row.pk
    with pytest.raises(Conflict, match="has no report"):
        applications.submit_application(me, waiting)
    runs.execute_run(me, waiting)
    do_jobs()
    update_framework(reviewer(), of, closed=True)
    with pytest.raises(Conflict, match="closed"):
        applications.submit_application(me, run_id)
    update_framework(reviewer(), of, closed=False)
    made = applications.submit_application(me, run_id)
    for note in ("x" * 2001, "a\0b"):
        with pytest.raises(BadRequest, match="note"):
            applications.decide_application(runner, made.pk, accept=True, note=note)
    assert Application.objects.get(pk=made.pk).state == "submitted"


def test_of_two_submissions_at_once_one_is_made(sides):
    me, _, _, run_id = sides
    with pytest.raises(Conflict, match="already have an open application"), applications.submission(me, run_id):
        applications.submit_application(me, run_id)
    assert Application.objects.count() == 1
