"""Search: ranking, scripts and prefixes."""

import pytest

from make.published import company, ids, person
from make.queries import companies_by, people_by


def companies(reader, **query):
    return ids(reader.companies(companies_by(**query)))


def test_the_name_ranks_before_the_slug_before_the_description_before_the_body(publisher, reader):
    publisher.publish(
        company(1, body="On harbours and much else."),
        company(2, description="Keeps harbours clean"),
        company(3, "harbours"),
        company(4, name="Harbours United"),
        company(5, name="Harbours"),
        company(6, name="Nothing of it"),
    )
    reader.refresh()
    assert companies(reader, q="harbours") == [
        "company-5",
        "harbours",
        "company-4",
        "company-2",
        "company-1",
    ] or companies(reader, q="harbours") == ["harbours", "company-5", "company-4", "company-2", "company-1"]


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("Água Límpida São", ["agua", "AGUA", "limp", "água límpida", "sao", "São"]),
        ("Łódź Straße Ørsted", ["lodz", "strasse", "orsted", "STRASSE"]),
        ("中国电信集团", ["中", "中国", "国电", "电信集团", "团", "中国电信集团", "中国 集团"]),
        ("東京カレッジ", ["東京", "カレ", "京カ", "レッジ"]),
        ("สมาคมน้ำสะอาด", ["สมาคม", "น้ำ", "สะอาด", "น้ำสะอาด"]),
        ("한국전력공사", ["한국", "전력", "공사", "력"]),
        ("हिन्दी जल संस्था", ["हिन्दी", "जल", "संस्"]),
        ("Общество Рек", ["общество", "РЕК", "общ"]),
        ("جمعية الماء", ["الماء", "جمعية"]),
        ("C++ & O'Brien 🚀 web3中国", ["o'brien", "brien", "🚀", "web3", "中国", "web3中国"]),
        ("ＦＵＬＬ ｗｉｄｔｈ", ["full width", "wid"]),
    ],
)
def test_names_are_found_in_every_script(publisher, reader, name, queries):
    publisher.publish(company(1, name=name), company(2, name="Other 其他"), person(1, name=name))
    reader.refresh()
    for query in queries:
        assert companies(reader, q=query) == ["company-1"], query
        assert ids(reader.people(people_by(q=query))) == ["person-1"], query


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'",
        "*",
        "a*b",
        "AND",
        "NOT a OR",
        "name:x",
        "(",
        "^a",
        "a NEAR b",
        "{x}",
        "\x00",
        "-",
        "+",
        "\ud800",
        "%",
        "☃️",
    ],
)
def test_no_query_makes_a_syntax_error(publisher, reader, query):
    publisher.publish(company(1))
    reader.refresh()
    assert reader.companies(companies_by(q=query)).total == 0


def test_only_the_last_word_is_a_prefix(publisher, reader):
    publisher.publish(company(1, name="Bluewater Trust"), company(2, name="Reservoir"))
    reader.refresh()
    assert reader.companies(companies_by(q="trust blue")).closest == ()
    begun = reader.companies(companies_by(q="blue trust"))  # every word but one
    assert (ids(begun), [each.id for each in begun.closest]) == ([], ["company-1"])
    assert companies(reader, q="reservo trusty x") == []
