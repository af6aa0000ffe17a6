"""The second import of a file in the browser: what is new, changed and gone, and the report as CSV."""

import csv
import io

import pytest

from make.accounts import account, signed_in
from make.imports import upload, work
from make.pages import fields_of, valid
from make.registry import document, keys
from muniment.kernel.actor import COMMAND
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.imports import reports
from muniment.registry.imports.reports import remove_old_reports, report_of_run
from muniment.registry.imports.sources import memory_of
from muniment.registry.models import ImportRun, Person
from muniment.registry.people.erasing import erase_person
from muniment.web.views.operate.import_reports import column_of

pytestmark = pytest.mark.django_db

FIRST = (
    "Company;Website;City;Founded\n"
    "Alder;alder.example;Oslo;1998\nBirch;birch.example;Rome;2001\nCedar;cedar.example;Bern;2004\n"
)
SECOND = (
    "Company;Website;City;Founded\n"
    "Alder;alder.example;Oslo;1998\nBirch;birch.example;Wien;2001\n=Dogwood;dogwood.example;Paris;soon\n"
)


@pytest.fixture
def browser():
    return signed_in(account("operator@harbour.example", "operator"))


def page(browser, address):
    response = browser.get(address)
    assert response.status_code == 200, response.content.decode()
    html = response.content.decode()
    valid(html)
    return html


def press(browser, address, do, **sent):
    response = browser.post(address, {**sent, "do": do})
    work()
    return response


def previewed(browser, content, name="members.csv"):
    here = upload(browser, content, name)
    fields = {name: value for name, value in fields_of(page(browser, f"{here}?mapping")).items() if name != "once"}
    press(browser, here, "preview", **fields)
    return here


def imported(browser, content, *options, name="members.csv"):
    here = previewed(browser, content, name)
    press(browser, here, "import", option=list(options))
    return browser.get(here)["Location"]


def rows_of(browser, address, language="en"):
    response = browser.get(address, headers={"Accept-Language": language})
    text = response.content.decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text), delimiter=";" if language == "de" else ","))


def test_a_changed_file_shows_added_changed_and_gone_rows_and_its_undo_is_exact(browser):
    first = imported(browser, FIRST)
    assert "Compared with the last version" not in page(browser, first)
    before = {key: document("company", key) for key in keys("company")}
    here = previewed(browser, SECOND, "members (1).csv")
    html = page(browser, here)
    assert 'This file is compared with <a href="/operate/import/runs/1">import 1</a> of the same source.' in html
    assert "<del>Rome</del>" in html
    assert "<ins>Wien</ins>" in html
    assert "1 row from earlier imports is public but missing from this file." in html
    assert "<bdi>Cedar</bdi>" in html
    assert "This is more than a tenth of the public rows." in html
    assert 'name="option" value="unlist">' in html  # not checked
    rows = rows_of(browser, f"{here}/report.csv")
    assert rows[0][:4] == ["Row", "Result", "Kind", "Name"]
    assert [row[:5] for row in rows[1:] if row[1] != "Left out or doubtful"] == [
        ["2", "Unchanged", "Company", "Alder", "/companies/alder"],
        ["3", "Changed", "Company", "Birch", "/companies/birch"],
        ["4", "New", "Company", "'=Dogwood", "/companies/dogwood"],
        ["", "Not in the file", "Company", "Cedar", "/companies/cedar"],
    ]
    assert any("soon" in row[9] for row in rows if row[1] == "Left out or doubtful")

    press(browser, here, "import", option=["unlist"])
    done = browser.get(here)["Location"]
    assert "1 row that the file no longer has was unlisted." in page(browser, done)
    assert document("company", "cedar") is None
    assert "1 unlisted" in page(browser, "/operate/import")
    told = rows_of(browser, f"{done}/report.csv", "de")
    assert [row[1] for row in told[1:] if row[3]] == ["Unverändert", "Geändert", "Neu", "Aus dem Register genommen"]
    changed = next(row for row in told if row[1] == "Geändert")
    assert ("Adressen", "Rome" in changed[6], "Wien" in changed[7]) == (changed[5], True, True)

    undone = press(browser, done, "undo")["Location"]
    assert "rows restored" in page(browser, undone)

    def plain(found):
        return {name: value for name, value in found["company"].items() if name != "updatedAt"}

    assert {key: plain(document("company", key)) for key in keys("company")} == {
        key: plain(found) for key, found in before.items()
    }


def test_gone_rows_stay_by_default_and_another_source_or_a_full_list_can_be_chosen(browser):
    imported(browser, FIRST)
    imported(browser, SECOND)
    assert document("company", "cedar") is not None
    here = previewed(browser, SECOND, "board.csv")
    html = page(browser, here)
    assert "No earlier import of this source is known." in html
    assert "No longer in the file" not in html
    press(browser, here, "compare", source="members")
    assert "<bdi>Cedar</bdi>" in page(browser, here)
    press(browser, here, "compare", source="")
    assert "<bdi>Cedar</bdi>" not in page(browser, here)
    press(browser, here, "compare", source="", complete="on")
    html = page(browser, here)
    assert "it is compared with everything that was imported" in html
    assert "<bdi>Cedar</bdi>" in html
    refused = press(browser, here, "import", option=["unlist", "draft"])
    assert "An import of drafts leaves published rows unchanged" in refused.content.decode()
    press(browser, here, "import", option=["unlist"])
    assert document("company", "cedar") is None


def test_only_what_the_preview_showed_is_unlisted(browser):
    imported(browser, FIRST)
    here = previewed(browser, SECOND)
    text = FIRST + "Elm;elm.example;Bonn;2010\n"
    imported(browser, text)  # by another operator, meanwhile
    press(browser, here, "import", option=["unlist"])
    assert "This would unlist 2 rows, more than the limit of 1." in page(browser, here)
    assert document("company", "elm") is not None


def test_reasons_are_in_the_words_of_the_page_and_in_its_language(browser):
    imported(browser, FIRST)
    update_company(COMMAND, "birch", CompanyChange(website="https://ours.example"))
    done = imported(browser, SECOND)
    html = browser.get(done, headers={"Accept-Language": "de"}).content.decode()
    assert "Wurde hier seit dem letzten Import geändert und bleibt erhalten" in html
    assert "--overwrite" not in html
    notes = [row[8] for row in rows_of(browser, f"{done}/report.csv", "de")]
    assert "wurde hier seit dem letzten Import geändert und bleibt erhalten." in notes


@pytest.mark.parametrize(
    ("name", "label"),
    [("company.website", "Website"), ("company.address.0.city", "City"), ("Ledger no.", "Ledger no."), ("x.y", "x.y")],
)
def test_members_have_the_labels_of_the_form(name, label):
    assert column_of(name) == label


def test_a_change_that_is_too_large_is_told_by_its_fields(browser, monkeypatch):
    monkeypatch.setattr(reports, "MAX_CHANGE_BYTES", 10)
    imported(browser, FIRST)
    here = previewed(browser, SECOND)
    assert "This change is too large to show here." in page(browser, here)
    row = next(row for row in rows_of(browser, f"{here}/report.csv") if row[1] == "Changed")
    assert row[5:9] == ["Addresses", "", "", "This change is too large to show here."]


def test_reports_are_removed_after_a_month_and_of_an_erased_person_at_once(browser):
    people = "Name;Biography;Profile\nIda Alder;Grows.;https://a.example\nJoe Birch;Cuts.;https://b.example\n"
    done = imported(browser, people, name="people.csv")
    run = ImportRun.objects.get()
    person = Person.objects.get(slug="ida-alder")
    assert report_of_run(run.pk) != b""
    erase_person(COMMAND, "ida-alder")
    text = str(rows_of(browser, f"{done}/report.csv"))
    assert ("Ida Alder" in text, "Joe Birch" in text) == (False, True)
    assert person.pk not in memory_of("people").rows["person"].values()
    ImportRun.objects.update(started_at="2020-01-01T00:00Z")
    remove_old_reports()
    assert browser.get(f"{done}/report.csv").status_code == 404
    assert "report.csv" not in page(browser, done)


def test_reports_are_for_operators(browser):
    done = imported(browser, FIRST)
    here = previewed(browser, SECOND)
    stranger = signed_in(account("owner@harbour.example"))
    assert {stranger.get(f"{each}/report.csv").status_code for each in (done, here)} == {404}
