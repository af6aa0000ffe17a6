"""An agent knows what something is called: names work for slugs, and results say why they are there."""

import pytest

from make.published import Publisher, company, framework, person
from muniment.store.reader import Reader
from services.mcp import public_server

COOK = ("Cook", "quay")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "published.sqlite3"
    publisher = Publisher(path)
    publisher.publish(
        company(
            1,
            "river-trust-2",
            name="Rivér Trust",
            website="https://www.river-trust.example/about",
            symbol="RIV",
            formerNames=[{"name": "Brook Fund", "until": "2025-01-01"}],
            registration="LEI-5493001",
            body="Registered as LEI-5493001.",
            description="Keeps meadows.",
            address=[{"id": "x", "city": "Ghent", "country": "BE"}],
        ),
        company(2, "twin", name="Twin"),
        company(3, "twin-2", name="Twin"),
        company(4, "quay", name="Quay", body="It repairs the old lighthouse."),
        company(5, "large", name="Large", capTable=[{"id": f"h{n}", "address": f"0x{n}"} for n in range(7)]),
        person(1, "ada-fluss", name="Ada Fluß", positions=(("Chair", "quay"), ("Pilot of boats", "twin"), COOK)),
        person(2, "bo", name="Bo", positions=tuple((f"Clerk {n}", "quay") for n in range(9))),
        person(3, "cy", name="Cy", positions=(("Diver", "twin"), ("Rower", "twins"))),
        framework(1, "river-score", name="River score"),
        framework(2, "ember-grants", name="Ember Grants", kind="program"),
    )
    reader = Reader(path)
    with public_server(reader) as asker:
        yield asker
    reader.close()
    publisher.close()


def ask(server, name, **arguments):
    return server.call(name, arguments)["structuredContent"]


@pytest.mark.requirement("tools.public")
@pytest.mark.parametrize(
    ("tool", "arguments", "member", "slug"),
    [
        ("get_company", {"slug": "river TRUST"}, ("company", "id"), "river-trust-2"),
        ("get_person", {"slug": "Ada Fluss"}, ("slug",), "ada-fluss"),
        ("get_framework", {"frameworkId": "River Score"}, ("frameworkId",), "river-score"),
        ("get_program_framework", {"frameworkId": "ember grants"}, ("frameworkId",), "ember-grants"),
    ],
)
def test_an_exact_name_that_one_alone_has_works_for_a_slug(server, tool, arguments, member, slug):
    found = ask(server, tool, **arguments)["data"]
    for name in member:
        found = found[name]
    assert found == slug


def test_exact_names_work_in_lists_of_ids_and_in_fetch(server):
    listed = ask(server, "list_companies", ids=["Rivér trust", "quay"])["data"]
    assert {each["id"] for each in listed} == {"river-trust-2", "quay"}
    assert ask(server, "list_companies", ids=["an unknown name"])["data"] == []
    assert ask(server, "fetch", id="company:River Trust")["id"] == "company:river-trust-2"
    assert ask(server, "fetch", id="Ada Fluss")["id"] == "person:ada-fluss"


@pytest.mark.requirement("mcp.tool-failures")
@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("Twin", "Did you mean twin-2 (Twin)"),
        ("River Trus", "Did you mean river-trust-2 (Rivér Trust)?"),
        ("Brook Fund", "Did you mean river-trust-2 (Rivér Trust)?"),
        ("river-trst-2", "Did you mean river-trust-2 (Rivér Trust)?"),
    ],
)
def test_a_name_of_several_or_none_is_refused_with_the_closest_slugs(server, asked, hint):
    assert hint in ask(server, "get_company", slug=asked)["error"]["hint"]


@pytest.mark.requirement("search.tools")
@pytest.mark.parametrize(
    ("query", "kind", "matched"),
    [
        ("river trust", "company", "name"),
        ("RIV", "company", "symbol RIV"),
        ("river-trust.example", "company", "domain river-trust.example"),
        ("brook fund", "company", "former name Brook Fund"),
        ("LEI-5493001", "company", "registration LEI-5493001"),
        ("meadows", "company", "description"),
        ("lighthouse", "company", "text: It repairs the old lighthouse."),
        ("ada", "person", "name"),
    ],
)
def test_a_search_says_by_what_it_found_each_result(server, query, kind, matched):
    results = ask(server, "search", query=query)["results"]
    assert next(each for each in results if each["id"].startswith(kind))["matched"] == matched


@pytest.mark.requirement("tools.public")
def test_people_by_company_or_title_come_with_the_positions_that_matched(server):
    both = ask(server, "list_people", company="quay", title="chair")["data"]
    assert both[0]["positions"] == [
        {"title": "Chair", "company": {"slug": "quay", "name": "Quay"}},
        {"title": "Cook", "company": {"slug": "quay", "name": "Quay"}},
    ]
    (pilot,) = ask(server, "list_people", title="boats")["data"]
    assert [each["title"] for each in pilot["positions"]] == ["Pilot of boats"]
    bo = next(each for each in ask(server, "list_people", company="Quay")["data"] if each["slug"] == "bo")
    assert (len(bo["positions"]), bo["positionsTotal"]) == (5, 9)
    cy = next(each for each in ask(server, "list_people", company="twin")["data"] if each["slug"] == "cy")
    assert [each["title"] for each in cy["positions"]] == ["Diver"], "a slug names no company of a similar name"
    assert "positions" not in ask(server, "list_people")["data"][0]
    assert "positions" not in ask(server, "list_people", company="quay", fields=["name"])["data"][0]
    named = ask(server, "list_people", ids=["ada-fluss"], fields=["positions"])["data"][0]
    assert [each["title"] for each in named["positions"]] == ["Chair", "Pilot of boats", "Cook"]


@pytest.mark.requirement("mcp.size")
def test_a_company_shows_as_many_rows_as_a_call_wants_with_the_totals_before_them(server):
    shown = ask(server, "get_company", slug="large", parts=["capTable"], limit=2, offset=4)["data"]
    assert next(iter(shown)) == "company"
    assert list(shown).index("capTableTotal") < list(shown).index("capTable")
    assert shown["capTableTotal"] == 7
    assert [each["id"] for each in shown["capTable"]] == ["h4", "h5"]


def test_lists_of_frameworks_have_their_total_and_programs_can_be_open_or_closed(server):
    assert ask(server, "list_frameworks")["total"] == 2
    programs = ask(server, "list_program_frameworks")
    assert (programs["total"], [each["isOpen"] for each in programs["data"]]) == (1, [False])
    none = ask(server, "list_program_frameworks", isOpen=True)
    assert (none["total"], none["hint"]) == (0, "No program is open. Leave out isOpen for all.")
    assert "hint" not in ask(server, "list_program_frameworks", isOpen=False)


def test_a_list_of_frameworks_without_filters_says_that_there_is_none(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "quay", name="Quay"))
    reader = Reader(tmp_path / "published.sqlite3")
    with public_server(reader) as server:
        told = [ask(server, name)["hint"] for name in ("list_scoring_frameworks", "list_program_frameworks")]
        assert "kind" in ask(server, "list_frameworks", kind="program")["hint"], "a filter that the tool has"
    reader.close()
    publisher.close()
    assert told == ["There is no scoring framework.", "There is no program."]
