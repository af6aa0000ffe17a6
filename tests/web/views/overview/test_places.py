"""The page of the map, with and without addresses."""

import re

from make.pages import valid
from make.published import company


def at(number, *codes):
    return company(number, address=[{"city": "", "country": code} for code in codes])


def test_a_registry_without_addresses_says_what_puts_a_country_on_the_map(visitor, publisher):
    publisher.publish(company(1))
    html = visitor.get("/map").text
    valid(html)
    assert "No addresses yet" in html
    assert "<table" not in html
    assert 'href="/map"' not in visitor.get("/").text


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
