"""Arguments as clients send them: every tool reads each form of a value as the value itself."""

import contextlib
import json
import re

import pytest
from django.db import transaction

from make import registry as make
from make.accounts import account
from make.calls import PUBLIC, sample
from make.documents import uploaded
from make.reports import framework
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.kernel.problems import BadRequest
from muniment.mcp.arguments import MAX_ENTRIES, MAX_ROWS, compile_arguments
from services.manage import manage
from services.mcp import fictional_registry, modern, public_server

NEW = re.compile(
    r'"(?:confirm|expiresAt|createdAt|deletedAt|restorableUntil|documentId|runId|uploadId|url|command)":"(?:[^"\\]|\\.)*",?'
)
"""Members of an answer that each call makes anew."""
CHANGED = {"update_my_company": {"changes": {}}, "update_my_profile": {"changes": {"bio": "About me."}}}


def nothing(name):
    """Return the forms in which clients send an argument that they do not need."""
    return [None, []] if name == "text" else [None, "", "  ", []]


def forms(name, value):
    """Return other forms of *value* whose meaning is certain."""
    if isinstance(value, bool):
        return [str(value), str(value).lower()]
    if isinstance(value, int):
        return [str(value), f" {value} ", f"{value}.0", float(value)]
    if isinstance(value, str):
        found = [] if name == "text" else [f" {value}\n"]
        return [*found, int(value)] if value.isdecimal() else found
    if isinstance(value, dict):
        return [json.dumps(value)]
    found = [json.dumps(value), [*value, "", None]]
    if name in {"ids", "fields", "documentIds", "parts", "facets", "status", "include"}:
        found += [",".join(value), " , ".join(value)]
    return [*found, value[0]] if len(value) == 1 else found


def writings(name):
    """Return other writings of a name."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    return {snake, name.lower(), snake.replace("_", "-")} - {name}


def variants(tool, base):
    """Yield calls that must have the same answer: the plain one, another one, and what is different about it."""
    for name, schema in tool.arguments.items():
        if name not in tool.required:
            plain = {key: value for key, value in base.items() if key != name}
            for value in nothing(name):
                yield plain, {**plain, name: value}
        value = base.get(name, sample(name, schema))
        plain = {**base, name: value}
        for other in forms(name, value):
            yield plain, {**plain, name: other}
        for writing in writings(name):
            yield (
                plain,
                {**base, writing: value}
                if name not in base
                else {
                    **{key: each for key, each in base.items() if key != name},
                    writing: value,
                },
            )


def same(call, tool, base):
    """Return how many calls had the same answer as their plain form; fail with those that had not."""
    known, wrong, count = {}, [], 0
    for plain, other in variants(tool, base):
        key = json.dumps(plain)
        if key not in known:
            known[key] = call(tool.name, plain)
        found = call(tool.name, other)
        count += 1
        if found != known[key]:
            wrong.append(f"{tool.name} {other}: {str(found)[:300]}, not {str(known[key])[:300]}")
    assert not wrong, "\n".join(wrong)
    return count


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("arguments") / "p.sqlite3") as made:
        yield made


@pytest.fixture(scope="module")
def server(reader):
    with public_server(reader) as made:
        yield made


def test_every_public_tool_reads_arguments_as_clients_send_them(server):
    def call(name, arguments):
        return json.dumps(server.call(name, arguments)["structuredContent"])

    count = 0
    for tool in server.server.offer.tools:
        count += same(call, tool, PUBLIC.get(tool.name, {}))
    assert count > 300


@pytest.mark.django_db
def test_every_owner_tool_reads_arguments_as_clients_send_them(reader):
    with manage(reader=reader) as owners:
        owner = account("owner@harbour.example").actor("web")
        token = tokens.create_token(owner, "laptop", permitted=SCOPES).text
        company, of = make.published(owner), framework(2)
        paper = uploaded(owner, company.slug, b"The annual accounts stand open.")
        owners.data(token, "get_credits")  # opens the ledger
        values = {
            "slug": company.slug,
            "companySlug": company.slug,
            "frameworkId": of,
            "documentId": paper.pk,
            "filename": "a.txt",
            "runId": "01m8ftx81rxqvx3jsq84w6dm6q",
            "otherRunId": "01m8ftx81rxqvx3jsq84w6dm6r",
            "uploadId": "none",
            **PUBLIC["query"],
        }

        def call(name, arguments):
            with transaction.atomic():
                answer = owners.ask(token, modern("tools/call", {"name": name, "arguments": arguments}))
                found = json.dumps(answer.result["structuredContent"], separators=(",", ":"))
                transaction.set_rollback(True)
            return NEW.sub("", found)

        count = 0
        for tool in owners.asker.server.offer.tools:
            base = {name: values[name] for name in tool.required}
            if "dryRun" in tool.arguments:
                base["dryRun"] = True
            if tool.name == "upload_document":
                base["text"] = "The annual accounts."
            count += same(call, tool, {**base, **CHANGED.get(tool.name, {})})
        assert count > 300


CHANGES = {
    "teamSize": (12, ["12", " 12 ", 12.0, "12.0"]),
    "treasury": ("1200000", [1_200_000, 1_200_000.0]),
    "themes": (["trade"], ["trade", '["trade"]']),
    "socials": ({"email": "us@harbour.example"}, ['{"email": "us@harbour.example"}']),
    "treasuryAmount": ({"amount": "5", "currency": "USD"}, [{"amount": 5, "currency": "USD"}]),
    "fundingRound": (
        {"name": "A", "target": "5000"},
        [{"name": "A", "target": 5_000}, '{"name": "A", "target": 5000}'],
    ),
    "capTable": (
        {"add": [{"id": "7", "tokens": "500", "percentage": 2.5}]},
        [
            {"add": [{"id": 7, "tokens": 500, "percentage": "2.5"}]},
            {"add": {"id": "7", "tokens": "500", "percentage": 2.5}},
            '{"add": [{"id": 7, "tokens": "500", "percentage": 2.5}]}',
        ],
    ),
    "distribution": (
        {"pools": [{"name": "500", "percentage": 50}]},
        ['{"pools": [{"name": 500, "percentage": "50"}]}'],
    ),
    "positions": (
        [{"title": "7", "person": {"name": "Ada Quay", "isNew": True}}],
        [[{"title": 7, "person": '{"name": "Ada Quay", "isNew": "true"}'}]],
    ),
}
"""Fields of a change, each with other forms of the same value."""


@pytest.mark.django_db
@pytest.mark.parametrize("field", CHANGES)
def test_a_change_is_read_as_clients_send_it(field):
    value, others = CHANGES[field]
    with manage() as owners:
        owner = account("owner@harbour.example").actor("web")
        token = tokens.create_token(owner, "laptop", permitted=SCOPES).text
        slug = make.published(owner).slug

        def diff(changes):
            return owners.data(token, "update_my_company", slug=slug, changes=changes, dryRun=True)["diff"]

        plain = diff({field: value})
        assert plain
        for other in others:
            assert diff({field: other}) == plain
            assert diff(json.dumps({field: other})) == plain


@pytest.mark.parametrize(
    ("tool", "plain", "other"),
    [
        ("get_company", {"slug": "company-1"}, {"id": "company-1"}),
        ("get_company", {"slug": "Company 1"}, {"name": "Company 1"}),
        ("get_company", {"slug": "company-1"}, {"companySlug": "company-1"}),
        ("get_person", {"slug": "person-1"}, {"person": "person-1"}),
        ("get_framework", {"frameworkId": "framework-1"}, {"id": "framework-1"}),
        ("list_companies", {"q": "company"}, {"query": "company"}),
        ("list_companies", {"pageSize": 2}, {"limit": 2}),
        ("list_people", {"company": "company-1"}, {"companySlug": "company-1"}),
        ("search", {"query": "company"}, {"q": "company"}),
    ],
)
def test_a_tool_takes_well_known_other_names(server, tool, plain, other):
    found = server.call(tool, plain)["structuredContent"]
    assert "error" not in found
    assert server.call(tool, other)["structuredContent"] == found


# ---------------------------------------------------------------------- the rule


def check_of(later=(), required=(), keys=None, **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return compile_arguments(schema, later=later, keys=keys or {})


def refusal(check, arguments):
    with pytest.raises(BadRequest) as refused:
        check(arguments)
    return refused.value


WORDS = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    ("name", "schema", "given", "read"),
    [
        ("page", {"type": "integer"}, "2.000", 2),
        ("page", {"type": "integer", "minimum": -9}, "-3", -3),
        ("page", {"type": "integer"}, "9" * 15, 10**15 - 1),
        ("share", {"type": "number"}, 2, 2.0),
        ("share", {"type": "number"}, "2.5", 2.5),
        ("raising", {"type": "boolean"}, " FALSE ", False),
        ("id", {"type": "string"}, 42, "42"),
        ("id", {"type": "string"}, 42.0, "42"),
        ("id", {"type": "string"}, 1.5, "1.5"),
        ("id", {"type": "string"}, 0, "0"),
        ("q", {"type": "string"}, "null", "null"),
        ("text", {"type": "string"}, " a \n", " a \n"),
        ("text", {"type": "string"}, "", ""),
        ("fields", WORDS, "name,website", ["name", "website"]),
        ("fields", WORDS, "name", ["name"]),
        ("fields", WORDS, ["name", "", None], ["name"]),
        ("ids", WORDS, "Acme, Inc.", ["Acme, Inc."]),
        ("city", WORDS, "Washington, D.C.", ["Washington, D.C."]),
        ("ids", WORDS, [7], ["7"]),
        ("ids", WORDS, 7, ["7"]),
        ("ids", WORDS, '["a", 7]', ["a", "7"]),
        ("ids", WORDS, "[a", ["[a"]),
        ("parts", {"type": "array", "items": {"enum": ["a", "b"]}}, "a, b", ["a", "b"]),
    ],
)
def test_a_value_whose_meaning_is_certain_is_read(name, schema, given, read):
    check = check_of(**{name: schema})
    found = check({name: given})[name]
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("schema", "given"),
    [
        ({"type": "integer"}, "2.5"),
        ({"type": "integer"}, 2.5),
        ({"type": "integer"}, True),
        ({"type": "integer"}, "1e3"),
        ({"type": "integer"}, "1,000"),
        ({"type": "integer"}, "1" * 16),
        ({"type": "integer"}, 1e15),
        ({"type": "integer"}, [1]),
        ({"type": "boolean"}, 1),
        ({"type": "boolean"}, "yes"),
        ({"type": "string"}, True),
        ({"type": "string"}, 1e300),
        ({"type": "string"}, ["a"]),
        ({"type": "string"}, {"a": 1}),
        ({"type": "object"}, '{"a": NaN}'),
        ({"type": "object"}, "a"),
        ({"type": "object"}, "[1]"),
        (WORDS, {"a": 1}),
        (WORDS, True),
        (WORDS, [["a"]]),
        ({"enum": ["active"]}, "Active"),
    ],
)
def test_everything_else_is_refused_with_the_name_of_the_argument(schema, given):
    assert "argument value" in refusal(check_of(value=schema), {"value": given}).message


def test_a_list_that_is_nested_too_deeply_in_text_is_refused():
    assert "value" in refusal(check_of(value={"type": "object"}), {"value": "[" * 100_000}).message


@pytest.mark.parametrize("given", [{}, {"slug": None}])
def test_a_required_argument_without_a_value_is_named(given):
    refused = refusal(check_of(required=["slug"], slug={"type": "string"}), given)
    assert "argument slug" in refused.message
    assert "slug" in refused.hint


def test_a_change_keeps_null_blank_and_empty_and_reads_types_alone():
    number = {"type": ["integer", "null"]}
    rows = {
        "type": "array",
        "items": {"type": "object", "properties": {"id": {"type": ["string", "null"]}, "share": {"type": "number"}}},
    }
    change = {
        "type": "object",
        "properties": {
            "bio": {"type": ["string", "null"]},
            "size": number,
            "themes": {"anyOf": [WORDS, {"type": "null"}]},
            "holders": {"anyOf": [{"type": "object", "properties": {"add": rows, "set": rows}}, rows]},
            "rounds": {"anyOf": [rows, {"type": "null"}]},
        },
    }
    check = check_of(later=("changes",), changes=change)

    def read(given):
        return check({"changes": given})["changes"]

    kept = {"bio": " ", "size": None, "themes": [], "holders": [], "else": "1"}
    assert read(kept) == kept
    assert read({"themes": ["a", ""]}) == {"themes": ["a", ""]}
    assert read({"themes": "a, b"}) == {"themes": "a, b"}  # one theme or two?
    assert read({"themes": "a"}) == {"themes": ["a"]}
    assert read(json.dumps({"size": "12", "bio": 5})) == {"size": 12, "bio": "5"}
    assert read({"holders": [{"id": 4, "share": "2.5"}]}) == {"holders": [{"id": "4", "share": 2.5}]}
    assert read({"holders": '{"set": [{"id": 4, "share": "2.5"}]}'}) == {
        "holders": {"set": [{"id": "4", "share": 2.5}]}
    }
    assert read({"rounds": {"id": 4}}) == {"rounds": [{"id": "4"}]}, "one row alone"
    assert read({"holders": {"id": 4}}) == {"holders": {"id": 4}}, "an object may be a change of the list"
    assert read({"themes": {"id": 4}}) == {"themes": {"id": 4}}
    assert check({"changes": None}) == {}
    assert check({"changes": {}}) == {"changes": {}}


@pytest.mark.parametrize(
    ("required", "keys", "names", "given", "meant"),
    [
        (["slug"], {"slug": "company"}, ["slug"], "id", "slug"),
        (["slug"], {"slug": "company"}, ["slug"], "company", "slug"),
        (["slug"], {"slug": "company"}, ["slug"], "company_slug", "slug"),
        (["slug"], {"slug": "person"}, ["slug"], "name", "slug"),
        (
            ["companySlug", "filename"],
            {"companySlug": "company"},
            ["companySlug", "filename"],
            "company",
            "companySlug",
        ),
        (["runId"], {}, ["runId"], "id", "runId"),
        ([], {}, ["q", "pageSize"], "query", "q"),
        ([], {}, ["q", "pageSize"], "page_size", "pageSize"),
        ([], {}, ["q", "pageSize"], "limit", "pageSize"),
        ([], {}, ["limit", "pageSize"], "limit", "limit"),
        (["query"], {}, ["query"], "q", "query"),
        ([], {}, ["page", "q"], "name", "q"),
    ],
)
def test_a_well_known_other_name_is_taken(required, keys, names, given, meant):
    check = check_of(required=required, keys=keys, **{name: {"type": "string"} for name in names})
    rest = {name: "x" for name in required if name != meant}
    assert check({**rest, given: "river"}) == {**rest, meant: "river"}


@pytest.mark.parametrize(
    ("required", "names", "given"),
    [
        (["companySlug", "filename"], ["companySlug", "filename"], "name"),
        (["companySlug", "filename"], ["companySlug", "filename"], "id"),
        (["slug"], ["slug"], "runId"),
        ([], ["companySlug"], "id"),
    ],
)
def test_a_name_that_could_mean_several_arguments_is_refused(required, names, given):
    check = check_of(required=required, **{name: {"type": "string"} for name in names})
    assert f"There is no argument {given!r}" in refusal(check, {**dict.fromkeys(required, "x"), given: "x"}).message


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("linkedin", "It is a member of changes.socials. "),
        ("socials", "It is a member of changes. "),
        ("city", ""),
        ("nmae", ""),
    ],
)
def test_an_argument_that_is_a_member_of_another_gets_its_path(given, hint):
    rows = {"type": "array", "items": {"type": "object", "properties": {"city": {"type": "string"}}}}
    socials = {"type": "object", "properties": {"linkedin": {"type": "string"}}}
    changes = {"type": "object", "properties": {"socials": socials, "address": rows}}
    check = check_of(["changes"], page={"type": "integer"}, changes=changes)
    assert refusal(check, {given: "x"}).hint == f"{hint}The arguments are: page, changes."


def test_two_names_of_one_argument_are_refused():
    check = check_of(required=["slug"], keys={"slug": "company"}, slug={"type": "string"})
    assert "'id'" in refusal(check, {"slug": "a", "id": "b"}).message


@pytest.mark.parametrize(
    "given",
    [
        {"dry_run": True, "dry-run": False},
        {"dry_run": True, "dryrun": None},
        {"DryRun": False, "dry_run": False},
        {"dry_run": True, "dryRun": False},
    ],
)
def test_an_argument_in_two_writings_is_refused_and_neither_counts(given):
    refused = refusal(check_of(dryRun={"type": "boolean"}), given)
    assert "dry_run" in refused.message
    assert "dryRun" in refused.hint


# ---------------------------------------------------------------------- JSON in text, and long lists


@pytest.mark.parametrize(
    "text",
    [
        '{"bio": "a", "bio": "b"}',
        '{"bio": "a", "b\\u0069o": "b"}',
        '{"bio": 1e999}',
        '{"bio": "\\ud800"}',
        '\ufeff{"bio": "a"}',
        '{"bio": ' + "[" * 100 + "]" * 100 + "}",
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_json_in_text_is_read_as_strictly_as_a_body(text, wrapped):
    change = {"type": "object", "properties": {"socials": {"type": "object"}}}
    check = check_of(later=("changes",), changes=change)
    if wrapped:
        assert check({"changes": {"socials": text}})["changes"]["socials"] == text  # for the operation to refuse
    else:
        assert "argument changes" in refusal(check, {"changes": text}).message


def test_a_list_is_read_with_its_blanks_up_to_a_limit_and_not_beyond_it():
    check = check_of(ids={**WORDS, "maxItems": 2}, parts={"type": "array", "items": {"enum": ["a"]}})
    blanks = [""] * (MAX_ENTRIES - 2)
    assert check({"ids": ["a", "b", *blanks]}) == {"ids": ["a", "b"]}
    assert "argument ids" in refusal(check, {"ids": ["a", "b", "", *blanks]}).message
    assert check({"ids": "a,b" + "," * (MAX_ENTRIES - 2)}) == {"ids": ["a", "b"]}
    assert "argument ids" in refusal(check, {"ids": "a,b" + "," * (MAX_ENTRIES - 1)}).message
    assert check({"parts": ["a"] * MAX_ENTRIES}) == {"parts": ["a"] * MAX_ENTRIES}
    assert "argument parts" in refusal(check, {"parts": ["a"] * (MAX_ENTRIES + 1)}).message


@pytest.mark.parametrize(("later", "most"), [((), MAX_ENTRIES), (("given",), MAX_ROWS)])
def test_no_entry_of_a_list_that_nothing_takes_is_looked_at(later, most):
    rows = {"type": "array", "items": {"type": "string"}}
    check = check_of(later=later, given={"type": "object", "properties": {"rows": rows}} if later else rows)
    looked_at = []
    reader = check._later["given"].members["rows"] if later else check._values["given"]
    reader.items.read = looked_at.append

    def looks(entries):
        looked_at.clear()
        with contextlib.suppress(BadRequest):
            check({"given": {"rows": entries} if later else entries})
        return len(looked_at)

    assert looks(["a"] * most) == most
    assert looks(["a"] * (most + 1)) == 0


def test_what_an_error_shows_of_a_value_is_its_beginning():
    check = check_of(q={"type": "string"})
    assert "not [1, 2]." in refusal(check, {"q": [1, 2]}).message
    assert "not {'a': 1}." in refusal(check, {"q": {"a": 1}}).message
    nested = [[list(range(1_000))] * 1_000] * 1_000
    assert len(refusal(check, {"q": nested}).message) < 200


def test_a_field_beside_the_changes_is_refused_with_the_place_where_it_belongs():
    change = {"type": "object", "properties": {"website": {"type": "string"}}}
    refused = refusal(check_of(later=("changes",), changes=change), {"website": "https://a.example"})
    assert refused.hint.startswith("It is a member of changes.")


def test_a_keyword_that_would_not_be_enforced_is_an_error_of_the_program():
    with pytest.raises(ValueError, match="pattern"):
        check_of(q={"type": "string", "pattern": "x"})
