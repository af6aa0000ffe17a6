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
    page = several.companies(companies_by(q=q))
    assert [*ids(page), *(each.id for each in page.closest)][0] == found


@pytest.mark.parametrize("q", ["optimsm", "gitcoin company", "solr", "rio anli"])
def test_what_is_only_similar_is_no_match_and_in_no_total(several, q):
    page = several.companies(companies_by(q=q))
    assert (page.items, page.total) == ([], 0)
    assert page.closest
    assert several.facets("company", companies_by(q=q), ("type",)).total == 0


def test_what_is_similar_stands_beside_the_matches_and_is_not_counted(publisher, several):
    publisher.publish(company(20, "keeper", name="Keeper", description="Once called solr."))
    several.refresh()
    page = several.companies(companies_by(q="solr"))
    assert (ids(page), page.total) == (["keeper"], 1)
    assert [each.id for each in page.closest] == []  # "solr" is a word of the registry
    page = several.companies(companies_by(q="gitcoi"))
    assert (ids(page), page.closest) == (["gitcoin"], ())  # begins a name


@pytest.mark.parametrize(
    ("q", "why"),
    [
        ("gitcion", 'The name is similar to "gitcion".'),
        ("solr", 'Has words similar to "solr".'),
    ],
)
def test_a_name_is_told_as_similar_only_if_it_is(several, q, why):
    (close,) = several.companies(companies_by(q=q)).closest
    assert close.why == why


def test_a_query_with_a_slip_is_answered_with_the_words_that_may_be_meant(several):
    page = several.companies(companies_by(q="comons solr"))
    assert page.hint == 'No company matches "comons solr". Did you mean "commons solar"?'
    assert companies(several, "commons solar") == ["solar-commons"]


@pytest.mark.parametrize(
    ("name", "typed"),
    [("Общество Реки", "общесвто реки"), ("Ελληνική Θάλασσα", "ελληνκη θαλασσα"), ("東京湾岸組合", "東京湾組合")],
)
def test_slips_are_forgiven_in_every_script(publisher, reader, name, typed):
    publisher.publish(company(1, name=name), company(2, name="Other"), person(1, name=name))
    reader.refresh()
    assert [each.id for each in reader.companies(companies_by(q=typed)).closest] == ["company-1"]
    assert [each.id for each in reader.people(people_by(q=typed)).closest] == ["person-1"]


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
    assert page.hint == 'No company has the type "DAO". Values in use: corporation (7).'


def close(reader, q, **query):
    return [each.id for each in reader.companies(companies_by(q=q, **query)).closest]


def test_what_is_close_passes_the_filters_in_every_order_and_among_ids(several):
    for sort in ("relevance", "newest", "name", "treasury"):
        assert close(several, "optomism", sort=sort) == ["optimism"]
    assert close(several, "optomism", ids=("optimism", "gitcoin")) == ["optimism"]
    assert close(several, "optomism", city="havnsund") == ["optimism"]
    page = several.companies(companies_by(q="optomism", type="DAO"))
    assert [(each.id, each.why) for each in page.closest] == [
        ("optimism", 'The name is similar to "optomism". The filters leave it out.')
    ]


def test_an_update_and_an_unlisting_are_followed(publisher, several):
    publisher.publish(company(5, "gitcoin", name="Quernstone"))
    several.refresh()
    assert close(several, "gitcion") == ["gitcoin"]  # its slug
    assert close(several, "quernstoen") == ["gitcoin"]
    publisher.unlist("company", "gitcoin")
    several.refresh()
    assert close(several, "quernstoen") == close(several, "gitcion") == []
