"""The page of an organization's people and theirs: a picture and, as its equal, a list."""

import re

import pytest

from make.pages import valid
from make.published import company, person


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
