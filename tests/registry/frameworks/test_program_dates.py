"""The days on which a program opens and closes: edited by reviewers, imported, exported, published, shown."""

import json

import pytest

from make.accounts import account, signed_in
from make.registry import document, item, lines, owner
from make.reports import framework, program
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import Forbidden
from muniment.registry.company.changes import BadFields
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.frameworks.authoring import update_framework
from muniment.registry.models import Framework, HistoryEntry
from muniment.web.presenters import company_lists
from muniment.web.views.overview.frameworks import framework_facts, standing_of

pytestmark = pytest.mark.django_db
DAYS = {"opensOn": "2026-09-01", "closesOn": "2026-11-30"}


def test_a_reviewer_sets_the_days_of_a_program_and_is_open_stays_as_it_is():
    slug = program(owner())
    assert not DAYS.keys() & item("framework", slug).keys()
    update_framework(COMMAND, slug, opens_on="2026-09-01", closes_on="2026-11-30")
    assert item("framework", slug).items() >= {**DAYS, "isOpen": True}.items()
    assert document("framework", slug).items() >= DAYS.items()
    entry = HistoryEntry.objects.filter(framework__slug=slug, action="updated").latest("pk")
    assert (entry.before, entry.after) == ({"opensOn": None, "closesOn": None}, DAYS)
    update_framework(COMMAND, slug, opens_on=None)
    assert "opensOn" not in item("framework", slug)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"opens_on": "soon"}, "opensOn"),
        ({"closes_on": "2026-02-30"}, "closesOn"),
        ({"opens_on": "2026-12-01"}, "closesOn"),
    ],
)
def test_days_that_cannot_be_are_refused(change, field):
    slug = program(owner())
    update_framework(COMMAND, slug, opens_on="2026-09-01", closes_on="2026-11-30")
    with pytest.raises(BadFields) as refusal:
        update_framework(COMMAND, slug, **change)
    assert [fault.field for fault in refusal.value.faults] == [field]
    assert item("framework", slug)["closesOn"] == "2026-11-30"


def test_a_score_has_no_days_and_strangers_set_none():
    slug = framework()
    with pytest.raises(BadFields, match="is only for programs"):
        update_framework(COMMAND, slug, closes_on="2026-11-30")
    with pytest.raises(Forbidden):
        update_framework(owner("stranger@harbour.example"), slug, closes_on="2026-11-30")


def test_they_are_exported_and_imported_and_invalid_ones_reported(tmp_path):
    slug = program(owner())
    update_framework(COMMAND, slug, opens_on="2026-09-01", closes_on="2026-11-30")
    export_registry(tmp_path / "out")
    line = json.loads((tmp_path / "out" / "frameworks.jsonl").read_text())
    assert line["framework"].items() >= DAYS.items()
    line["framework"] |= {"frameworkId": "another", "closesOn": "2026-12-24"}
    wrong = {"framework": {**line["framework"], "frameworkId": "wrong", "closesOn": "2020-01-01"}}
    lines(tmp_path / "in" / "frameworks.jsonl", line, wrong)
    told = []
    import_registry(tmp_path / "in", tell=told.append)
    assert [(bad.line, bad.field, bad.reason) for bad in told] == [(2, "framework.closesOn", "is before opensOn")]
    assert Framework.objects.get(slug="another").closes_on.isoformat() == "2026-12-24"


def test_reviewers_edit_them_in_the_form_of_a_program_alone():
    browser = signed_in(account("reviewer@harbour.example", "reviewer"))
    slug = program(owner())
    page = f"/review/frameworks/{slug}"
    assert 'type="date" name="closesOn"' in browser.get(page).content.decode()
    assert 'name="closesOn"' not in browser.get(f"/review/frameworks/{framework()}").content.decode()
    refused = browser.post(page, {"name": "Fund", "opensOn": "2026-09-01", "closesOn": "2026-08-01"})
    assert "Is before opensOn." in refused.content.decode()
    assert browser.post(page, {"name": "Fund", **DAYS}).status_code == 302
    assert item("framework", slug).items() >= DAYS.items()
    assert 'value="2026-11-30"' in browser.get(page).content.decode()
    assert browser.post(page, {"name": "Fund", "closesOn": "2026-11-30"}).status_code == 302
    assert "opensOn" not in item("framework", slug)


@pytest.mark.parametrize(
    ("today", "says"),
    [
        ("2026-08-31", "Applications open on 1 September 2026."),
        ("2026-09-01", "Applications close on 30 November 2026."),
        ("2026-11-30", "Applications close on 30 November 2026."),
        ("2026-12-01", "Applications closed on 30 November 2026."),
    ],
)
def test_the_page_says_what_the_days_mean_today(today, says, monkeypatch):
    monkeypatch.setattr(company_lists, "today", lambda: today)
    assert standing_of(DAYS) == says
    assert standing_of({}) == ""
    facts = {each["label"]: each["value"] for each in framework_facts({"kind": "program", "isOpen": True, **DAYS})}
    assert (facts["Opens"], facts["Closes"]) == ("1 September 2026", "30 November 2026")
