"""A query for a place finds every company there, as imported, whatever else has the words."""

import pytest

from make.published import ids
from make.queries import companies_by
from make.registry import lines
from muniment.store.reader import Reader
from services.prepared import new_instance
from services.product import run

PLACES = (
    ("Brinmouth", "Vael", 40),
    ("Brinmouth", "Ostmark", 7),
    ("Port Elsinby", "Vael", 30),
    ("Ærøhavn", "Nordö", 5),
    ("Tarn", "", 3),
)
"""Cities with their states, and how many companies are there; two cities and a state have a namesake."""


@pytest.fixture(scope="module")
def there():
    """Return the companies of each place, and of two that are in two places."""
    found = {
        (city, state): {f"of-{place}-{n}" for n in range(count)} for place, (city, state, count) in enumerate(PLACES)
    }
    for each in (("Brinmouth", "Vael"), ("Ærøhavn", "Nordö")):
        found[each].add("of-two-places")
    return found


@pytest.fixture(scope="module")
def reader(tmp_path_factory, there):
    folder = tmp_path_factory.mktemp("places")
    addresses = {}
    for (city, state), companies in there.items():
        for each in companies:
            addresses.setdefault(each, []).append({"city": city, **({"state": state} if state else {})})
    others = [
        *({"id": f"named-{n}", "name": f"Brinmouth Vael {n}", "address": [{"city": "Tarn"}]} for n in range(3)),
        *({"id": f"told-{n}", "name": f"Quay {n}", "description": "Brinmouth, Port Elsinby, Vael"} for n in range(20)),
    ]
    located = ({"id": each, "name": f"Quillmere {each}", "address": found} for each, found in addresses.items())
    lines(folder / "companies.jsonl", *({"company": {**each, "slug": each["id"]}} for each in (*located, *others)))
    data = new_instance(folder / "data", database_url="")
    run("import", str(folder / "companies.jsonl"), data=data, database_url="")
    reader = Reader(data / "muniment.sqlite3")
    yield reader
    reader.close()


def everything(reader, q):
    """Return what *q* finds, on all pages."""
    page = reader.companies(companies_by(q=q, page_size=20))
    found = ids(page)
    while page.next_cursor:
        page = reader.companies(companies_by(q=q, page_size=20, cursor=page.next_cursor))
        found += ids(page)
    assert len(found) == len(set(found)) == page.total
    return found


@pytest.mark.parametrize(
    ("q", "place"),
    [
        ("Brinmouth Vael", ("Brinmouth", "Vael")),
        ("brinmouth, VAEL", ("Brinmouth", "Vael")),
        ("Vael Brinmouth", ("Brinmouth", "Vael")),
        ("Brinmouth Ostmark", ("Brinmouth", "Ostmark")),
        ("Port Elsinby, Vael", ("Port Elsinby", "Vael")),
        ("port elsinby va", ("Port Elsinby", "Vael")),
        ("aerohavn nordo", ("Ærøhavn", "Nordö")),
    ],
)
def test_a_city_with_its_state_finds_every_company_there(reader, there, q, place):
    found = everything(reader, q)
    assert there[place] <= set(found)
    strangers = {each for each in found if each.startswith("of-")} - there[place]
    assert strangers == set()


def test_what_is_there_comes_before_what_only_mentions_the_place(reader, there):
    found = everything(reader, "Port Elsinby, Vael")
    assert set(found[:30]) == there["Port Elsinby", "Vael"]


def test_a_city_finds_the_companies_of_every_state(reader, there):
    assert there["Brinmouth", "Vael"] | there["Brinmouth", "Ostmark"] <= set(everything(reader, "Brinmouth"))
    assert there["Tarn", ""] <= set(everything(reader, "Tarn"))
