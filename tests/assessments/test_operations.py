"""Report runs: what they cost and when, how they end, and that no other account sees them."""

import threading
from datetime import timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from make.documents import begin, send, uploaded
from make.registry import owner, reviewer
from make.reports import SECRETS, company, do_jobs, finished, framework, program, specification
from muniment.assessments import operations as runs
from muniment.assessments import report_views, sharing
from muniment.assessments.evaluation.language_model.endpoint import Endpoint
from muniment.assessments.evaluation.rules import Rules
from muniment.assessments.models import Report, ReportRun
from muniment.assessments.report_views import to_markdown
from muniment.credits import operations as ledger
from muniment.documents.models import Document
from muniment.documents.operations import delete_document
from muniment.jobs import handlers, queue
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import new_id, now
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.wire import timestamp
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner, update_company
from muniment.registry.frameworks.authoring import author_framework, update_framework
from muniment.registry.models import Company, Framework
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def numbers(actor):
    seen = ledger.get_balance(actor)
    assert ledger.check_ledger() == []
    return seen.balance, seen.held


def start(me, slug, of, **more):
    return runs.start_run(me, slug, of, **more)


def test_a_document_without_evidence_is_told_before_the_run_is_paid():
    me = owner()
    slug = company(me, teamSize=0, description="")
    of = framework(2)
    paper = uploaded(me, slug, b"The tide comes in and goes out.")
    waiting = start(me, slug, of, document_ids=[paper.pk]).to_wire()
    assert (waiting["evidenceJudged"], waiting["missingEvidence"]) == (False, [])
    assert "still being extracted" in waiting["evidenceNote"]
    do_jobs()
    started = start(me, slug, of, document_ids=[paper.pk]).to_wire()
    assert (started["evidenceJudged"], "evidenceNote" in started) == (True, False)
    missing = {each["source"]: each for each in started["missingEvidence"]}
    assert missing["documents"]["titles"] == ["Accounts"]
    assert "hold no evidence" in missing["documents"]["hint"]
    runs.execute_run(me, started["runId"])
    do_jobs()
    found = runs.get_report(me, started["runId"]).document["sections"][0]["criteria"]
    assert [each["status"] for each in found if each["id"] == "accounts"] == ["insufficient"], (
        "what was said beforehand"
    )
    better = uploaded(me, slug, b"The annual accounts are open.", name="accounts.txt")
    do_jobs()
    named = start(me, slug, of, document_ids=[paper.pk, better.pk]).to_wire()
    assert "documents" not in {each["source"] for each in named["missingEvidence"]}


@pytest.mark.parametrize("limit", [("JUDGED_CHARACTERS", 30), ("JUDGED_S", 0)])
def test_long_documents_are_not_judged_for_free_and_that_is_said(monkeypatch, limit):
    me, of = owner(), framework(2)
    slug = company(me)
    paper = uploaded(me, slug, b"The tide comes in and goes out.")  # 31 characters
    do_jobs()
    assert start(me, slug, of, document_ids=[paper.pk]).to_wire()["evidenceJudged"]
    monkeypatch.setattr(runs, "JUDGED_CHARACTERS", 31)
    assert start(me, slug, of, document_ids=[paper.pk]).to_wire()["evidenceJudged"]
    monkeypatch.setattr(runs, *limit)
    started = start(me, slug, of, document_ids=[paper.pk]).to_wire()
    assert (started["evidenceJudged"], started["missingEvidence"]) == (False, [])
    assert "too long" in started["evidenceNote"]


def test_what_a_language_model_will_judge_is_not_said_to_be_judged(settings):
    settings.MODEL = Endpoint("http://127.0.0.1:9", "tide-1")
    me, of = owner(), framework(2)
    slug = company(me)
    paper = uploaded(me, slug, b"The tide comes in and goes out.")
    do_jobs()
    started = start(me, slug, of, document_ids=[paper.pk]).to_wire()
    assert (started["evidenceJudged"], started["missingEvidence"]) == (False, [])
    assert "only when the run is executed" in started["evidenceNote"]


@pytest.mark.requirement("runs.lifecycle")
def test_a_run_costs_nothing_until_it_is_executed_and_is_paid_when_it_ends():
    me, of = owner(), framework()
    slug = company(me)
    started = start(me, slug, of).to_wire()
    assert (started["state"], started["cost"], started["available"]) == ("created", 10, 100)
    assert (started["shouldPoll"], started["progress"]) == (False, {"done": 0, "total": 3, "step": "created"})
    assert [each["source"] for each in started["missingEvidence"]] == ["documents"]
    assert numbers(me) == (100, 0)
    queued = runs.execute_run(me, started["runId"]).to_wire()
    assert (queued["state"], queued["shouldPoll"], queued["pollAfterSeconds"]) == ("queued", True, 1)
    assert queued["startedAt"] is None
    assert numbers(me) == (100, 10)
    with pytest.raises(Conflict, match="is queued and has no report"):
        runs.get_report(me, started["runId"])
    do_jobs()
    ended = runs.get_run(me, started["runId"]).to_wire()
    assert (ended["state"], ended["progress"]["done"], ended["shouldPoll"]) == ("succeeded", 3, False)
    assert ended["createdAt"] <= ended["startedAt"] <= ended["finishedAt"]
    assert numbers(me) == (90, 0)
    assert runs.execute_run(me, started["runId"]).to_wire() == ended
    assert numbers(me) == (90, 0)
    assert ended["reportId"] == runs.get_report(me, started["runId"]).pk


def test_an_account_prepares_a_bounded_number_of_runs():
    me, of = owner(), framework()
    slug = company(me)
    first = start(me, slug, of, idempotency_key="first").run.row.pk
    row = ReportRun.objects.get(pk=first)
    copies = [ReportRun(**{**fields_of(row), "id": new_id(), "idempotency_key": None}) for n in range(49)]
    ReportRun.objects.bulk_create(copies)
    with pytest.raises(Conflict, match="50 report runs that are not executed; at most 50 are allowed") as refusal:
        start(me, slug, of)
    assert "Execute or cancel some of them" in refusal.value.hint
    assert start(me, slug, of, idempotency_key="first").run.row.pk == first
    stranger = owner()
    start(stranger, company(stranger), of)
    runs.cancel_run(me, first)
    start(me, slug, of)
    ReportRun.objects.filter(pk=copies[0].pk).update(expires_at=now() - timedelta(seconds=1))
    start(me, slug, of)
    with pytest.raises(Conflict, match="at most 50"):
        start(me, slug, of)


def fields_of(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.requirement("reports.rules")
def test_runs_are_listed_in_pages_newest_first():
    me = owner()
    mine = company(me)
    made = [start(me, mine, framework()).run.row.pk for _ in range(3)]
    first, second = (runs.list_runs(me, page=page, page_size=2) for page in (1, 2))
    assert [each.row.pk for each in first.items] == [made[2], made[1]]
    assert [each.row.pk for each in second.items] == [made[0]]
    assert (first.total, runs.list_runs(me, page=3, page_size=2).items, runs.list_runs(owner()).items) == (3, [], [])


def test_the_report_quotes_the_document_and_its_page():
    me, of = owner(), framework()
    slug = company(me)
    paper = uploaded(me, slug, b"The annual accounts stand open to every member.")
    report = finished(me, slug, of, (paper.pk,)).document
    team, accounts, moorings = report["sections"][0]["criteria"]
    assert (team["status"], team["citations"][0]["quote"]) == ("met", "teamSize: 5")
    assert (accounts["status"], accounts["level"], accounts["remediation"]) == ("partial", 2, "Publish the accounts.")
    assert accounts["citations"] == [
        {
            "source": "documents",
            "documentId": paper.pk,
            "page": 1,
            "quote": "The annual accounts stand open to every member.",
        }
    ]
    assert moorings["status"] == "insufficient"
    # (7.125 * 1 + 7.125 * 0.5 + 1 * 0) / 15.25
    assert (report["overall"]["score"], report["overall"]["band"]) == (70.1, "High")
    assert (report["specificationVersion"], report["evaluator"]["kind"]) == (1, "rules")


def test_a_report_has_the_moment_that_it_shows():
    report = finished(owner())
    assert timestamp(report.created_at) == report.document["createdAt"]
    assert ReportRun.objects.get().finished_at == report.created_at


def test_the_same_input_gives_the_same_report():
    me, of = owner(), framework()
    slug = company(me)
    first, second = finished(me, slug, of).document, finished(me, slug, of).document
    for report in (first, second):
        for key in ("reportId", "runId", "createdAt"):
            del report[key]
    assert msgspec.json.encode(first) == msgspec.json.encode(second)
    update_company(me, slug, CompanyChange(teamSize=2))
    assert finished(me, slug, of).document["inputHash"] != first["inputHash"]


def test_a_run_keeps_the_version_that_it_was_started_with():
    me, of = owner(), framework()
    slug = company(me)
    run_id = start(me, slug, of).run.row.pk
    author_framework(reviewer(), of, specification(9))
    runs.execute_run(me, run_id)
    do_jobs()
    assert runs.get_report(me, run_id).document["specificationVersion"] == 1
    assert finished(me, slug, of).document["specificationVersion"] == 2


def test_nothing_private_of_a_specification_leaves():
    me, of = owner(), framework(30)
    slug = company(me)
    started = start(me, slug, of)
    report = finished(me, slug, of).document
    shown = [
        started.to_wire(),
        report,
        to_markdown(report),
        report_views.summary(report, "u"),
        report_views.full(report, "u"),
    ]
    for secret in SECRETS:
        assert secret not in msgspec.json.encode(shown).decode()
    for hidden in ("guidance", "checks", "weight", "descriptor", "requirement"):
        assert f'"{hidden}"' not in msgspec.json.encode(shown).decode()


@pytest.mark.parametrize("stranger", ["visitor", "another owner", "reviewer"])
def test_a_stranger_learns_nothing_and_does_nothing(stranger):
    me, of = owner(), framework()
    slug = company(me)
    run_id = finished(me, slug, of).run_id
    who = {"visitor": lambda: VISITOR, "another owner": owner, "reviewer": reviewer}[stranger]()
    for act in (runs.get_run, runs.execute_run, runs.cancel_run, runs.get_report, sharing.share_report):
        with pytest.raises(NotFound, match=r"Report run .* not found"):
            act(who, run_id)
    with pytest.raises(NotFound):
        start(who, slug, of)
    assert runs.list_runs(who).items == []
    mine = company(me)
    paper = uploaded(me, slug)
    if who.account_id is not None:
        with pytest.raises(NotFound):
            start(who, company(who), of, document_ids=[paper.pk])
    with pytest.raises(BadRequest, match="belongs to another company"):
        start(me, mine, of, document_ids=[paper.pk])


def test_a_run_that_cannot_be_started_says_why():
    me, of = owner(), framework()
    slug = company(me)
    with pytest.raises(NotFound, match="no framework"):
        start(me, slug, "nowhere")
    with pytest.raises(BadRequest, match="documentIds has 51 items"):
        start(me, slug, of, document_ids=[str(n) for n in range(51)])
    for key in ("", "x" * 101, "a\0"):
        with pytest.raises(BadRequest, match="idempotencyKey"):
            start(me, slug, of, idempotency_key=key)
    update_framework(reviewer(), of, closed=True)
    with pytest.raises(Conflict, match="closed"):
        start(me, slug, of)
    assert not ReportRun.objects.exists()


def test_a_key_gives_the_same_run_and_no_other():
    me, of = owner(), framework()
    slug = company(me)
    first = start(me, slug, of, idempotency_key="k").run.row.pk
    assert start(me, slug, of, idempotency_key="k").run.row.pk == first
    with pytest.raises(Conflict, match="used for another run"):
        start(me, company(me), of, idempotency_key="k")
    runs.execute_run(me, first)
    assert start(me, slug, of, idempotency_key="k").to_wire()["state"] == "queued"


def test_one_run_at_a_time_of_a_framework_over_a_company():
    me, of = owner(), framework()
    slug = company(me)
    first, second = (start(me, slug, of).run.row.pk for _ in range(2))
    runs.execute_run(me, first)
    with pytest.raises(Conflict, match=first):
        runs.execute_run(me, second)
    with pytest.raises(Conflict, match="already active"):
        start(me, slug, of)
    assert numbers(me) == (100, 10)
    do_jobs()
    assert runs.execute_run(me, second).state == "queued"


def test_a_run_is_paid_by_the_owner_who_prepared_it_alone():
    me, colleague, of = owner(), owner(), framework()
    slug = company(me)
    add_owner(me, slug, colleague.account_id)
    run_id = start(me, slug, of).run.row.pk
    assert runs.get_run(colleague, run_id).state == "created"
    with pytest.raises(Conflict):
        runs.execute_run(colleague, run_id)
    assert (runs.get_run(me, run_id).state, Job.objects.filter(pk=run_id).exists()) == ("created", False)
    assert (numbers(me), numbers(colleague)) == ((100, 0), (100, 0))
    runs.execute_run(me, run_id)
    assert runs.execute_run(colleague, run_id).state == "queued"  # it runs: nothing is left to pay
    assert (numbers(me), numbers(colleague)) == ((100, 10), (100, 0))


def test_a_run_of_a_framework_that_was_closed_since_is_not_executed():
    me, of = owner(), framework()
    run_id = start(me, company(me), of).run.row.pk
    update_framework(reviewer(), of, closed=True)
    with pytest.raises(Conflict):
        runs.execute_run(me, run_id)
    assert (runs.get_run(me, run_id).state, numbers(me)) == ("created", (100, 0))
    update_framework(reviewer(), of, closed=False)
    assert runs.execute_run(me, run_id).state == "queued"


def test_a_program_whose_company_is_unlisted_cannot_be_run_and_nothing_is_spent():
    me, runner = owner(), owner()
    of, slug = program(runner), company(me)
    run_id = start(me, slug, of).run.row.pk
    host = Framework.objects.get(slug=of).company.slug
    workflow.unlist_own_company(runner, host)
    with pytest.raises(NotFound, match="no framework"):
        start(me, slug, of)
    with pytest.raises(Conflict, match="closed in the meantime"):
        runs.execute_run(me, run_id)
    assert (runs.get_run(me, run_id).state, numbers(me)) == ("created", (100, 0))
    workflow.relist_own_company(runner, host)
    assert runs.execute_run(me, run_id).state == "queued"


def test_a_document_that_is_not_ready_is_not_judged():
    me, of = owner(), framework()
    slug = company(me)
    sent = begin(me, slug)
    send(sent)
    with pytest.raises(Conflict):
        start(me, slug, of, document_ids=[sent.upload_id])
    assert not ReportRun.objects.exists()


def test_of_two_runs_executed_at_once_the_second_is_refused_and_not_paid(monkeypatch):
    me, of = owner(), framework()
    slug = company(me)
    first, second = (start(me, slug, of).run.row.pk for _ in range(2))
    runs.execute_run(me, first)
    monkeypatch.setattr(runs, "_require_no_active_run", lambda *_: None)  # as if the first had come in between
    with pytest.raises(Conflict):
        runs.execute_run(me, second)
    assert (runs.get_run(me, second).state, numbers(me)) == ("created", (100, 10))


def test_the_account_is_locked_before_a_key_is_looked_up():
    """So that of two starts at once with one key, the second finds the run of the first."""
    me, of = owner(), framework()
    with CaptureQueriesContext(connection) as seen:
        start(me, company(me), of, idempotency_key="k")
    statements = [each["sql"] for each in seen]
    looked_up = next(n for n, sql in enumerate(statements) if "SELECT" in sql and 'idempotency_key" = ' in sql)
    locked = max(n for n, sql in enumerate(statements[:looked_up]) if 'FROM "accounts_account"' in sql)
    assert connection.vendor != "postgresql" or statements[locked].endswith("FOR UPDATE")


def test_a_run_waits_for_the_text_of_its_documents_up_to_five_minutes(monkeypatch):
    monkeypatch.setattr(runs, "_PAUSE_S", 0)
    me, of = owner(), framework()
    slug = company(me)
    paper = uploaded(me, slug, b"The annual accounts stand open to every member.")
    run_id = start(me, slug, of, document_ids=[paper.pk]).run.row.pk
    runs.execute_run(me, run_id)
    attempt = _attempt_at(run_id)
    with pytest.raises(handlers.HandedBack):
        runs.execute(attempt)
    assert not Report.objects.exists()
    Document.objects.update(changed_at=now() - timedelta(minutes=5, seconds=1))
    runs.execute(attempt)
    report = runs.get_report(me, run_id).document
    assert [each["status"] for each in report["sections"][0]["criteria"]] == ["met", "insufficient", "insufficient"]


def test_a_run_that_was_canceled_while_it_waited_for_a_worker_is_not_judged():
    me = owner()
    run_id = start(me, company(me), framework()).run.row.pk
    runs.execute_run(me, run_id)
    attempt = _attempt_at(run_id)
    ReportRun.objects.update(state="canceled")
    with pytest.raises(handlers.Abandoned):
        runs.execute(attempt)
    assert not Report.objects.exists()


def _attempt_at(run_id):
    Job.objects.exclude(pk=run_id).delete()
    return queue.claim("w")


def test_a_run_that_is_not_executed_in_time_expires_and_costs_nothing():
    me = owner()
    run_id = start(me, company(me), framework()).run.row.pk
    ReportRun.objects.filter(pk=run_id).update(expires_at=now() - timedelta(seconds=1))
    assert runs.get_run(me, run_id).to_wire()["state"] == "expired"
    with pytest.raises(Conflict, match="expired"):
        runs.execute_run(me, run_id)
    assert numbers(me) == (100, 0)


def test_the_periodic_job_settles_expired_runs_and_they_stay_refused():
    me, of = owner(), framework()
    slug = company(me)
    late, fresh = (start(me, slug, of).run.row.pk for _ in range(2))
    canceled = start(me, slug, of).run.row.pk
    runs.cancel_run(me, canceled)
    moment = now() - timedelta(seconds=1)
    ReportRun.objects.filter(pk__in=[late, canceled]).update(expires_at=moment)
    queue.enqueue_periodic()
    do_jobs()
    kept = ReportRun.objects.get(pk=late)
    assert (kept.state, kept.finished_at) == ("expired", moment)
    assert [runs.get_run(me, each).row.state for each in (fresh, canceled)] == ["created", "canceled"]
    with pytest.raises(Conflict, match="expired") as refused:
        runs.execute_run(me, late)
    assert "start_report_run" in refused.value.hint
    with pytest.raises(Conflict, match="is expired and has no report"):
        runs.get_report(me, late)
    assert runs.execute_run(me, fresh).state == "queued"
    assert numbers(me) == (100, 10)


def test_too_few_credits_leave_the_run_as_it_was(settings):
    settings.STARTING_CREDITS = 9
    me, of = owner("short@example.org"), framework()
    run_id = start(me, company(me), of).run.row.pk
    with pytest.raises(Conflict, match="costs 10 credits, but only 9 are available"):
        runs.execute_run(me, run_id)
    assert (runs.get_run(me, run_id).state, numbers(me), Job.objects.filter(pk=run_id).exists()) == (
        "created",
        (9, 0),
        False,
    )
    ledger.grant(COMMAND, "short@example.org", 1)
    assert runs.execute_run(me, run_id).state == "queued"


def test_a_framework_may_have_a_price_of_its_own_or_none():
    me, of = owner(), framework()
    slug = company(me)
    for price, left in ((25, 75), (0, 75)):
        update_framework(reviewer(), of, run_cost=price)
        finished(me, slug, of)
        assert numbers(me) == (left, 0)


def test_a_document_stays_while_a_run_needs_it():
    me, of = owner(), framework()
    slug = company(me)
    paper = uploaded(me, slug)
    run_id = start(me, slug, of, document_ids=[paper.pk]).run.row.pk
    runs.execute_run(me, run_id)
    with pytest.raises(Conflict, match="uses this document"):
        delete_document(me, paper.pk)
    do_jobs()
    delete_document(me, paper.pk)


@pytest.mark.parametrize("when", ["created", "queued", "running"])
def test_a_canceled_run_gives_its_credits_back(when):
    me = owner()
    run_id = start(me, company(me), framework()).run.row.pk
    if when != "created":
        runs.execute_run(me, run_id)
    attempt = queue.claim("w") if when == "running" else None
    runs.cancel_run(me, run_id)
    if attempt:
        with pytest.raises(handlers.Canceled):
            runs.execute(attempt)
        attempt.canceled()
    assert runs.get_run(me, run_id).state == "canceled"
    assert numbers(me) == (100, 0)
    assert runs.cancel_run(me, run_id).state == "canceled"
    assert not Report.objects.exists()


def test_a_run_that_fails_for_good_returns_its_credits_and_reveals_no_detail(monkeypatch):
    me, of = owner(), framework()
    slug = company(me)
    run_id = start(me, slug, of).run.row.pk
    runs.execute_run(me, run_id)
    attempt = queue.claim("w")
    attempt.failed("ValueError: secret-term", for_good=True)
    seen = runs.get_run(me, run_id).to_wire()
    assert (seen["state"], "Nothing was charged" in seen["error"], "secret" in seen["error"]) == ("failed", True, False)
    assert numbers(me) == (100, 0)
    assert runs.execute_run(me, start(me, slug, of).run.row.pk).state == "queued"


def test_criteria_judged_before_a_crash_are_kept_and_a_worker_that_lost_its_lease_is_not_paid(monkeypatch):
    me, of = owner(), framework(30)
    run_id = start(me, company(me), of).run.row.pk
    runs.execute_run(me, run_id)
    judged, real = [], Rules.judge_one

    def dies_at_the_third_batch(rules, criterion, *rest):
        if len(judged) == 16:
            raise KeyboardInterrupt
        judged.append(criterion["id"])
        return real(rules, criterion, *rest)

    monkeypatch.setattr(Rules, "judge_one", dies_at_the_third_batch)
    zombie = queue.claim("first")
    with pytest.raises(KeyboardInterrupt):
        runs.execute(zombie)
    assert runs.get_run(me, run_id).to_wire()["progress"] == {"done": 16, "total": 30, "step": "judge"}
    assert Job.objects.get(pk=run_id).progress["total"] == 30  # for a process of an earlier version
    Job.objects.filter(pk=run_id).update(run_at=now() - timedelta(seconds=1))
    monkeypatch.setattr(Rules, "judge_one", lambda *given: judged.append(given[1]["id"]) or real(*given))
    runs.execute(queue.claim("second"))
    assert judged == ["team", "accounts", *(f"w{n}" for n in range(28))]
    assert numbers(me) == (90, 0)
    row = ReportRun.objects.select_related("company", "framework", "specification").get(pk=run_id)
    with pytest.raises(handlers.LeaseLost):
        runs._finish(zombie, row, "", {}, Rules())
    assert (Report.objects.count(), numbers(me)) == (1, (90, 0))


@pytest.mark.django_db(transaction=True)
def test_of_24_that_start_and_execute_8_keys_with_credit_for_5_exactly_5_run(settings):
    settings.STARTING_CREDITS = 50
    me, of = owner(), framework()
    slugs = [company(me) for _ in range(8)]
    outcomes, barrier = [], threading.Barrier(24)

    def go(number):
        try:
            barrier.wait(60)
            run_id = start(me, slugs[number % 8], of, idempotency_key=f"key{number % 8}").run.row.pk
            outcomes.append(runs.execute_run(me, run_id).row.pk)
        except Exception as error:  # noqa: BLE001 - what was raised is what is looked at
            outcomes.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert {type(each) for each in outcomes} <= {str, Conflict}, outcomes
    assert len({each for each in outcomes if isinstance(each, str)}) == 5
    assert (ReportRun.objects.count(), ReportRun.objects.filter(state="queued").count()) == (8, 5)
    assert numbers(me) == (50, 50)
    do_jobs()
    assert (Report.objects.count(), numbers(me)) == (5, (0, 0))
    assert Company.objects.count() == 8
