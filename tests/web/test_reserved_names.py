"""No declared field has the name of something that the forms, tools and documents with fields use already."""

import re
from html.parser import HTMLParser

import pytest

from make.accounts import account, signed_in
from muniment.mcp.tools.owner.server import owner_declarations
from muniment.mcp.tools.public import public_declarations
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.schema.declared.declarations import declare, read_declarations
from muniment.schema.declared.faults import FieldsError
from muniment.schema.objects import registry_schema

KEY = re.compile(r"[a-z][A-Za-z0-9]{1,39}")
SCHEMA = registry_schema("USD")


def free(names):
    """Return those of *names* that a field may be called."""
    found = []
    for name in sorted(names):
        try:
            read_declarations([{"key": name, "label": "Berth", "kind": "text"}], SCHEMA)
        except FieldsError:
            continue
        found.append(name)
    return found


class Controls(HTMLParser):
    """The names of the controls of a page's forms that change something."""

    def __init__(self, page):
        super().__init__()
        self.names = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        name = dict(attributes).get("name") or ""
        if tag in {"input", "select", "textarea", "button"} and KEY.fullmatch(name):
            self.names.add(name)


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["new", "{slug}/edit/basics", "{slug}/edit/about", "{slug}/edit/token"])
def test_no_field_has_the_name_of_a_control_of_the_forms_of_listings(page):
    owner = account()
    basics = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}
    slug = listings.create_company(owner.actor("web"), CompanyChange(basics)).slug
    controls = Controls(signed_in(owner).get(f"/manage/companies/{page.format(slug=slug)}").content.decode()).names
    assert {"csrfmiddlewaretoken", "once"} <= controls
    assert free(controls) == []


@pytest.mark.django_db
@pytest.mark.parametrize("page", ["/manage/profile", "/companies", "/people", "/search?q=tide"])
def test_no_field_has_the_name_of_a_control_of_other_forms_with_fields(page):
    assert free(Controls(signed_in(account()).get(page).content.decode()).names) == []


def test_no_field_has_the_name_of_another_argument_of_a_tool_that_takes_fields():
    declared = read_declarations([{"of": of, "key": "berth", "label": "B", "kind": "text"} for of in PLACES], SCHEMA)
    schema = declare(SCHEMA, declared, "USD")
    tools = [
        *public_declarations(None, base_url="https://r.example", registry_name="R", schema=schema).tools,
        *owner_declarations(
            None, base_url="https://r.example", registry_name="R", schema=schema, reader=lambda: None
        ).tools,
    ]
    taking = [each.input_schema["properties"] for each in tools if "berth" in each.input_schema["properties"]]
    assert len(taking) >= 2
    names = {name for properties in taking for name in properties if KEY.fullmatch(name)} - {"berth"}
    assert free(names) == []


PLACES = ("company", "person")


@pytest.mark.parametrize("name", ["once", "csrfmiddlewaretoken", "confirm", "provenance", "constructor"])
def test_names_with_a_meaning_are_refused(name):
    assert free([name]) == []


@pytest.mark.parametrize("name", ["berth", "email", "size", "role", "amount", "format"])
def test_plausible_names_of_fields_stay_free(name):
    assert free([name]) == [name]
