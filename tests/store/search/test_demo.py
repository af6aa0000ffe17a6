"""The demo registry is searched as a visitor would: by place, country and identifier."""

import pytest

from make.published import ids
from make.queries import companies_by
from muniment.store.reader import Reader
from services.prepared import demo_registry


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    reader = Reader(demo_registry(tmp_path_factory.mktemp("demo") / "data", database_url="") / "muniment.sqlite3")
    yield reader
    reader.close()


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("0000FICTIVEQUILLME55", ["quillmere"]),
        ("0000fictivetarnwic38", ["tarnwick-tidal"]),
    ],
)
def test_an_lei_finds_its_company_alone(demo, q, found):
    assert ids(demo.companies(companies_by(q=q))) == found


@pytest.mark.parametrize("words", ["Norway", "norway", "NO"])
def test_a_country_finds_every_company_there(demo, words):
    by_filter = ids(demo.companies(companies_by(country=[words])))
    assert len(by_filter) == 2
    if words != "NO":  # a word of many texts
        assert set(by_filter) <= set(ids(demo.companies(companies_by(q=words))))


def test_a_city_with_its_country_finds_the_companies_there(demo):
    (there,) = ids(demo.companies(companies_by(city=["Port Elsinby"])))
    assert there in ids(demo.companies(companies_by(q="port elsinby norway")))[:5]
