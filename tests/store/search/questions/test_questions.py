"""Questions in plain words and the filters that they are; texts that are no questions."""

import time
from datetime import date

import pytest
from msgspec import ValidationError

from muniment.schema.objects import registry_schema
from muniment.store.search.questions.asking import question
from muniment.store.search.questions.language import FOLDER, languages, parse
from muniment.store.search.questions.reading import Chip

TODAY = date(2026, 11, 23)
LISTINGS = registry_schema("USD").listings

ENGLISH = [
    ("which DAOs on solar energy are raising", "type=DAO raising=true q=solar energy"),
    ("Which DAOs on governance are raising?", "type=DAO theme=governance raising=true"),
    ("climate and energy companies", "theme=climate theme=energy"),
    ("Open-Data non-profits", "theme=open-data type=non-profit"),
    ("energy cooperatives", "theme=energy type=cooperative"),
    ("what DAOs exist in the oceans sector", "type=DAO theme=oceans"),
    ("water & food non-profits", "theme=water theme=food type=non-profit"),
    ("fintech startups", "q=fintech"),
    ("non-profits for tidal Studies and glass works", "type=non-profit q=tidal Studies glass work"),
    ("non-profits with libraries", "type=non-profit q=libraries"),
    ("show me cooperatives in Tarnwick", "type=cooperative city=Tarnwick"),
    ("organizations from Norway", "country=NO"),
    ("companies in 灯見市", "city=灯見市"),
    ("DAOs with a token", "type=DAO hasToken=true"),
    ("cooperatives without a token", "type=cooperative hasToken=false"),
    ("DAOs that don't have a cap table", "type=DAO hasCapTable=false"),
    ("open source projects not raising", "type=open source project raising=false"),
    ("which companies have a cap table", "hasCapTable=true"),
    ("inactive DAOs or cooperatives", "status=inactive type=DAO type=cooperative"),
    ("upcoming companies raising money", "status=upcoming raising=true"),
    ("companies with a treasury over $10 million", "treasuryMin=10M"),
    ("VCs with at least $1.5B", "type=VC treasuryMin=1.5B"),
    ("companies under $100k that are raising", "treasuryMax=100K raising=true"),
    (
        "non-profits with assets between $1 and $10 million",
        "type=non-profit treasuryMin=1M treasuryMax=10M",
    ),
    ("corporations with 2,500,000 dollars or more", "type=corporation treasuryMin=2.5M"),
    ("DAOs with more than 3 people", "type=DAO teamMin=4"),
    ("companies with ten or more employees", "teamMin=10"),
    ("companies with teams of 2 to 5 people", "teamMin=2 teamMax=5"),
    ("cooperatives with a team of at most five", "type=cooperative teamMax=5"),
    ("DAOs listed since 2024", "type=DAO listedFrom=2024-01-01"),
    ("companies listed before March 2023", "listedTo=2023-02-28"),
    ("added in the last 30 days", "listedFrom=2026-10-24"),
    ("non-profits added between 2019 and 2020", "type=non-profit listedFrom=2019-01-01 listedTo=2020-12-31"),
    ("companies listed last year sorted by name", "listedFrom=2025-01-01 listedTo=2025-12-31 sort=name"),
    ("organizations updated since 1 March 2026", "updatedSince=2026-03-01T00:00:00Z"),
    ("which non-profits have the largest treasury", "type=non-profit sort=treasury"),
    ("top 10 DAOs by team size", "type=DAO sort=team"),
    ("the 5 largest VCs", "sort=treasury type=VC"),
    ("newest cooperatives", "sort=newest type=cooperative"),
    ("who founded Quillmere Foundation", "person title=founder company=quillmere"),
    ("founders of Saltmarsh Comons", "person title=founder company=saltmarsh-commons"),
    ("people at Oxbow Mutual", "person company=oxbow-mutual"),
    ("who works for OXB", "person company=oxbow-mutual"),
    ("who is behind Quillmere Foundation?", "person company=quillmere"),
    ("who's behind OXB", "person company=oxbow-mutual"),
    ("people in more than 3 companies", "person minCompanies=4"),
    ("open programs", "framework isOpen=true kind=program"),
    ("programs of Harrow Bay Works", "framework kind=program company=harrowbay-accelerator"),
    ("scoring frameworks that are not open", "framework kind=score isOpen=false"),
]
GERMAN = [
    ("Welche DAOs zu Governance sammeln gerade Geld?", "type=DAO theme=governance raising=true"),
    ("Genossenschaften in Tarnwick", "type=cooperative city=Tarnwick"),
    ("Organisationen aus Norwegen", "country=NO"),
    ("DAOs ohne Token, die seit 2022 gelistet sind", "type=DAO hasToken=false listedFrom=2022-01-01"),
    ("gemeinnützige Organisationen mit mehr als 1,5 Mio. Euro", "type=non-profit treasuryMin=1.5M"),
    ("Unternehmen mit weniger als 3 Mitarbeitern", "teamMax=2"),
    ("größte DAOs nach Teamgröße", "type=DAO sort=team"),
    ("im letzten Jahr gelistete Unternehmen", "listedFrom=2025-01-01 listedTo=2025-12-31"),
    ("die 5 größten DAOs aus dem Jahr 2022", "sort=treasury type=DAO listedFrom=2022-01-01 listedTo=2022-12-31"),
    ("neueste Genossenschaften für Energie", "sort=newest type=cooperative theme=energy"),
    ("in den letzten 30 Tagen aktualisierte Unternehmen", "updatedSince=2026-10-24T00:00:00Z"),
    ("wer hat die Quillmere Foundation gegründet", "person company=quillmere title=founder"),
    ("wer steht hinter der Quillmere Foundation?", "person company=quillmere"),
    ("Personen in mindestens zwei Unternehmen", "person minCompanies=2"),
    ("offene Programme", "framework isOpen=true kind=program"),
]


def ask(reader, text, today=TODAY):
    return question(reader, LISTINGS, text, today)


def shown(reading):
    """Return a reading on one line: its kind if not company, its chips, its text."""
    kind = [] if reading.kind == "company" else [reading.kind]
    text = [f"q={reading.q}"] if reading.q else []
    return " ".join([*kind, *(f"{chip.name}={chip.value}" for chip in reading.chips), *text])


@pytest.mark.parametrize(("asked", "expected"), ENGLISH + GERMAN)
def test_a_question_is_read_as_filters(demo_reader, asked, expected):
    reading = ask(demo_reader, asked)
    assert reading is not None
    assert shown(reading) == expected


def test_the_language_of_a_question_is_noticed(demo_reader):
    assert {ask(demo_reader, asked).language for asked, _ in ENGLISH} == {"en"}
    assert {ask(demo_reader, asked).language for asked, _ in GERMAN} == {"de"}


def test_each_filter_has_the_words_that_it_came_from(demo_reader):
    reading = ask(demo_reader, "Which DAOs, on solar energy, have a treasury of more than $2M?")
    assert reading.chips == (
        Chip("type", "DAO", "DAOs"),
        Chip("treasuryMin", "2M", "treasury of more than $2M"),
    )
    assert reading.q == "solar energy"
    assert reading.parameters() == [("q", "solar energy"), ("type", "DAO"), ("treasuryMin", "2M")]
    assert reading.to_wire() == {
        "kind": "company",
        "filters": [
            {"name": "type", "value": "DAO", "words": "DAOs"},
            {"name": "treasuryMin", "value": "2M", "words": "treasury of more than $2M"},
        ],
        "q": "solar energy",
        "notUnderstood": ["solar", "energy"],
        "language": "en",
    }


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ("after 2023", "listedFrom=2024-01-01"),
        ("until March 2023", "listedTo=2023-03-31"),
        ("in March", "listedFrom=2026-03-01 listedTo=2026-03-31"),
        ("in December", "listedFrom=2025-12-01 listedTo=2025-12-31"),
        ("on 2024-02-29", "listedFrom=2024-02-29 listedTo=2024-02-29"),
        ("after 31.12.2024", "listedFrom=2025-01-01"),
        ("since March 3rd, 2025", "listedFrom=2025-03-03"),
        ("this month", "listedFrom=2026-11-01"),
        ("this week", "listedFrom=2026-11-23"),
        ("last month", "listedFrom=2026-10-01 listedTo=2026-10-31"),
        ("in the last month", "listedFrom=2026-10-23"),
        ("in the past 2 years", "listedFrom=2024-11-23"),
        ("in the last two weeks", "listedFrom=2026-11-09"),
        ("before last year", "listedTo=2024-12-31"),
        ("since yesterday", "listedFrom=2026-11-22"),
        ("today", "listedFrom=2026-11-23 listedTo=2026-11-23"),
    ],
)
def test_periods_are_read(demo_reader, period, expected):
    assert shown(ask(demo_reader, f"DAOs listed {period}")) == f"type=DAO {expected}"


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("> 10m", "treasuryMin=10M"),
        ("over 1,000,000", "treasuryMin=1M"),
        ("over 1,234,567", "treasuryMin=1234567"),
        ("over 999", "treasuryMin=999"),
        ("over 1.000.000", "treasuryMin=1M"),
        ("over USD 3 thousand", "treasuryMin=3K"),
        ("from 2 to 3 bn", "treasuryMin=2B treasuryMax=3B"),
        ("of $5m+", "treasuryMin=5M"),
        ("of at least 0.5 million euros", "treasuryMin=500K"),
    ],
)
def test_amounts_are_read(demo_reader, amount, expected):
    assert shown(ask(demo_reader, f"DAOs with a treasury {amount}")) == f"type=DAO {expected}"


@pytest.mark.parametrize(
    "text",
    [
        # names, wholly or in part
        "Harrow Bay Works",
        "the slow post",
        "reef",
        "quillmere.example",
        "First Kitchen",
        "Open Archive",
        "Ebbmark DAO",
        "Harbour Library of",
        "Upcoming Tide Prize",
        "Active Citizens Network",
        "Friends of the Earth",
        "The Energy Fund",
        "Data Programs",
        # in quotation marks
        '"which DAOs are raising"',
        "„welche DAOs sammeln Geld“",
        " «DAOs with a token»",
        # words that no filter has, or only one that is nothing special
        "",
        "?!",
        "DAO",
        "raising",
        "energy",
        "solar",
        "which",
        "companies",
        "who",
        # what a filter cannot say
        "Doctors without Borders",
        "companies that are not DAOs",
        "no cooperatives",
        "companies founded in 2019",
        "founders of DAOs",
        "DAO cooperatives",
        "DAOs raising but not raising",
        "DAOs with more than",
        "DAOs before the flood",
        "frameworks since 2024",
        "DAOs with more than 2.5 people",
        "people in fewer than 3 companies",
        "open programs by team size",
        "governance frameworks",
        "newest programs",
        "DAOs listed after 2024 and before 2022",
        "DAOs with more than 100 billion people",
        "people by treasury",
    ],
)
def test_no_question_is_seen_in_names_and_in_what_no_filter_can_say(demo_reader, text):
    assert ask(demo_reader, text) is None


def test_no_name_of_the_registry_is_a_question(demo_reader):
    with demo_reader.snapshot() as (connection, _):
        rows = connection.execute("SELECT key, sort_name FROM published_document").fetchall()
    names = [text for row in rows for text in row]
    assert len(names) > 200
    assert [name for name in names if ask(demo_reader, name)] == []


def test_a_company_that_is_named_like_a_question_is_found_by_its_name(demo_reader):
    assert ask(demo_reader, "a very quiet company") is None
    assert shown(ask(demo_reader, "which very quiet company is raising")) == "raising=true q=very quiet"


@pytest.mark.parametrize(
    "text",
    [
        "which DAOs " + "more than " * 12 + "in",
        "which " * 38 + "DAOs",
        "DAOs " * 40,
        "since 9999 DAOs after 9999-12-31 in the last 99999999999999 years",
        "DAOs with treasury over $99999999999999999999999999",
        "\u202eDAOs\u202c \u2067على الطاقة\u2069 token؟",
        "مؤسسات في قرن",
        "1.1.1.1.1.1 or more 1,,,,, $$$ 10% DAOs 31.02.2024",
        "DAOs in in in in or or and of of of founders founders of of",
        "which DAOs on " + "ab" * 120,
        "￼" * 40,
        'DAOs" OR name:*) NEAR(',
    ],
)
def test_any_text_is_read_or_left(demo_reader, text):
    reading = ask(demo_reader, text)
    assert reading is None or reading.chips or reading.q


def test_a_long_text_is_no_question_and_costs_nothing(demo_reader):
    ask(demo_reader, "which DAOs are raising")
    started = time.process_time()
    for text in ("which DAOs are raising " * 435, "x" * 10_000, "9" * 10_000, "$1.,.," * 1_700, "which " * 1_700):
        assert ask(demo_reader, text[:10_000]) is None
    assert time.process_time() - started < 0.05


def test_every_language_has_the_words_of_every_filter():
    flags = {"raising", "hasToken", "hasCapTable", "isOpen"}
    for language in languages():
        found = {meaning for each in language.phrases.values() for _, meanings in each for meaning in meanings}
        assert {entry for role, entry in found if role == "flag"} == flags
        assert {entry for role, entry in found if role == "month"} == {str(month) for month in range(1, 13)}


def test_a_language_names_the_list_that_it_lacks():
    text = (FOLDER / "en.toml").read_text()
    lists = "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("join = "))
    with pytest.raises(ValidationError, match="missing required field `join`"):
        parse("xx", lists.encode())
    with pytest.raises(ValidationError, match="unknown field `colour`"):
        parse("xx", f'colour = ["red"]\n{text}'.encode())
