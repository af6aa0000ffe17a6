"""The page of an organization's people and theirs: a picture and, as its equal, a list."""

import re
from itertools import combinations

import pytest

from make.pages import valid
from make.published import company, person
from muniment.web.views.overview.network import (
    LABEL_CHARACTERS,
    MOST_ORGANIZATIONS,
    MOST_PEOPLE,
    OtherOrganization,
    Tie,
    network_of,
    picture,
)


def position(number, title="Engineer"):
    return {"title": title, "person": {"name": f"Person {number}", "slug": f"person-{number}"}}


def fill(publisher, people, places=3):
    positions = [position(n) for n in range(1, people + 1)]
    positions += [position(1, "Chair"), {"title": "Guest", "person": {"name": "No Profile"}}]
    publisher.publish(
        company(1, "harbour", name="Harbour", positions=positions),
        *(
            person(n, positions=(("Engineer", "harbour"), *(("Clerk", f"place-{n + k}") for k in range(places))))
            for n in range(1, people + 1)
        ),
        person(people + 1, positions=(("Clerk", "place-1"), ("Clerk", "place-2"))),
    )


def listed(html):
    return re.findall(r'<tr><th scope="row"><a href="/people/([^"]+)"', html)


def test_the_list_has_everybody_whom_the_picture_leaves_out(visitor, publisher):
    fill(publisher, 70)
    first, second = (visitor.get(f"/companies/harbour/network{query}").text for query in ("", "?page=2"))
    for html in (first, second):
        valid(html)
    assert "70 of 70 people with a profile" in first
    assert len(listed(first)) == 40
    assert sorted({*listed(first), *listed(second)}) == sorted(f"person-{n}" for n in range(1, 71))
    assert first.count('<svg class="network"') == 1
    assert 'class="network"' not in second
    assert 'rel="next" href="/companies/harbour/network?page=2"' in first


def test_a_person_is_listed_with_titles_here_and_the_other_organizations(visitor, publisher):
    fill(publisher, 2, places=14)
    html = visitor.get("/companies/harbour/network").text
    row = re.search(r'<tr><th scope="row"><a href="/people/person-1".*?</tr>', html)[0]
    assert "Engineer, Chair" in row
    assert row.count('href="/companies/place-') == 12
    assert "and others" in row
    assert "harbour" not in row


@pytest.mark.parametrize("people", [1, 3])
def test_an_organization_without_ties_says_so(visitor, publisher, people):
    fill(publisher, people, places=0)
    html = visitor.get("/companies/harbour/network").text
    valid(html)
    assert "No ties to other organizations" in html
    assert 'href="/companies/harbour/team"' in html


def test_the_network_of_an_unknown_company_is_not_found(visitor, publisher):
    fill(publisher, 1)
    assert visitor.get("/companies/harbor/network").status_code == 404


def test_a_company_with_related_organizations_leads_to_its_network(visitor, publisher):
    fill(publisher, 2)
    assert 'href="/companies/harbour/network"' in visitor.get("/companies/harbour").text


def test_both_sides_count_the_same_people_in_common_and_the_network_lists_them(visitor, publisher):
    people = 26  # more than a page shows of a team, among many with no other position
    publisher.publish(
        company(1, "harbour", name="Harbour", positions=[position(n) for n in range(1, 61)]),
        company(2, "quay", name="Quay", positions=[position(n) for n in range(60, 60 - people, -1)]),
        *(
            person(n, positions=(("Engineer", "harbour"), *([("Clerk", "quay")] if n > 60 - people else [])))
            for n in range(1, 61)
        ),
    )
    for one, other in (("harbour", "quay"), ("quay", "harbour")):
        html = visitor.get(f"/companies/{one}").text
        assert re.findall(rf'href="/companies/{other}".*?(\d+) people in common', html, re.DOTALL) == [str(people)]
        html = visitor.get(f"/companies/{one}/network").text
        assert len(listed(html)) == people


def place(number):
    return OtherOrganization(f"place-{number:03}", f"Place {number:03}")


def tie(number, *places):
    return Tie(f"person-{number:03}", f"Person {number:03}", ("Engineer",), 0, [place(each) for each in places])


def crossings(network):
    rows = {each: row for row, each in enumerate(network.organizations)}
    lines = [(row, rows[each]) for row, tie in enumerate(network.people) for each in tie.others if each in rows]
    return sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in combinations(lines, 2))


def test_at_most_sixty_nodes_are_drawn_and_the_organizations_are_those_that_most_people_share():
    ties = [tie(n, 0, 1, *range(10 * n, 10 * n + 10)) for n in range(1, 80)]
    found = network_of(ties)
    assert (len(found.people), len(found.organizations)) == (MOST_PEOPLE, MOST_ORGANIZATIONS)
    assert {place(0), place(1)} <= set(found.organizations)
    assert found.hidden == 2 + 10 * MOST_PEOPLE - MOST_ORGANIZATIONS
    assert 1 + picture("Harbour", found).count('tabindex="-1"') == 60


def test_a_person_of_whom_no_organization_is_drawn_is_left_out():
    ties = [tie(n, *range(40)) for n in range(1, 4)] + [tie(9, 90)]
    assert [each.slug for each in network_of(ties).people] == ["person-001", "person-002", "person-003"]


def test_the_order_makes_few_crossings_and_is_always_the_same():
    ties = [tie(1, 9), tie(2, 7), tie(3, 5), tie(4, 3), tie(5, 1), tie(6, 9, 7), tie(7, 3, 1)]
    found = network_of(ties)
    assert crossings(found) == 0
    assert network_of(ties) == found
    assert picture("Harbour", found) == picture("Harbour", network_of(ties))


def test_names_in_the_picture_are_escaped_and_cut():
    ties = [Tie("a&b", "<b>" * 20, (), 0, [OtherOrganization('"x"', "&")])]
    html = picture("<i>", network_of(ties))
    assert not re.search("<[bi]>", html)
    assert 'href="/companies/%22x%22"' in html
    assert re.search("<text[^>]*>(&lt;b&gt;)+.{0,8}…</text>", html)


def test_a_single_person_is_drawn_at_the_height_of_the_organization():
    html = picture("Harbour", network_of([tie(1, 2)]))
    assert re.findall('cy="([0-9.]+)"', html) == ["24"] * 3
    assert "nan" not in html


def test_a_long_name_of_the_organization_is_in_lines_that_the_picture_holds():
    def own(name):
        html = picture(name, network_of([tie(1, 2)]))
        return re.findall(r'<text x="[^"]*" y="[^"]*" text-anchor="end">([^<]*)<', html)

    assert own("House Committee on Transportation and Infrastructure") == [
        "House Committee on",
        "Transportation and",
        "Infrastructure",
    ]
    assert len(own("word " * 60)) == 5
    assert own("港" * 12) == ["港" * 10, "港" * 2]


@pytest.mark.parametrize("names", [("A", "W" * 80), ("港" * 30, "Ida Moor"), ("Ann", "Bo")])
def test_lines_to_other_organizations_begin_behind_the_longest_name(names):
    ties = [Tie(f"p{n}", name, (), 0, [place(n), place(n + 1)]) for n, name in enumerate(names)]
    html = picture("Harbour", network_of(ties))
    curves = [tuple(map(float, each)) for each in re.findall(r'class="tie" d="M(\S+) \S+H(\S+)C', html)]
    people = {float(x) for x in re.findall(r'<circle class="person" cx="([^"]*)"', html)}
    longest = max(min(len(name), LABEL_CHARACTERS) for name in names)
    assert len({bend for _, bend in curves}) == 1
    assert all(start <= bend for start, bend in curves)
    assert curves[0][1] >= max(people) + 6 * longest
    own = float(re.search(r'<circle class="own" cx="([^"]*)"', html)[1])
    assert own < min(people)
