"""A person is erased from a real registry: no structured record is left anywhere, and nothing brings it back."""

import gzip
import json
import sqlite3
import tarfile
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from muniment.kernel.zstandard import zstd
from services.ports import wait_until
from services.product import Product, run

pytestmark = [pytest.mark.proof, pytest.mark.sqlite]  # reads the database's file
CHOSEN = 3


@pytest.fixture(scope="module")
def imported(sample_data, tmp_path_factory):
    """Import the real registry, back it up, and choose the people with most companies and one with a long name."""
    folder = tmp_path_factory.mktemp("erasing")
    run("import", str(sample_data), data=folder / "data", check=False)
    run("backup", str(folder / "before"), data=folder / "data")
    with closing(sqlite3.connect(folder / "data" / "muniment.sqlite3")) as connection:
        people = connection.execute(
            "SELECT p.slug, p.name FROM registry_person p JOIN registry_position o ON o.person_id = p.id"
            " WHERE length(p.slug) > 9 AND length(p.name) > 9 AND p.name LIKE '% %'"
            " GROUP BY p.id ORDER BY count(DISTINCT o.company_id) DESC, p.id LIMIT ?",
            (CHOSEN,),
        ).fetchall()
    return folder, people


def names_person(value: Any, slug: str) -> bool:
    """Return whether a JSON value contains an object with this slug as its ``slug``, or a value of it as a key."""
    if isinstance(value, dict):
        return value.get("slug") == slug or any(names_person(each, slug) for each in value.values())
    return isinstance(value, list) and any(names_person(each, slug) for each in value)


def answers(product, slug, name, companies):
    """Yield every kind of public answer that showed the person."""
    for path in (
        f"/api/v1/people?q={quote(name)}&pageSize=100",
        f"/api/v1/people?ids={quote(slug.replace(',', chr(92) + ','))}",
        *(f"/api/v1/companies/{quote(company)}" for company in companies),
    ):
        yield path, product.get(path).json()


def companies_of(data, slug):
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection:
        return [
            row[0]
            for row in connection.execute(
                "SELECT DISTINCT c.slug FROM registry_position o JOIN registry_company c ON c.id = o.company_id"
                " JOIN registry_person p ON p.id = o.person_id WHERE p.slug = ?",
                (slug,),
            )
        ]


def structured(data, slug):
    """Return the tables of the database with the slug as a whole value, or as a value inside JSON."""
    found = {}
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as connection:
        connection.text_factory = bytes
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            try:
                rows = connection.execute(f'SELECT * FROM "{table.decode()}"')
            except sqlite3.OperationalError:
                continue
            quoted, whole = b'"slug":%s' % json.dumps(slug, ensure_ascii=False).encode(), slug.encode()
            n = sum(any(isinstance(cell, bytes) and (cell == whole or quoted in cell) for cell in row) for row in rows)
            if n:
                found[table.decode()] = n
    return found


def unpacked(backup):
    content = zstd.ZstdFile(backup)
    with tarfile.open(fileobj=content, mode="r|") as archive:
        for member in archive:
            yield member.name, archive.extractfile(member).read()


def assert_gone(product, people, companies):
    for slug, name in people:
        assert product.get(f"/api/v1/people/{quote(slug)}").status == 404
        assert product.get(f"/people/{quote(slug)}").status == 404
        for path, answer in answers(product, slug, name, companies[slug]):
            assert not names_person(answer, slug), path
        for company in companies[slug]:
            page = product.get(f"/companies/{quote(company)}").body.decode()
            assert f'/people/{quote(slug, safe="")}"' not in page


def assert_not_exported(contents, people):
    for content in contents:
        lines = [json.loads(line) for line in content.splitlines()]
        assert not [slug for slug, _ in people if names_person(lines, slug)]


def assert_told_once(product, people):
    """Assert that the feed has the tombstone of 30 days and nothing else under a slug."""
    feed = [product.get("/api/v1/changes?after=0&limit=1000").json()]
    while feed[-1]["data"]:
        feed.append(product.get(f"/api/v1/changes?after={feed[-1]['nextAfter']}&limit=1000").json())
    entries = [(each["id"], each["change"]) for page in feed for each in page["data"]]
    slugs = {slug for slug, _ in people}
    assert sorted(entry for entry in entries if entry[0] in slugs) == sorted((slug, "unlisted") for slug in slugs)


def test_an_erased_person_is_nowhere_and_comes_back_by_no_restore_or_import(imported, sample_data):
    folder, people = imported
    data = folder / "data"
    companies = {slug: companies_of(data, slug) for slug, _ in people}
    assert all(companies.values())
    with Product(data, exports_interval_s="1") as product:
        product.wait_ready()
        wait_until(lambda: len(product.data_of("/api/v1/exports")) > 6, within_s=300, what="the first exports")
        before = {file["name"] for file in product.data_of("/api/v1/exports")}
        for slug, name in people:
            told = run("person", "erase", slug, "--yes", data=data)
            assert f"Erased {slug}" in told.stdout
            assert name not in told.stdout
        assert_gone(product, people, companies)
        assert not before & {file["name"] for file in product.data_of("/api/v1/exports")}
        wait_until(lambda: len(product.data_of("/api/v1/exports")) > 6, within_s=300, what="new exports")
        names = [each["name"] for each in product.data_of("/api/v1/exports") if each["name"].endswith(".jsonl.gz")]
        assert_not_exported((gzip.decompress(product.get(f"/exports/{name}").body) for name in names), people)
        assert_told_once(product, people)

    run("export", str(folder / "out"), data=data)
    assert_not_exported((file.read_bytes() for file in (folder / "out").rglob("*") if file.is_file()), people)
    for slug, _ in people:
        assert structured(data, slug) == {"published_change": 1}
        quoted = b'"slug":%s' % json.dumps(slug, ensure_ascii=False).encode()
        assert quoted not in (data / "muniment.sqlite3").read_bytes(), "free pages are overwritten too"

    run("backup", str(folder / "after"), data=data)
    for name, content in unpacked(folder / "after"):
        for slug, _ in people:
            quoted = json.dumps(slug, ensure_ascii=False).encode()
            assert quoted not in content, name

    restored = folder / "restored"
    told = run("restore", str(folder / "before"), data=restored)
    assert f"{len(people)} people who were erased since then were erased again." in told.stderr
    for slug, _ in people:
        assert structured(restored, slug) == {}
    warned = run("import", str(sample_data), data=restored, check=False)
    assert "was erased" in warned.stderr
    with Product(restored) as product:
        product.wait_ready()
        assert_gone(product, people, companies)
    for slug, _ in people:
        assert structured(restored, slug) == {}
