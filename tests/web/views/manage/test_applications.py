"""The pages of applications: submitted from the report, read by who received it, closed to everybody else."""

import re
from datetime import timedelta

import html5lib
import pytest
from django.test import Client

from make import files
from make.accounts import account, signed_in
from make.documents import uploaded
from make.reports import SECRETS, company, finished, framework, program
from muniment.assessments.models import Application
from muniment.kernel.ids import now

pytestmark = pytest.mark.django_db
HOME = "/manage/applications"


@pytest.fixture(autouse=True)
def _stand(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def page(browser, path):
    answer = browser.get(path)
    assert answer.status_code == 200, answer.content.decode()[:2000]
    text = answer.content.decode()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    parser.parse(text)
    assert not [error for _, error, _ in parser.errors if "head" not in error], parser.errors
    return text


@pytest.fixture
def sides():
    """Return the accounts of an applicant and of a runner, and the page of the applicant's report."""
    me, runner = account("applicant@harbour.example"), account("runner@harbour.example")
    actor = me.actor("web")
    slug = company(actor, name="Tide & Sons <b>")
    paper = uploaded(actor, slug, files.pdf("The annual accounts stand open."), name="private-name.pdf")
    report = finished(actor, slug, program(runner.actor("web")), (paper.pk,))
    return me, runner, report, paper


def test_a_report_is_submitted_read_and_answered(sides):
    me, runner, report, paper = sides
    mine, theirs = signed_in(me), signed_in(runner)
    where = f"/manage/reports/{report.run_id}"
    assert "Submit to <bdi>Harbour Fund" in page(mine, where)
    assert "Report submitted. Harbour Fund" in mine.post(f"{where}/submit", follow=True).content.decode()
    made = Application.objects.get()
    assert "Withdraw" in page(mine, where)
    assert "Withdraw" in page(mine, HOME)
    assert f'href="{HOME}/{made.pk}"' in page(theirs, HOME)
    seen = page(theirs, f"{HOME}/{made.pk}")
    assert "Tide &amp; Sons &lt;b&gt;" in seen
    assert "The annual accounts stand open." in seen
    for private in (*SECRETS, me.email, paper.pk, paper.filename, report.run_id, "/manage/documents/", "credits"):
        assert private not in seen, private
    assert theirs.get(where).status_code == 404
    assert theirs.get(f"/manage/documents/{paper.pk}/file").status_code == 404
    answered = theirs.post(f"{HOME}/{made.pk}/accept", {"note": "Come <in>"}, follow=True).content.decode()
    assert "Application accepted." in answered
    for path in (where, HOME):
        assert "Come &lt;in&gt;" in page(mine, path)
    assert "already accepted" in theirs.post(f"{HOME}/{made.pk}/decline", follow=True).content.decode()
    history = page(mine, f"/manage/companies/{report.run.company.slug}/history")
    assert "Application submitted" in history


def test_strangers_are_refused_every_operation_of_an_application(sides):
    me, runner, report, _ = sides
    mine, theirs = signed_in(me), signed_in(runner)
    mine.post(f"/manage/reports/{report.run_id}/submit")
    made = Application.objects.get()
    stranger = signed_in(account("other@harbour.example"))
    assert made.pk not in page(stranger, HOME)
    assert stranger.get(f"{HOME}/{made.pk}").status_code == 404
    for action in ("withdraw", "accept", "decline"):
        assert stranger.post(f"{HOME}/{made.pk}/{action}").status_code == 404
        assert Client().post(f"{HOME}/{made.pk}/{action}").status_code == 302
    for path in (HOME, f"{HOME}/{made.pk}"):
        assert Client().get(path).status_code == 302
    assert mine.get(f"{HOME}/{made.pk}").status_code == 404
    assert mine.post(f"{HOME}/{made.pk}/accept").status_code == 404
    assert theirs.post(f"{HOME}/{made.pk}/withdraw").status_code == 404
    made.refresh_from_db()
    assert made.state == "submitted"
    mine.post(f"{HOME}/{made.pk}/withdraw")
    assert theirs.get(f"{HOME}/{made.pk}").status_code == 404
    assert f'href="{HOME}/{made.pk}"' not in page(theirs, HOME)


def test_reviewers_read_what_programs_received(sides):
    me, _, report, _ = sides
    signed_in(me).post(f"/manage/reports/{report.run_id}/submit")
    made = Application.objects.get()
    reviewer = signed_in(account("reviewer@harbour.example", "reviewer"))
    assert "The annual accounts" in page(reviewer, f"{HOME}/{made.pk}")
    assert f'href="{HOME}/{made.pk}"' in page(reviewer, HOME)


def test_a_framework_that_is_not_a_program_accepts_no_application():
    me = account("applicant@harbour.example")
    browser, actor = signed_in(me), me.actor("web")
    report = finished(actor, company(actor), framework())
    where = f"/manage/reports/{report.run_id}"
    assert "Submit to" not in page(browser, where)
    assert "not a program" in browser.post(f"{where}/submit", follow=True).content.decode()
    assert not Application.objects.exists()


def test_every_application_that_was_sent_or_received_can_be_reached(sides):
    me, runner, report, _ = sides
    receiver = report.run.framework.company
    Application.objects.bulk_create(
        Application(
            report=report,
            framework=report.run.framework,
            applicant=report.run.company,
            receiver=receiver,
            account=me,
            state="withdrawn",
            note=f"note {n:02}",
            submitted_at=now() + timedelta(hours=n),
        )
        for n in range(60)
    )
    sent, received = signed_in(me), signed_in(runner)
    told = []
    for number in (1, 2, 3):
        shown = page(sent, f"{HOME}?sent={number}")
        assert f"Page {number} of 3" in shown
        told += re.findall(r"note (\d+)", shown)
    assert told == [f"{n:02}" for n in reversed(range(60))]
    assert 'aria-label="Pages of sent applications"' in shown
    assert 'href="/manage/applications?page=2"' in page(received, HOME)
    assert "This page doesn't exist" in page(sent, f"{HOME}?sent=9")
