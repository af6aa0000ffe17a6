"""Filters with several values, ranges, orders and facets equal a plain search."""

import json
import random
from collections import Counter

import pytest
from msgspec import structs

from make.published import company, framework, ids, person
from make.queries import LISTINGS, companies_by, frameworks_by, people_by
from muniment.schema.filters import MAX_VALUES, ReversedRange
from muniment.store.lists import facets as counting
from muniment.store.search.values import singular

DAY = 738_000  # an ordinal in 2021
NAMES = LISTINGS["company"].counted


def address(city, country):
    return [{"id": "1", **dict.fromkeys(("address_1", "address_2", "state", "zip")), "city": city, "country": country}]


def registry(count, seed=11):
    chance = random.Random(seed)
    return [
        company(
            number,
            day=chance.choice([0, *range(DAY, DAY + 6)]),
            status=chance.choice(["active", "upcoming", "inactive"]),
            type=chance.choice(["DAO", "dao", "corporation", "non-profit"]),
            industry=chance.choice(["Water", "Energy"]),
            themes=chance.sample(["open", "public goods", "rivers", "Rivers", "a, b"], chance.randint(0, 3)),
            raising=chance.random() < 0.3,
            name=chance.choice(["Blue", "Green", "blue"]),
            updatedAt=f"2026-01-0{chance.randint(1, 9)}T00:00:00.000000Z",
            treasuryMinor=chance.choice([None, 0, 100_00, 1_000_000_00, 2_500_000_00]),
            address=chance.choice([None, address("Łódź", "PL"), address("Lisbon", "PT")]),
            capTable=[{"address": "0x1"}] if chance.random() < 0.2 else [],
            **({"teamSize": chance.randint(0, 9)} if chance.random() < 0.7 else {}),
            **({"symbol": f"T{number}"} if chance.random() < 0.4 else {}),
        )
        for number in range(1, count)
    ]


CHOICES = {
    "status": [["active"], ["active", "inactive"]],
    "type": [["DAO"], ["daos", "corporation"], ["nothing"], ["nothing", "DAO"]],
    "industry": [["Water"], ["Water", "energy"]],
    "theme": [["rivers"], ["a, b", "open"]],
    "country": [["Poland"], ["pt", "PL"]],
    "city": [["lodz"], ["LISBON", "Nowhere"]],
    "hasToken": [True, False],
    "raising": [True],
    "hasCapTable": [True, False],
    "treasuryMin": ["0", "1M", "$1,000,001"],
    "treasuryMax": ["1000000", "3M"],
    "teamMin": ["3"],
    "teamMax": ["3", "8"],
    "listedFrom": ["2021-08-01", "2021-07-26T23:59:59Z"],
    "listedTo": ["2021-07-28", "2030-01-01"],
    "updatedSince": ["2026-01-05", "2026-01-04T12:00:00+01:00"],
}
MEMBERS = {"theme": "themes", "country": "country", "city": "city"}


def holds(document, name, wanted):
    listing = LISTINGS["company"]
    if name in listing.filters:
        if isinstance(wanted, bool):
            return document.facets[name] == (("true" if wanted else "false"),)
        folded = {singular(str(listing.criteria[name].parse(value))) for value in wanted}
        return any(singular(value) in folded for value in document.facets[name])
    bound = listing.criteria[name].parse(wanted)
    value = {
        "treasury": document.treasury_minor,
        "team": document.team_size,
        "listed": document.position >> 40 or None,
        "updated": document.updated_at,
    }[name.removesuffix("Min").removesuffix("Max").removesuffix("From").removesuffix("To").removesuffix("Since")]
    if value is None:
        return False
    return value <= bound if name.endswith(("Max", "To")) else value >= bound


def in_order(documents, sort):
    if sort == "name":
        return sorted(documents, key=lambda each: (each.name.lower(), each.position))
    key = {
        "newest": lambda each: 0,
        "treasury": lambda each: -1 if each.treasury_minor is None else each.treasury_minor,
        "team": lambda each: -1 if each.team_size is None else each.team_size,
        "updated": lambda each: each.updated_at,
    }[sort]
    return sorted(documents, key=lambda each: (key(each), each.position), reverse=True)


def random_query(chance):
    query = {name: chance.choice(values) for name, values in CHOICES.items() if chance.random() < 0.15}
    return query, chance.choice(["newest", "name", "treasury", "team", "updated"])


def counts_of(documents, query, name):
    """Count the values of a filter among what all other filters find."""
    rest = {other: wanted for other, wanted in query.items() if other != name}
    kept = [each for each in documents if all(holds(each, *pair) for pair in rest.items())]
    return Counter(folded for each in kept for folded in {singular(value) for value in each.facets[name]})


@pytest.mark.parametrize("wide", [False, True])
def test_lists_and_facets_equal_a_plain_search(publisher, reader, monkeypatch, wide):
    if wide:  # as in a registry with many publications, where rare values are lists
        monkeypatch.setattr(counting, "_WIDE", 8)
        monkeypatch.setattr(counting, "_RARE", 30)
    documents = registry(150)
    publisher.publish(*documents)
    reader.refresh()
    chance = random.Random(5)
    for _ in range(120):
        query, sort = random_query(chance)
        try:
            asked = companies_by(page_size=200, sort=sort, **query)
        except ReversedRange:
            continue
        kept = [each for each in documents if all(holds(each, *pair) for pair in query.items())]
        assert ids(reader.companies(asked)) == [each.key for each in in_order(kept, sort)], query
        found = reader.facets("company", asked, NAMES)
        assert found.total == len(kept), query
        for name, facet in found.by_name.items():
            shown = {singular(each.value): each.n for each in facet.values if each.n}
            assert shown == counts_of(documents, query, name), (name, query)
    some = {each.key for each in documents[:40]}
    among = companies_by(ids=tuple(some), sort="team", page_size=200, type=["DAO"], teamMin="2")
    kept = [each for each in documents if each.key in some and holds(each, "type", ["DAO"])]
    kept = [each for each in kept if holds(each, "teamMin", "2")]
    assert ids(reader.companies(among)) == [each.key for each in in_order(kept, "team")]
    assert reader.facets("company", among, ("type",)).total == len(kept)


@pytest.mark.parametrize("sort", ["treasury", "team", "updated"])
def test_cursors_of_numbers_meet_everything_once_while_items_change(publisher, reader, sort):
    documents = registry(60)
    publisher.publish(*documents)
    reader.refresh()
    expected = [each.key for each in in_order(documents, sort)]
    page = reader.companies(companies_by(sort=sort, page_size=7))
    shown = ids(page)
    publisher.unlist("company", shown[-1])  # the one that the cursor names
    reader.refresh()
    while page.next_cursor:
        page = reader.companies(companies_by(sort=sort, page_size=7, cursor=page.next_cursor))
        shown += ids(page)
    assert shown == expected


def test_a_facet_shows_the_most_frequent_values_what_is_chosen_and_how_many_more(publisher, reader):
    publisher.publish(*(company(n, type=f"type {n % 7}", industry="Water") for n in range(1, 41)))
    reader.refresh()
    found = reader.facets("company", companies_by(type=["type 6"]), ("type", "industry"), limit=2)
    shown = found.by_name["type"]
    assert [(each.value, each.n, each.selected) for each in shown.values] == [
        ("type 1", 6, False),
        ("type 2", 6, False),
        ("type 6", 5, True),
    ]
    assert (shown.more, found.total) == (4, 5)
    assert found.by_name["industry"].values[0].to_wire() == {"value": "Water", "count": 5}


@pytest.mark.parametrize(("limit", "more"), [(9, 0), (1, 1)])
def test_a_chosen_code_or_word_that_is_no_value_does_not_lower_how_many_more(publisher, reader, limit, more):
    (place,) = address("Troy", "US")
    states = ["New York", "New York", "Utah"]
    publisher.publish(*(company(number, address=[{**place, "state": state}]) for number, state in enumerate(states, 1)))
    reader.refresh()
    shown = reader.facets("company", companies_by(state=["0"]), ("state",), limit=limit).by_name["state"]
    assert [each.value for each in shown.values] == [*["New York", "Utah"][:limit], "0"]
    assert shown.more == more


def test_counts_follow_changes_and_nothing_of_an_unused_value_remains(publisher, reader):
    publisher.publish(company(1, type="DAO"), company(2, type="DAO"), company(3, type="Guild"))
    reader.refresh()
    asked = companies_by(status=["active"])

    def types():
        return {each.value: each.n for each in reader.facets("company", asked, ("type",)).by_name["type"].values}

    assert types() == {"DAO": 2, "Guild": 1}
    publisher.publish(company(2, type="Guild"))
    reader.refresh()
    assert types() == {"DAO": 1, "Guild": 2}
    publisher.unlist("company", "company-2", "company-3")
    reader.refresh()
    assert types() == {"DAO": 1}
    assert publisher.connection.execute("SELECT 1 FROM published_value WHERE value = 'Guild'").fetchone() is None


def test_people_are_found_by_company_title_and_number_of_companies(publisher, reader):
    publisher.publish(
        person(1, positions=(("President & CEO", "blue-trust"), ("Member", "green-trust"))),
        person(2, positions=(("Vice President", "blue-trust"),)),
        person(3, positions=(("Members", "blue-trust-2"),)),
        person(4),
    )
    reader.refresh()

    def found(**query):
        return [int(key.partition("-")[2]) for key in ids(reader.people(people_by(**query)))]

    assert found(company="blue-trust") == [2, 1]
    assert found(company="BLUE TRUST") == [2, 1]
    assert found(company="blue-trust-2") == [3]
    assert found(title="president") == [2, 1]
    assert found(title="vice president") == [2]
    assert found(title="member") == [3, 1]
    assert found(title="resident") == []
    assert found(minCompanies="2") == [1]
    assert found(sort="companies") == [1, 3, 2, 4]
    assert found(title="CEO") == found(title="chief executive") == found(title="Chief Executive Officers") == [1]
    assert found(title="VP") == [2]
    hint = reader.people(people_by(title="presidnt")).hint
    assert hint.startswith('No person has the title "presidnt". Values in use: ')


def test_a_company_without_people_is_told_apart_from_one_that_does_not_exist(publisher, reader):
    publisher.publish(company(1, "uniswap", name="Uniswap Labs"), company(2, "aave", name="Aave"))
    publisher.publish(person(1, positions=(("Steward", "aave"),)))
    reader.refresh()

    def hint(**query):
        return reader.people(people_by(**query)).hint

    assert hint(company="uniswap") == "The company uniswap has no listed people."
    assert hint(company="Uniswap Labs") == "The company Uniswap Labs has no listed people."
    assert hint(company="uniswp") == 'There is no company "uniswp". Did you mean uniswap?'
    assert hint(company="zzyzx") == 'There is no company "zzyzx".'
    assert hint(company="aave", title="CEO").startswith('No person has the title "CEO".')
    assert hint(company="aave", minCompanies="2") == (
        "No person matches all of company, minCompanies. Alone, company aave matches 1."
    )


def test_a_hint_of_bounds_names_the_parameters_that_were_given(publisher, reader):
    publisher.publish(company(1, day=DAY))
    reader.refresh()

    def hint(**query):
        return reader.companies(companies_by(**query)).hint

    assert hint(listedFrom="2030-01-01") == "No company matches listedFrom. Leave out listedFrom."
    assert hint(listedFrom="2030-01-01", listedTo="2031-01-01") == (
        "No company matches listedFrom and listedTo. Leave out listedFrom or listedTo."
    )
    assert hint(listedTo="2001-01-01", teamMin="2") == "No company matches all of listedTo, teamMin."


def test_ids_that_do_not_exist_are_named(publisher, reader):
    publisher.publish(company(1, type="DAO"), company(2), person(1))
    reader.refresh()
    wanted = ("company-2", "gone", "company-1", "Company-1")
    page = reader.companies(companies_by(ids=wanted))
    assert (page.total, page.unknown_ids) == (2, ("gone", "Company-1"))
    assert page.guidance() == {"unknownIds": ["gone", "Company-1"]}
    filtered = reader.companies(companies_by(ids=wanted, type="DAO"))
    assert (filtered.total, filtered.unknown_ids) == (1, ("gone", "Company-1"))  # the other exists
    assert reader.companies(companies_by(ids=("company-1",))).guidance() == {}
    assert reader.people(people_by(ids=("person-1", "company-1"))).unknown_ids == ("company-1",)
    publisher.unlist("company", "company-1")
    reader.refresh()
    assert reader.companies(companies_by(ids=wanted)).unknown_ids == ("gone", "company-1", "Company-1")


def test_frameworks_are_found_by_kind_and_by_whether_they_are_open(publisher, reader):
    publisher.publish(framework(1), framework(2, kind="program"), framework(3))
    reader.refresh()

    def found(**query):
        return json.loads(reader.frameworks(frameworks_by(**query)).body)

    assert [each["frameworkId"] for each in found(kind="score", isOpen=False)["data"]] == ["framework-1", "framework-3"]
    nothing = found(isOpen=True)
    assert nothing["data"] == []
    assert nothing["hint"] == "No framework has isOpen true."


def test_unknown_values_are_named_and_what_is_shown_of_them_is_bounded(publisher, reader):
    publisher.publish(company(1))
    reader.refresh()
    wanted = [f"{number} {'x' * 190}" for number in range(MAX_VALUES)]
    hint = reader.companies(companies_by(type=wanted)).hint
    assert hint.startswith("No company has the type ")
    assert " or another." in hint
    assert len(hint) < 500
    assert "Leave out treasuryMin." in reader.companies(companies_by(treasuryMin="5T")).hint


@pytest.mark.parametrize("most", [counting.MAX_COUNTED, 2])
def test_the_count_of_a_title_is_of_the_list_that_it_leads_to(publisher, reader, monkeypatch, most):
    """A title is found by words in others, also where more titles are in use than are counted."""
    monkeypatch.setattr(counting, "MAX_COUNTED", most)
    titles = ["Director"] * 3 + ["Managing Director"] * 2 + ["Codirector"]
    publisher.publish(*(person(n, positions=((title, "quay"),)) for n, title in enumerate(titles, 1)))
    reader.refresh()
    facet = reader.facets("person", people_by(), ("title",)).by_name["title"]
    counts = {each.value: each.n for each in facet.values}
    assert counts["Director"] == 5
    for title, count in counts.items():
        assert reader.people(people_by(title=title)).total == count


def test_a_value_that_is_chosen_by_its_key_is_counted_under_its_name(publisher, reader):
    def run_by(number, key, name):
        facets = {"company": (name,), "company.key": (key,)}
        return structs.replace(framework(number, f"prize-{number}"), facets=facets)

    publisher.publish(
        *(run_by(n, "quay", "Quay Trust") for n in range(3)),
        run_by(3, "mole", "Mole"),
        run_by(4, "mole-of-tarn", "Mole"),
    )
    asked = frameworks_by(company=["mole", "quay"])
    found = reader.facets("framework", asked, ("company",)).by_name["company"].values
    # Two organizations have the name of the second, so that its number is not that of the chosen one.
    assert set(found) == {
        counting.Counted("Quay Trust", 3, selected=True, by_key="quay"),
        counting.Counted("Mole", 2),
        counting.Counted("mole", 1, selected=True),
    }
