"""The address of a page, or of the REST API, is taken where a tool asks for a slug."""

import pytest

from muniment.kernel.problems import BadRequest
from muniment.mcp.arguments import Addresses
from services.mcp import fictional_registry, public_server

PUBLIC = Addresses("https://registry.example", frozenset({"search", "get_company", "get_person", "list_companies"}))
BELOW = Addresses("http://127.0.0.1:8000/registry", frozenset({"list_my_companies", "list_frameworks"}))


@pytest.mark.parametrize(
    "text",
    [
        "https://registry.example/companies/quillmere",
        "https://registry.example/companies/quillmere/",
        "http://registry.example/companies/quillmere?tab=team&x=1#holders",
        "https://www.registry.example:443/companies/quillmere",
        "HTTPS://Registry.Example/companies/quillmere",
        "registry.example/companies/quillmere",
        "//registry.example/companies/quillmere",
        "/companies/quillmere",
        " https://registry.example/companies/quillmere ",
        "https://registry.example/api/v1/companies/quillmere",
        "https://registry.example/api/v1/companies/quillmere/cap-table?page=2",
        "https://registry.example/manage/companies/quillmere/edit/basics",
        "https://registry.example/companies/quillmere.json",
        "registry://companies/quillmere",
    ],
)
def test_the_slug_of_an_address_is_found(text):
    assert PUBLIC.slug("slug", "company", text) == "quillmere"


def test_native_scripts_people_frameworks_and_a_base_path_are_understood():
    assert PUBLIC.slug("slug", "company", "https://registry.example/companies/%E5%A4%9C%E6%98%8E%E3%81%91") == "夜明け"
    assert PUBLIC.slug("slug", "person", "https://registry.example/people/ada-quay") == "ada-quay"
    assert PUBLIC.slug("frameworkId", "framework", "/frameworks/river-score") == "river-score"
    assert BELOW.slug("slug", "company", "http://127.0.0.1:8000/registry/companies/quillmere") == "quillmere"
    assert BELOW.slug("slug", "company", "http://127.0.0.1:8000/companies/quillmere") == "quillmere"


@pytest.mark.parametrize("text", ["quillmere", "夜明け", "AC/DC Foundation", "a:b", "other.example/companies/x", ""])
def test_what_is_no_address_stays_as_it_is(text):
    assert PUBLIC.slug("company", "company", text) == text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "https://tidal.example/about",
            "not an address of https://registry.example",
            "search with query 'tidal.example'",
        ),
        ("https://registry.example:8443/companies/x", "not an address of", "Call search"),
        ("https://[broken/companies/x", "not an address of", "Call search"),
        ("https://registry.example:no/companies/x", "not an address of", "Call search"),
        ("https://registry.example/companies", "not the address of a company", "Call list_companies for valid ones."),
        (
            "https://registry.example/people/ada",
            "of a person, and slug takes that of a company",
            "Call get_person with",
        ),
        ("https://registry.example/frameworks/f", "of a framework", "Call list_companies for valid ones."),
    ],
)
def test_another_address_is_refused_with_a_way_out(text, message, hint):
    with pytest.raises(BadRequest) as refused:
        PUBLIC.slug("slug", "company", text)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_refusal_shows_only_the_beginning_of_a_long_address():
    with pytest.raises(BadRequest) as refused:
        BELOW.slug("slug", "company", "https://" + "x" * 1_900)
    assert len(refused.value.message) < 200
    assert refused.value.hint == "Call list_my_companies for valid ones."


@pytest.mark.parametrize("nested", [lambda rows: rows, lambda rows: {"add": rows}, lambda rows: {"set": rows}])
def test_positions_take_the_addresses_of_profiles(nested):
    def changes(*slugs):
        rows = [{"title": "Chair", "person": {"slug": slug}} for slug in slugs]
        return {"name": "x", "positions": nested([*rows, {"person": {"name": "A/B"}}, "no row"])}

    given = changes("https://registry.example/people/ada-quay", "ben-moss")
    assert PUBLIC.in_positions(given) == changes("ada-quay", "ben-moss")
    for odd in ({}, {"positions": None}, {"positions": {"remove": ["a"], "add": 5}}):
        assert PUBLIC.in_positions(odd) == odd
    with pytest.raises(BadRequest) as refused:
        BELOW.in_positions(changes("https://tidal.example/people/ada"))
    assert refused.value.hint == "Give the slug alone."


def test_tools_take_addresses_in_single_arguments_and_in_lists(tmp_path):
    with fictional_registry(tmp_path / "p.sqlite3") as reader, public_server(reader) as server:

        def data(name, **arguments):
            return server.call(name, arguments)["structuredContent"]["data"]

        page = "https://registry.example"
        assert data("get_company", slug=f"{page}/companies/company-7/?x=1")["company"]["id"] == "company-7"
        assert data("get_person", slug=f"{page}/api/v1/people/person-3")["slug"] == "person-3"
        assert data("get_framework", frameworkId=f"{page}/frameworks/framework-1")["frameworkId"] == "framework-1"
        ids = [f"{page}/companies/company-7", "company-8"]
        assert {each["id"] for each in data("list_companies", ids=ids)} == {"company-7", "company-8"}
        assert data("list_people", company=f"{page}/companies/company-1") == []
