"""Health, storage and backups on the operator's pages."""

import json
import re
import sys

import pytest

from make.accounts import account, signed_in
from muniment.accounts.models import SecurityEvent
from muniment.backup.scheduled import job as scheduled
from muniment.backup.scheduled.console import ask_for_backup, read_backups
from muniment.config import Config
from muniment.jobs import handlers, queue
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden
from muniment.scrub import health, instance
from muniment.scrub.checks import Damage
from muniment.scrub.progress import Progress

pytestmark = pytest.mark.django_db
FINDINGS = """[{"mark": "WARN", "what": "mail", "says": "3 messages wait"}]"""


@pytest.fixture
def browser():
    Job.objects.all().delete()
    return signed_in(account("operator@harbour.example", "operator"))


def worked(kind):
    run = queue.claim("tests")
    while run.kind != kind:
        run = queue.claim("tests")
    try:
        run.finish(run.handler.work(run))
    except handlers.Abandoned as reason:
        run.failed(str(reason), for_good=True)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        (f"print('''{FINDINGS}'''); raise SystemExit(1)", "3 messages wait"),
        ("raise SystemExit(4)", "muniment doctor ended with status 4 and no findings"),
        ("while True: pass", "the checks took longer than 0.2 s"),
    ],
)
def test_the_overview_asks_for_one_check_and_shows_what_it_found(browser, monkeypatch, code, shown):
    monkeypatch.setattr(health, "COMMAND", (sys.executable, "-c", code))
    if "while" in code:
        monkeypatch.setattr(health, "TIMEOUT_S", 0.2)
    for _ in range(2):
        assert b"A check is running." in browser.get("/operate").content
    assert Job.objects.filter(kind=health.KIND).count() == 1
    worked(health.KIND)
    page = browser.get("/operate").content.decode()
    assert shown in page
    assert "Checked on" in page
    browser.post("/operate/health")
    assert Job.objects.filter(kind=health.KIND, state=State.QUEUED).count() == 1


def test_what_is_not_set_up_is_not_called_ok(browser, monkeypatch):
    found = [
        ("OK", "mail", "a folder", "not set up"),
        ("OK", "backups", "none yet", "none yet"),
        ("OK", "limits by address", "requests off", "partly off"),
        ("OK", "language model", "off", "off"),
        ("OK", "keys", "readable by their owner only", ""),
    ]
    findings = [{"mark": mark, "what": what, "says": says, "state": state} for mark, what, says, state in found]
    monkeypatch.setattr(health, "COMMAND", (sys.executable, "-c", f"print({json.dumps(findings)!r})"))
    browser.get("/operate")
    worked(health.KIND)
    page = browser.get("/operate").content.decode()
    attention, passed = page.split("<summary>Passed checks")
    assert re.findall(r'class="pill (\w*)">([^<]*)', attention) == [
        ("wait", "Not set up"), ("wait", "None yet"), ("wait", "Partly off"),
    ]  # fmt: skip
    assert re.findall(r'class="pill (\w*)">([^<]*)', passed) == [("", "Off"), ("good", "OK")]
    assert "2 checks passed" in page
    assert "3 need your attention" in page


def test_storage_shows_places_and_damage(browser, stand):
    assert b"No damaged items found." in browser.get("/operate/storage").content
    damage = Damage(check="x", subject="companies/quillmere", says="differs", remedy="publish it again")
    instance.store(Progress(began_at=1.0, finished_at=2.0, former=(damage,)))
    page = browser.get("/operate/storage").content.decode()
    for shown in (str(stand.folder), "companies/quillmere", "publish it again", "1 January 1970"):
        assert shown in page, shown


def test_a_backup_is_asked_for_once_and_made_at_once(browser, monkeypatch, tmp_path):
    settings = Config({}, data=tmp_path, backups=str(tmp_path / "backups"))
    monkeypatch.setattr("muniment.config.current", lambda: settings)
    assert b"No backup yet." in browser.get("/operate/backups").content
    browser.post("/operate/backups")
    assert b"A backup is being made." in browser.get("/operate/backups").content
    browser.post("/operate/backups")
    [job] = Job.objects.filter(kind="backup.interval_ended")
    assert SecurityEvent.objects.filter(event="command_run", detail__command="backup").count() == 1
    made = f'{{"place": "here", "covered_at": "{now().isoformat()}", "interval_s": 900, "name": "muniment-x"}}'
    monkeypatch.setattr(scheduled, "COMMAND", (sys.executable, "-c", f"print('''{made}''')"))
    run = queue.JobRun(job, scheduled.HANDLER)
    assert scheduled.run_backup(run)["name"] == "muniment-x"


def test_backups_in_a_store_are_those_that_jobs_have_made(monkeypatch, tmp_path):
    settings = Config({}, data=tmp_path, backups="s3://KEY:undertow@bucket/prefix")
    result = {"place": "s3", "covered_at": now().isoformat(), "interval_s": 900, "name": "muniment-y", "size_bytes": 7}
    Job.objects.create(kind="backup.interval_ended", state=State.SUCCEEDED, finished_at=now(), result=result)
    found = read_backups(settings)
    assert [row.name for row in found.rows] == ["muniment-y"]
    assert "undertow" not in found.place + found.says


def test_strangers_and_instances_without_a_place_make_no_backup(tmp_path):
    with pytest.raises(Forbidden):
        ask_for_backup(account(role="reviewer").actor("web"), Config({}, data=tmp_path))
    operator = account("operator@harbour.example", "operator").actor("web")
    with pytest.raises(Conflict):
        ask_for_backup(operator, Config({}, data=tmp_path, backups="off"))
