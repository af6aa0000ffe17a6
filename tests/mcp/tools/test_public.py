"""The public tools: what REST shows, within what a model can hold, and a way on from every failure."""

import json

import jsonschema
import msgspec
import pytest

from make import published as make
from muniment.mcp.tools import answers
from muniment.registry_toml.queries import SHIPPED
from services.mcp import BASE, check_types, fictional_registry, legacy, modern, public_server, tools_of_the_docs

NAMES = [
    "search",
    "fetch",
    "list_companies",
    "get_company",
    "list_people",
    "get_person",
    "list_frameworks",
    "get_framework",
    "list_scoring_frameworks",
    "get_scoring_framework",
    "list_program_frameworks",
    "get_program_framework",
    "query",
    "changes_since",
    "get_registry_stats",
    "list_company_form_options",
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as found:
        yield found


@pytest.fixture(scope="module")
def server(reader):
    with public_server(reader) as asker:
        yield asker


def answer(server, name, **arguments):
    found = server.call(name, arguments)
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert found["isError"] is False, found
    return found["structuredContent"]


def failure(server, name, **arguments):
    found = server.call(name, arguments)
    assert found["isError"] is True
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    return found["structuredContent"]["error"]


@pytest.fixture(scope="module")
def listed(server):
    return server.ask(*modern("tools/list"))


@pytest.mark.requirement("tools.public-names", "mcp.public")
def test_the_public_server_offers_exactly_these_tools(listed):
    assert [tool["name"] for tool in listed.result["tools"]] == NAMES
    assert set(NAMES) <= tools_of_the_docs()


@pytest.mark.requirement("mcp.tool-descriptions")
def test_every_tool_describes_itself_whole(listed):
    for tool in listed.result["tools"]:
        assert tool["title"]
        assert len(tool["description"]) >= 30 or tool["name"].startswith("get_")
        assert tool["annotations"] == {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        promised = {
            "search": ["results"],
            "query": ["columns", "rows"],
            "fetch": ["id", "title", "text", "url", "metadata"],
        }.get(tool["name"], ["data"])
        assert tool["outputSchema"]["anyOf"] == [{"required": promised}, {"required": ["error"]}]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)


def test_no_schema_lists_types_beside_entries_members_or_choices(listed):
    check_types(listed.result["tools"])


@pytest.mark.requirement("mcp.size")
def test_what_a_model_sees_of_the_tools_stays_under_9500_bytes_and_the_whole_list_under_27_kb(listed, server):
    visible = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in listed.result["tools"]]
    assert len(msgspec.json.encode(visible)) <= 9_500
    assert len(listed.body) < 27_000
    assert len(server.ask(*legacy("tools/list")).body) < 27_000


def test_the_instructions_take_less_than_200_words(server):
    assert 80 < len(server.ask(*modern("server/discover")).result["instructions"].split()) < 200


@pytest.mark.requirement("mcp.structured", "tools.public")
@pytest.mark.parametrize(
    ("name", "arguments", "read"),
    [
        ("get_company", {"slug": "company-7"}, lambda reader: reader.document("company", "company-7").body),
        ("get_company", {"slug": "夜明け"}, lambda reader: reader.document("company", "夜明け").body),
        ("get_person", {"slug": "person-3"}, lambda reader: reader.document("person", "person-3").body),
        (
            "get_framework",
            {"frameworkId": "framework-1"},
            lambda reader: reader.document("framework", "framework-1").body,
        ),
        (
            "get_scoring_framework",
            {"frameworkId": "framework-1"},
            lambda reader: reader.document("framework", "framework-1").body,
        ),
        (
            "get_program_framework",
            {"frameworkId": "ember-grants"},
            lambda reader: reader.document("framework", "ember-grants").body,
        ),
        ("get_registry_stats", {}, lambda reader: reader.stats().body),
    ],
)
def test_a_full_detail_is_the_body_that_rest_shows(server, reader, name, arguments, read):
    full = {} if name == "get_registry_stats" else {"detail": "full"}
    assert answer(server, name, **arguments, **full) == json.loads(read(reader))


@pytest.mark.requirement("mcp.structured")
def test_a_list_is_the_page_that_rest_shows_in_summaries_and_with_the_next_page(server, reader):
    from make.queries import companies_by

    page = reader.companies(companies_by(page=2, page_size=7, type="DAO"))
    items = [json.loads(item) for item in page.items]
    found = answer(server, "list_companies", page=2, pageSize=7, type="DAO")
    assert found["pagination"] == {"page": 2, "pageSize": 7, "pageCount": page.page_count, "total": page.total}
    assert found["nextPage"] == 3
    left_out = {"body", "updatedAt", "socials", "address"}
    assert found["data"] == [{key: value for key, value in item.items() if key not in left_out} for item in items]
    assert answer(server, "list_companies", page=2, pageSize=7, type="DAO", detail="full")["data"] == items


@pytest.mark.requirement("tools.public")
def test_pages_end_with_null_and_beyond_the_end_there_is_nothing(server):
    first = answer(server, "list_people")
    assert (len(first["data"]), first["pagination"]["pageSize"], first["nextPage"]) == (25, 25, 2)
    last = answer(server, "list_people", page=2, pageSize=15)
    assert (len(last["data"]), last["nextPage"]) == (15, None)
    beyond = answer(server, "list_people", page=9, pageSize=15)
    assert (beyond["data"], beyond["nextPage"], beyond["pagination"]["pageCount"]) == ([], None, 2)


@pytest.mark.requirement("tools.public")
def test_filters_search_and_order_are_those_of_the_registry(server):
    assert [item["id"] for item in answer(server, "list_companies", sort="treasury", pageSize=3)["data"]] == [
        "company-60",
        "company-59",
        "company-58",
    ]
    assert [item["id"] for item in answer(server, "list_companies", hasToken=True)["data"]] == ["夜明け"]
    assert answer(server, "list_companies", raising=True)["data"] == []
    assert answer(server, "list_companies", q="dawn")["data"][0]["id"] == "夜明け"
    assert answer(server, "list_people", q="person 12")["data"][0]["slug"] == "person-12"
    assert len(answer(server, "list_frameworks")["data"]) == 4
    assert len(answer(server, "list_scoring_frameworks")["data"]) == 3
    assert [item["frameworkId"] for item in answer(server, "list_program_frameworks")["data"]] == ["ember-grants"]


@pytest.mark.requirement("tools.public")
def test_an_order_by_relevance_needs_words_to_find_as_in_rest(server):
    for words in ({}, {"q": ""}):
        error = failure(server, "list_companies", sort="relevance", **words)
        assert error["code"] == "bad_request"
        assert error["message"] == 'sort is "relevance" without q; relevance needs search words.'
        assert "Give q" in error["hint"]
    assert answer(server, "list_companies", sort="relevance", q="dawn")["data"][0]["id"] == "夜明け"


@pytest.mark.requirement("tools.public")
def test_form_options_are_what_an_owner_may_choose(server):
    data = answer(server, "list_company_form_options")["data"]
    assert {"status", "type", "industry", "orgKind", "themes", "socials", "address", "limits"} <= set(data)
    assert data["status"] == ["active", "upcoming", "inactive"]
    assert len(data["socials"]) == 8
    assert data["address"] == ["address_1", "address_2", "city", "state", "zip", "country"]


@pytest.mark.requirement("mcp.size")
def test_a_bundle_is_cut_with_its_totals_and_says_where_the_whole_is(server):
    data = answer(server, "get_company", slug="many-holders")["data"]
    assert (len(data["capTable"]), data["capTableTotal"]) == (100, 1_500)
    assert (data["positionsTotal"], data["proposalsTotal"]) == (0, 0)
    company = data["company"]
    assert company["bodyTruncated"] is True
    assert company["bodyUrl"] == f"{BASE}/api/v1/companies/many-holders"
    assert 1_000 < len(company["body"]) < 90_000


@pytest.mark.requirement("mcp.size")
def test_a_company_can_be_asked_for_the_parts_that_are_needed(server):
    whole = answer(server, "get_company", slug="company-1")["data"]
    team = answer(server, "get_company", slug="company-1", parts=["positions"])["data"]
    assert set(team) == {"company", "positions"}
    assert team["company"] == {key: value for key, value in whole["company"].items() if key != "body"}
    every = answer(server, "get_company", slug="company-1", parts=list(answers.PARTS))["data"]
    assert every == whole
    holders = answer(server, "get_company", slug="many-holders", parts=["capTable"])["data"]
    assert (len(holders["capTable"]), holders["capTableTotal"], set(holders)) == (
        100,
        1_500,
        {"company", "capTable", "capTableTotal"},
    )
    assert "parts[0]" in failure(server, "get_company", slug="company-1", parts=["team"])["message"]


@pytest.mark.requirement("mcp.size")
@pytest.mark.parametrize("detail", ["summary", "full"])
def test_any_page_fits_and_no_item_is_lost(server, detail):
    found = server.ask(
        *modern("tools/call", {"name": "list_companies", "arguments": {"pageSize": 100, "detail": detail}})
    )
    structured = found.result["structuredContent"]
    assert len(json.dumps(structured, ensure_ascii=False, separators=(",", ":")).encode()) <= 60_000
    assert len(structured["data"]) == 62
    cut = [item for item in structured["data"] if item.get("bodyTruncated")]
    assert [item["id"] for item in cut] == (["many-holders"] if detail == "full" else [])


def size(finished):
    return len(finished), json.loads(finished)


@pytest.mark.requirement("mcp.size")
def test_any_bundle_fits_an_answer():
    company = {"id": "x", "name": "X", "body": "b" * 50_000, "extra": "e" * 70_000, "themes": ["t" * 50] * 100}
    lists = {
        name: [{"title": "t" * 900, "id": n} for n in range(600)] for name in ("positions", "proposals", "capTable")
    }
    length, found = size(answers.bundle({"company": dict(company), **lists}, "u"))
    assert length <= 60_000
    assert found["data"]["positionsTotal"] == 600
    assert 1 <= len(found["data"]["positions"]) < 100
    company["unknown"] = [["deep"] * 9_000, {"k": "v" * 60_000}]
    length, found = size(answers.bundle({"company": dict(company), **lists}, "u"))
    assert length <= 60_000
    assert found["data"]["company"] == {"id": "x", "name": "X", "truncated": True, "url": "u"}


@pytest.mark.requirement("mcp.size")
def test_a_long_team_is_read_to_its_end_in_as_few_answers_as_fit():
    team = [{"id": f"row-{n}", "title": "Author", "person": {"name": f"P {n} " + "n" * 60}} for n in range(1_355)]
    seen, following, calls = [], 0, 0
    while following is not None:
        data = {"company": {"id": "x", "name": "X"}, "positions": team, "proposals": [], "capTable": None}
        length, found = size(answers.bundle(data, "u", offset=following, limit=1_000))
        assert length <= 60_000
        seen += [row["id"] for row in found["data"]["positions"]]
        following, calls = found.get("nextOffset"), calls + 1
        assert following in {None, len(seen)}
    assert seen == [row["id"] for row in team]
    assert calls == 1 + sum(len(json.dumps(row, separators=(",", ":"))) + 1 for row in team) // 60_000


@pytest.mark.requirement("mcp.size")
def test_a_list_of_short_rows_fills_its_answer():
    data = {"company": {"id": "x", "name": "X"}, "positions": [{"id": f"row-{n:04}"} for n in range(6_000)]}
    length, found = size(answers.bundle(data, "u", limit=6_000))
    assert 60_000 - 3 * len('{"id":"row-0000"},') < length <= 60_000
    assert found["nextOffset"] == len(found["data"]["positions"])


@pytest.mark.requirement("mcp.size")
def test_any_person_or_framework_fits_an_answer():
    positions = [{"title": "t" * 400, "company": {"name": "n" * 200}} for _ in range(1_500)]
    body = {"slug": "p", "name": "P", "bio": "b" * 80_000, "positions": positions}
    length, found = size(answers.record(body, "u", "positions"))
    assert length <= 60_000
    assert (found["data"]["positionsTotal"], found["data"]["bioTruncated"], found["data"]["bioUrl"]) == (
        1_500,
        True,
        "u",
    )
    body = {"frameworkId": "f", "description": "d" * 100_000, "kind": "score"}
    length, found = size(answers.record(body, "u"))
    assert (length <= 60_000, found["data"]["descriptionTruncated"]) == (True, True)
    frameworks = [
        {"frameworkId": f"f{n}", "frameworkName": "N", "description": "d" * 3_000, "kind": "score"} for n in range(400)
    ]
    length, found = size(answers.framework_items(frameworks, {"nextPage": None}, lambda item: "u"))
    assert (length <= 60_000, len(found["data"]), found["nextPage"]) == (True, 400, None)


@pytest.mark.requirement("mcp.size")
def test_any_page_fits_and_keeps_every_item():
    found = [
        {"id": f"c{n}", "name": "N" * 150, "themes": ["t" * 60] * 200, "description": "d" * 2_000} for n in range(100)
    ]
    length, page = size(answers.page(found, {"nextPage": 2}, lambda item: item["id"], named=True))
    assert (length <= 60_000, len(page["data"]), page["nextPage"]) == (True, 100, 2)
    assert {item["id"] for item in page["data"]} == {f"c{n}" for n in range(100)}
    assert all(item["url"] == item["id"] for item in page["data"] if item.get("truncated"))


@pytest.mark.requirement("mcp.size")
def test_a_page_whose_names_do_not_fit_is_shortened_and_says_how_to_continue():
    found = [{"id": f"{n:03}{'水' * 190}", "name": f"{n:03}{'水' * 190}"} for n in range(100)]
    rest = {"pagination": {"page": 1, "pageSize": 100, "pageCount": 3, "total": 250}, "nextPage": 2}
    url = "https://registry.example/" + "%E6%B0%B4" * 190
    length, page = size(answers.page([dict(each) for each in found], rest, lambda item: url, named=True))
    taken = page["pagination"]["pageSize"]
    assert length <= 60_000
    assert page["data"] == found[:taken]
    assert (page["nextPage"], page["pagination"]["total"]) == (2, 250)
    assert page["pagination"]["pageCount"] == -(-250 // taken)
    assert page["hint"] == f"No more than {taken} fit into one answer. Go on with page 2 and pageSize {taken}."


@pytest.mark.requirement("mcp.size")
def test_more_frameworks_than_fit_say_how_many_are_left_out_and_where_all_are():
    frameworks = [
        {"frameworkId": f"f{n}", "frameworkName": "N" * 150, "kind": "score", "isOpen": True} for n in range(1_000)
    ]
    length, found = size(answers.framework_items(frameworks, {"nextPage": None}, lambda item: "u", where="w"))
    assert length <= 60_000
    assert found["omitted"] == 1_000 - len(found["data"])
    assert found["hint"] == f"{found['omitted']} more do not fit into one answer; all are at w"


@pytest.mark.requirement("mcp.size")
def test_full_descriptions_of_frameworks_are_cut_to_500_characters_in_lists():
    items = [{"frameworkId": "a", "description": "d" * 501}, {"frameworkId": "b", "description": "d" * 500}]
    _, found = size(answers.framework_items(items, {"nextPage": None}, lambda item: "u"))
    assert [len(item["description"]) for item in found["data"]] == [500, 500]
    assert [item.get("descriptionTruncated") for item in found["data"]] == [True, None]


@pytest.mark.requirement("mcp.tool-failures")
def test_a_near_miss_gets_suggestions(server):
    error = failure(server, "get_company", slug="Many Holder")
    assert error["code"] == "not_found"
    assert "Many Holder" in error["message"]
    assert "many-holders" in error["hint"]
    assert "list_companies" in error["hint"]
    assert "Did you mean person-" in failure(server, "get_person", slug="person-l")["hint"]


@pytest.mark.requirement("tools.public")
@pytest.mark.parametrize(
    ("tool", "framework", "right"),
    [
        ("get_scoring_framework", "ember-grants", "get_program_framework"),
        ("get_program_framework", "framework-1", "get_scoring_framework"),
    ],
)
def test_a_framework_of_the_other_kind_is_not_found_and_the_right_tool_is_named(server, tool, framework, right):
    error = failure(server, tool, frameworkId=framework)
    assert error["code"] == "not_found"
    assert right in error["hint"]


@pytest.mark.requirement("mcp.tool-failures")
@pytest.mark.parametrize(
    ("tool", "arguments", "named", "hinted"),
    [
        ("get_company", {}, "slug is missing", "a string of 1 to 2000 characters"),
        ("get_company", {"slug": [5]}, "slug takes a string", "slug"),
        ("get_company", {"slug": ""}, "slug takes", "1 to 2000"),
        ("get_company", {"slug": None}, "not null", "slug"),
        ("get_company", {"slug": "x", "id": "y"}, "'id'", "The arguments are: slug"),
        ("list_companies", {"pagesizes": 5}, "'pagesizes'", "Did you mean pageSize?"),
        ("list_companies", {"page": 0}, "page takes a whole number", "from 1"),
        ("list_companies", {"pageSize": 201}, "not 201", "from 1 to 200"),
        ("list_companies", {"pageSize": "5x"}, "pageSize takes", "whole number"),
        ("list_companies", {"page": True}, "not true", "whole number"),
        ("list_companies", {"status": "ACTIVE"}, "'ACTIVE'", "'active', 'upcoming', 'inactive'"),
        ("list_companies", {"hasToken": "yes"}, "hasToken takes true or false", "hasToken"),
        ("list_companies", {"q": "x" * 201}, "q takes", "200 characters"),
        ("list_frameworks", {"kind": "both"}, "kind takes one of", "'score', 'program'"),
        ("get_registry_stats", {"x": 1}, "'x'", "none"),
    ],
)
def test_an_argument_that_misses_the_schema_is_named_with_what_it_takes(server, tool, arguments, named, hinted):
    error = failure(server, tool, **arguments)
    assert error["code"] == "bad_request"
    assert named in error["message"]
    assert hinted in error["hint"]


@pytest.mark.requirement("mcp.tool-failures")
def test_half_a_surrogate_pair_is_no_text(server):
    headers, body = modern("tools/call", {"name": "get_company", "arguments": {"slug": "\ud800"}})
    found = server.ask(headers, body)
    assert (found.status, found.json()["error"]["code"]) == (400, -32700)
    assert "surrogate" in found.json()["error"]["message"]


@pytest.mark.requirement("mcp.tool-failures")
def test_an_unknown_tool_is_a_fault_of_the_protocol(server):
    found = server.ask(*modern("tools/call", {"name": "get_compnay", "arguments": {}}))
    assert (found.status, found.json()["error"]["code"]) == (400, -32602)


@pytest.mark.requirement("mcp.tool-descriptions")
def test_answers_and_failures_are_valid_by_their_output_schema(server, listed):
    arguments = {"slug": "company-1", "frameworkId": "framework-1", "query": "company", "id": "company:company-1"}
    arguments |= {"since": "2026-01-01", "sql": "SELECT 1"}
    for tool in listed.result["tools"]:
        check = jsonschema.Draft202012Validator(tool["outputSchema"])
        given = {key: arguments[key] for key in tool["inputSchema"].get("required", ())}
        check.validate(server.call(tool["name"], given)["structuredContent"])
        check.validate(server.call(tool["name"], {"nonsense": 1})["structuredContent"])
        with pytest.raises(jsonschema.ValidationError):
            check.validate({})


@pytest.mark.requirement("tools.resources")
def test_resources_are_the_answers_of_the_tools(server):
    templates = server.ask(*modern("resources/templates/list")).result["resourceTemplates"]
    assert [found["uriTemplate"] for found in templates] == [
        "registry://companies/{slug}",
        "registry://people/{slug}",
        "registry://frameworks/{frameworkId}",
    ]
    for uri, tool, arguments in (
        ("registry://companies/company-1", "get_company", {"slug": "company-1"}),
        ("registry://companies/%E5%A4%9C%E6%98%8E%E3%81%91", "get_company", {"slug": "夜明け"}),
        ("registry://companies/夜明け", "get_company", {"slug": "夜明け"}),
        ("registry://people/person-1", "get_person", {"slug": "person-1"}),
        ("registry://frameworks/ember-grants", "get_framework", {"frameworkId": "ember-grants"}),
        ("registry://stats", "get_registry_stats", {}),
    ):
        (content,) = server.ask(*_read(uri)).result["contents"]
        assert (content["uri"], content["mimeType"]) == (uri, "application/json")
        full = {} if tool == "get_registry_stats" else {"detail": "full"}
        assert json.loads(content["text"]) == answer(server, tool, **arguments, **full)


def _read(uri):
    import base64

    headers, body = modern("resources/read", {"uri": uri})
    wrapped = uri if uri.isascii() else f"=?base64?{base64.b64encode(uri.encode()).decode()}?="
    return [(name, wrapped if name == "mcp-name" else value) for name, value in headers], body


@pytest.mark.requirement("tools.resources")
def test_a_missing_resource_is_reported_in_the_form_of_each_protocol_version(server):
    for make_request, code in ((modern, -32602), (legacy, -32002)):
        error = server.ask(*make_request("resources/read", {"uri": "registry://people/missing"})).json()["error"]
        assert (error["code"], error["data"]["uri"]) == (code, "registry://people/missing")


@pytest.mark.requirement("tools.resources")
def test_no_slug_is_so_long_that_its_refusal_grows_with_it(server):
    error = server.ask(*legacy("resources/read", {"uri": "registry://people/" + "潮 " * 9_000})).json()["error"]
    assert error["code"] == -32002
    assert len(error["message"]) < 500


@pytest.mark.requirement("tools.resources")
def test_slugs_are_completed_for_templates_and_prompts(server):
    def complete(ref, name, value):
        params = {"ref": ref, "argument": {"name": name, "value": value}}
        return server.ask(*modern("completion/complete", params)).result["completion"]

    template = {"type": "ref/resource", "uri": "registry://companies/{slug}"}
    assert complete(template, "slug", "company-1")["values"][:2] == ["company-1", "company-10"]
    assert complete(template, "slug", "zzz")["values"] == []
    assert complete({"type": "ref/prompt", "name": "research_company"}, "slug", "夜")["values"] == ["夜明け"]


@pytest.mark.requirement("tools.resources")
def test_prompts_name_the_tools_to_call(server):
    prompts = {found["name"]: found for found in server.ask(*modern("prompts/list")).result["prompts"]}
    assert set(prompts) == {"research_company", "compare_companies", *(each.slug for each in SHIPPED)}
    given = {"name": "compare_companies", "arguments": {"frameworkId": "framework-1", "slugs": "company-1, company-2"}}
    (message,) = server.ask(*modern("prompts/get", given)).result["messages"]
    for word in ("get_framework", "get_company", "framework-1", "company-1, company-2"):
        assert word in message["content"]["text"]


def test_an_update_is_seen_by_the_next_call(tmp_path):
    with fictional_registry(tmp_path / "p.sqlite3") as reader, public_server(reader) as asker:
        assert answer(asker, "get_company", slug="company-1")["data"]["company"]["name"] == "Company 1"
        before = answer(asker, "list_companies", pageSize=100)["pagination"]["total"]
        publisher = make.Publisher(tmp_path / "p.sqlite3")
        publisher.publish(make.company(1, name="Renamed"), make.company(99))
        publisher.close()
        reader.refresh()
        assert answer(asker, "get_company", slug="company-1")["data"]["company"]["name"] == "Renamed"
        assert answer(asker, "list_companies", pageSize=100)["pagination"]["total"] == before + 1


def test_an_empty_or_forgiven_list_says_what_is_close(server, listed):
    slipped = answer(server, "list_companies", q="compnay 5")
    assert (slipped["data"], slipped["pagination"]["total"]) == ([], 0)
    assert slipped["closest"][0].keys() == {"id", "name", "why"}
    empty = answer(server, "list_companies", type="no such type")
    assert empty["data"] == empty["closest"] == []
    assert "Values in use: " in empty["hint"]
    schema = next(tool["outputSchema"] for tool in listed.result["tools"] if tool["name"] == "list_companies")
    missing = answer(server, "list_companies", ids=["company-1", "gone"])
    assert (len(missing["data"]), missing["unknownIds"]) == (1, ["gone"])
    for found in (slipped, empty, missing):
        jsonschema.validate(found, schema)


@pytest.mark.requirement("tools.public")
def test_filters_take_one_value_or_several_numbers_as_amounts_and_nothing_for_blank(server):
    def total(**arguments):
        return answer(server, "list_companies", pageSize=1, **arguments)["pagination"]["total"]

    assert total(type=["DAO", "corporation"]) == total(type="", status=[]) == total()
    assert total(type="dao") + total(type=["corporation"]) == total()
    assert total(treasuryMin=100) == total(treasuryMin="$100") == total(treasuryMin=100.0)
    assert total(hasCapTable=True) == 1
    found = answer(server, "list_companies", type=["DAO"], facets=["type"], pageSize=1)["facets"]
    assert found["type"]["values"][0]["selected"] is True
    assert answer(server, "list_frameworks", facets=["kind"])["facets"]["kind"]["values"][0] == {
        "value": "score",
        "count": 3,
    }


@pytest.mark.requirement("mcp.tool-failures")
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"treasuryMin": "5M", "treasuryMax": 100}, "treasuryMin is greater than treasuryMax"),
        ({"type": [f"t{n}" for n in range(51)]}, "type has more than 50 values"),
        ({"listedFrom": "soon"}, "The argument listedFrom takes a date such as 2024-01-31"),
        ({"type": True}, "type takes a list"),
        ({"type": [True]}, "type[0] takes a string"),
        ({"facets": ["name"]}, "facets[0] takes one of"),
    ],
)
def test_a_bad_filter_is_named_with_what_it_takes(server, arguments, named):
    error = failure(server, "list_companies", **arguments)
    assert error["code"] == "bad_request"
    assert named in error["message"]
    assert error["hint"]


@pytest.mark.requirement("tools.public")
def test_form_options_have_the_values_in_use_with_counts(server):
    used = answer(server, "list_company_form_options")["data"]["inUse"]
    assert set(used) == {"status", "type", "industry", "themes"}
    assert used["type"]["values"][0] == {"value": "DAO", "count": 40}
