"""The order of what is found: exact, begun, by text, close; and what is forgiven."""

import pytest

from make.published import company, ids, person
from make.queries import companies_by, people_by


def companies(reader, q, **query):
    return ids(reader.companies(companies_by(q=q, **query)))


NAMES = ("Optimism", "Operator Trust", "Opal Works", "North Haven Mutual", "Gitcoin", "Solar Commons", "Río Añil")


@pytest.fixture
def several(publisher, reader):
    # Numbers that give each a bigger position than the one before; the newest is last in NAMES.
    publisher.publish(
        *(
            company(
                number, name.lower().replace(" ", "-"), name=name, body="op " * 40 if name == "Opal Works" else None
            )
            for number, name in enumerate(NAMES[1:], 2)
        ),
        company(
            1,
            "optimism",
            name="Optimism",
            symbol="OP",
            website="https://www.optimism.example/start",
            address=[{"city": "Havnsund"}],
        ),
    )
    reader.refresh()
    return reader


@pytest.mark.parametrize(
    ("q", "first"),
    [
        ("OP", "optimism"),
        ("op", "optimism"),
        ("optimism", "optimism"),
        ("optimism.example", "optimism"),
        ("https://optimism.example/about?x=1", "optimism"),
        ("http://www.optimism.example", "optimism"),
        ("north-haven-mutual", "north-haven-mutual"),
        ("North Haven Mutual", "north-haven-mutual"),
        ("rio anil", "río-añil"),
        ("havnsund", "optimism"),
    ],
)
def test_an_exact_name_symbol_domain_or_place_is_first(several, q, first):
    assert companies(several, q)[0] == first


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("northhavenmutual", "north-haven-mutual"),  # joined
        ("northhaven mutual", "north-haven-mutual"),
        ("opti mism", "optimism"),  # split
        ("solarcommons", "solar-commons"),
        ("optimsm", "optimism"),  # left out
        ("optimiism", "optimism"),  # doubled
        ("optomism", "optimism"),  # replaced
        ("gitcion", "gitcoin"),  # swapped
        ("north havem mutal", "north-haven-mutual"),  # two slips
        ("gitcoin company", "gitcoin"),  # an extra word
        ("the gitcoin", "gitcoin"),
        ("solr", "solar-commons"),  # one word of a name
        ("rio anli", "río-añil"),
    ],
)
def test_slips_and_joined_split_and_extra_words_are_forgiven(several, q, found):
    assert companies(several, q)[0] == found


@pytest.mark.parametrize(
    ("name", "typed"),
    [("Общество Реки", "общесвто реки"), ("Ελληνική Θάλασσα", "ελληνκη θαλασσα"), ("東京湾岸組合", "東京湾組合")],
)
def test_slips_are_forgiven_in_every_script(publisher, reader, name, typed):
    publisher.publish(company(1, name=name), company(2, name="Other"), person(1, name=name))
    reader.refresh()
    assert companies(reader, typed) == ["company-1"]
    assert ids(reader.people(people_by(q=typed))) == ["person-1"]


def test_the_fuller_of_two_companies_of_one_name_is_first(publisher, reader):
    publisher.publish(
        company(1, "harbour", name="Harbour", description="Keeps the harbour of the town, and its lights."),
        company(2, "harbour-2", name="Harbour"),
    )
    reader.refresh()
    assert companies(reader, "harbour") == ["harbour", "harbour-2"]


def test_a_name_that_begins_with_the_words_comes_before_a_text_that_has_them(several):
    assert companies(several, "opa")[0] == "opal-works"
    assert companies(several, "oper")[0] == "operator-trust"


def test_nothing_close_is_nothing(several):
    assert companies(several, "zzyzx quorl") == []


def test_what_is_close_is_named_with_why(several):
    page = several.companies(companies_by(q="gitcion"))
    assert [(each.id, each.name) for each in page.closest] == [("gitcoin", "Gitcoin")]
    assert "gitcion" in page.closest[0].why
    assert several.companies(companies_by(q="gitcoin")).closest == ()


def test_what_the_filters_leave_out_is_close(several):
    page = several.companies(companies_by(q="gitcoin", type="DAO"))
    assert page.items == []
    assert [each.id for each in page.closest] == ["gitcoin"]
    assert 'No company has the type "DAO". Values in use: corporation (7).' in page.hint


def test_the_same_is_found_in_every_order_and_among_ids(several):
    for sort in ("relevance", "newest", "name", "treasury"):
        assert companies(several, "optomism", sort=sort) == ["optimism"]
    assert companies(several, "optomism", ids=("optimism", "gitcoin")) == ["optimism"]
    assert companies(several, "optomism", ids=("gitcoin",)) == []


def test_an_update_and_an_unlisting_are_followed(publisher, several):
    publisher.publish(company(5, "gitcoin", name="Quernstone"))
    several.refresh()
    assert companies(several, "gitcion") == ["gitcoin"]  # its slug
    assert companies(several, "quernstoen") == ["gitcoin"]
    publisher.unlist("company", "gitcoin")
    several.refresh()
    assert companies(several, "quernstoen") == companies(several, "gitcion") == []
