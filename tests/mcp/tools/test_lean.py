"""Answers are lean: summaries by default, everything on request, or only the fields that a call names."""

import json

import pytest

from make import published as make
from muniment.mcp.tools.answers import SUMMARY_CHARACTERS, Shape, form_of, shortened
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from services.mcp import public_server

SCHEMA = registry_schema("USD")
NO_LINKS = dict.fromkeys(("email", "phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube", "twitter"))
LONG = "Keeps the river clean, and the meadows beside it. " * 8
RICH = {
    "description": LONG,
    "body": LONG * 5,
    "icon": "/media/logo.svg",
    "socials": {**NO_LINKS, "twitter": "https://x.example/river"},
    "address": [{**dict.fromkeys(("address_1", "address_2", "state", "zip", "country")), "id": "a1", "city": "Ghent"}],
    "treasury": "$1.2M",
    "treasuryAmount": {"amount": "1249999.99", "currency": "USD"},
    "listedAt": "2024-03-31",
    "reviewedAt": make.AT,
    "sources": ["a-directory"],
    "grants": [{"id": 1}],
    "treasuryNote": "sum of grants received",
}
POOR = {"description": "A ferry.", "socials": NO_LINKS}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    file = tmp_path_factory.mktemp("lean") / "p.sqlite3"
    publisher = make.Publisher(file)
    publisher.publish(
        *(make.framework(n, name=f"River score {n}", description=LONG * 3) for n in range(1, 26)),
        *(
            make.person(n, bio=f"Person {n} works on rivers and is with the trust.", positions=(("Chair", "river"),))
            for n in range(1, 121)
        ),
        *(make.company(n, **(RICH if n % 2 else POOR), treasuryMinor=n) for n in range(1, 31)),
        make.company(31, "river", name="Company 30", teamSize=120),
    )
    reader = Reader(file)
    with public_server(reader) as asker:
        yield asker
    reader.close()
    publisher.close()


def answer(server, name, **arguments):
    return server.call(name, arguments)["structuredContent"]


def size(server, name, **arguments):
    return len(json.dumps(answer(server, name, **arguments), ensure_ascii=False, separators=(",", ":")).encode())


@pytest.mark.requirement("mcp.structured")
def test_the_summary_of_a_list_has_what_tells_items_apart(server):
    rich = next(
        each for each in answer(server, "list_companies", sort="treasury")["data"] if each["id"] == "company-29"
    )
    assert rich == {
        "id": "company-29", "name": "Company 29", "status": "active", "type": "corporation", "industry": "Software",
        "themes": ["open"], "raising": False, "treasury": "$1.2M", "treasuryNote": "sum of grants received",
        "description": shortened(LONG, SUMMARY_CHARACTERS), "descriptionTruncated": True, "listedAt": "2024-03-31",
        "socials": {"twitter": "https://x.example/river"}, "address": [{"id": "a1", "city": "Ghent"}],
        "treasuryMinor": 29,
    }  # fmt: skip
    poor = answer(server, "list_companies", ids=["company-2"])["data"][0]
    assert "socials" not in poor
    assert poor["createdAt"] == "March 2024"


@pytest.mark.requirement("mcp.structured")
def test_the_summary_of_one_item_keeps_its_texts_whole(server):
    data = answer(server, "get_company", slug="company-29")["data"]
    company = data["company"]
    assert (company["description"], company["body"]) == (LONG, LONG * 5)
    assert company["treasuryAmount"] == RICH["treasuryAmount"]
    assert not {"icon", "updatedAt", "sources"} & company.keys()
    assert "distribution" not in data
    assert (data["positions"], data["capTable"]) == ([], [])
    full = answer(server, "get_company", slug="company-29", detail="full")["data"]
    assert {"icon", "updatedAt", "sources"} <= full["company"].keys()
    assert full["distribution"] is None
    assert full["company"]["socials"]["email"] is None
    framework = answer(server, "get_framework", frameworkId="framework-1")["data"]
    assert framework["description"] == LONG * 3
    assert not {"company", "updatedAt", "companyDescription"} & framework.keys()


@pytest.mark.requirement("mcp.structured")
@pytest.mark.parametrize(
    ("tool", "arguments", "fields", "members"),
    [
        ("list_companies", {"pageSize": 1}, ["treasury"], {"id", "name"}),
        (
            "list_companies",
            {"ids": ["company-29"]},
            ["treasury", "sources"],
            {"id", "name", "treasury", "treasuryNote", "sources"},
        ),
        ("list_companies", {"ids": ["company-29"]}, ["body"], {"id", "name", "body"}),
        ("list_people", {"company": "river"}, ["bio"], {"name", "slug", "bio"}),
        ("get_person", {"slug": "person-1"}, ["bio"], {"name", "slug", "bio"}),
        ("list_frameworks", {}, ["isOpen"], {"frameworkId", "frameworkName", "kind", "isOpen"}),
        ("list_scoring_frameworks", {}, ["isOpen"], {"frameworkId", "frameworkName", "kind", "isOpen"}),
        ("get_scoring_framework", {"frameworkId": "framework-1"}, ["kind"], {"frameworkId", "frameworkName", "kind"}),
    ],
)
def test_fields_leave_what_a_call_names_and_the_names(server, tool, arguments, fields, members):
    data = answer(server, tool, **arguments, fields=fields)["data"]
    assert set(data[0] if isinstance(data, list) else data) == members


@pytest.mark.requirement("mcp.structured")
def test_fields_of_a_company_are_facts_and_parts(server):
    def members(**arguments):
        data = answer(server, "get_company", slug="company-29", **arguments)["data"]
        return set(data), set(data["company"])

    assert members(fields=["treasury"]) == ({"company"}, {"id", "name", "treasury", "treasuryNote"})
    assert members(fields=["positions", "body"]) == ({"company", "positions"}, {"id", "name", "body"})
    assert members(fields=["treasury"], parts=["capTable"]) == (
        {"company", "capTable"},
        {"id", "name", "treasury", "treasuryNote"},
    )
    assert members(fields=["distribution"], detail="full")[0] == {"company", "distribution"}


@pytest.mark.requirement("mcp.tool-failures")
@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("list_companies", {"fields": ["treasurry"]}, "Did you mean treasury? The fields are: id, name, symbol"),
        ("list_companies", {"fields": ["treasuryNotes"]}, "Did you mean treasuryNote?"),
        ("list_people", {"fields": ["positions", "age"]}, "The fields are: documentId, name, slug, bio, companyCount"),
        ("get_company", {"slug": "company-1", "fields": ["crew"]}, "positions, capTable, proposals, distribution"),
        ("get_framework", {"frameworkId": "framework-1", "fields": ["is_open"]}, "Did you mean isOpen?"),
        ("list_companies", {"fields": ["county"]}, "The fields are: id, name"),
    ],
)
def test_an_unknown_field_is_named_with_those_that_exist(server, tool, arguments, hint):
    error = answer(server, tool, **arguments)["error"]
    assert error["message"].startswith("There is no field '")
    assert error["hint"].startswith(hint) or hint in error["hint"].partition(": ")[2]


@pytest.mark.requirement("tools.public")
def test_lists_by_slugs_have_each_once_and_name_unknown_ones(server):
    ids = ["company-2", "company-2", "unknown", "company-29"]
    found = answer(server, "list_companies", ids=ids)
    assert [each["id"] for each in found["data"]] == ["company-29", "company-2"]
    assert found["unknownIds"] == ["unknown"]
    assert found["pagination"]["pageSize"] == 100
    assert [each["slug"] for each in answer(server, "list_people", ids=["person-5"])["data"]] == ["person-5"]


@pytest.mark.requirement("mcp.size")
def test_what_jobs_need_stays_within_its_bytes(server):
    """The bytes of typical questions; what they may take is a fifth more than they take."""
    assert size(server, "list_companies", sort="treasury", pageSize=10, fields=["treasury", "treasuryNote"]) < 1_150
    assert size(server, "list_companies", sort="treasury", pageSize=10) < 4_200
    assert size(server, "list_companies") < 10_000
    assert size(server, "list_frameworks", fields=["company"]) < 2_400
    assert size(server, "list_frameworks") < 7_500
    everybody = answer(server, "list_people", company="river", fields=["bio"], pageSize=200)
    assert len(everybody["data"]) == everybody["pagination"]["total"] == 120
    assert size(server, "list_people", company="river", fields=["bio"], pageSize=200) < 14_500
    assert size(server, "list_people", minCompanies=1, sort="companies", fields=["companyCount"]) < 1_900


@pytest.mark.requirement("mcp.size")
def test_a_page_of_two_hundred_is_one_answer(server):
    assert len(answer(server, "list_people", pageSize=200)["data"]) == 120


def test_results_of_one_name_are_told_apart_by_their_teams(server):
    results = answer(server, "search", query="Company 30")["results"][:2]
    assert {each["id"]: each["text"].partition(";")[0] for each in results} == {
        "company:river": "Team of 120",
        "company:company-30": "No team listed",
    }


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("A short one.", "A short one."),
        ("One two three four five", "One two three four…"),
        ("One\n\n- two   three", "One - two three"),
        ("潮" * 40, "潮" * 19 + "…"),
        ("Donaudampfschifffahrtsgesellschaft", "Donaudampfschifffah…"),
        ("One two three, four five", "One two three…"),
    ],
)
def test_a_long_text_is_cut_between_words(text, short):
    assert shortened(text, 20) == short


def test_the_members_that_summaries_lack_follow_from_the_schema():
    shape = Shape(SCHEMA.person, without=("companyCount",))
    person = {
        "documentId": "d1", "name": "Ada", "slug": "ada", "bio": LONG, "updatedAt": make.AT, "sources": ["x"],
        "positions": [{"title": "Chair", "company": {"id": "r", "slug": "r", "name": "River", "icon": "/r.svg"}}],
    }  # fmt: skip
    assert shape.whole(person, form_of({})) == {
        "name": "Ada", "slug": "ada", "bio": LONG,
        "positions": [{"title": "Chair", "company": {"slug": "r", "name": "River"}}],
    }  # fmt: skip
    assert shape.whole(person, form_of({"detail": "full"})) == person


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_companies", {}),
        ("list_companies", {"q": "company"}),
        ("list_people", {}),
        ("list_people", {"company": "river"}),
        ("list_people", {"title": "chair", "minCompanies": 1}),
        ("list_people", {"ids": ["person-1"]}),
        ("list_frameworks", {}),
        ("list_scoring_frameworks", {}),
    ],
)
def test_what_the_summary_of_a_list_item_has_its_full_form_has_too(server, tool, arguments):
    short = answer(server, tool, **arguments)["data"]
    whole = answer(server, tool, **arguments, detail="full")["data"]
    for summary, item in zip(short, whole, strict=False):
        assert {name for name in summary if not name.endswith("Truncated")} <= set(item)
    assert short
    assert whole
