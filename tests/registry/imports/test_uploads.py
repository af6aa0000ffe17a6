"""Imports in the browser: their steps, limits and jobs, also of workers that stop in the middle."""

import zipfile
from datetime import timedelta
from io import BytesIO

import pytest

from make.accounts import account
from make.imports import work
from make.registry import document, owner, reviewer
from make.spreadsheets import zipped
from muniment import config
from muniment.accounts.models import Account
from muniment.jobs import queue
from muniment.jobs.handlers import Abandoned, LeaseLost
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.registry.exchange import reading
from muniment.registry.imports import results, undoing, uploads
from muniment.registry.imports.stages import LANE
from muniment.registry.models import Company, HistoryEntry, ImportFile, ImportRun, ImportUpload

pytestmark = pytest.mark.django_db

TABLE = b"Company,Website,Founders\nAlder,alder.example,Ida Alder\nBirch,birch.example,Joe Birch\nCedar,,Kim Cedar\n"


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator").actor("web")


def begun(actor, content=TABLE, name="members.csv", **more):
    key = uploads.begin_import(actor, name=name, content=content, **more).pk
    work()
    return key


def previewed(actor, content=TABLE):
    key = begun(actor, content)
    uploads.request_preview(actor, key)
    work()
    return key


def imported(actor, content=TABLE, options=()):
    key = previewed(actor, content)
    run = uploads.request_import(actor, key, list(options)).run_id
    work()
    return run


def stop_in_the_middle(monkeypatch, name):
    """Run the next job until it has told its progress *name* times; then its worker is gone."""
    monkeypatch.setattr(reading, "BATCH_LINES", 1)
    run = queue.claim("killed", LANE)
    told = []

    def check():
        told.append(1)
        if len(told) == name:
            raise LeaseLost(run.id)

    run.check = check
    with pytest.raises(LeaseLost):
        run.handler.work(run)
    Job.objects.filter(pk=run.id).update(run_at=now() - timedelta(minutes=1))


def test_strangers_can_do_nothing(operator):
    key, run = begun(operator), imported(operator)
    for stranger in (owner(), reviewer()):
        for act in (
            lambda who: uploads.begin_import(who, name="a.csv", content=TABLE),
            lambda who: uploads.get_import(who, key),
            uploads.list_open,
            lambda who: uploads.save_mapping(who, key, ""),
            lambda who: uploads.read_again(who, key, encoding="", headers={}),
            lambda who: uploads.request_preview(who, key),
            lambda who: uploads.request_import(who, key, []),
            lambda who: uploads.discard(who, key),
            lambda who: uploads.try_again(who, key),
            lambda who: results.get_result(who, run),
            lambda who: results.request_undo(who, run),
            lambda who: results.try_undo_again(who, run),
        ):
            with pytest.raises(Forbidden):
                act(stranger)
    assert ImportUpload.objects.get(pk=key).state == "mapping"


def test_what_cannot_be_imported_is_refused_at_once(operator, monkeypatch):
    monkeypatch.setattr(config, "_current", config.Config({}, data=config.current().data, import_max_mb=1))
    for given, said in (
        ({"content": b"x" * (1 << 20) + b"x"}, "larger than 1 MB"),
        ({"address": "https://user@harbour.example/a.csv"}, "names a user"),
        ({}, "No file was uploaded"),
        ({"content": TABLE, "mapping": "[["}, "The mapping is invalid"),
    ):
        with pytest.raises(BadRequest, match=said):
            uploads.begin_import(operator, **given)
    monkeypatch.setattr(uploads, "MAX_OPEN", 1)
    uploads.begin_import(operator, content=TABLE)
    with pytest.raises(TooMany):
        uploads.begin_import(operator, content=TABLE)


def test_steps_are_taken_in_their_order(operator):
    key = uploads.begin_import(operator, name="members.csv", content=TABLE).pk
    with pytest.raises(Conflict):
        uploads.request_preview(operator, key)
    work()
    with pytest.raises(Conflict):
        uploads.request_import(operator, key, [])
    uploads.save_mapping(operator, key, ImportUpload.objects.get(pk=key).mapping)
    work()
    uploads.request_preview(operator, key)
    work()
    uploads.request_import(operator, key, ["draft", "nonsense"])
    with pytest.raises(Conflict):
        uploads.discard(operator, key)
    with pytest.raises(Conflict):
        uploads.request_import(operator, key, [])
    work()
    assert set(Company.objects.values_list("state", flat=True)) == {"draft"}
    assert not ImportFile.objects.exists()
    for missing in ("", "no-such-import"):
        with pytest.raises(NotFound):
            uploads.get_import(operator, missing)
    with pytest.raises(NotFound):
        results.get_result(operator, 404)


def test_a_mapping_that_needs_a_choice_gives_no_preview(operator):
    key = begun(operator, b"Company,Joined\nAlder,03/04/2001\n")
    with pytest.raises(BadRequest, match="needs choices"):
        uploads.request_preview(operator, key)


def test_a_preview_writes_nothing(operator):
    previewed(operator)
    assert not Company.objects.exists()
    assert not ImportRun.objects.exists()
    assert not HistoryEntry.objects.exists()
    upload = ImportUpload.objects.get()
    assert [each["company"]["name"] for each in upload.report["samples"]] == ["Alder", "Birch", "Cedar"]
    assert upload.report["samples"][0]["positions"][0]["person"]["slug"] == "ida-alder"


def test_a_second_file_of_the_same_headings_shows_each_column_with_its_own_values(operator):
    table = b"Company;Website;Notes;;Founded\nAlder;alder.example;call back;x;1998\n"
    imported(operator, table)

    upload = uploads.get_import(operator, begun(operator, table))

    assert upload.facts["is_remembered"]
    (facts,) = upload.facts["tables"]
    assert facts["headings"] == ["Company", "Website", "Notes", "Column 4", "Founded"]
    assert [each["samples"] for each in facts["columns"]] == [
        ["Alder"],
        ["alder.example"],
        ["call back"],
        ["x"],
        ["1998"],
    ]
    (mapped,) = uploads.mapping_of(upload).table
    assert {each.heading: each.field for each in mapped.column}["Company"] == "name"


def test_an_import_continues_after_its_worker_was_killed(operator, monkeypatch):
    key = previewed(operator)
    run = uploads.request_import(operator, key, []).run_id
    stop_in_the_middle(monkeypatch, 5)
    assert 0 < Company.objects.count() < 3
    assert results.get_result(operator, run).is_running
    work()
    assert sorted(Company.objects.values_list("slug", flat=True)) == ["alder", "birch", "cedar"]
    found = results.get_result(operator, run)
    assert found.report["counts"]["companies"] == {"new": 3, "changed": 0, "unchanged": 0}
    assert (ImportRun.objects.count(), found.is_running, found.upload) == (1, False, "")
    assert not ImportFile.objects.exists()


def test_an_undo_continues_after_its_worker_was_killed(operator, monkeypatch):
    first = imported(operator)
    second = imported(operator, TABLE.replace(b".example", b".example/new") + b"Dune,,\n")
    undo = results.request_undo(operator, second)
    run = queue.claim("killed", LANE)
    with monkeypatch.context() as patch:
        patch.setattr(undoing, "_set_states", lambda *_: (_ for _ in ()).throw(LeaseLost(run.id)))
        with pytest.raises(LeaseLost):
            run.handler.work(run)
    Job.objects.filter(pk=run.id).update(run_at=now() - timedelta(minutes=1))
    work()
    assert document("company", "alder")["company"]["website"] == "https://alder.example"
    assert Company.objects.get(slug="dune").state == "draft"
    assert results.get_result(operator, undo).report["kept"] == []
    with pytest.raises(BadRequest, match="is undone"):
        results.request_undo(operator, second)
    undoing.finish_undo(operator, ImportRun.objects.get(pk=undo))  # a second run of the job changes nothing
    assert HistoryEntry.objects.filter(import_run=undo, company__slug="dune").count() == 1
    assert results.get_result(operator, first).undone_by == ""


def test_of_two_imports_one_waits_for_the_other(operator):
    keys = [previewed(operator), previewed(operator)]
    for key in keys:
        uploads.request_import(operator, key, [])
    running = queue.claim("one", LANE)
    assert queue.claim("two", LANE) is None
    running.finish(running.handler.work(running))
    work()
    assert Company.objects.count() == 3
    counts = [each.report["counts"]["companies"]["new"] for each in ImportRun.objects.order_by("pk")]
    assert counts == [3, 0]


def test_a_job_that_failed_is_done_again_and_no_other(operator):
    key = uploads.begin_import(operator, name="members.csv", content=TABLE).pk
    job = uploads.get_import(operator, key).job
    uploads.try_again(operator, key)
    assert uploads.get_import(operator, key).job == job
    Job.objects.filter(pk=job).update(state="failed", error="the disk is full")
    assert uploads.progress_of(job).error == "the disk is full"
    uploads.try_again(operator, key)
    work()
    assert uploads.get_import(operator, key).state == "mapping"
    assert uploads.progress_of("gone").error
    run = imported(operator)
    undo = results.request_undo(operator, run)
    Job.objects.filter(pk=ImportRun.objects.get(pk=undo).job).update(state="failed")
    results.try_undo_again(operator, undo)
    work()
    assert results.get_result(operator, undo).report["unpublished"] == 6


def test_a_former_operator_imports_nothing(operator):
    key = previewed(operator)
    uploads.request_import(operator, key, [])
    Account.objects.update(role="owner")
    run = queue.claim("tests", LANE)
    with pytest.raises(Abandoned):
        run.handler.work(run)
    assert not Company.objects.exists()


def test_a_discarded_import_and_an_old_one_leave_nothing(operator):
    key = uploads.begin_import(operator, name="members.csv", content=TABLE).pk
    uploads.discard(operator, key)
    work()
    key = begun(operator)
    ImportUpload.objects.filter(pk=key).update(updated_at=now() - timedelta(days=8))
    begun(operator)
    uploads.remove_old()
    assert ImportUpload.objects.count() == 1


def bomb():
    out = BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w", force_zip64=True) as member,
    ):
        for _ in range(450):
            member.write(b"0" * (1 << 20))
    return out.getvalue()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (bomb, "unpacks to more than"),
        (lambda: b",".join(b"c%d" % n for n in range(100_000)) + b"\n1\n", "100,000 columns"),
        (
            lambda: zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": zipped({"d.csv": "Name\nAlder\n"})})})}),
            "archive",
        ),
    ],
)
def test_hostile_files_are_refused_with_a_reason(operator, make, said):
    upload = uploads.get_import(operator, begun(operator, make(), "members.zip"))
    assert said in upload.error
    assert upload.state == "reading"


def test_formulas_are_never_values(operator):
    key = previewed(operator, b'Company,Website,About us\nAlder,"=HYPERLINK(""x"")",=A1\nBirch,birch.example,Fine\n')
    upload = uploads.get_import(operator, key)
    assert upload.report["samples"][0]["company"].get("website") is None
    assert any("formula" in each["reason"] for each in upload.report["groups"])


def test_a_mapping_can_make_an_import_impossible_only_until_it_is_changed(operator):
    key = previewed(operator)
    upload = uploads.request_import(operator, key, [])
    ImportUpload.objects.filter(pk=key).update(mapping="[[")
    work()
    upload = uploads.get_import(operator, key)
    assert upload.state == "preview"
    assert "The mapping is invalid" in upload.error
    assert not ImportRun.objects.exists()
