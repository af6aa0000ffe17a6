"""What operators, reviewers and commands do to the registry is in the audit log, in the transaction of the act."""

import json

import pytest
from click.testing import CliRunner

from make.accounts import account
from make.events import audited
from make.registry import draft, lines, owner, published, reviewer
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.operations import set_active, set_role
from muniment.cli import main
from muniment.credits import operations as credits_
from muniment.kernel.actor import COMMAND
from muniment.kernel.phrases.storing import unpacked
from muniment.kernel.problems import Conflict
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.frameworks import authoring as frameworks
from muniment.registry.imports import undoing
from muniment.registry.imports.undoing import undo_import
from muniment.registry.models import PendingChange, Person
from muniment.registry.people import moderation
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def newest():
    return audited()[-1]


def said(event):
    return (event.event, event.actor_id, event.subject, event.detail)


@pytest.fixture
def judge():
    return reviewer()


def test_decisions_on_submissions(judge):
    me = owner()
    for decide, step in (
        (lambda slug: workflow.approve_company(judge, slug), "approved"),
        (lambda slug: workflow.request_changes(judge, slug, "Add a website."), "changes requested"),
        (lambda slug: workflow.reject_company(judge, slug, "No such company."), "rejected"),
    ):
        slug = draft(me).slug
        workflow.submit_company(me, slug)
        decide(slug)
        assert said(newest()) == (
            "submission_decided", judge.account_id, f"companies/{slug}", {"decision": step},
        )  # fmt: skip
    assert "website" not in str([each.detail for each in audited()]), "notes are in the history of the listing"


def test_takedowns_and_their_end(judge):
    slug = published(owner()).slug
    workflow.unlist_company(judge, slug, "Fraud.")
    assert said(newest()) == ("unlisted", judge.account_id, f"companies/{slug}", {})
    workflow.relist_company(judge, slug)
    assert said(newest()) == ("relisted", judge.account_id, f"companies/{slug}", {})


def test_a_refused_act_is_not_recorded(judge):
    slug = draft(owner()).slug
    before = len(audited())
    with pytest.raises(Conflict):
        workflow.unlist_company(judge, slug, "Fraud.")
    assert len(audited()) == before


def test_decisions_on_changes_and_requests(judge):
    me, other = owner(), owner()
    slug = published(me).slug
    listings.update_company(me, slug, CompanyChange(name="Quillmere Tidal"))
    change = PendingChange.objects.get()
    workflow.decide_change(judge, change.pk, approve=False, note="Too similar.")
    detail = {"change": change.pk, "decision": "rejected"}
    assert said(newest()) == ("change_decided", judge.account_id, f"companies/{slug}", detail)
    claim = claims.claim_company(other, slug, "I work there.")
    claims.decide_request(judge, claim.pk, approve=True)
    [decided, gained, added] = audited()[-3:]
    detail = {"request": claim.pk, "kind": "claim", "decision": "approved"}
    assert said(decided) == ("request_decided", judge.account_id, f"companies/{slug}", detail)
    assert (gained.event, gained.account_id) == ("ownership_gained", other.account_id)
    assert (added.event, added.account_id, added.detail) == ("owner_added", me.account_id, {"owner": other.account_id})


def test_acts_on_people(judge):
    for slug in ("ada-quill", "a-quill"):
        Person.objects.create(slug=slug, name="Ada Quill", listed=True)
    moderation.correct_person(judge, "ada-quill", ProfileChange(bio="Keeps the harbour."))
    assert said(newest()) == ("person_corrected", judge.account_id, "people/ada-quill", {"fields": ["bio"]})
    moderation.unlist_person(judge, "ada-quill", "Asked for it.")
    moderation.relist_person(judge, "ada-quill")
    assert [each.event for each in audited()[-2:]] == ["unlisted", "relisted"]
    moderation.merge_people(judge, "a-quill", "ada-quill")
    assert said(newest()) == ("people_merged", judge.account_id, "people/ada-quill", {"merged": "a-quill"})


def test_changes_of_frameworks(judge):
    frameworks.create_framework(judge, name="Harbour Standard", kind="score", framework_id="harbour")
    frameworks.update_framework(judge, "harbour", run_cost=5)
    made, updated = audited()[-2:]
    assert (made.subject, made.detail["action"]) == ("frameworks/harbour", "created")
    assert updated.detail == {"action": "updated", "fields": ["runCost"]}


def test_imports_with_their_files_and_counts(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "ada-quill", "name": "Ada Quill"}, b"no json\n")
    import_registry(tmp_path / "people.jsonl", ImportOptions(dry_run=True))
    assert audited() == []
    import_registry(tmp_path / "people.jsonl", ImportOptions(overwrite=True))
    event = newest()
    assert (event.event, event.via, event.actor_id) == ("records_imported", "command", None)
    assert (event.detail["files"], event.detail["options"]) == (["people.jsonl"], ["overwrite"])
    result = str(unpacked(event.detail["result"]))
    assert "1 new" in result
    assert "1 invalid rows" in result


def test_an_import_that_stops_is_recorded_with_what_it_wrote(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "ada-quill", "name": "Ada Quill"})

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_registry(tmp_path / "people.jsonl", progress=stop)
    assert newest().event == "records_imported"


def test_an_undone_import_is_one_entry_with_its_files_and_counts(tmp_path):
    lines(tmp_path / "people.jsonl", {"slug": "ada-quill", "name": "Ada Quill", "bio": "First"})
    import_registry(tmp_path)
    lines(
        tmp_path / "people.jsonl",
        {"slug": "ada-quill", "name": "Ada Quill", "bio": "Second"},
        {"slug": "joe", "name": "Joe"},
    )
    run = import_registry(tmp_path).import_run
    before = len(audited())
    operator = account("operator@harbour.example", "operator").actor("web")
    undo_import(operator, run)
    (event,) = audited()[before:]
    assert (event.event, event.actor_id) == ("import_undone", operator.account_id)
    assert (event.detail["import"], event.detail["files"]) == (run, ["people.jsonl"])
    assert str(unpacked(event.detail["result"])) == "1 rows restored, 1 unpublished, 0 kept"


def test_an_undo_that_stops_is_recorded(tmp_path, monkeypatch):
    lines(tmp_path / "people.jsonl", {"slug": "ada-quill", "name": "Ada Quill"})
    run = import_registry(tmp_path).import_run

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(undoing, "publish", stop)
    with pytest.raises(KeyboardInterrupt):
        undo_import(COMMAND, run)
    assert (newest().event, newest().detail["import"]) == ("import_undone", run)


def test_roles_credits_and_closed_accounts():
    me = account("owner@harbour.example")
    set_role(COMMAND, me.email, "reviewer")
    set_role(COMMAND, me.email, "reviewer")
    credits_.grant(COMMAND, me.email, 50, key="once")
    credits_.grant(COMMAND, me.email, 50, key="once")
    operator = account("operator@harbour.example", role="operator")
    set_role(operator.actor("web"), me.email, "owner")
    set_active(operator.actor("web"), me.email, active=False)
    rows = [(each.event, each.account_id, each.actor_id, each.detail) for each in audited()]
    assert rows == [
        ("role_changed", me.pk, None, {"was": "owner", "role": "reviewer"}),
        ("credits_granted", me.pk, None, {"credits": 50}),
        ("role_changed", me.pk, operator.pk, {"was": "reviewer", "role": "owner"}),
        ("account_disabled", me.pk, operator.pk, {}),
    ]
    set_active(operator.actor("web"), me.email, active=True)
    assert (newest().event, Account.objects.get(pk=me.pk).is_active) == ("account_enabled", True)


def test_the_command_prints_the_audit_log_in_three_forms(judge):
    slug = published(owner()).slug
    workflow.unlist_company(judge, slug, "Fraud.")
    run = CliRunner().invoke
    text = run(main, ["audit"], catch_exceptions=False).output.splitlines()
    assert "Unlisted" in text[0]
    assert f"/companies/{slug}" in text[0]
    rows = [json.loads(line) for line in run(main, ["audit", "--json", "--since", "1d"]).output.splitlines()]
    assert (rows[0]["event"], rows[0]["subject"]) == ("unlisted", f"companies/{slug}")
    assert len(rows) == SecurityEvent.objects.filter(is_audited=True).count()
    table = run(main, ["audit", "--csv"]).output.splitlines()
    assert table[0].startswith("id,at,event,account,actor")
    assert len(table) == len(rows) + 1
    assert run(main, ["audit", "--since", "2099-01-01"]).output == ""
    for wrong in (["--since", "soon"], ["--csv", "--json"]):
        assert run(main, ["audit", *wrong]).exit_code != 0
