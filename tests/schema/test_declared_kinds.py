"""A field that the operator declares is everywhere where a built-in one is, for each kind of value."""

import csv
import gzip
import io
import json
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from django.test import Client

from make.accounts import account, signed_in
from make.registry import document, lines, published
from make.rest import Rest
from muniment import config
from muniment.accounts import tokens
from muniment.api.contract import openapi_document
from muniment.config import Config
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import create_company, revert_company, update_company
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry, Person
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.publishing.documents import render
from muniment.registry.publishing.upgrade import bring_up_to_date
from muniment.registry.settings.versions import apply_settings, follow
from muniment.registry.tables.operations import import_table, prepare
from muniment.registry_toml.document import RegistrySettings
from muniment.schema.objects import registry_schema
from muniment.store.exports.exports import Exports
from muniment.web.requests import page_cache
from services.manage import manage
from services.mcp import public_server

pytestmark = pytest.mark.django_db
LABEL = "Berth detail"
HELP = "As the harbour office has it."


class Case(NamedTuple):
    """
    A kind of value.

    Args:
        options: of the declaration.
        value: of one row, and *other* that of another; a third has none.
        bad: a value that is refused, with *fault*.
        finds: parameters that find the first row alone, and *misses* some that find none.
        facet: the name of a facet, with the counts of its values.
        search: words that find the first row alone; empty where the value is no text.
        shown: how the page has the value.
        typed: the text in the form.
    """

    kind: str
    options: dict[str, Any]
    value: Any
    other: Any
    bad: Any
    fault: str
    finds: dict[str, str]
    misses: dict[str, str]
    facet: tuple[str, dict[str, int]]
    search: str
    shown: str
    typed: str


HAS = ("hasBerth", {"true": 2, "false": 1})
ADDRESS = "https://quay.example/9"
LEI = "5299000EXAMPLE000096"
ISIN = "XX000EXAMPL0"
CASES = [
    Case(
        *("text", {"max": 20}, "Blue whale", "Grey seal", True, "must be text, not a boolean"),
        *({"berth": "BLUE whales"}, {"berth": "walrus"}, ("berth", {"Blue whale": 1, "Grey seal": 1})),
        *("whale", "Blue whale", "Blue whale"),
    ),
    Case(
        *("number", {"min": 0, "max": 5_000}, 2_400.5, 12, 5_001, "must be at most 5,000, not 5001"),
        *({"berthMin": "100.5"}, {"berthMin": "13", "berthMax": "2400"}, HAS),
        *("", "2,400.5", "2400.5"),
    ),
    Case(
        *("money", {}, "$1.2M", "$900", "a lot", "must be an amount such as $1.2M"),
        *({"berthMin": "1M"}, {"berthMin": "$2M"}, HAS),
        *("", "$1.2M", "$1.2M"),
    ),
    Case(
        *("date", {}, "1999-12-31", "2020-02-29", "1999-02-30", "must be a date such as 2024-03-31"),
        *({"berthTo": "2019-01-01"}, {"berthFrom": "2020-03-01"}, HAS),
        *("", "31 December 1999", "1999-12-31"),
    ),
    Case(
        *(
            "choice",
            {"choices": ["Deep water", "e.V."]},
            "Deep water",
            "e.V.",
            "deep",
            "must be one of Deep water, e.V.",
        ),
        *({"berth": "Deep water"}, {"berth": "e.V.", "q": "harbour 1"}, ("berth", {"Deep water": 1, "e.V.": 1})),
        *("deep", "Deep water", "Deep water"),
    ),
    Case(
        *("link", {}, ADDRESS, "https://other.example/", "quay", "must be a web address such as https://example.org"),
        *({"hasBerth": "true", "q": "harbour 1"}, {"hasBerth": "false", "q": "harbour 1"}, HAS),
        *("quay.example", f'href="{ADDRESS}"', ADDRESS),
    ),
    Case(
        *("identifier", {"check": "lei"}, LEI, "529900EXAMPLE0000170", "5299000EXAMPLE000097", "must be an LEI"),
        *({"berth": LEI.lower()}, {"berth": "5299000EXAMPLE000097"}, HAS),
        *(LEI, LEI, LEI.lower()),
    ),
    Case(
        *("identifier", {"check": "isin"}, ISIN, "XX000EXAMPM8", "XX000EXAMPL1", "must be an ISIN"),
        *({"berth": ISIN}, {"berth": "XX000EXAMPL1"}, HAS),
        *(ISIN, ISIN, ISIN),
    ),
    Case(
        *("country", {}, "NO", "FR", "Atlantis", "must be a country by its two letters such as FR"),
        *({"berth": "norway"}, {"berth": "DE"}, ("berth", {"FR": 1, "NO": 1})),
        *("norway", "Norway", "NO"),
    ),
    Case(
        *("list", {}, ["Salt", "Rope"], ["Rope"], ["R" * 101], "at most 100"),
        *({"berth": "salt"}, {"berth": "sails"}, ("berth", {"Rope": 2, "Salt": 1})),
        *("salt", "Salt", "Salt, Rope"),
    ),
    Case(
        *("yesno", {}, True, False, "yes", "must be true or false, not 'yes'"),
        *({"berth": "true"}, {"berth": "false", "q": "harbour 1"}, ("berth", {"true": 1, "false": 1})),
        *("", "yes", "true"),
    ),
]
NAMES = [f"{case.kind} {case.options.get('check', '')}".strip() for case in CASES]


class Declared:
    """A registry of three rows, with the field declared for *place*; two have a value."""

    def __init__(self, case: Case, place: str) -> None:
        self.case, self.place = case, place
        self.is_company = place == "company"
        self.collection = "companies" if self.is_company else "people"
        self.who = account()
        self.actor = self.who.actor("web")
        values = [{"berth": case.value}, {"berth": case.other}, {}]
        self.slugs = [self._make(f"Harbour {n}", n, given) for n, given in enumerate(values, 1)]
        self.slug = self.slugs[0]

    def _make(self, name: str, number: int, given: dict[str, Any]) -> str:
        if self.is_company:
            return published(self.actor, name=name, **given).slug
        actor = self.actor if number == 1 else account(f"owner{number}@harbour.example").actor("web")
        person = profiles.create_profile(actor, ProfileChange(name=name, **given))
        profiles.publish_profile(actor)
        return person.slug

    def change(self, **given: Any) -> None:
        if self.is_company:
            update_company(self.actor, self.slug, CompanyChange(**given))
        else:
            profiles.update_profile(self.actor, ProfileChange(**given))

    def stored(self) -> Any:
        model = Company if self.is_company else Person
        return model.objects.get(slug=self.slug).extra.get("berth")

    def shown(self) -> Any:
        found = document(self.place, self.slug)
        return found["company"] if self.is_company else found

    def documents(self):
        model = Company if self.is_company else Person
        return render(self.place, list(model.objects.values_list("pk", flat=True))).values()


@pytest.fixture
def declare_fields(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")

    def declared(*tables):
        apply_settings(COMMAND, RegistrySettings(fields=tables))
        follow()
        bring_up_to_date()
        return settings.SCHEMA

    return declared


def is_validated(registry: Declared) -> None:
    with pytest.raises(BadFields) as refusal:
        registry.change(berth=registry.case.bad)
    assert [fault.field.removesuffix("[0]").removesuffix(".0") for fault in refusal.value.faults] == ["berth"]
    assert registry.case.fault in refusal.value.faults[0].reason
    registry.change(berth=registry.case.other)
    assert registry.stored() == registry.case.other
    registry.change(berth=None)
    assert registry.stored() is None


def is_edited_on_the_page(registry: Declared) -> None:
    registry.change(berth=None)
    browser = signed_in(registry.who)
    page = f"/manage/companies/{registry.slug}/edit/about" if registry.is_company else "/manage/profile"
    html = browser.get(page).content.decode()
    assert LABEL in html
    assert HELP in html
    assert 'name="berth"' in html
    form = {"description": "x"} if registry.is_company else {"name": "Harbour 1", "bio": ""}
    refused = browser.post(page, {**form, "berth": str(registry.case.bad)})
    assert refused.status_code == 422 or registry.case.kind == "text"
    assert browser.post(page, {**form, "berth": registry.case.typed}).status_code == 302
    assert registry.shown()["berth"] == registry.case.value
    history = f"/manage/companies/{registry.slug}/history" if registry.is_company else "/manage/profile/history"
    assert LABEL in browser.get(history).content.decode()


def is_in_the_owner_tool(registry: Declared) -> None:
    text = tokens.create_token(registry.actor, "laptop", permitted=SCOPES).text
    name = "update_my_company" if registry.is_company else "update_my_profile"
    which = {"slug": registry.slug} if registry.is_company else {}
    with manage() as server:
        taken = server.asker.server.tools[name].tool.arguments["changes"]["properties"]
        assert "berth" in taken
        done = server.data(text, name, **which, changes={"berth": registry.case.other})
        changed = {"before": registry.case.value, "after": registry.case.other}
        assert done["diff"]["berth"] == ({"removed": ["Salt"]} if registry.case.kind == "list" else changed)
        # Tools read a number as the text that it is, because models send it so.
        is_text = registry.case.kind == "text"
        bad, fault = (
            ({"pier": 7}, "must be text, not an object") if is_text else (registry.case.bad, registry.case.fault)
        )
        error = server.error(text, name, **which, changes={"berth": bad})
        assert fault in error["message"]
        server.data(text, name, **which, changes={"berth": registry.case.value})
    assert registry.stored() == registry.case.value


def is_imported_and_exported(registry: Declared, tmp_path) -> None:
    export_registry(tmp_path / "out")
    file = tmp_path / "out" / f"{registry.collection}.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows = [row["company"] if registry.is_company else row for row in rows]
    assert [row.get("berth") for row in rows] == [registry.case.value, registry.case.other, None]
    name = {"id": "new-berth"} if registry.is_company else {"slug": "new-berth"}
    row = {**name, "name": "New berth", "berth": registry.case.bad}
    told = []
    lines(tmp_path / "in" / file.name, {"company": row} if registry.is_company else row)
    import_registry(tmp_path / "in", tell=told.append, warn=told.append)
    assert any(registry.case.fault in str(bad) for bad in told)
    (Company if registry.is_company else Person).objects.filter(slug="new-berth").delete()


def is_searched_filtered_and_faceted(registry: Declared, rest: Rest) -> None:
    case, path = registry.case, f"/api/v1/{registry.collection}"

    def found(**given):
        answer = rest.ask(f"{path}?{urlencode(given)}")
        assert answer.status == 200, answer.json
        return [row.get("id") or row["slug"] for row in answer.json["data"]]

    assert found(**case.finds) == [registry.slug]
    assert found(**case.finds, ids=",".join(registry.slugs)) == [registry.slug]
    assert found(**{"q": "harbour", **case.finds}, sort="name") == [registry.slug]
    assert found(**case.misses) == []
    if case.search:
        assert found(q=case.search) == [registry.slug]
        hits = rest.ask(f"/api/v1/search?{urlencode({'q': case.search})}").json["data"]
        assert [each["id"] for each in hits] == [registry.slug]
    name, counts = case.facet
    asked = rest.ask(f"/api/v1/facets?list={registry.collection}&facets={name}").json["data"][name]["values"]
    assert {each["value"]: each["count"] for each in asked} == counts
    for parameter in case.finds:
        if parameter in {"q", "berth"}:
            continue
        wrong = rest.ask(f"{path}?{parameter}=certainly-not")
        assert (wrong.status, parameter in wrong.json["error"]["message"]) == (400, True)


def is_in_openapi(registry: Declared, schema) -> None:
    contract = openapi_document(Config({}), schema)
    properties = contract["components"]["schemas"][registry.place.title()]["properties"]
    assert properties["berth"]["description"] == HELP
    described = {
        each["name"]: each for each in contract["paths"][f"/api/v1/{registry.collection}"]["get"]["parameters"]
    }
    assert registry.case.finds.keys() - {"q"} <= described.keys()
    assert registry.case.facet[0] in described["facets"]["description"]


def is_in_the_public_tool(registry: Declared, rest: Rest, schema) -> None:
    typed = {"hasBerth": bool, "berthMin": float} if registry.case.kind == "number" else {"hasBerth": bool}
    given = {name: typed.get(name, str)(value) for name, value in registry.case.finds.items()}
    with public_server(rest.reader, schema) as server:
        listed = server.call(f"list_{registry.collection}", {**given, "facets": [registry.case.facet[0]]})
        data = listed["structuredContent"]
        assert [row.get("id") or row["slug"] for row in data["data"]] == [registry.slug]
        assert data["data"][0]["berth"] == registry.case.value
        assert registry.case.facet[0] in data["facets"]
        tool = server.server.tools[f"get_{registry.place}"].tool
        shape = tool.answer["data"]["properties"]
        assert "berth" in (shape["company"]["properties"] if registry.is_company else shape)


def is_shown_on_the_pages(registry: Declared, rest: Rest) -> None:
    page_cache.use(rest.reader)
    try:
        html = Client().get(f"/{registry.collection}/{registry.slug}").content.decode()
        assert LABEL in html
        assert registry.case.shown in html
        page = f"/{registry.collection}?{urlencode(registry.case.finds)}"
        listed = Client().get(page, follow=True).content.decode()
        assert "Harbour 1" in listed
        assert "Harbour 2" not in listed
        assert LABEL in listed
    finally:
        page_cache.use(None)


def is_exported_as_csv(registry: Declared, rest: Rest, schema, tmp_path) -> None:
    exports = Exports(tmp_path / "exports", rest.reader.path, schema)
    exports.make()
    names = [file.name for file in exports.files() if file.name.endswith(".csv.gz")]
    name = next(name for name in names if registry.collection in name)
    rows = csv.DictReader(io.StringIO(gzip.decompress(exports.find(name).path.read_bytes()).decode()))
    key = "id" if registry.is_company else "slug"
    written = {
        "list": "; ".join(map(str, registry.case.value)) if registry.case.kind == "list" else "",
        "yesno": "true",
    }
    in_cell = written.get(registry.case.kind, str(registry.case.value))
    assert {row[key]: row["berth"] for row in rows}[registry.slug] == in_cell


def is_compared(registry: Declared, rest: Rest) -> None:
    page_cache.use(rest.reader)
    try:
        html = Client().get(f"/compare?c={registry.slugs[0]}&c={registry.slugs[1]}").content.decode()
        assert LABEL in html
        assert registry.case.shown in html
    finally:
        page_cache.use(None)


def is_checked_before_a_submission(registry: Declared) -> None:
    draft = create_company(registry.actor, CompanyChange(name="Mole", berth=registry.case.value))
    html = signed_in(registry.who).get(f"/manage/companies/{draft.slug}/check").content.decode()
    assert LABEL in html
    assert registry.case.shown in html or str(registry.case.value) in html


def is_in_the_history_and_reverted(registry: Declared) -> None:
    registry.change(berth=registry.case.other)
    rows = HistoryEntry.objects.filter(action="updated")
    named = {"company__slug": registry.slug} if registry.is_company else {"person__slug": registry.slug}
    entry = rows.filter(**named).latest("pk")
    assert (entry.before["berth"], entry.after["berth"]) == (registry.case.value, registry.case.other)
    history = f"/manage/companies/{registry.slug}/history" if registry.is_company else "/manage/profile/history"
    assert LABEL in signed_in(registry.who).get(history).content.decode()
    if registry.is_company:
        revert_company(registry.actor, registry.slug, entry.pk)
        assert registry.stored() == registry.case.value


def is_read_from_a_table(registry: Declared, tmp_path) -> None:
    file = tmp_path / f"{registry.collection}.csv"
    first = {"Name": "Harbour 9"} if registry.is_company else {"First name": "Ada", "Last name": "Moor"}
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow([*first, LABEL])
        rows.writerow([*first.values(), registry.case.typed])
        rows.writerow([*(f"{each} Two" for each in first.values()), "=cmd(7)"])
    found = prepare(file)
    assert found.mapping.table[0].column[-1].field == "berth"
    assert [each.reason for each in import_table(found).losses] == ["is a formula, not a value"]
    model = Company if registry.is_company else Person
    assert model.objects.get(name=" ".join(first.values())).extra == {"berth": registry.case.value}


LIVE = {  # over the rows of the database
    "validated": lambda registry, _: is_validated(registry),
    "in the form": lambda registry, _: is_edited_on_the_page(registry),
    "in Check and submit": lambda registry, _: is_checked_before_a_submission(registry),
    "in the owner tool": lambda registry, _: is_in_the_owner_tool(registry),
    "in the history": lambda registry, _: is_in_the_history_and_reverted(registry),
    "in import and export": is_imported_and_exported,
    "in tables": is_read_from_a_table,
}
PUBLISHED = {  # over published documents
    "in search, filters, facets": lambda registry, rest, *_: is_searched_filtered_and_faceted(registry, rest),
    "in OpenAPI": lambda registry, _, schema, __: is_in_openapi(registry, schema),
    "in the public tool": lambda registry, rest, schema, _: is_in_the_public_tool(registry, rest, schema),
    "on pages and lists": lambda registry, rest, *_: is_shown_on_the_pages(registry, rest),
    "in comparisons": lambda registry, rest, *_: is_compared(registry, rest),
    "in CSV": is_exported_as_csv,
}


OF_COMPANIES = {"in Check and submit", "in comparisons"}
PLACES = ("company", "person")


def _applies(place, where):
    return place == "company" or where not in OF_COMPANIES


@pytest.fixture
def declared(case, place, declare_fields):
    """Return a registry with a declared field, and its schema."""
    table = {"of": place, "key": "berth", "label": LABEL, "kind": case.kind, "help": HELP, **case.options}
    schema = declare_fields(table)
    return Declared(case, place), schema


@pytest.mark.parametrize(
    ("place", "where"), [(place, where) for place in PLACES for where in LIVE if _applies(place, where)]
)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_declared_field_is_wherever_a_built_in_one_is(declared, where, tmp_path):
    LIVE[where](declared[0], tmp_path)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_declared_field_is_published_wherever_a_built_in_one_is(declared, place, tmp_path):
    """These read the same documents, and change nothing: making a registry takes longer than all of them."""
    registry, schema = declared
    rest = Rest(tmp_path, schema)
    try:
        rest.publish(*registry.documents())
        for where, check in PUBLISHED.items():
            if _applies(place, where):
                check(registry, rest, schema, tmp_path)
    finally:
        rest.close()
