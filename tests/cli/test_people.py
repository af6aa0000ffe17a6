"""`muniment person erase`, and that backups, restores and imports respect it."""

import json
import subprocess
import tarfile
from io import BytesIO

import pytest

from make.registry import lines
from muniment.kernel.zstandard import zstd
from services.prepared import new_instance
from services.product import Product, run

NAME, SLUG = "Ottoline Ferrisbrook", "ottoline-ferrisbrook"
COMPANY = {"id": "harbour-board", "slug": "harbour-board", "name": "Harbour Board", "description": f"Led by {NAME}."}


@pytest.fixture
def registry(tmp_path):
    """Return a folder to import, with a person at a company."""
    lines(tmp_path / "in" / "people.jsonl", {"slug": SLUG, "name": NAME, "bio": "Collects pewterware."})
    positions = [{"title": "Chair", "person": {"name": NAME, "slug": SLUG}}]
    lines(tmp_path / "in" / "companies.jsonl", {"company": COMPANY, "positions": positions})
    return tmp_path / "in"


def unpacked(backup):
    """Return the content of a backup."""
    content = zstd.decompress(backup.read_bytes())
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}


def test_an_erased_person_is_in_no_later_backup_and_comes_back_by_no_restore_or_import(registry, tmp_path):
    data, backups = new_instance(tmp_path / "data"), tmp_path / "backups"
    backups.mkdir()
    run("import", str(registry), data=data)
    run("backup", str(backups / "before"), data=data)
    assert not (backups / "suppressions.jsonl").exists()
    dry = run("person", "erase", SLUG, "--dry-run", data=data)
    assert "company harbour-board: description names the person" in dry.stdout
    assert "Would erase ottoline-ferrisbrook: the profile and positions at 1 company." in dry.stdout
    done = run("person", "erase", SLUG, "--yes", data=data)
    assert "Erased ottoline-ferrisbrook" in done.stdout
    assert "company harbour-board: description names the person" in done.stdout
    listed = (backups / "suppressions.jsonl").read_text()
    assert len(listed.splitlines()) == 3
    assert "ottoline" not in listed
    for file in data.rglob("*"):
        if file.is_file():
            assert b"pewterware" not in file.read_bytes(), file
            assert NAME.encode() not in file.read_bytes() or file.name == "muniment.sqlite3", (
                "the description names her"
            )

    run("backup", str(backups / "after"), data=data)
    parts = unpacked(backups / "after")
    assert [name for name, content in parts.items() if SLUG.encode() in content] == []
    assert [name for name, content in parts.items() if b"pewterware" in content] == []

    for backup in ("before", "after"):
        restored = tmp_path / backup
        told = run("restore", str(backups / backup), data=restored)
        assert ("1 people who were erased since then" in told.stderr) == (backup == "before")
        warned = run("import", str(registry), data=restored)
        assert "was erased; the row is ignored" in warned.stderr
        assert "was erased; the position is ignored" in warned.stderr
    with Product(tmp_path / "before") as product:  # the later backup has nothing of her, as shown above
        assert product.get(f"/api/v1/people/{SLUG}").status == 404
        assert product.data_of("/api/v1/companies/harbour-board")["positions"] == []
        feed = product.get("/api/v1/changes").json()["data"]
        assert SLUG not in json.dumps(feed)


def test_a_list_made_with_another_key_is_reported(registry, tmp_path):
    data = new_instance(tmp_path / "data")
    run("import", str(registry), data=data)
    run("person", "erase", SLUG, "--yes", data=data)
    assert "another secret key" not in run("doctor", data=data).stdout
    told = run("doctor", data=data, check=False, secret_key="another key for this instance")
    assert told.returncode == 1
    assert "3 suppressions of erased people were made with another secret key" in told.stdout
    refused = run("import", str(registry), data=data, check=False, secret_key="another key for this instance")
    assert (refused.returncode, "which this node lacks" in refused.stderr) == (78, True)


def test_the_command_asks_first_and_names_an_unknown_person(registry, tmp_path):
    data = new_instance(tmp_path / "data")
    run("import", str(registry), data=data)
    asked = run("person", "erase", SLUG, data=data, stdin="n\n", check=False)
    assert (asked.returncode, "cannot be undone" in asked.stderr) == (1, True)
    unknown: subprocess.CompletedProcess[str] = run("person", "erase", "missing", "--yes", data=data, check=False)
    assert (unknown.returncode, "error: No person has the slug 'missing'" in unknown.stderr) == (1, True)
    assert "Erased" in run("person", "erase", SLUG, data=data, stdin="y\n").stdout
