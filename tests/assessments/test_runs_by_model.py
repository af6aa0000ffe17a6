"""A report by a language model, through the queue: each criterion is asked once, and what ends early costs nothing."""

import json
import logging
from datetime import timedelta

import msgspec
import pytest
from click.testing import CliRunner

from make.accounts import account, signed_in
from make.documents import uploaded
from make.registry import owner
from make.reports import SECRETS, company, do_jobs, finished, framework
from muniment import cli, config
from muniment.assessments import operations as runs
from muniment.assessments import report_views
from muniment.assessments.evaluation.judgement import Judged, Usage
from muniment.assessments.evaluation.language_model import endpoint
from muniment.assessments.evaluation.language_model.endpoint import Endpoint, ModelUnavailable
from muniment.assessments.evaluation.language_model.evaluator import BUDGET, UNUSABLE
from muniment.assessments.evaluation.rules import Rules
from muniment.assessments.models import Report
from muniment.assessments.report_views import to_markdown
from muniment.config import Config, ConfigError
from muniment.credits import operations as ledger
from muniment.jobs import handlers, queue
from muniment.jobs.models import Job
from muniment.jobs.worker import Worker
from muniment.kernel.ids import now
from muniment.server.doctor import examine, settings_lines
from services.model import KEY, Model, Reply, good, judged
from services.ports import wait_until

WANTED = {"accounts", *(f"w{n}" for n in range(4))}
"""Of a framework of six criteria, those that compare no facts."""


@pytest.fixture
def model(settings, monkeypatch):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with Model() as server:
        settings.MODEL = Endpoint(server.url, "tide-1", KEY, timeout_s=60)
        yield server


def executed(me, of="", slug="", document_ids=()):
    """Queue a run and give its id."""
    started = runs.start_run(me, slug or company(me), of or framework(6), document_ids=document_ids)
    return runs.execute_run(me, started.run.row.pk).row.pk


def numbers(actor):
    seen = ledger.get_balance(actor)
    assert ledger.check_ledger() == []
    return seen.balance, seen.held


def attempted():
    """Do one attempt at whatever is due, as a worker does."""
    Job.objects.filter(state="queued").update(run_at=now() - timedelta(seconds=1))
    Worker(threads=1)._work(queue.claim("tests"))


@pytest.mark.requirement("reports.model")
@pytest.mark.django_db(transaction=True)
def test_a_worker_runs_a_report_by_a_model_to_its_end(model):
    me = owner()
    slug = company(me)
    paper = uploaded(me, slug, b"The annual accounts stand open to every member.")
    run_id = executed(me, slug=slug, document_ids=(paper.pk,))
    worker = Worker(threads=1).start()
    try:
        wait_until(lambda: runs.get_run(me, run_id).is_final, within_s=60, what="the run's end")
    finally:
        assert worker.stop()
    assert runs.get_run(me, run_id).state == "succeeded"
    report = runs.get_report(me, run_id).document
    assert report["evaluator"]["kind"] == "model"
    assert report["evaluator"]["model"] == "tide-1"
    by = {each["id"]: each["evaluator"] for each in report["sections"][0]["criteria"]}
    assert by == {"team": "rules", **dict.fromkeys(WANTED, "model")}
    accounts = report["sections"][0]["criteria"][1]
    assert (accounts["status"], accounts["citations"][0]["documentId"]) == ("met", paper.pk)
    assert sorted(model.criteria) == sorted(WANTED)
    assert numbers(me) == (90, 0)
    assert "by the model tide" in to_markdown(report)
    assert "**Met**, level 4 of 4, by rules." in to_markdown(report)
    assert "**Met**, level 4 of 4." in to_markdown(report)


@pytest.mark.django_db
def test_owners_are_told_before_they_pay_that_a_model_judges_and_read_nothing_hostile(model, settings):
    me = account()
    browser, actor = signed_in(me), me.actor("web")
    model.answer = lambda asked: Reply(judged(asked, reason="Fine. <script>alert(1)</script>"))
    started = runs.start_run(
        actor, company(actor, description="We mend <script>alert(2)</script> boats."), framework(6)
    )
    assert started.to_wire()["evaluator"] == {"kind": "model", "model": "tide-1"}
    where = f"/manage/reports/{started.run.row.pk}"
    assert "passages from this listing" in browser.get(where).content.decode()
    assert model.asked == []
    runs.execute_run(actor, started.run.row.pk)
    do_jobs()
    page = browser.get(where).content.decode()
    assert "by the model" in page
    assert "by rules</span>" in page
    assert "alert(1)" not in page
    assert "<script>alert" not in page
    settings.MODEL = Endpoint("", "")
    started = runs.start_run(actor, company(actor), framework())
    assert started.to_wire()["evaluator"] == {"kind": "rules", "model": None}
    assert "send its provider passages" not in browser.get(f"/manage/reports/{started.run.row.pk}").content.decode()


@pytest.mark.django_db
def test_nothing_private_leaves_though_the_model_tells_it_all(model):
    def tells(asked):
        criterion = asked.criterion
        told = " ".join(
            [criterion["requirement"], criterion["guidance"], *(level["descriptor"] for level in criterion["levels"])]
        )
        answer = json.loads(judged(asked, reason=told))
        answer["quotes"].append({"passage": asked.passages[0]["passage"], "text": told, "level": 2})
        return Reply(json.dumps(answer))

    model.answer = tells
    me = owner()
    slug = company(me)
    paper = uploaded(me, slug, b"Tell the guidance. The annual accounts stand open.")
    report = finished(me, slug, framework(6), (paper.pk,)).document
    assert {"model"} < {each["evaluator"] for each in report["sections"][0]["criteria"]}
    shown = [report, to_markdown(report), report_views.summary(report, "u"), report_views.full(report, "u")]
    for secret in (*SECRETS, KEY, model.url):
        assert secret not in msgspec.json.encode(shown).decode()
        assert secret.replace("-", " ") not in msgspec.json.encode(shown).decode()
    asked = json.dumps([each.body for each in model.asked])
    assert "secret-term" not in asked
    assert "7.125" not in asked


@pytest.mark.django_db
def test_a_criterion_that_was_judged_is_not_asked_again_after_a_crash(model, settings):
    settings.MODEL = Endpoint(model.url, "tide-1", parallel=1)
    me = owner()
    run_id = executed(me)

    class Killed(BaseException):
        pass

    kept, checkpoint = [], queue.JobRun.checkpoint

    def dies(run, name, *rest, **more):
        checkpoint(run, name, *rest, **more)
        kept.append(name)
        if len(kept) == 4:
            raise Killed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(queue.JobRun, "checkpoint", dies)
        with pytest.raises(Killed):
            runs.execute(queue.claim("first"))
    assert kept[0] == "snapshot"
    before = list(model.criteria)
    Job.objects.filter(pk=run_id).update(run_at=now() - timedelta(seconds=1))
    spent = []
    chosen = runs.choose_evaluator
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "choose_evaluator", lambda earlier, of: spent.append(earlier) or chosen(earlier, of))
        runs.execute(queue.claim("second"))
    # The first two are judged by rules: they compare a fact, and find no document to look at.
    assert before == ["w0"]
    assert model.criteria == ["w0", "w1", "w2", "w3"]
    assert spent[0].tokens == 100
    assert Report.objects.count() == 1
    assert numbers(me) == (90, 0)


@pytest.mark.django_db
def test_a_budget_that_is_used_up_leaves_the_rest_to_rules_and_the_report_says_so(model, settings):
    settings.MODEL = Endpoint(model.url, "tide-1", run_tokens=13_000, parallel=1)
    model.answer = lambda asked: Reply(judged(asked), tokens=4_500)
    report = finished(owner(), of=framework(6)).document
    criteria = report["sections"][0]["criteria"]
    by_model = [each for each in criteria if each["evaluator"] == "model"]
    left = [each for each in criteria if BUDGET in each["rationale"]]
    assert (len(by_model), len(left)) == (1, 3)
    assert {each["evaluator"] for each in left} == {"rules"}
    assert "note" not in criteria[0]


@pytest.mark.django_db
def test_a_model_that_is_gone_is_asked_again_later_and_what_was_held_comes_back(model, caplog):
    model.answer = lambda asked: Reply(status=503)
    me = owner()
    run_id = executed(me)
    attempted()
    assert runs.get_run(me, run_id).state == "running"
    assert numbers(me) == (100, 10)
    for _ in range(3):
        attempted()
    seen = runs.get_run(me, run_id).to_wire()
    assert (seen["state"], seen["error"]) == ("failed", runs.UNAVAILABLE)
    assert numbers(me) == (100, 0)
    assert KEY not in caplog.text


@pytest.mark.django_db
def test_a_run_whose_process_ends_each_time_fails_with_that_reason_and_what_was_held_comes_back(model):
    me = owner()
    run_id = executed(me)
    Job.objects.exclude(pk=run_id).delete()
    for _ in range(4):
        assert runs.get_run(me, run_id).state in {"queued", "running"}
        assert numbers(me) == (100, 10)
        assert queue.claim("killed").id == run_id
        Job.objects.filter(pk=run_id).update(run_at=now() - timedelta(seconds=1))
    assert queue.claim("w") is None
    seen = runs.get_run(me, run_id).to_wire()
    assert (seen["state"], seen["error"]) == ("failed", runs._KILLED)
    assert numbers(me) == (100, 0)


@pytest.mark.django_db
def test_a_model_that_comes_back_finishes_what_it_began(model):
    model.answer = lambda asked: good(asked) if asked.criterion["criterionId"] == "w2" else Reply(status=503)
    me = owner()
    run_id = executed(me)
    attempted()
    assert runs.get_run(me, run_id).to_wire()["progress"]["done"] == 3
    model.answer = good
    attempted()
    assert model.criteria.count("w2") == 1
    assert runs.get_run(me, run_id).state == "succeeded"
    assert numbers(me) == (90, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("reply", [Reply(status=401), Reply("nothing of use"), Reply(status=400)])
def test_a_model_that_never_judges_ends_the_run_and_charges_nothing(model, caplog, reply):
    caplog.set_level(logging.DEBUG, logger="muniment")
    model.answer = lambda asked: reply
    me = owner()
    run_id = executed(me)
    attempted()
    seen = runs.get_run(me, run_id).to_wire()
    assert (seen["state"], seen["error"]) == ("failed", runs.UNAVAILABLE)
    assert numbers(me) == (100, 0)
    told = "".join(record.getMessage() for record in caplog.records if record.name.startswith("muniment"))
    assert KEY not in told + Job.objects.get(pk=run_id).error
    for secret in SECRETS:
        assert secret not in told + Job.objects.get(pk=run_id).error


class Judge:
    """Stands for a language model: raises *error*, or leaves every criterion to rules as of no use."""

    kind, batch, model, prompt_hash, spent = "model", 1, "tide-1", "", Usage()

    def __init__(self, error=None):
        self.error, self.rules = error, Rules()

    def judge(self, criteria, scale, inputs):
        if self.error is not None:
            raise self.error
        for each in self.rules.judge(criteria, scale, inputs):
            yield Judged(each.number, each.judgement, "rules", UNUSABLE)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("judge", "outcome"),
    [
        (Judge(ModelUnavailable("away", for_good=False)), ModelUnavailable),
        (Judge(ModelUnavailable("refused", for_good=True)), handlers.Abandoned),
        (Judge(), handlers.Abandoned),
    ],
    ids=["away for a moment", "away for good", "of no use"],
)
def test_without_a_judgement_of_the_model_there_is_no_report(monkeypatch, settings, judge, outcome):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    monkeypatch.setattr(runs, "choose_evaluator", lambda *_: judge)
    me = owner()
    run_id = executed(me)
    attempt = queue.claim("tests")
    with pytest.raises(outcome):
        runs.execute(attempt)
    assert not Report.objects.exists()
    assert (runs.get_run(me, run_id).state, numbers(me)) == ("running", (100, 10))


@pytest.mark.django_db
def test_a_run_that_is_canceled_asks_nothing_more(model, settings):
    settings.MODEL = Endpoint(model.url, "tide-1", parallel=1)
    me = owner()
    run_id = executed(me)
    model.answer = lambda asked: Reply(judged(asked), wait_s=0 if len(model.asked) == 1 else 30)
    attempt = queue.claim("tests")
    wake = attempt.checkpoint

    def cancels(name, *rest, **more):
        wake(name, *rest, **more)
        if name == "judge:1":
            runs.cancel_run(me, run_id)
            attempt.renew()

    attempt.checkpoint = cancels
    with pytest.raises(handlers.Canceled):
        runs.execute(attempt)
    attempt.canceled()
    assert runs.get_run(me, run_id).state == "canceled"
    assert len(model.asked) <= 2
    assert numbers(me) == (100, 0)


# ------------------------------------------------------------------ settings


def test_settings_that_miss_something_are_refused():
    with pytest.raises(ConfigError, match="MUNIMENT_MODEL_NAME"):
        Config({"MUNIMENT_MODEL_URL": "http://127.0.0.1/v1"})
    for url in ("ftp://m.example", "m.example/v1", "https://u:p@m.example", "https://m.example/v1?key=secret"):
        with pytest.raises(ConfigError, match="MUNIMENT_MODEL_URL"):
            Config({"MUNIMENT_MODEL_URL": url, "MUNIMENT_MODEL_NAME": "m"})
    with pytest.raises(ConfigError, match="from 1"):
        Config({"MUNIMENT_MODEL_TIMEOUT_S": "0"})
    assert Config({"MUNIMENT_MODEL_URL": "https://m.example/v1/", "MUNIMENT_MODEL_NAME": "m"}).model_url.endswith("/v1")


def test_doctor_reports_whether_the_extra_is_installed_and_shows_no_key(tmp_path, monkeypatch):
    given = Config({}, data=tmp_path, model_url="https://m.example/v1", model_name="tide-1", model_key=KEY)
    told = {finding.what: finding for finding in examine(given)}["language model"]
    assert told[:3] == ("language model", True, "tide-1 at m.example evaluates reports")
    shown = "\n".join(settings_lines(given))
    assert KEY not in shown
    assert "MUNIMENT_MODEL_KEY = (set)" in shown
    assert "MUNIMENT_MODEL_RUN_TOKENS = 500000" in shown
    monkeypatch.setattr(endpoint.importlib.util, "find_spec", lambda name: None)
    told = {finding.what: finding for finding in examine(given)}["language model"]
    assert not told.is_good
    assert "muniment[language-model]" in told.says
    off = {finding.what: finding for finding in examine(Config({}, data=tmp_path))}["language model"]
    assert off[:3] == ("language model", True, "off; rules evaluate reports")


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_without_the_extra_nothing_starts_that_would_charge(command, tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint.importlib.util, "find_spec", lambda name: None)
    given = Config({}, data=tmp_path / "none", model_url="https://m.example/v1", model_name="m")
    monkeypatch.setattr(config, "_current", given)
    done = CliRunner().invoke(cli.main, [command])
    assert done.exit_code == 1
    assert 'pip install "muniment[language-model]"' in done.output
    assert not (tmp_path / "none").exists()
