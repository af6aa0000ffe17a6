"""Evaluators of plugins: chosen by the setting, named in the report, their quotes verified like all others."""

import pytest

from make.accounts import account, signed_in
from make.registry import owner
from make.reports import company, do_jobs, finished, framework
from muniment import config
from muniment.assessments import operations as runs
from muniment.assessments.evaluation.judgement import Usage
from muniment.assessments.operations import choose_evaluator
from muniment.assessments.report_views import to_markdown
from muniment.config import Config, ConfigError
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.worker import Worker
from muniment.plugins import Quote, Verdict, hook
from services.plugins import plugged

pytestmark = pytest.mark.django_db


@pytest.fixture
def chooses(monkeypatch):
    def choose(value):
        monkeypatch.setattr(config, "_current", Config(evaluator=Config({"MUNIMENT_EVALUATOR": value}).evaluator))

    return choose


class Tides:
    """Quotes the first passage for the first criterion, and invents a quote for all others."""

    name = "tides"

    def __init__(self):
        self.judged = []

    @hook
    def evaluators(self):
        return [self]

    def judge(self, *, criterion, scale, passages):
        self.judged.append(criterion["id"])
        if len(self.judged) == 1:
            quote = Quote(passage=passages[0].number, text=passages[0].text)
            return Verdict(level=scale[1], quotes=[quote], rationale="It says so.")
        return Verdict(level=scale[1], quotes=[Quote(passage=0, text="never written anywhere")])


def test_a_report_by_a_plugin_names_it_and_its_invented_quotes_count_for_nothing(chooses):
    tides, me = Tides(), owner()
    chooses("tides")
    with plugged(tides=tides):
        report = finished(me)
    document = report.document
    assert document["evaluator"] == {"kind": "plugin", "model": None, "promptHash": None, "name": "tides"}
    criteria = [each for section in document["sections"] for each in section["criteria"]]
    by = {each["evaluator"] for each in criteria}
    assert by == {"plugin"}
    assert criteria[0]["status"] == "met"
    assert {each["status"] for each in criteria[1:]} == {"insufficient"}
    assert "by the evaluator tides" in to_markdown(document)


def test_the_pages_and_the_published_score_say_that_a_plugin_assessed(chooses):
    chooses("tides")
    who = account()
    me = who.actor("web", "pages")
    with plugged(tides=Tides()):
        slug, of = company(me), framework()
        waiting = runs.start_run(me, slug, of)
        assert waiting.to_wire()["evaluator"] == {"kind": "plugin", "model": None, "name": "tides"}
        page = signed_in(who).get(f"/manage/reports/{waiting.run.row.pk}").content.decode()
        assert "The evaluator <bdi>tides</bdi> of this registry assesses the criteria." in page
        run = runs.execute_run(me, waiting.run.row.pk)
        do_jobs()
        page = signed_in(who).get(f"/manage/reports/{run.row.pk}").content.decode()
        assert "by the evaluator <bdi>tides</bdi> of this registry" in page


def test_the_setting_chooses_for_all_frameworks_or_for_one(chooses):
    chooses("rules river=tides")
    with plugged(tides=Tides()):
        assert choose_evaluator(Usage(), "river").kind == "plugin"
        assert choose_evaluator(Usage(), "lake").kind == "rules"
        assert runs.evaluator_now("lake") == {"kind": "rules", "model": None}
    for wrong in ("a b", "=tides", "river=", "river=a river=b"):
        with pytest.raises(ConfigError, match="MUNIMENT_EVALUATOR must be a name"):
            Config({"MUNIMENT_EVALUATOR": wrong})
    with pytest.raises(ConfigError, match="needs MUNIMENT_MODEL_URL"):
        Config({"MUNIMENT_EVALUATOR": "model"})


def test_without_the_plugin_a_run_fails_and_costs_nothing(chooses):
    chooses("tides")
    me = owner()
    run = runs.start_run(me, company(me), framework())
    runs.execute_run(me, run.run.row.pk)
    with plugged():
        for _ in range(4):
            Job.objects.filter(state="queued").update(run_at="2020-01-01T00:00:00Z")
            Worker(threads=1)._work(queue.claim("tests"))
    assert runs.get_run(me, run.run.row.pk).state == "failed"
    assert "tides" in Job.objects.get(kind=runs.KIND).error
