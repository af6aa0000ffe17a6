"""
What the hint of a wrong call says can be done, succeeds, and loses nothing.

The wrong calls are made from the schemas of all tools of both servers. Each hint is read as an agent reads it: by a
rule that turns its words into the next call, or into a page to open.
"""

import copy
import json
import re
from base64 import b64encode
from typing import Any, NamedTuple

import pytest
from django.urls import Resolver404, resolve

from make import registry as make
from make.accounts import account
from make.calls import PUBLIC, sample
from make.documents import send, uploaded
from make.reports import do_jobs, finished, framework
from muniment.accounts import tokens
from muniment.documents.records import Upload
from muniment.kernel.actor import SCOPES
from muniment.registry.people import profiles
from services.manage import BASE, manage
from services.mcp import fictional_registry, modern, public_server

LONG = "z" * 3_000
MOST_STEPS = 3
ANOTHER_CALL = frozenset({"positions", "revert", "expectedTotals"})
"""Arguments beside which the right call would be another one."""


class Call(NamedTuple):
    """A call that fails: its tool, its arguments, and those of a call that succeeds."""

    tool: Any
    arguments: dict[str, Any]
    right: dict[str, Any]


class Page(NamedTuple):
    """A page that a hint names."""

    path: str


def without(arguments, *names):
    return {name: value for name, value in arguments.items() if name not in names}


def value_of(call, name, said):
    """Return a value for an argument, as the words of a hint describe it."""
    if name in call.right:
        return call.right[name]
    schema = call.tool.arguments[name]
    schema = schema.get("items", schema)
    for pattern, read in (
        (r"one of '(\w+)'", str),
        (r"a whole number (?:from|of at least) (\d+)", int),
        (r"(?:an amount|a date|an RFC 3339 moment) such as ([\w.$:-]+\w)", str),
        (r"([\d-]+), for example", str),
    ):
        if found := re.match(pattern, said):
            return read(found[1])
    if name in ANOTHER_CALL:
        return None
    if said.startswith("true or false"):
        return schema.get("default", True)
    if said.startswith(("a string", "a text", "a list", "an object", "a whole number")):
        return sample(name, schema)
    raise AssertionError(f"what is {said!r}?")


# ---------------------------------------------------------------------- the rules by which hints are read


def again_with(call, found):
    name, value = found[1], value_of(call, found[1], found[2])
    is_list = call.tool.arguments[name].get("type") == "array" and not isinstance(value, list)
    yield call.tool.name, {**call.arguments, name: [value] if is_list else value}


def unknown_argument(call, found):
    assert found[1] == (", ".join(call.tool.arguments) or "none")
    [unknown] = call.arguments.keys() - call.tool.arguments.keys()
    yield call.tool.name, without(call.arguments, unknown)


def meant_argument(call, found):
    [unknown] = call.arguments.keys() - call.tool.arguments.keys()
    name = found[1]
    schema = call.tool.arguments[name]
    value = None if name in ANOTHER_CALL else call.right.get(name, schema.get("default", sample(name, schema)))
    yield call.tool.name, {**without(call.arguments, unknown), name: value}


def fields(call, found):
    yield call.tool.name, {**call.arguments, "fields": found[1].split(", ")}


def meant_field(call, found):
    yield call.tool.name, {**call.arguments, "fields": [found[1]]}


def meant_document(call, found):
    [key] = call.right.keys() & {"slug", "frameworkId", "id"}
    yield call.tool.name, {**call.arguments, key: found[1]}


def named_call(call, found):
    yield found[1], {found[2]: found[3]}


def search_by_words(call, found):
    yield found[1], {"q": "company"}


def plain_call(call, found):
    yield found[1], {}


def own_listing(call, found):
    yield found[1], {"slug": call.right["slug"]}


def history(call, found):
    yield "get_my_company", {"slug": call.right["slug"], "parts": ["history"]}


def swapped(call, found):
    low, high = (name for name in call.arguments if name.endswith(("Min", "Max", "From", "To")))
    yield call.tool.name, {low: call.arguments[high], high: call.arguments[low]}


def latest(call, found):
    yield call.tool.name, {"since": found[1]}


def in_parts(call, found):
    [name] = (name for name, value in call.arguments.items() if isinstance(value, list))
    values, most = call.arguments[name], int(found[1])
    for first in range(0, len(values), most):
        yield call.tool.name, {**call.arguments, name: values[first : first + most]}


def with_words(call, found):
    yield call.tool.name, {**call.arguments, "q": "company"}
    yield call.tool.name, without(call.arguments, "sort")


def one_content(call, found):
    yield call.tool.name, without({**call.arguments, "text": "The accounts."}, "contentBase64")
    yield call.tool.name, without({**call.arguments, "contentBase64": "aGFyYm91cg=="}, "text")


def own_name(call, found):
    yield call.tool.name, {**call.arguments, "filename": call.right["filename"]}


def omitted_digest(call, found):
    yield call.tool.name, without(call.arguments, "sha256")


def another_size(call, found):
    yield call.tool.name, {**call.arguments, "sizeBytes": 20_000}


def new_link(call, found):
    yield found[1], {"companySlug": "harbour-cooperative", "filename": "a.txt", "dryRun": True}


def three_steps(call, found):
    yield found[1], {"companySlug": call.right["companySlug"], "filename": call.arguments["filename"], "dryRun": True}


def executed(call, found):
    yield found[1], {"runId": call.right["runId"], "dryRun": True}


def some_change(call, found):
    yield call.tool.name, {**without(call.arguments, "revert"), "changes": {"description": "A harbour."}}


def editable(call, found):
    known = call.tool.arguments["changes"]["properties"]
    assert found[1].split(", ") == list(known)
    kept = {name: value for name, value in call.arguments["changes"].items() if name in known}
    yield call.tool.name, {**call.arguments, "changes": kept}


def meant_member(call, found):
    changes, (outer, member) = call.arguments["changes"], found[1].split(".")
    [unknown] = changes.keys() - call.tool.arguments["changes"]["properties"]
    yield call.tool.name, {**call.arguments, "changes": {outer: {member: changes[unknown]}}}


def as_object(call, found):
    changes = copy.deepcopy(call.arguments["changes"])
    *places, last = (int(each) if each.isdigit() else each for each in re.findall(r"\w+", found[1]))
    value = changes
    for each in places:
        value = value[each]
    value[last] = json.loads(found[2])
    yield call.tool.name, {**call.arguments, "changes": changes}


def added_rows(call, found):
    changes = {name: {"add": change["set"]} for name, change in call.arguments["changes"].items()}
    yield call.tool.name, {**call.arguments, "changes": changes}


def lowered_share(call, found):
    changes = {name: {**change, "set": [json.loads(found[1])]} for name, change in call.arguments["changes"].items()}
    yield call.tool.name, {**call.arguments, "changes": changes}


def totals(call, found):
    yield call.tool.name, {**call.arguments, "expectedTotals": dict.fromkeys(found[1].split(", "), 0)}


def present_version(call, found):
    yield call.tool.name, {**call.arguments, "expectedVersion": int(found[1])}


def again(call, found):
    do_jobs()
    yield call.tool.name, call.right


def page(call, found):
    yield Page(found[1])


def all_tables(call, found):
    yield "query", {"sql": found[1]}


RULES = {
    r"(SELECT name, sql FROM sqlite_schema) lists": all_tables,
    r"Call again with (\w+)(?:\[\d+\])?(?: as|:) (.+?)\.(?:$| )": again_with,
    r"Did you mean (\w+)\? The arguments are": meant_argument,
    r"(?<!\? )The arguments are: (.*)\.$": unknown_argument,
    r"Did you mean (\w+)\? The fields are": meant_field,
    r"The fields are: (.*)\.$": fields,
    r"Did you mean ([\w:-]+) \(": meant_document,
    r"Call (?!again)(\w+) with (\w+) '?([\w.:-]+\w)'?": named_call,
    r"Call (?!again)(\w+) with q\b": search_by_words,
    r"Call (list_\w+) for": plain_call,
    r"(list_company_form_options) lists": plain_call,
    r"(get_my_company) shows the rows": own_listing,
    r"(?:get_my_company) with parts \[\"history\"\]": history,
    r"both swapped": swapped,
    r"date or time; the latest nextSince is (\d+)": latest,
    r"at most (\d+) of them, then with the others": in_parts,
    r"Give q, or omit sort": with_words,
    r"Use text for a text file, contentBase64": one_content,
    r"Send the file's own name": own_name,
    r"Accepted types: ": own_name,
    r"or omit it\.": omitted_digest,
    r"Send a file with content": another_size,
    r"Make it smaller, or split it": another_size,
    r"new link with (create_document_upload)": new_link,
    r"Call (create_document_upload), run": three_steps,
    r"Execute it with (execute_report_run)": executed,
    r"Send changes with the fields": some_change,
    r"Editable fields: (.*)\.$": editable,
    r"Did you mean (\w+\.\w+)\? Editable": meant_member,
    r"Send (\S+) as an object such as (\{.*\})\. Its members are": as_object,
    r"New rows go into add\.": added_rows,
    r"lower others in the same call, such as by \"set\": \[(\{.*\})\]": lowered_share,
    r"Lists with totals: (.*)\.$": totals,
    r"repeat the change with expectedVersion (\d+)": present_version,
    r"Call again in a few seconds": again,
    rf"{re.escape(BASE)}(/(?:manage|accounts)[\w/-]*)": page,
    rf"GET {re.escape(BASE)}(/api/v1/\w+)": page,
}
FOR_PEOPLE = (
    # What there is to read, or to wait for; no call follows.
    "Call search for valid ids.",
    "Call again with words of a name, a symbol, a domain or a topic.",
    'Send {"confirm": [ids], "decline": [ids], "end": [ids]}.',
    "Send one of them in each call.",
    "Reload it: someone else may have decided.",
    "Save your changes without submitting. Changes that need review go to a reviewer by themselves.",
    "Send shares that add up to at most 100 %.",
    "To withdraw a change that waits for review, set the field to its published value.",
)


def next_steps(call, hint):
    """Return the calls and pages that a hint names."""
    steps = []
    for pattern, read in RULES.items():
        for found in re.finditer(pattern, hint):
            steps += read(call, found)
    return steps


def is_page(path):
    if path.startswith("/api/v1/"):
        return path.removeprefix("/api/v1/") in {"people", "companies", "frameworks"}
    try:
        resolve(path)
    except Resolver404:
        return False
    return True


# ---------------------------------------------------------------------- the wrong calls


def wrong_values(tool, name, schema):
    """Yield values that an argument does not take."""
    yield {"x": 1}
    yield [[1]]
    if name not in {"text", "contentBase64"}:
        yield LONG
    if schema.get("type") == "integer":
        yield "soon"
        if "minimum" in schema:
            yield schema["minimum"] - 1
            yield schema["maximum"] + 1
    if schema.get("type") == "array":
        yield ["nmae"]
        yield [f"x{number}" for number in range(101)]
    if schema.get("type") == "boolean" or "enum" in schema:
        yield "yes"


def wrong_keys():
    """Yield texts that name no document of the kind that is asked for."""
    yield from ("", "no-such-thing", "compny-1", "https://other.example/companies/x")
    for base in (BASE, "https://registry.example"):
        for path in ("companies/company-1", "people/person-1", "frameworks/framework-1", "imprint"):
            yield f"{base}/{path}"


def wrong_calls(tool, right, more):
    """Yield calls of *tool* that may fail, made from *right* ones."""
    yield Call(tool, {**right, "bogus": 1}, right)
    for name, schema in tool.arguments.items():
        misspelled = {**without(right, name), f"{name}z": 1}
        yield Call(tool, misspelled, right)
        if name in tool.required:
            yield Call(tool, without(right, name), right)
            yield Call(tool, {**right, name: None}, right)
            for value in wrong_keys():
                yield Call(tool, {**right, name: value}, right)
        for value in wrong_values(tool, name, schema):
            yield Call(tool, {**right, name: value}, right)
    for further in more:
        yield Call(tool, {**right, **further}, right)


PUBLIC_CALLS: dict[str, list[dict[str, Any]]] = {
    "list_companies": [
        {"sort": "relevance"},
        {"treasuryMin": "5M", "treasuryMax": "1"},
        {"teamMin": 5, "teamMax": 1},
        {"listedFrom": "2026-01-01", "listedTo": "2025-01-01"},
        {"listedFrom": "soon"},
        {"updatedSince": "soon"},
        {"treasuryMin": "much"},
        {"city": [f"c{number}" for number in range(51)]},
        {"page": 999},
    ],
    "list_people": [{"sort": "relevance"}, {"page": 999}],
    "changes_since": [{"since": "99999999"}, {"since": "soon"}],
    "fetch": [{"id": "company:nope"}, {"id": "company:compny-1"}, {"id": "bogus:company-1"}],
    "search": [{"query": " "}],
}
OWNER_CALLS: dict[str, list[dict[str, Any]]] = {
    "update_my_company": [
        *(
            {"changes": change}
            for change in (
                {"icon": "x"},
                {"descripton": "x"},
                {"positions": [{"title": "x"}]},
                {"description": "x" * 90_000},
                {"type": [5]},
                {"status": "zz"},
                {"website": "x"},
                {"socials": {"myspace": "x"}},
                {"positions": {"set": [{"id": "no"}]}},
                {"capTable": {"add": [{"percentage": 101}]}},
                {"name": None},
                {"positions": {"add": [{"person": {"slug": "nope"}}]}},
                {"fundingRound": {"opened": "soon"}},
                {"treasury": "lots"},
                {"linkedin": "https://people.example/company/harbour"},
                {"positions": {"add": [{"title": "Chair", "person": "Ada Pell"}]}},
                {"positions": {"add": [{"title": "Chair", "person": None}]}},
                {"positions": {"add": ["Ada Pell"]}},
                {"proposals": {"add": ["Buy a barge"]}},
                {"socials": "https://people.example/company/harbour"},
                {"capTable": {"set": [{"name": "Fund", "percentage": 0.1}]}},
                {"capTable": {"add": [{"name": "Fund", "percentage": 30}]}},
                {"distribution": {"pools": [{"name": "Fund", "percentage": 60}, {"name": "Team", "percentage": 50}]}},
            )
        ),
        {"expectedVersion": 99},
        {"changes": None},
        {"revert": 99_999},
        {"changes": {}, "revert": 99_999},
    ],
    "update_my_profile": [{"changes": {"nmae": "x"}}, {"changes": None}, {"changes": None, "revert": 9}],
    "upload_document": [
        {"text": "x" * 20_000},
        {"contentBase64": "eA=="},
        {"filename": "a.exe"},
        {"text": None},
    ],
    "create_document_upload": [{"sizeBytes": 10**12}, {"filename": "a.exe"}, {"sha256": "zz"}, {"sizeBytes": 0}],
    "get_report": [{}],
    "submit_for_review": [{"expectedVersion": 99}],
}


class Server:
    """One of the two servers, with the calls of each tool that succeed."""

    def __init__(self, offer, call, rights, more):
        self.offer, self.call, self.more = offer, call, more
        self.tools, self.performed = {tool.name: tool for tool in offer.tools}, 0
        self.rights = {tool.name: rights(tool) for tool in offer.tools}

    def failures(self):
        """Yield the wrong calls that fail, each with its error."""
        for tool in self.offer.tools:
            for wrong in wrong_calls(tool, self.rights[tool.name], self.more.get(tool.name, [])):
                answer = self.call(tool.name, wrong.arguments)
                if "error" in answer:
                    yield wrong, answer["error"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("hints") / "p.sqlite3") as made:
        yield made


@pytest.fixture
def public(reader):
    with public_server(reader) as made:
        yield Server(
            made.server.offer,
            lambda name, arguments: made.call(name, arguments)["structuredContent"],
            lambda tool: PUBLIC.get(tool.name, {}),
            PUBLIC_CALLS,
        )


def begun(made, token, slug):
    """Return the id of an upload that only has to be completed."""
    found = made.data(token, "create_document_upload", companySlug=slug, filename="a.txt", sizeBytes=20)
    send(Upload(found["uploadId"], found["url"], "", "", 20, None), b"The annual accounts.")
    return found["uploadId"]


@pytest.fixture
def owner(reader, db, settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with manage(reader=reader) as made:
        actor = account("owner@harbour.example").actor("web")
        token = tokens.create_token(actor, "laptop", permitted=SCOPES).text
        held = [{"name": "Members", "percentage": 60}, {"name": "Reserve", "percentage": 40}]
        company, of = make.published(actor, name="Harbour Cooperative", capTable=held), framework(2)
        values = {
            "slug": company.slug,
            "companySlug": company.slug,
            "frameworkId": of,
            "documentId": uploaded(actor, company.slug, b"The annual accounts stand open.").pk,
            "runId": made.data(token, "start_report_run", companySlug=company.slug, frameworkId=of)["runId"],
            "filename": "a.txt",
            "sql": PUBLIC["query"]["sql"],
        }
        values |= {"otherRunId": values["runId"], "uploadId": begun(made, token, company.slug)}
        profiles.create_profile(actor, profiles.ProfileChange({"name": "Ada Quay"}))
        report, draft = finished(actor), make.draft(actor, name="Harbour Draft")

        def rights(tool):
            found = {name: values[name] for name in tool.required}
            if tool.name == "get_framework":
                found["frameworkId"] = "framework-1"  # of the public file
            if tool.name in {"get_report", "share_report"}:
                found["runId"] = report.run_id
            if tool.name == "submit_for_review":
                found["slug"] = draft.slug
            if "dryRun" in tool.arguments:
                found["dryRun"] = True
            if tool.name == "upload_document":
                found["text"] = "The annual accounts."
            if tool.name == "update_my_company":
                found["changes"] = {"description": "A harbour."}
            if tool.name == "update_my_profile":
                found["changes"] = {"bio": "About me."}
            return found

        def call(name, arguments):
            answer = made.ask(token, modern("tools/call", {"name": name, "arguments": arguments}))
            return answer.result["structuredContent"]

        yield Server(made.asker.server.offer, call, rights, OWNER_CALLS)


CANNOT = frozenset({"submit_application", "compare_reports"})
"""Owner tools whose right call needs a program or two reports; here it fails by a refusal of its operation."""


def follow(server, call, error, steps_left=MOST_STEPS):
    """Yield what is wrong with the hint of an *error*, and with those to which it leads; count the steps."""
    hint = error["hint"]
    steps = next_steps(call, hint)
    if not steps and hint not in FOR_PEOPLE:
        yield f"nothing follows from {hint!r}"
    for step in steps:
        server.performed += 1
        if isinstance(step, Page):
            if not is_page(step.path):
                yield f"there is no page {step.path}"
            continue
        name, arguments = step
        answer = server.call(name, arguments)
        if "error" not in answer or (name in CANNOT and arguments == server.rights[name]):
            continue
        if answer["error"] == error or not steps_left:
            yield f"{hint[:200]!r} led to {str(step)[:200]}: {answer['error']['message'][:200]}"
        else:
            next_call = Call(server.tools[name], arguments, server.rights[name])
            yield from follow(server, next_call, answer["error"], steps_left - 1)


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("name", ["public", "owner"])
def test_what_a_hint_says_succeeds(request, name):
    server = request.getfixturevalue(name)
    faults = [
        f"{wrong.tool.name} {str(wrong.arguments)[:150]}: {fault}"
        for wrong, error in server.failures()
        for fault in follow(server, wrong, error)
    ]
    assert not faults, f"{len(faults)} of {server.performed}\n" + "\n".join(faults[:40])
    assert server.performed > 400


NAMED = re.compile(r"\b(?:again with|omit|Give|without|argument|Leave out) (?:the )?([a-z]\w*)\b|\b([a-z]+[A-Z]\w*)\b")
"""What a hint names as an argument: after such a word, or by its writing."""
NO_NAMES = frozenset({"it", "a", "at", "both", "only", "words", "valid", "what", "everything", "person"})


def members(schema):
    """Yield the names of all members that a schema declares."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from members(inner)
    for key in ("anyOf", "items"):
        inner = schema.get(key, [])
        for each in inner if isinstance(inner, list) else [inner]:
            yield from members(each)


@pytest.mark.parametrize("name", ["public", "owner"])
def test_hints_name_only_arguments_that_there_are(request, name):
    server = request.getfixturevalue(name)
    tools = server.tools
    wrong, walked = set(), 0
    for call, error in server.failures():
        known = set()
        for tool in (call.tool, *(tools[each] for each in re.findall(r"\w+", error["hint"]) if each in tools)):
            known |= {*members(tool.input_schema), *members(tool.output_schema)}
        if "The fields are" in error["hint"]:
            continue  # fields of answers
        for pair in NAMED.findall(error["hint"].replace(BASE, "")):
            named = "".join(pair)
            walked += 1
            if named not in known | NO_NAMES:
                wrong.add(f"{call.tool.name}: {named} in {error['hint'][:200]!r}")
    assert not wrong, "\n".join(sorted(wrong))
    assert walked > 100


@pytest.mark.requirement("tools.manage.documents")
@pytest.mark.parametrize("size", [8_193, 20_000, 400_000])
@pytest.mark.parametrize("member", ["text", "contentBase64"])
def test_a_text_that_is_too_large_is_led_to_the_upload_that_takes_it_whole(owner, size, member):
    text = ("The annual accounts stand open. " * (size // 32 + 1))[:size]
    right = owner.rights["upload_document"]
    given = {"text": text} if member == "text" else {"contentBase64": b64encode(text.encode()).decode()}
    error = owner.call("upload_document", {**without(right, "text", "dryRun"), **given})["error"]
    assert "create_document_upload" in error["hint"]
    assert not re.search(r"characters|shorten|cut|smaller|split", error["hint"] + error["message"])
    asked = {"companySlug": right["companySlug"], "filename": right["filename"], "sizeBytes": size}
    link = owner.call("create_document_upload", asked)["data"]
    send(Upload(link["uploadId"], link["url"], "", "", size, None), text.encode())
    stored = owner.call("complete_document_upload", {"uploadId": link["uploadId"]})["data"]
    assert stored["sizeBytes"] == size


@pytest.mark.parametrize("name", ["public", "owner"])
def test_a_page_past_the_end_is_empty_and_says_how_many_there_are(request, name):
    server = request.getfixturevalue(name)
    for tool in server.offer.tools:
        if {"page", "pageSize"} <= tool.arguments.keys():
            found = server.call(tool.name, {"page": 999})
            assert (found["data"], found["nextPage"]) == ([], None)
            first = server.call(tool.name, {"page": 1, "pageSize": 1})
            assert found["pagination"]["total"] == first["pagination"]["total"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("list_companies", {"listedFrom": "2090-01-01"}),
        ("list_companies", {"listedFrom": "2090-01-01", "hasToken": True}),
        ("list_companies", {"teamMin": 10**8}),
        ("list_companies", {"treasuryMin": "900B", "q": "company"}),
        ("list_people", {"minCompanies": 99}),
    ],
)
def test_what_an_empty_list_says_to_leave_out_is_an_argument(public, tool, given):
    found = public.call(tool, given)
    assert found["data"] == []
    left = re.split(" or |, ", re.search(r"(?:Leave out|matches all of) ([\w, ]+)\.", found["hint"])[1])
    assert set(left) <= public.tools[tool].arguments.keys()
    assert public.call(tool, without(given, *left))["data"]
