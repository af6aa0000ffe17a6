"""A field that only this test declares reaches every surface: nothing else names the fields of a company."""

import csv
import gzip
import io
import json

import jsonschema
import pytest

from make import published as make
from make.accounts import account, signed_in
from make.registry import document, lines, owner, published
from muniment.accounts import tokens
from muniment.api.contract import openapi_document
from muniment.config import Config
from muniment.kernel.actor import SCOPES
from muniment.mcp.tools.form_options import form_options
from muniment.mcp.tools.public import public_declarations
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import HistoryEntry
from muniment.schema.kinds import DATE, Choice, Text
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.store.exports.exports import Exports
from services.manage import manage

pytestmark = pytest.mark.django_db

NUMBER = Field(
    "berthNumber",
    Text(12, strip=True, suggest=("QUAY 1",)),
    "Berth number",
    "As painted on the quay.",
    example="QUAY 123",
    csv=20,
)
FOUNDED = Field("foundedOn", DATE, "Founded", review=True)
SIZE = Field("fleetSize", Choice(("small", "large")), "Size of the fleet")
SCHEMA = registry_schema("USD").declare(company=(NUMBER, FOUNDED, SIZE), person=(NUMBER,))
GIVEN = {"berthNumber": "QUAY 123", "foundedOn": "1999-12-31", "fleetSize": "small"}


@pytest.fixture(autouse=True)
def declared(settings):
    settings.SCHEMA = SCHEMA


def public_tool(name):
    tools = public_declarations(None, base_url="", registry_name="Suite", schema=SCHEMA).tools
    return next(tool for tool in tools if tool.name == name)


def test_the_contract_describes_it():
    properties = openapi_document(Config({}), SCHEMA)["components"]["schemas"]["Company"]["properties"]
    assert properties["berthNumber"] == {"type": "string", "description": "As painted on the quay."}
    example = openapi_document(Config({}), SCHEMA)["paths"]["/api/v1/companies/{slug}"]["get"]
    shown = example["responses"]["200"]["content"]["application/json"]["example"]
    assert shown["data"]["company"]["berthNumber"] == "QUAY 123"


def test_the_public_tools_answer_it():
    listed = public_tool("list_companies").answer["data"]["items"]["properties"]
    shown = public_tool("get_company").answer["data"]["properties"]["company"]["properties"]
    assert listed["berthNumber"] == shown["berthNumber"] == {"type": "string"}
    person = public_tool("get_person").answer["data"]["properties"]
    assert person["berthNumber"] == {"type": "string"}


def test_the_owner_tools_take_it_and_answer_it():
    who = account()
    made = published(who.actor("web"))
    text = tokens.create_token(who.actor("web"), "laptop", permitted=SCOPES).text
    with manage() as server:
        tools = {name: bound.tool for name, bound in server.asker.server.tools.items()}
        taken = tools["update_my_company"].arguments["changes"]["properties"]
        assert taken["berthNumber"]["maxLength"] == 12
        assert taken["fleetSize"]["anyOf"][0]["enum"] == ["small", "large"]
        jsonschema.validate(GIVEN, tools["update_my_company"].arguments["changes"])
        assert "berthNumber" in tools["update_my_profile"].arguments["changes"]["properties"]
        assert "berthNumber" in tools["get_my_profile"].answer["data"]["properties"]["person"]["anyOf"][0]["properties"]
        assert "foundedOn" in tools["get_my_company"].answer["data"]["properties"]["pendingChanges"]["properties"]
        done = server.data(text, "update_my_company", slug=made.slug, changes=GIVEN)
        assert (done["applied"], done["awaitingReview"]) == (["berthNumber", "fleetSize"], ["foundedOn"])
        assert done["diff"]["berthNumber"] == {"before": None, "after": "QUAY 123"}
        found = server.data(text, "get_my_company", slug=made.slug)
        assert found["company"]["berthNumber"] == "QUAY 123"
        assert found["pendingChanges"] == {"foundedOn": "1999-12-31"}
        error = server.error(text, "update_my_company", slug=made.slug, changes={"berthNumber": "x" * 13})
        assert error["message"] == "berthNumber has 13 characters; at most 12 are allowed."


def test_an_owner_changes_it_sees_it_in_the_history_and_reverts_it():
    me = owner()
    made = published(me, berthNumber=" QUAY 1 ")
    assert document("company", made.slug)["company"]["berthNumber"] == "QUAY 1"
    listings.update_company(me, made.slug, CompanyChange(berthNumber="QUAY 2", fleetSize="large"))
    entry = HistoryEntry.objects.filter(company__slug=made.slug, action="updated").get()
    assert entry.before == {"berthNumber": "QUAY 1", "fleetSize": None}
    assert entry.after == {"berthNumber": "QUAY 2", "fleetSize": "large"}
    listings.revert_company(me, made.slug, entry.pk)
    shown = document("company", made.slug)["company"]
    assert shown["berthNumber"] == "QUAY 1"
    assert "fleetSize" not in shown


def test_what_it_does_not_accept_is_refused():
    with pytest.raises(BadFields) as refusal:
        published(owner(), berthNumber=7, foundedOn="soon", fleetSize="huge")
    assert [fault.field for fault in refusal.value.faults] == ["berthNumber", "foundedOn", "fleetSize"]


def test_the_form_shows_it_and_its_label_names_the_difference():
    who = account()
    made = published(who.actor("web"))
    browser = signed_in(who)
    page = f"/manage/companies/{made.slug}/edit/about"
    html = browser.get(page).content.decode()
    assert 'name="berthNumber"' in html
    assert "As painted on the quay." in html
    assert browser.post(page, {"description": "Ferries.", "berthNumber": "QUAY 9"}).status_code == 302
    assert document("company", made.slug)["company"]["berthNumber"] == "QUAY 9"
    assert "Berth number" in browser.get(f"/manage/companies/{made.slug}/history").content.decode()


def test_an_import_reads_it_an_export_writes_it_and_an_invalid_one_is_reported(tmp_path):
    company = {"id": "harbour", "name": "Harbour", "zeta": 1, **GIVEN}
    wrong = {"id": "wrong", "name": "Wrong", "fleetSize": "huge", "berthNumber": "x" * 13}
    lines(tmp_path / "companies.jsonl", {"company": company}, {"company": wrong})
    told, warned = [], []
    import_registry(tmp_path, tell=told.append, warn=warned.append)
    assert [(bad.line, bad.field) for bad in told] == [(2, "company.fleetSize")]
    shown = document("company", "harbour")["company"]
    assert {key: shown[key] for key in GIVEN} == GIVEN
    export_registry(tmp_path / "out")
    (line,) = (tmp_path / "out" / "companies.jsonl").read_text().splitlines()
    assert {key: json.loads(line)["company"][key] for key in GIVEN} == GIVEN


def test_it_is_a_column_of_the_csv_file_before_the_long_texts(tmp_path):
    file = tmp_path / "published.sqlite3"
    publisher = make.Publisher(file)
    publisher.publish(make.company(1, berthNumber="QUAY 123"))
    publisher.close()
    exports = Exports(tmp_path / "exports", file, SCHEMA)
    exports.make()
    name = next(file.name for file in exports.files() if file.name.endswith(".csv.gz") and "companies" in file.name)
    head, row = csv.reader(io.StringIO(gzip.decompress(exports.find(name).path.read_bytes()).decode()))
    assert head[head.index("berthNumber") :][:3] == ["berthNumber", "treasuryNote", "socials.email"]
    assert dict(zip(head, row, strict=True))["berthNumber"] == "QUAY 123"


def test_the_form_options_list_it():
    options = form_options(SCHEMA)
    assert options["berthNumber"] == ["QUAY 1"]
    assert options["open"][-1] == "berthNumber"
    assert options["fleetSize"] == ["small", "large"]
    assert options["limits"]["characters"]["berthNumber"] == 12


def test_lines_that_were_read_before_it_was_declared_are_read_again(tmp_path, monkeypatch, settings):
    settings.SCHEMA = registry_schema("USD")
    refreshed = []

    def refresh():
        refreshed.append(settings.SCHEMA)
        settings.SCHEMA = SCHEMA  # declared meanwhile

    monkeypatch.setattr("muniment.registry.exchange.importer.refresh", refresh)
    bad = []
    path = lines(tmp_path / "people.jsonl", {"slug": "a", "name": "A", "berthNumber": 7}, {"slug": "b", "name": "B"})
    summary = import_registry(path, tell=bad.append)
    assert [(each.line, each.field) for each in bad] == [(1, "berthNumber")]
    assert (summary.bad, summary.counts["people"].new, len(refreshed)) == (1, 1, 1)
