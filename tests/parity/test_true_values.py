"""Values that cannot be true: import, form and tool refuse them with the same words, and none is published."""

import json
from html import unescape
from itertools import count

import pytest
from click.testing import CliRunner

from make.accounts import account, signed_in
from make.registry import document
from muniment.accounts import tokens
from muniment.cli import main
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company
from muniment.registry.review import workflow
from muniment.schema.objects import registry_schema
from services.manage import manage

pytestmark = pytest.mark.django_db

BASE = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "description": "Tides."}
SCHEMA = registry_schema("USD")
RIGHT_TO_LEFT = "\u202e"
DATE = "must be a date such as 2024-03-31, not {!r}".format
LINK = "must be a web address such as https://example.org, not {!r}".format
EMAIL = "must be an email address such as office@example.org, not {!r}".format
PROFILE = "must be a web address such as https://example.org or the name of a profile, not {!r}".format
MONEY = "must be an amount such as $1.2M, of at most $1000T, not {!r}".format
CONTROL = "contains the control character U+{:04X}".format
BIDI = "contains the bidirectional character U+{:04X}".format


def field(name, value, reason):
    return pytest.param({name: value}, f"{name} {reason}", id=f"{name}={str(value)[:30]!a}")


def social(name, value, reason):
    return pytest.param({"socials": {name: value}}, f"socials.{name} {reason}", id=f"{name}={value!a}")


def proposal(member, value, reason):
    row = {"title": "Plant willows", "votes": {"for": 3, "against": 1}}
    if member in row["votes"]:
        row["votes"][member] = value
        member = f"votes.{member}"
    else:
        row[member] = value
    return pytest.param({"proposals": [row]}, f"proposals[0].{member} {reason}", id=f"{member}={value!a}")


def pools(*shares, name="Pool", reason):
    rows = [{"name": f"{name} {n}", "percentage": share} for n, share in enumerate(shares)]
    return pytest.param({"distribution": {"pools": rows}}, f"distribution.pools{reason}", id=f"pools {name!a} {shares}")


def holders(*shares, reason, **members):
    rows = [{"name": f"Holder {n}", "address": f"0x{n}", "percentage": share} for n, share in enumerate(shares)]
    rows[0] |= members
    return pytest.param({"capTable": rows}, f"capTable{reason}", id=f"capTable {shares} {members!a}")


def position(reason, title="Chair", name="Mara Moss"):
    row = {"title": title, "person": {"name": name}}
    return pytest.param({"positions": [row]}, f"positions[0].{reason}", id=f"position {title!a} {name!a}")


IMPOSSIBLE = [
    field("name", "Har\nbour", CONTROL(0x0A)),
    field("name", f"Har{RIGHT_TO_LEFT}bour", BIDI(0x202E)),
    field("name", "\u2066Harbour\u2069 Works", BIDI(0x2066)),
    field("name", "Har\x07bour", CONTROL(0x07)),
    field("symbol", "H\u200fB", BIDI(0x200F)),
    field("symbol", "H\tB", CONTROL(0x09)),
    field("type", "co\u202dop", BIDI(0x202D)),
    field("industry", "Wa\nter", CONTROL(0x0A)),
    field("orgKind", "pro\u2028tocol", CONTROL(0x2028)),
    field("website", "javascript:alert(1)", LINK("javascript:alert(1)")),
    field("website", "ftp://tidal.example", LINK("ftp://tidal.example")),
    field("website", "tidal", LINK("tidal")),
    field("website", "https//tidal.example", LINK("https//tidal.example")),
    field("website", "https://tidal.example:99999999999/x", LINK("https://tidal.example:99999999999/x")),
    field("website", "https://ti dal.example", LINK("https://ti dal.example")),
    field("website", "https://", LINK("https://")),
    field("website", f"https://tidal.example/{RIGHT_TO_LEFT}", LINK(f"https://tidal.example/{RIGHT_TO_LEFT}")),
    field("dao_website", "data:text/html,x", LINK("data:text/html,x")),
    field("dao_website", "//tidal", LINK("//tidal")),
    field("treasury", "$" + "9" * 1_000_000, "has 1,000,001 characters; at most 40 are allowed"),
    field("treasury", "$9999999T", MONEY("$9999999T")),
    field("treasury", "-5", MONEY("-5")),
    field("treasury", "NaN", MONEY("NaN")),
    field("teamSize", -1, "must be a whole number from 0 to 2,147,483,647, not -1"),
    field("teamSize", 10**12, "must be a whole number from 0 to 2,147,483,647, not 1000000000000"),
    pytest.param({"themes": ["a", "a"]}, "themes[1] is there twice: 'a'", id="themes twice"),
    pytest.param({"themes": ["a", "de\u202efi"]}, f"themes[1] {BIDI(0x202E)}", id="themes bidi"),
    social("email", "nope", EMAIL("nope")),
    social("email", "a@b@tidal.example", EMAIL("a@b@tidal.example")),
    social("email", "office@tidal", EMAIL("office@tidal")),
    social("email", "info@tidal,example", EMAIL("info@tidal,example")),
    social("email", f"evil{RIGHT_TO_LEFT}@tidal.example", BIDI(0x202E)),
    social("twitter", "javascript:alert(1)", PROFILE("javascript:alert(1)")),
    social("linkedin", "hhttps://tidal.example", PROFILE("hhttps://tidal.example")),
    social("facebook", "//tidal", PROFILE("//tidal")),
    social("youtube", "vbscript:x", PROFILE("vbscript:x")),
    social("instagram", f"tidal{RIGHT_TO_LEFT}", BIDI(0x202E)),
    social("phone_number", "+1\n555", CONTROL(0x0A)),
    proposal("for", -5, "must be at least 0, not -5"),
    proposal("against", -0.5, "must be at least 0, not -0.5"),
    proposal("for", 10**41, f"must be at most 1e+40, not {10**41}"),
    proposal("for", 10**60, f"must be at most 1e+40, not {10**60}"),
    proposal("endDate", "next week", DATE("next week")),
    proposal("endDate", "2025-02-30", DATE("2025-02-30")),
    proposal("endDate", "0001-01-01", DATE("0001-01-01")),
    proposal("endDate", "9999-99-99", DATE("9999-99-99")),
    proposal("endDate", "31.12.2025", DATE("31.12.2025")),
    proposal("endDate", "2025-06-30T25:00:00Z", DATE("2025-06-30T25:00:00Z")),
    proposal("title", f"Plant{RIGHT_TO_LEFT} willows", BIDI(0x202E)),
    proposal("title", "Plant\nwillows", CONTROL(0x0A)),
    pools(-3, reason="[0].percentage must be at least 0, not -3"),
    pools(130, reason="[0].percentage must be at most 100, not 130"),
    pools(10**60, reason=f"[0].percentage must be at most 100, not {10**60}"),
    pools(60, 70, reason=" has shares that add up to 130 %; at most 100 % are allowed"),
    pools(80, 80, reason=" has shares that add up to 160 %; at most 100 % are allowed"),
    pools(50, 50, 0.6, reason=" has shares that add up to 100.6 %; at most 100 % are allowed"),
    pools(1, name=f"Com{RIGHT_TO_LEFT}munity", reason=f"[0].name {BIDI(0x202E)}"),
    pools(1, name="Com\x0bmunity", reason=f"[0].name {CONTROL(0x0B)}"),
    holders(-1, reason="[0].percentage must be at least 0, not -1"),
    holders(101, reason="[0].percentage must be at most 100, not 101"),
    holders(70, 60, reason=" has shares that add up to 130 %; at most 100 % are allowed"),
    holders(1, name=f"Whale{RIGHT_TO_LEFT}", reason=f"[0].name {BIDI(0x202E)}"),
    holders(1, address="0x\u200e1", reason=f"[0].address {BIDI(0x200E)}"),
    holders(1, tokens="5\x070", reason=f"[0].tokens {CONTROL(0x07)}"),
    position(f"title {BIDI(0x202E)}", title=f"Chair{RIGHT_TO_LEFT}"),
    position(f"title {CONTROL(0x85)}", title="Chair\x85man"),
    position(f"person.name {BIDI(0x2066)}", name="Mara\u2066 Moss"),
]
BY_TOOL_AND_IMPORT = [
    pytest.param({"themes": ["a", ""]}, "themes[1] must not be empty", id="an empty theme"),
    pytest.param({"themes": [" "]}, "themes[0] must not be empty", id="a blank theme"),
    pytest.param(
        {"proposals": [{"id": "1", "title": "A"}, {"id": "1", "title": "B"}]},
        "proposals[1].id '1' is also the id of another row",
        id="one id twice",
    ),
    pytest.param(
        {"proposals": [{"title": "A", "votes": {"for": int("9" * 300)}}]},
        f"proposals[0].votes.for must be at most 1e+40, not {'9' * 79}…",
        id="votes of 300 digits",
    ),
    pools(1e308, reason="[0].percentage must be at most 100, not 1e+308"),
    pytest.param(
        {"distribution": {"method": "vote", "more": [[[[[[[[["deep"]]]]]]]]]}},
        "distribution.more is nested too deeply; at most 8 levels are allowed",
        id="nine levels",
    ),
]
_numbers = count(1)


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def server():
    with manage() as made:
        yield made


def listing(owner):
    slug = f"tidal-{next(_numbers)}"
    listings.create_company(owner.actor("web"), CompanyChange(BASE), slug=slug)
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(COMMAND, slug)
    return slug


def token_of(who):
    return tokens.create_token(who.actor("web"), "laptop", permitted=SCOPES).text


def rows_of(name, columns, rows):
    return {f"{name}-{n}-{column}": row.get(column, "") for n, row in enumerate(rows) for column in columns}


def form_of(change):  # noqa: PLR0911 - one for each kind of field
    """Return the step of the form that has the changed field, and what a browser posts there."""
    (name, value), *_ = change.items()
    match name:
        case "name" | "symbol" | "type" | "industry" | "orgKind" | "website":
            return "basics", {**BASE, "status": "", **change}
        case "treasury" | "teamSize" | "description":
            return "about", {"description": "Tides.", **change}
        case "themes":
            return "about", {"description": "Tides.", "themes": ", ".join(value)}
        case "dao_website":
            return "links", change
        case "socials":
            return "links", {f"socials_{network}": text for network, text in value.items()}
        case "positions":
            rows = [{"title": row["title"], **row["person"]} for row in value]
            return "team", rows_of("positions", ("name", "slug", "title"), rows)
        case "distribution":
            return "token", rows_of("pools", ("name", "percentage"), value["pools"])
        case "proposals":
            rows = [{**row, **row.get("votes", {})} for row in value]
            return "token", rows_of("proposals", ("title", "status", "for", "against", "endDate"), rows)
        case _:
            return "token", rows_of("capTable", ("name", "address", "tokens", "percentage"), value)


def by_tool(server, owner, change):
    slug = listing(owner)
    before = document("company", slug)
    error = server.error(token_of(owner), "update_my_company", slug=slug, changes=change)
    assert error["code"] == "bad_request"
    assert document("company", slug) == before
    return error["message"]


def by_import(tmp_path, owner, change):
    """Import a listing with the value; return what is said. What is published breaks no rule."""
    slug = listing(owner)
    listed = Company.objects.get(slug=slug).listed_on.isoformat()
    facts = {name: value for name, value in change.items() if name in SCHEMA.company.by_name}
    parts = {name: value for name, value in change.items() if name not in facts}
    line = {"company": {"id": slug, "listedAt": listed, **BASE, **facts}, **parts}
    (tmp_path / "companies.jsonl").write_text(json.dumps(line))
    told = CliRunner().invoke(main, ["import", str(tmp_path)])
    assert told.exit_code == 1, told.output
    shown = document("company", slug)
    assert list(SCHEMA.bundle.breaches(shown, ())) == []
    assert {name: shown["company"][name] for name in BASE} == BASE
    return " ".join(told.output.split())


@pytest.mark.parametrize(("change", "words"), IMPOSSIBLE)
def test_a_value_that_cannot_be_true_is_refused_everywhere_with_the_same_words(server, owner, tmp_path, change, words):
    assert by_tool(server, owner, change) == f"{words}."
    slug = listing(owner)
    before = document("company", slug)
    step, form = form_of(change)
    answer = signed_in(owner).post(f"/manage/companies/{slug}/edit/{step}", form)
    page = unescape(answer.content.decode())
    reason = words.partition(" ")[2]
    assert answer.status_code == 422, page
    assert reason[1:] in page, page[page.find("<main") :][:3500]
    assert document("company", slug) == before
    assert words in by_import(tmp_path, owner, change)


@pytest.mark.parametrize(("change", "words"), BY_TOOL_AND_IMPORT)
def test_what_the_form_cannot_say_is_refused_by_tool_and_import(server, owner, tmp_path, change, words):
    assert by_tool(server, owner, change) == f"{words}."
    assert words in by_import(tmp_path, owner, change)


def test_the_table_has_sixty_values():
    assert len({str(case.values[0]) for case in IMPOSSIBLE}) >= 60


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Мара and Söhne 夜明け 👩‍👧", "website": "https://münchen.example:8443/a?b=c#d"},
        {"socials": {"email": "ö.moss@tidal.example", "twitter": "@tidal", "linkedin": "linkedin.com/company/tidal"}},
        {"proposals": [{"title": "A", "votes": {"for": 97118903.526799, "against": 0}, "endDate": "2025-06-30"}]},
        {"proposals": [{"title": "A", "endDate": "2025-06-30T10:00:00Z"}]},
        {"distribution": {"pools": [{"name": f"Third {n}", "percentage": 33.5} for n in range(3)]}},
        {"capTable": [{"name": "All", "percentage": 100}, {"name": "None", "percentage": 0}, {"address": "0x1"}]},
        {"distribution": {"method": "vote", "more": [[[[[["eight levels"]]]]]]}},
    ],
    ids=str,
)
def test_what_can_be_true_is_published_as_it_was_given(server, owner, change):
    slug = listing(owner)
    done = server.call(token_of(owner), "update_my_company", slug=slug, changes=change)
    assert done["data"]["version"] == 4, done
