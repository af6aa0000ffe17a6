"""`muniment doctor --deep` reads everything stored; its exit status tells OK, WARN or FAIL."""

import re
import sqlite3
from contextlib import closing

import pytest

from muniment.config import Config
from muniment.scrub import checks
from muniment.scrub.checks import Check, Damage, Slice
from muniment.server import deep_checks
from muniment.server.findings import bad, exit_status, good, warning
from muniment.setting_values import Provider
from services.issuer import Issuer
from services.prepared import demo_registry
from services.product import run

_EVIL = (
    "UPDATE published_document SET body = CAST(replace(body, 'Quillmere', 'Evil Corp') AS BLOB) WHERE key = 'quillmere'"
)


def test_the_exit_status_tells_the_worst_finding():
    assert exit_status([good("a", "")]) == 0
    assert exit_status([good("a", ""), warning("b", "")]) == 3
    assert exit_status([bad("c", ""), warning("b", "")]) == 1


@pytest.mark.sqlite  # it edits the file
def test_an_edited_document_fails_until_it_is_published_again(tmp_path):
    data = demo_registry(tmp_path / "data")
    done = run("doctor", "--deep", data=data)
    assert "OK    published documents: each is what its source says" in done.stdout
    assert "OK    database pages: every page, index and search index is whole" in done.stdout
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as database, database:
        database.execute(_EVIL)
    done = run("doctor", "--deep", data=data, check=False)
    assert done.returncode == 1
    assert "FAIL  published documents: companies/quillmere: body not as in the source; run muniment republish" in (
        done.stdout
    )
    assert "FAIL" not in run("doctor", data=data).stdout, "the plain check stays as quick as it was"
    told = run("republish", data=data).stdout
    assert "documents rendered, 1 replaced, 0 removed." in told
    before, after = re.search(r"State digest: (\w+) before, (\w{64}) after", told).groups()
    assert before != after
    assert "FAIL" not in run("doctor", "--deep", data=data).stdout
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as database, database:
        database.execute(
            "UPDATE published_item_company SET item = CAST(replace(item, 'Quillmere', 'Evil Corp') AS BLOB)"
            " WHERE CAST(item AS TEXT) LIKE '%\"quillmere\"%'"
        )
    told = run("scrub", data=data).stdout
    assert "MENDED  published documents: companies/quillmere: item not as in the source" in told
    assert "under a new feed" in run("republish", "--rebuild", data=data).stdout
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as database, database:
        database.execute("UPDATE registry_company SET name = 'Evil Corp' WHERE slug = 'quillmere'")
    done = run("scrub", data=data, check=False)
    assert done.returncode == 1
    assert "DAMAGED  published documents: companies/quillmere: " in done.stdout


def test_an_instance_without_migrations_is_a_warning(tmp_path, postgres):
    done = run("doctor", "--deep", data=tmp_path / "data", database_url=postgres.create("deep"), check=False)
    assert done.returncode == 3
    assert "WARN  stored data: not examined; run muniment migrate" in done.stdout


@pytest.mark.django_db
def test_many_damages_are_counted_and_a_check_that_cannot_run_fails(monkeypatch):
    damage = Damage(check="shelf", subject="book", says="is torn", remedy="replace it")
    minor = Damage(check="shelf", subject="book", says="is on the floor", remedy="it is put back", is_minor=True)

    def away(*_):
        message = "the shelf is away"
        raise RuntimeError(message)

    def check(name, look):
        return Check(name=name, fine="", count=lambda: 1, look=look)

    shelves = {
        "shelf": check("shelf", lambda *_: Slice(13, [damage] * 13, None)),
        "floor": check("floor", lambda *_: Slice(1, [minor], None)),
        "hall": check("hall", away),
    }
    monkeypatch.setattr(checks, "_checks", shelves)
    found = list(deep_checks.examine_deeply(Config({})))
    assert [each.mark for each in found[:14]] == ["OK", *["FAIL"] * 10, "FAIL", "WARN", "FAIL"]
    assert [each.what for each in found[14:]] == ["exports", "stored backups"]
    assert found[1].says == "book: is torn; replace it"
    assert found[11].says == "3 more are damaged"
    assert found[13].says == "not examined: the shelf is away; make it reachable and try again"


@pytest.mark.django_db
def test_the_identity_provider_is_asked_as_a_sign_in_would(monkeypatch):
    monkeypatch.setattr(checks, "_checks", {})

    def found(issuer):
        monkeypatch.setattr(deep_checks, "pending", lambda: 1)  # the rest is not examined
        listed = (Provider("sso", "S", issuer, "a", "b"),) if issuer else ()
        return next(iter(deep_checks.examine_deeply(Config({}, oidc_providers=listed))))

    with Issuer({"sub": "1"}) as issuer:
        assert (found(issuer.url).mark, found(f"{issuer.url}/").mark) == ("OK", "OK")
        issuer.discovery = lambda: {"issuer": "https://other.example"}
        says = found(issuer.url).says
        assert "names the issuer 'https://other.example'; write it into MUNIMENT_OIDC_PROVIDERS" in says
        issuer.discovery = list
        assert found(issuer.url).mark == "FAIL"
    away = found(issuer.url)
    assert (away.mark, "does not answer" in away.says) == ("FAIL", True)
    assert "is not a web address" in found("login.example").says
    assert found("").says == "none; accounts sign in here"
