"""The data page: the files that this node serves, the tables, and nothing of an erased person."""

import re

import pytest
from django.test import Client

from make.pages import valid
from make.published import Publisher, company, framework, person
from muniment.schema.objects import registry_schema
from muniment.store.exports.exports import Exports
from muniment.store.reader import Reader
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables
from muniment.web.requests import page_cache

SCHEMA = registry_schema("USD")


@pytest.fixture
def publisher(tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    made.publish(company(1, "harbour", themes=["tides"]), person(1, "layla"), framework(1, "tide-score"))
    yield made
    made.close()


@pytest.fixture
def reader(publisher, tmp_path):
    opened = Reader(tmp_path / "published.sqlite3")
    page_cache.use(opened)
    yield opened
    page_cache.use(None)
    opened.close()


@pytest.fixture
def exports(reader, tmp_path):
    return Exports(tmp_path / "exports", reader.path, SCHEMA, oldest=reader.erased, chain_after=reader.chain_after)


def page():
    answer = Client().get("/data")
    assert answer.status_code == 200
    return answer.text


def test_the_page_says_what_is_being_made_then_lists_the_files_and_the_tables(reader, exports, tmp_path):
    html = page()
    assert "The first files are being made." in html
    assert "The tables are being made." in html
    exports.make()
    tables = Tables(tmp_path / FILE_NAME, reader, SCHEMA)
    tables.follow()
    html = page()
    valid(html)
    for name in ("companies-latest.jsonl", "people-latest.csv", "tables-latest.sqlite", "themes-latest.csv"):
        assert f'href="/exports/{name}.gz" download' in html
    assert "<code>themes</code>" in html
    assert "query?sql=SELECT+%2A+FROM+themes+LIMIT+100" in html
    assert f"edition {reader.edition}" in html
    assert "has not declared a license" in html
    tables.close()


def test_what_tables_and_columns_hold_is_in_the_language_of_the_page(reader, tmp_path):
    Tables(tmp_path / FILE_NAME, reader, SCHEMA).follow()
    german = Client(headers={"Accept-Language": "de"}).get("/data").text
    for words in (
        "Organisationen, eine je Zeile.",
        "Erste Adresse: ",
        "Vermögen, genau, in USD.",
        "Der Slug der Organisation.",
    ):
        assert words in german
    hidden = re.sub(r"<(code|script|pre)[^>]*>.*?</\1>", "", german, flags=re.DOTALL)
    for words in ("one per row", "The slug", "The name", "absent if", "Whether", "the month"):
        assert words not in hidden
    assert "Companies, one per row." in page()


def test_files_with_an_erased_person_are_not_listed(reader, exports, publisher):
    exports.make()
    assert "people-latest.csv" in page()
    publisher.unlist("person", "layla")
    publisher.unlist("person", "erased:1")
    reader.refresh()
    assert "people-latest.csv" not in page()


def test_the_page_is_linked_from_every_list_and_from_the_navigation(reader):
    for path in ("/companies", "/people", "/frameworks"):
        html = Client().get(path).text
        assert re.search(r'<p class="quiet small unprinted">.*<a href="/data">', html), path
        assert html.count('href="/data"') == 3
