"""The page of the map, with and without addresses."""

import re

import pytest

from make.pages import valid
from make.published import company
from muniment.schema.filters import Chosen
from muniment.schema.kinds import country_names
from muniment.store.lists.facets import Counted, Facet
from muniment.store.queries import ListQuery
from muniment.web.requests.page_cache import reader
from muniment.web.views.overview.places import LEVELS, countries_of, level_of, picture, steps_of, world


def at(number, *codes):
    return company(number, address=[{"city": "", "country": code} for code in codes])


def test_a_registry_without_addresses_says_what_puts_a_country_on_the_map(visitor, publisher):
    publisher.publish(company(1))
    html = visitor.get("/map").text
    valid(html)
    assert "No addresses yet" in html
    assert "<table" not in html
    assert "Show on a map" not in visitor.get("/").text


def test_the_table_has_every_country_of_the_map_and_those_too_small_for_it(visitor, publisher):
    publisher.publish(at(1, "FR"), at(2, "FR", "SG"), at(3, "DE"))
    html = visitor.get("/map").text
    valid(html)
    rows = re.findall(r'<tr><th scope="row"><a href="/companies\?country=(..)">(.*?)</a></th><td[^>]*>(\d+)', html)
    assert rows == [("FR", "France", "2"), ("DE", "Germany", "1"), ("SG", "Singapore", "1")]
    assert "Too small to show on the map" in html
    assert "Companies have addresses in 3 countries." in html
    assert "<title>France: 2 companies</title>" in html
    home = visitor.get("/").text
    assert 'href="/map">Show on a map' in home
    assert '<a href="/companies?country=FR"><bdi>France</bdi></a>' in home


def test_the_map_says_how_many_it_places_and_how_many_it_cannot(visitor, publisher):
    publisher.publish(
        at(1, "FR"),
        *(company(n, address=[{"city": "Wichita", "state": "Kansas"}]) for n in (2, 3)),
        company(4),
    )
    html = visitor.get("/map").text
    valid(html)
    assert "1 company is on the map." in html
    assert "2 companies have addresses without a country" in html
    assert "1 company has no address." in html
    assert '<a href="/companies?state=Kansas" dir="auto">Kansas</a></th><td class="number">2</td>' in html


def test_a_code_without_a_country_does_not_list_the_companies_of_its_state_twice(visitor, publisher):
    in_california = {"city": "Oakland", "state": "California", "country": "US"}
    publisher.publish(
        *(company(n, address=[in_california]) for n in (1, 2)),
        company(3, address=[{"city": "Somewhere", "state": "CA"}]),
        company(4, address=[{"city": "Elsewhere", "state": "QQ"}]),
    )
    found = re.findall(
        r'href="/companies\?state=([^"]+)"[^>]*>[^<]*</a></th><td class="number">(\d+)', visitor.get("/map").text
    )
    assert found == [("California", "2"), ("QQ", "1")]
    chosen = ListQuery(filters=(Chosen("state", ("CA",), in_text=False),))
    assert Counted("CA", 3, selected=True) in reader().facets("company", chosen, ("state",)).by_name["state"].values


def test_a_state_that_is_chosen_by_its_code_is_shown_by_its_name(visitor, publisher):
    publisher.publish(company(1, address=[{"city": "Oakland", "state": "California", "country": "US"}]))
    # CA alone is the code of several states, and ZZ-CA of none.
    for chosen, shown in (("US-CA", "California"), ("CA", "CA"), ("ZZ-CA", "ZZ-CA")):
        html = visitor.get(f"/companies?state={chosen}").text
        assert re.findall("State or region: <bdi>(.*?)</bdi>", html) == [shown], chosen


def test_a_registry_whose_addresses_cannot_be_placed_says_why(visitor, publisher):
    publisher.publish(company(1, address=[{"city": "Wichita"}]))
    html = visitor.get("/map").text
    valid(html)
    assert "No address can be placed" in html
    assert "No addresses yet" not in html


def countries(**numbers):
    return countries_of(Facet(tuple(Counted(code, n) for code, n in numbers.items()), 0))


def test_countries_come_by_number_and_lead_to_their_list():
    found = countries(FR=2, SG=9, DE=2, XX=1)
    assert [(each.name, each.n, each.is_drawn) for each in found] == [
        ("Singapore", 9, False),
        ("France", 2, True),
        ("Germany", 2, True),
        ("XX", 1, False),
    ]
    assert found[1].address == "/companies?country=FR"
    assert countries_of(None) == []


@pytest.mark.parametrize(
    ("n", "most", "level"), [(1, 1, 1), (1, 1000, 1), (1000, 1000, LEVELS), (4, 1000, 2), (300, 1000, 5), (2, 3, 4)]
)
def test_a_level_stands_for_as_many_times_more_than_the_one_before(n, most, level):
    assert level_of(n, most) == level


def test_the_legend_has_the_numbers_that_the_map_shows():
    found = countries(FR=1, DE=2, GB=40, JP=1000)
    steps = steps_of(found)
    assert [each.label for each in steps] == ["1 to 2", "40", "1,000"]
    assert {each.level for each in steps} == {each.level for each in found}


def test_the_map_draws_every_country_once_and_marks_those_with_companies():
    html = picture(countries(FR=1, JP=2000, SG=4))
    assert re.findall("<title>(.*?)</title>", html) == ["Japan: 2,000 companies", "France: 1 company"]
    assert 'href="/companies?country=JP" tabindex="-1"' in html
    shapes = sum(map(len, world().countries.values())) + len(world().others)
    assert sum(map(len, re.findall(' d="([^"]*)"', html))) == shapes


def test_the_shapes_have_codes_of_countries_and_stay_inside_the_picture():
    shapes = world()
    assert len(shapes.countries) > 150
    assert shapes.countries.keys() <= country_names().keys()
    for path in (*shapes.countries.values(), shapes.others):
        for ring in re.findall(r"M([^M]*)z", path):
            start, _, steps = ring.partition("l")
            x, y = map(int, re.findall(r"-?\d+", start))
            numbers = list(map(int, re.findall(r"-?\d+", steps)))
            for dx, dy in zip(numbers[::2], numbers[1::2], strict=True):
                assert abs(dx) < shapes.width / 4, "a line across the map"
                x, y = x + dx, y + dy
                assert -4 <= x <= shapes.width + 4
                assert -4 <= y <= shapes.height + 4
