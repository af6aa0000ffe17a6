"""`muniment former-name`: the operator lists former names of a listing, hides them, and removes one for good."""

import pytest

from make.registry import lines
from services.prepared import new_instance
from services.product import run

SLUG, FIRST, SECOND = "quillmere", "Ottoline Ferrisbrook & Sons", "Pewter Quay"
FORMER = [{"name": SECOND, "until": "2025-03-01"}, {"name": FIRST, "until": "2024-03-01"}]
COMPANY = {"id": SLUG, "slug": SLUG, "name": "Quillmere", "formerNames": FORMER}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return an instance with a listing that had two other names."""
    folder = tmp_path_factory.mktemp("names")
    lines(folder / "companies.jsonl", {"company": COMPANY})
    data = new_instance(folder / "data")
    run("import", str(folder / "companies.jsonl"), data=data)
    return data


def names(data, *arguments, check=True):
    return run("former-name", *arguments, data=data, check=check)


def test_names_are_listed_hidden_and_shown_again(data):
    assert names(data, "list", SLUG).stdout == f"{SECOND}\t2025-03-01\n{FIRST}\t2024-03-01\n"
    assert names(data, "hide", SLUG, SECOND).stdout == f"{SLUG}: the former name is hidden.\n"
    listed = names(data, "list", SLUG).stdout
    assert listed.splitlines()[0] == f"{SECOND}\t2025-03-01\thidden by reviewer"
    assert names(data, "show", SLUG, SECOND).stdout == f"{SLUG}: the former name is public.\n"


def test_a_removed_name_is_in_no_file_and_no_import_brings_it_back(data, tmp_path):
    asked = names(data, "remove", SLUG, FIRST, check=False)
    assert (asked.returncode, "aborted" in asked.stderr) == (1, True)
    assert names(data, "remove", SLUG, "OTTOLINE FERRISBROOK, SONS", "--yes").stdout.endswith("name is removed.\n")
    assert [file for file in data.rglob("*") if file.is_file() and b"Ferrisbrook" in file.read_bytes()] == []
    lines(tmp_path / "companies.jsonl", {"company": COMPANY})
    run("import", str(tmp_path / "companies.jsonl"), data=data)
    assert [line.split("\t")[0] for line in names(data, "list", SLUG).stdout.splitlines()] == [SECOND]


def test_a_slug_that_no_listing_has_is_an_error_with_the_nearest(data):
    said = names(data, "list", "quilmere", check=False)
    assert said.returncode == 1
    assert said.stderr == "error: No listing has the slug 'quilmere'. Did you mean quillmere (Quillmere)?\n"
    said = names(data, "list", "other", check=False)
    assert said.stderr == "error: No listing has the slug 'other'. GET /api/v1/companies lists the slugs.\n"


def test_a_name_that_a_listing_never_had_is_an_error(data):
    answer = names(data, "remove", SLUG, "Never Had", "--yes", check=False)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: '{SLUG}' has no such former name.")
