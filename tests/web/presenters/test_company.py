"""The facts and links of a company's page."""

import re

import msgspec
import pytest

from muniment.schema.kinds import Text
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.web.presenters.company import (
    company_facts,
    company_tiles,
    further_fields,
    links_of,
    shares,
    votes_over_time,
)
from muniment.web.views.public.registry import profile_of_company

AT = "2026-01-31T09:30:00.000000Z"
PLACE = {"id": "7c2m9xq4", "address_1": None, "address_2": None, "city": "Oslo", "state": None, "zip": None}


@pytest.mark.parametrize(
    ("number", "address"),
    [
        ("+49 30 123456", "tel:+4930123456"),
        ("+49\u00a0(30) 12-34", "tel:+49(30)12-34"),
        ("+4930123456", "tel:+4930123456"),
    ],
)
def test_a_telephone_number_with_spaces_is_a_link_and_shown_as_written(number, address):
    [link] = links_of({"socials": {"phone_number": number}})
    assert (link["address"], link["value"]) == (address, number)


def test_a_telephone_number_cannot_leave_its_link():
    for number in ('+49 30"onclick="x', "+49 <script>", "javascript:alert(1)"):
        assert links_of({"socials": {"phone_number": number}}) == []


@pytest.mark.parametrize(
    ("name", "value", "address"),
    [
        ("facebook", "www.facebook.com/tidal.works", "https://www.facebook.com/tidal.works"),
        ("linkedin", "linkedin.com/company/tidal/", "https://linkedin.com/company/tidal/"),
        ("linkedin", "tidal.works", "https://www.linkedin.com/company/tidal.works"),
        ("youtube", "@tidal", "https://www.youtube.com/tidal"),
        ("youtube", "channel/tidal.works", "https://www.youtube.com/channel/tidal.works"),
        ("email", "a.b/c@tidal.example", "mailto:a.b/c@tidal.example"),
    ],
)
def test_a_profile_by_address_or_name_leads_to_its_network(name, value, address):
    assert [link["address"] for link in links_of({"socials": {name: value}})] == [address]


def facts(**members):
    return {fact["label"]: fact["lines"] or fact["value"] for fact in company_facts(members, AT)}


def test_an_address_names_the_country_and_hides_the_id_of_its_row():
    assert facts(address=[{**PLACE, "country": "NO"}])["Address"] == "Oslo, Norway"
    assert facts(address=[{**PLACE, "country": None}])["Address"] == "Oslo"
    assert facts(address=[{**PLACE, "city": None, "country": None}]).keys() == {"Updated"}


def test_the_day_of_listing_is_shown_where_it_is_known():
    assert facts(createdAt="March 2024", listedAt="2024-03-31")["Listed"] == "31 March 2024"
    assert facts(createdAt="March 2024")["Listed"] == "March 2024"


def test_search_engines_get_the_code_of_the_country():
    profile = profile_of_company(
        {"id": "x", "name": "X", "address": [{**PLACE, "country": "NO"}]}, [], [], "https://r.example"
    )
    assert profile["address"] == {"@type": "PostalAddress", "addressLocality": "Oslo", "addressCountry": "NO"}


def tiles(**bundle):
    return {tile["label"]: (tile["value"], tile["address"]) for tile in company_tiles(bundle, "/companies/x", 0)}


def test_tiles_say_what_a_company_raises_and_how_many_proposals_it_has():
    votes = [
        {"status": "passed", "endDate": "2025-01-31"},
        {"status": "failed", "endDate": "2025-03-01"},
        {"status": "pending", "endDate": "2026-01-01"},
    ]
    shown = tiles(company={"raising": False}, proposals=votes)
    assert shown == {"Proposals": ("3", "/companies/x/proposals")}  # an outcome without its title says nothing
    assert tiles(company={"raising": True}) == {"Raising": ("Yes", "")}
    rounds = [{"name": "Seed", "target": "$2M", "opened": "2020-01-01"}]
    assert tiles(company={"raising": True}, fundingRounds=rounds) == {"Raising": ("$2M", "#funding")}
    assert tiles(company={}, proposals=votes[2:]) == {"Proposal": ("1", "/companies/x/proposals")}


def test_decided_votes_are_drawn_by_year_with_their_numbers():
    votes = [
        *({"status": "passed", "endDate": f"2024-0{month}-01"} for month in range(1, 4)),
        {"status": "failed", "endDate": "2025-03-01T10:00:00Z"},
        {"status": "failed", "endDate": "soon"},
        {"status": "active", "endDate": "2026-03-01"},
    ]
    html = votes_over_time(votes)
    assert re.findall(r'<th scope="row"><bdi>(.*?)</bdi></th><td class="number">(.*?)</td>', html) == [
        ("2024", "3 passed, 0 failed"),
        ("2025", "0 passed, 1 failed"),
    ]
    heights = [float(each) for each in re.findall(r'height="([\d.]+)"', html)]
    assert heights == [40.0, 0.0, 0.0, 13.33]
    assert votes_over_time(votes[:3]) == ""  # a single year is no course
    # The page says how many proposals there are, so a picture of fewer says of how many it is.
    assert html.startswith('<p class="quiet small">Decided votes by year: 4 of 6 proposals</p>')
    assert "<p" not in votes_over_time(votes[:4])


def test_many_holders_are_drawn_as_the_ten_largest_and_the_others():
    def drawn(count):
        holders = [{"address": f"0x{n}", "percentage": 0.5 * (4 if n < 10 else 1)} for n in range(count)]
        chart = shares({"company": {"name": "X"}, "capTable": holders})["holders_chart"]
        return re.findall(r'</span><bdi>(.*?)</bdi></th><td class="number">(.*?)</td>', chart)

    assert drawn(21) == [
        ("The ten largest", "20%"),
        ("11 other listed holders", "5.5%"),
        ("Holders that are not listed", "74.5%"),
    ]
    assert [label for label, _ in drawn(60)][:2] == ["The ten largest", "50 other listed holders"]
    assert drawn(20)[0] == ("0x0", "2%")


def test_a_subtype_that_repeats_the_type_is_no_fact():
    assert "Subtype" not in facts(type="DAO", orgKind="dao")
    assert facts(type="DAO", orgKind="protocol")["Subtype"] == "Protocol"


def test_several_addresses_are_one_fact():
    assert facts(address=[{"city": "Tarnwick"}, {"city": "Fell"}])["Addresses"] == ["Tarnwick", "Fell"]


def test_a_treasury_carries_the_note_of_its_source_where_that_fits():
    noted = tiles(company={"treasury": "$2M", "treasuryNote": "sum of grants received"})
    assert noted == {"Sum of grants received": ("$2M", "")}
    longest = "x" * 60
    cut = f"X{longest[:58]}…"
    for note, label in ((longest, f"X{longest[1:]}"), (f"{longest}x", cut), ("", "Treasury"), (5, "Treasury")):
        assert tiles(company={"treasury": "$2M", "treasuryNote": note}) == {label: ("$2M", "")}


def test_a_single_person_is_no_figure():
    company = {"company": {"teamSize": 1}}
    assert not company_tiles(company, "/companies/harbour", 1)
    assert [tile["label"] for tile in company_tiles(company, "/companies/harbour", 2)] == ["People"]


def test_a_second_website_is_named_by_the_type_and_shown_where_it_is_another():
    both = {"website": "https://harbour.example", "dao_website": "https://vote.harbour.example"}
    assert [link["label"] for link in links_of({**both, "type": "DAO"})] == ["Website", "DAO website"]
    assert [link["label"] for link in links_of({**both, "type": "government"})] == ["Website", "Further website"]
    assert len(links_of({**both, "dao_website": "https://harbour.example/", "type": "DAO"})) == 1


@pytest.mark.parametrize(
    ("value", "shown", "address"),
    [
        ("https://source.example/a", "source.example/a", "https://source.example/a"),
        (["https://source.example/a"], "source.example/a", "https://source.example/a"),
        ("eips", "eips", ""),
        (["eips"], "eips", ""),
        (["https://a.example", "eips"], "https://a.example, eips", ""),
        ("javascript:alert(1)", "javascript:alert(1)", ""),
    ],
)
def test_an_additional_member_that_is_a_web_address_leads_there(value, shown, address):
    (fact,) = further_fields({"sources": value}, registry_schema("USD").company)
    assert (fact["label"], fact["value"], fact["address"]) == ("Sources", shown, address)


@pytest.mark.parametrize("kind", ["company", "person", "framework"])
def test_a_new_field_of_the_schema_is_on_the_page_and_those_with_a_place_are_not_there_twice(kind):
    record = getattr(registry_schema("USD"), kind)
    placed = {field.name: "x" for field in record.fields if not field.is_additional}
    assert further_fields(placed, record) == []
    motto = Field("motto", Text(80), "Motto")
    grown = msgspec.structs.replace(record, fields=(*record.fields, motto))
    assert grown.by_name["motto"].column == "motto"
    (fact,) = further_fields({**placed, "motto": "Slow and steady"}, grown)
    assert (fact["label"], fact["value"]) == ("Motto", "Slow and steady")
