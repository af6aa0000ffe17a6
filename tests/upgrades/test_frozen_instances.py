"""This version opens the instance of each released version: its data folder, its database on PostgreSQL, its backup."""

import json
import lzma
import tarfile
from pathlib import Path

import psycopg
import pytest

from services import former
from services.product import Product, run
from services.uploads import tool

HERE = Path(__file__).parent
VERSIONS = sorted(file.parent.name for file in HERE.glob("*/known.json"))
BASE_URL = "http://registry.example"
DATABASES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)]


class Instance:
    """The instance of a version, unpacked."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path, database: str, version: str) -> None:
        self.frozen = HERE / version
        self.known = json.loads((self.frozen / "known.json").read_text())
        self.data = folder / "data"
        self.url = ""
        with tarfile.open(self.frozen / "data.tar.xz") as archive:
            archive.extractall(self.data, filter="data")
        self.data.chmod(0o700)
        if database == "postgresql":
            (self.data / "muniment.sqlite3").unlink()
            self.url = empty_database(request, "frozen")
            with psycopg.connect(self.url) as connection:
                connection.execute(lzma.decompress((self.frozen / "postgresql.sql.xz").read_bytes()))
        self.settings = {"data": self.data, "base_url": BASE_URL, "database_url": self.url}


def empty_database(request: pytest.FixtureRequest, name: str) -> str:
    cluster = request.getfixturevalue("postgres")
    cluster.drop(name)
    return cluster.create(name)


def exported(folder: Path, **settings) -> dict[str, bytes]:
    run("export", str(folder), "--private", **settings)
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def recorded(frozen: Path, folder: Path) -> dict[str, bytes]:
    """Return the files that the version itself exported."""
    with tarfile.open(frozen / "exported.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return contents(folder)


@pytest.fixture(params=DATABASES)
def database(request):
    return request.param


@pytest.fixture(params=VERSIONS)
def instance(request, tmp_path, database):
    return Instance(request, tmp_path, database, request.param)


def test_an_instance_is_migrated_proven_read_and_changed(instance, tmp_path):
    run("migrate", **instance.settings)
    assert "Nothing to do" in run("migrate", **instance.settings).stdout
    told = run("doctor", "--deep", check=False, **instance.settings).stdout  # its status is that of warnings too
    assert "FAIL" not in told, told
    assert "OK    published documents: each is what its source says" in told
    # A later version that exports further members compares those that the recorded lines have.
    assert exported(tmp_path / "exported", **instance.settings) == recorded(instance.frozen, tmp_path / "recorded")
    company, token = instance.known["company"], instance.known["token"]
    with Product(instance.data, base_url=BASE_URL, database_url=instance.url) as product:
        product.wait_ready("/readyz?writes")
        assert product.data_of(f"/api/v1/companies/{company}")["company"]["name"] == "Harbour Board"
        documents = tool(product, token, "list_my_documents")["data"]
        assert sorted(each["documentId"] for each in documents) == instance.known["documents"]
        tool(product, token, "update_my_company", slug=company, changes={"website": "https://harbour.example"})
        assert product.data_of(f"/api/v1/companies/{company}")["company"]["website"] == "https://harbour.example"


def test_the_instances_are_those_of_the_released_versions_and_hold_what_the_tests_ask_for():
    assert VERSIONS[0] == "0.1.0", "without one, the tests of this module are skipped"
    for version in VERSIONS:
        known = json.loads((HERE / version / "known.json").read_text())
        assert known["token"]
        assert known["company"]
        assert known["documents"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_backup_is_verified_and_restored(request, tmp_path, database, version):
    backup = str(HERE / version / "instance.backup")
    settings = {"data": tmp_path / "data", "base_url": BASE_URL, "database_url": ""}
    if database == "postgresql":
        settings["database_url"] = empty_database(request, "restored")
    run("doctor", "--backup", backup, **settings)
    run("restore", backup, **settings)
    assert exported(tmp_path / "exported", **settings) == recorded(HERE / version, tmp_path / "recorded")


@pytest.mark.whole(keeps=0)
def test_a_version_with_a_further_migration_migrates_an_instance_and_restores_its_backup(instance, tmp_path):
    later = former.expanded(tmp_path / "later")
    restored = {"data": tmp_path / "restored", "base_url": BASE_URL, "database_url": ""}
    run("migrate", **instance.settings)
    with former.running(*later):
        assert "1 migrations applied" in run("migrate", **instance.settings).stdout
        run("restore", str(instance.frozen / "instance.backup"), **restored)
        assert "Nothing to do" in run("migrate", **restored).stdout
        after = exported(tmp_path / "exported", **restored)
    assert after == recorded(instance.frozen, tmp_path / "recorded")
