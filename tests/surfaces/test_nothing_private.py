"""
Public data of a registry that holds private things: no table, statement, CSV file, export or saved query has any.

Each private thing has a mark of its own, which is looked for in all that a visitor can get on a real server.
"""

import gzip
import re
import shutil
import sqlite3
from contextlib import closing
from urllib.parse import quote, urlencode

import pytest

from make import registry as make
from make import reports
from make.documents import uploaded
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.models import Person
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.profiles import ProfileChange, create_profile, join_person, update_profile
from muniment.registry.review import claims, workflow
from muniment.registry_toml.queries import SHIPPED
from muniment.store.tables import FILE_NAME
from services.ports import wait_until
from services.product import Product, run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]  # the database's file is served

PUBLIC = "qxpublic"
LEAVING = "qxleaving"
"""A person who is public until the server runs."""
ERASED = "qxerased"
STORED = (
    *("qxdraft", "qxasked", "qxnote", "qxreason", "qxwaiting", "qxunlisted", "qxprofile", "qxclaim"),
    *("qxsuggested", "qxfile", "qxmail"),
    *reports.SECRETS[:4],
)
"""The marks of what is stored and private. The contents of a document are in a file of their own."""
CONTENT = "qxcontent"
PRIVATE = (*STORED, CONTENT, ERASED)


TABLES_FILE = "tables-latest.sqlite.gz"
GONE_WITHIN_S = 2  # the promise of a publication


def everything_of(mark, person=""):
    """Return the values of a listing, with a mark in each kind of its parts; *person* is the name of a person on it."""
    return {
        "description": f"We are {mark}.",
        "treasury": "$5",
        "themes": [mark],
        "socials": {"email": f"{mark}@example.org"},
        "address": [{"address_1": mark, "city": mark, "country": "GB", "zip": "1"}],
        "positions": [{"title": mark, "person": {"name": person or f"Ida {mark}"}}],
        "proposals": [{"title": mark, "status": "active", "endDate": "2099-01-01"}],
        "capTable": [{"address": f"0x{mark}", "name": mark, "tokens": "5", "percentage": 5}],
    }


def public_person(mark):
    """Publish a person with a mark, also in the slug, which the change feed keeps for 30 days; return the slug."""
    name = f"Mia {mark}"
    make.published(make.owner(), positions=[{"title": "Pilot", "person": {"name": name}}])
    slug, me = Person.objects.get(name=name).slug, make.owner()
    join_person(make.reviewer(), slug, me.account_id)
    update_profile(me, ProfileChange(bio=f"The bio of {mark}."))
    return slug


def fill():
    """
    Store private things of every kind beside a public listing, a public person and one who was erased.

    Returns:
        The slug of the public person.
    """
    me, judge, stranger = make.owner("qxmail@example.org"), make.reviewer(), make.owner()
    public = make.published(me, name="Qxquay", **everything_of(PUBLIC)).slug
    leaving, erased = public_person(LEAVING), public_person(ERASED)
    make.draft(me, name="Qxdraft", **everything_of("qxdraft"))
    asked = make.draft(me, name="Qxasked", **everything_of("qxasked")).slug
    workflow.submit_company(me, asked)
    workflow.request_changes(judge, asked, "qxnote: say who you are.")
    unlisted = make.published(me, name="Reef", **everything_of("qxunlisted", "Ida Reed")).slug
    workflow.unlist_company(judge, unlisted, "qxreason: it is gone.")
    update_company(me, public, CompanyChange(name="Qxwaiting"))
    create_profile(make.owner(), ProfileChange(name="Bo Qxprofile", bio="qxprofile"))
    asking = CompanyChange(positions={"add": [{"title": "qxtitle", "person": {"slug": leaving}}]})
    update_company(me, public, asking)
    claims.claim_company(stranger, public, "qxclaim: I chair it.")
    claims.suggest_edit(stranger, public, CompanyChange(description="qxsuggested"), "qxsuggested, as I know.")
    uploaded(me, public, content=f"The {CONTENT} of the board.".encode(), name="qxfile.txt")
    reports.finished(me, public)
    erase_person(judge, erased)
    return leaving


@pytest.fixture
def registry(stand, tmp_path):
    """Yield a server over a copy of the registry that is filled in this process, and the slug of a person on it."""
    slug = fill()
    data = tmp_path / "data"
    data.mkdir()
    database = stand.config.database_file
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(data / database.name)) as copy:
        source.backup(copy)
    shutil.copytree(stand.folder / "keys", data / "keys")
    with Product(data, exports_interval_s="1") as product:
        product.wait_ready()
        wait_until(lambda: product.get("/api/v1/tables").status == 200, within_s=60, what="the tables")
        wait_until(lambda: files_of(product) != [], within_s=60, what="the exports")
        yield product, slug


def files_of(site):
    """Return the addresses of all exports, of an edition and of the latest, once those of the tables are there."""
    exports = [f"/exports/{file['name']}" for file in site.data_of("/api/v1/exports")]
    latest = re.findall(r'href="(/exports/[^"]+)"', site.get("/data").body.decode())
    is_complete = f"/exports/{TABLES_FILE}" in latest
    return [*exports, *latest] if is_complete else []


def unpacked(site, path):
    answer = site.get(path)
    assert answer.status == 200, path
    return gzip.decompress(answer.body)


def csv_paths(site):
    """Return every list that has a form of CSV, as OpenAPI declares them, of each object where it is a part of one."""
    ids = {
        "slug": list(dict.fromkeys(["qxquay", *(each["id"] for each in site.data_of("/api/v1/companies"))])),
        "frameworkId": [each["frameworkId"] for each in site.data_of("/api/v1/frameworks")],
    }
    for path, methods in site.get("/openapi.json").json()["paths"].items():
        names = [parameter.get("name") for parameter in methods.get("get", {}).get("parameters", [])]
        if "format" in names and "sql" not in names:
            part = re.search(r"{(\w+)}", path)
            filled = [path.replace(part[0], quote(key)) for key in ids[part[1]]] if part else [path]
            yield from (f"{each}?format=csv" for each in filled)


def answers(site):
    """Yield what a visitor gets of the public data as tables, statements, CSV, saved queries and pages: path, body."""
    tables = [table["name"] for table in site.data_of("/api/v1/tables")]
    asked = [f"SELECT * FROM {table}" for table in tables]
    paths = [f"/api/v1/query?{urlencode({'sql': sql, 'format': form})}" for sql in asked for form in ("json", "csv")]
    paths += [f"/data/query?{urlencode({'sql': sql})}" for sql in asked]
    paths += [f"/data/queries/{query.slug}{end}?company=qxquay" for query in SHIPPED for end in ("", ".atom", "/embed")]
    for path in ["/data", "/api/v1/tables", *csv_paths(site), *paths]:
        answer = site.get(path)
        assert answer.status == 200, (path, answer.body)
        yield path, answer.body.lower()


def stored_bytes(data, name):
    """Return a database and its log, as they are on the disk."""
    return b"".join(file.read_bytes() for file in data.glob(f"{name}*")).lower()


def marks_in(content):
    return [mark for mark in PRIVATE if mark.encode() in content]


def test_nothing_private_is_in_tables_answers_csv_downloads_or_saved_queries(registry):
    site, slug = registry
    source = stored_bytes(site.data, "muniment.sqlite3")
    assert [mark for mark in STORED if mark.encode() not in source] == [], "each mark is stored"
    tables = stored_bytes(site.data, FILE_NAME)
    assert marks_in(tables) == []
    assert PUBLIC.encode() in tables
    shown = set()
    for path, body in answers(site):
        assert marks_in(body) == [], path
        shown |= {path} if PUBLIC.encode() in body else set()
    assert "/api/v1/companies?format=csv" in shown
    assert "/api/v1/companies/qxquay/cap-table?format=csv" in shown
    assert len(shown) > 15, "what is public is seen where it must be"
    linked = (
        "SELECT title, person FROM positions "
        "WHERE title IN ('qxtitle', 'Pilot') AND company = 'qxquay' OR person = :slug"
    )
    found = site.data_of(f"/api/v1/query?{urlencode({'sql': linked + ' ORDER BY title', 'slug': slug})}")
    assert found == [{"title": "Pilot", "person": slug}, {"title": "qxtitle", "person": None}], (
        "an unconfirmed position"
    )
    assert b"qxtitle" not in site.get("/api/v1/people?format=csv").body
    for path in files_of(site):
        assert marks_in(unpacked(site, path).lower()) == [], path
    assert PUBLIC.encode() in unpacked(site, f"/exports/{TABLES_FILE}")


def test_an_erased_person_leaves_tables_csv_and_downloads_at_once(registry):
    site, slug = registry
    mark, before = LEAVING.encode(), files_of(site)
    seen = [path for path, body in answers(site) if mark in body]  # and is kept for the next who asks
    seen += [path for path in before if mark in unpacked(site, path).lower()]
    assert "/api/v1/people?format=csv" in seen
    assert f"/exports/{TABLES_FILE}" in seen
    run("person", "erase", slug, "--yes", data=site.data)

    def still_shown():
        for path in seen:
            answer = site.get(path)
            body = gzip.decompress(answer.body) if answer.status == 200 and path in before else answer.body
            if mark in body.lower():
                return path
        return None

    wait_until(lambda: still_shown() is None, within_s=GONE_WITHIN_S, what="the end of what was shown")
    assert mark not in stored_bytes(site.data, FILE_NAME)
    assert [path for path, body in answers(site) if mark in body] == []
    wait_until(lambda: files_of(site) != [], within_s=60, what="new exports")
    assert [path for path in files_of(site) if mark in unpacked(site, path).lower()] == []
