"""What each resource holds, over the whole demo registry."""

import json
from urllib.parse import quote

import pytest

from contract.shapes import BUNDLE, COMPANY, COMPANY_OF_POSITION, FRAMEWORK, PERSON, STATS, check, check_error
from muniment.kernel.wire import format_money, parse_money
from services.items import without_ids
from services.product import DEMO

SECRETS = ("Names without roles count", "assessment-spec/1", "capsOverall", "anyPhrase", "governance.board")


def rows(name):
    return [json.loads(line) for line in (DEMO / f"{name}.jsonl").read_text().splitlines()]


def every(demo, kind):
    return demo.data_of(f"/api/v1/{kind}?pageSize=100")


@pytest.mark.requirement("company.fields")
@pytest.mark.requirement("company.status")
@pytest.mark.requirement("company.socials")
@pytest.mark.requirement("company.address")
@pytest.mark.requirement("absent.null")
def test_every_company_of_the_list_has_the_shape_of_the_document(demo):
    companies = every(demo, "companies")
    assert len(companies) == len(rows("companies"))
    for company in companies:
        check(company, COMPANY)
    assert {company.get("status") for company in companies} == {"active", "upcoming", "inactive", None}
    assert {type(company["socials"]) for company in companies} == {dict, type(None)}
    assert {type(company["address"]) for company in companies} == {list, type(None)}


def _plain(distribution):
    """Return a distribution without the ids of its pools, as the import file has it."""
    if distribution is None or "pools" not in distribution:
        return distribution
    return {**distribution, "pools": without_ids(distribution["pools"])}


@pytest.mark.requirement("companies.detail")
@pytest.mark.requirement("envelope.single")
@pytest.mark.requirement("distribution.fields")
@pytest.mark.requirement("proposal.fields")
@pytest.mark.requirement("proposal.status")
@pytest.mark.requirement("position.fields")
@pytest.mark.requirement("cap-table.fields")
@pytest.mark.requirement("absent.lists")
def test_every_bundle_has_the_shape_of_the_document_and_all_that_was_imported(demo):
    statuses = set()
    for row in rows("companies"):
        slug = row["company"]["id"]
        answer = demo.get(f"/api/v1/companies/{quote(slug)}")
        assert answer.status == 200
        assert list(answer.json()) == ["data"]
        bundle = answer.json()["data"]
        check(bundle, BUNDLE)
        assert bundle["company"]["id"] == slug
        assert _plain(bundle["distribution"]) == row.get("distribution")
        assert without_ids(bundle["capTable"]) == row.get("capTable", []), slug
        assert bundle["proposals"] == row.get("proposals", []), slug
        assert [(p["title"], p["person"]["slug"]) for p in bundle["positions"]] == [
            (p["title"], p["person"]["slug"]) for p in row.get("positions", [])
        ]
        statuses |= {proposal["status"] for proposal in bundle["proposals"]}
    assert statuses == {"active", "passed", "failed", "pending"}


@pytest.mark.requirement("absent.left-out")
def test_an_optional_member_that_is_not_known_is_left_out_and_never_null(demo):
    nullable = {"body", "socials", "address"}
    for company in every(demo, "companies"):
        assert not {key for key, value in company.items() if value is None} - nullable, company["id"]
    quiet = demo.data_of("/api/v1/companies/a-very-quiet-company")["company"]
    assert not {"symbol", "treasury", "website", "industry", "description", "icon", "teamSize"} & set(quiet)


@pytest.mark.requirement("company.symbol")
def test_a_company_with_a_token_has_its_symbol(demo):
    symbols = {c["id"]: c.get("symbol") for c in every(demo, "companies")}
    assert symbols == {row["company"]["id"]: row["company"].get("symbol") for row in rows("companies")}


@pytest.mark.requirement("import.open-objects")
def test_members_that_the_document_does_not_list_are_kept_and_served(demo):
    observatory = demo.data_of("/api/v1/companies/northcairn")["company"]
    assert observatory["telescopes"][0] == {"name": "The Barrel", "mirrorCentimetres": 61}


@pytest.mark.requirement("format.team-size")
def test_the_size_of_a_team_is_its_people_else_what_was_imported_else_absent(demo):
    sizes = {company["id"]: company.get("teamSize") for company in every(demo, "companies")}
    assert sizes["tarnwick-tidal"] == 3
    assert sizes["lumen-parish"] == 14
    assert sizes["a-very-quiet-company"] is None


@pytest.mark.requirement("format.treasury")
def test_money_is_shown_in_one_form_whatever_was_written(demo):
    shown = {company["id"]: company.get("treasury") for company in every(demo, "companies")}
    for row in rows("companies"):
        written = row["company"].get("treasury")
        assert shown[row["company"]["id"]] == (format_money(parse_money(written)) if written else None)
    assert shown["cindertree"] == "$9.9M"
    assert shown["grainline"] == "$0"


@pytest.mark.requirement("format.created-at")
@pytest.mark.requirement("import.dates")
def test_the_listing_date_is_shown_as_month_and_year_or_not_at_all(demo):
    shown = {company["id"]: company.get("createdAt") for company in every(demo, "companies")}
    assert shown["tarnwick-tidal"] == "March 2021"
    assert shown["tallow-and-wick"] == "September 2019"
    assert shown["unlit-beacon"] is None


@pytest.mark.requirement("person.fields")
@pytest.mark.requirement("person.company-count")
@pytest.mark.requirement("person.company-count-distinct")
@pytest.mark.requirement("people.list")
@pytest.mark.requirement("reviewed.person")
def test_every_person_of_the_list_has_a_count_of_companies_and_no_positions(demo):
    companies_of = {}
    for row in rows("companies"):
        for position in row.get("positions", []):
            companies_of.setdefault(position["person"]["slug"], set()).add(row["company"]["id"])
    people = every(demo, "people")
    for person in people:
        check(person, PERSON)
        assert "positions" not in person
        assert person["companyCount"] == len(companies_of.get(person["slug"], ())), person["slug"]
    assert {person["slug"] for person in people} == {row["slug"] for row in rows("people")} | set(companies_of)


@pytest.mark.requirement("import.people-from-positions")
def test_a_person_who_only_appears_in_a_position_has_a_page(demo):
    assert "ambrose-tillerby" not in {row["slug"] for row in rows("people")}
    person = demo.data_of("/api/v1/people/ambrose-tillerby")
    assert (person["name"], person["bio"]) == ("Ambrose Tillerby", None)


@pytest.mark.requirement("people.detail")
@pytest.mark.requirement("person.positions")
@pytest.mark.requirement("person.position-company")
def test_every_person_has_positions_with_their_companies_and_no_count(demo):
    companies = {company["id"]: company for company in every(demo, "companies")}
    for person in every(demo, "people"):
        detail = demo.data_of(f"/api/v1/people/{quote(person['slug'])}")
        check(detail, PERSON)
        assert "companyCount" not in detail
        assert len({position["company"]["id"] for position in detail["positions"]}) == person["companyCount"]
        for position in detail["positions"]:
            assert set(position) == {"title", "company"}
            check(position["company"], COMPANY_OF_POSITION)
            named = companies[position["company"]["id"]]
            assert position["company"]["name"] == named["name"]
            assert position["company"]["slug"] == named["id"]


@pytest.mark.requirement("position.fields")
def test_every_person_named_in_a_position_is_known_to_the_people_endpoint(demo):
    known = {person["slug"] for person in every(demo, "people")}
    for row in rows("companies"):
        bundle = demo.data_of(f"/api/v1/companies/{quote(row['company']['id'])}")
        assert {position["person"]["slug"] for position in bundle["positions"]} <= known


@pytest.mark.requirement("frameworks.list")
@pytest.mark.requirement("framework.fields")
@pytest.mark.requirement("framework.company")
@pytest.mark.requirement("envelope.unpaginated")
@pytest.mark.requirement("order.frameworks")
def test_frameworks_are_listed_in_the_order_of_publication_with_the_documented_fields(demo):
    answer = demo.get("/api/v1/frameworks")
    assert list(answer.json()) == ["data"]
    frameworks = answer.json()["data"]
    for framework in frameworks:
        check(framework, FRAMEWORK)
        assert framework["kind"] == "score" or framework["company"] is not None
    assert [framework["frameworkId"] for framework in frameworks] == [
        row["framework"]["frameworkId"] for row in rows("frameworks")
    ]
    assert [f["company"] for f in frameworks if f["frameworkId"] == "open-archive"] == [None]


@pytest.mark.requirement("frameworks.list")
def test_frameworks_of_one_kind_are_those_of_all_with_that_kind(demo):
    every_kind = demo.data_of("/api/v1/frameworks")
    for kind in ("score", "program"):
        assert demo.data_of(f"/api/v1/frameworks?kind={kind}") == [f for f in every_kind if f["kind"] == kind]


@pytest.mark.requirement("frameworks.detail")
@pytest.mark.requirement("framework.company-description")
def test_a_framework_has_all_that_the_list_has_and_its_companys_description(demo):
    for framework in demo.data_of("/api/v1/frameworks"):
        detail = demo.data_of(f"/api/v1/frameworks/{framework['frameworkId']}")
        check(detail, FRAMEWORK)
        assert isinstance(detail["companyDescription"], str)
        shared = set(framework) - {"updatedAt"}
        assert {key: detail[key] for key in shared} == {key: framework[key] for key in shared}
    prize = demo.data_of("/api/v1/frameworks/open-archive")
    assert prize["companyDescription"] == ""


@pytest.mark.requirement("framework.is-open")
@pytest.mark.requirement("framework.unauthored")
def test_a_framework_is_open_exactly_when_its_specification_is_authored(demo):
    authored = {row["framework"]["frameworkId"]: "specification" in row for row in rows("frameworks")}
    served = {f["frameworkId"]: f["isOpen"] for f in demo.data_of("/api/v1/frameworks")}
    assert served == authored
    assert demo.data_of("/api/v1/frameworks/open-archive")["description"] == ""


@pytest.mark.requirement("framework.specification-private")
def test_nothing_of_a_specification_is_ever_in_an_answer(demo):
    addresses = ["/api/v1/frameworks", "/openapi.json", "/api/v1/changes", "/llms.txt"]
    addresses += [f"/api/v1/frameworks/{row['framework']['frameworkId']}" for row in rows("frameworks")]
    for address in addresses:
        body = demo.get(address).body.decode()
        for secret in (
            "Names without roles count",
            "assessment-spec/1",
            "capsOverall",
            "anyPhrase",
            "governance.board",
        ):
            assert secret not in body, (address, secret)


@pytest.mark.requirement("stats.get")
@pytest.mark.requirement("stats.fields")
@pytest.mark.requirement("stats.raising")
@pytest.mark.requirement("stats.treasury")
def test_the_figures_of_the_registry_are_those_of_its_lists(demo):
    stats = demo.data_of("/api/v1/stats")
    check(stats, STATS)
    companies = every(demo, "companies")
    raising = {
        r["company"]["id"] for r in rows("companies") if any("closed" not in f for f in r.get("fundingRounds", []))
    }
    assert {company["id"] for company in companies if company["raising"]} == raising
    assert {company["raising"] for company in companies} == {True, False}
    minor = sum(parse_money(row["company"].get("treasury", "$0")) for row in rows("companies"))
    assert stats == {
        "total": len(companies),
        "projectsRaising": len(raising),
        "totalTreasury": format_money(minor),
        "founders": len(every(demo, "people")),
        "frameworks": len(rows("frameworks")),
    }


@pytest.mark.requirement("errors.not-found")
@pytest.mark.parametrize("kind", ["companies", "people", "frameworks"])
def test_a_slug_that_matches_nothing_is_not_found_and_the_hint_names_the_list(demo, kind):
    found = check_error(demo.get(f"/api/v1/{kind}/no-such-thing"), 404, "not_found")
    assert "no-such-thing" in found["message"]
    assert f"/api/v1/{kind}" in found["hint"]


@pytest.mark.requirement("errors.company-not-found")
def test_an_unknown_company_is_named_and_the_hint_points_to_the_list_of_slugs(demo):
    found = check_error(demo.get("/api/v1/companies/Tarnwick-Tidal"), 404, "not_found")
    assert "Tarnwick-Tidal" in found["message"]
    assert "GET /api/v1/companies" in found["hint"]
    assert "id" in found["hint"]


@pytest.mark.requirement("cap-table.pages")
def test_a_cap_table_is_paged_without_a_pagination_object(demo):
    whole = demo.data_of("/api/v1/companies/saltmarsh-commons")["capTable"]
    assert len(whole) == 142
    gathered, page = [], 1
    while page is not None:
        answer = demo.get(f"/api/v1/companies/saltmarsh-commons/cap-table?page={page}&pageSize=60").json()
        assert set(answer) == {"data", "total", "nextPage"}
        assert answer["total"] == 142
        gathered += answer["data"]
        page = answer["nextPage"]
    assert gathered == whole
    check_error(demo.get("/api/v1/companies/missing/cap-table"), 404, "not_found")
