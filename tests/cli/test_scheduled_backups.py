"""`muniment backup`, `backups` and `restore --at` with a place of scheduled backups, also for a lost database."""

import pytest
from click.testing import CliRunner

from muniment.cli import main
from services.prepared import new_instance
from services.product import run

OWN = {"database_url": ""}


@pytest.mark.sqlite  # the database is a file that can be lost
def test_a_lost_database_is_restored_into_the_same_folder_from_its_own_backups(tmp_path):
    data = new_instance(tmp_path / "data", **OWN)
    run("user", "create", "first@harbour.example", "--no-password", data=data, **OWN)
    made = run("backup", data=data, **OWN).stdout
    assert "read back and verified. Backups kept: 1, removed: 0." in made
    assert "Nothing has changed since the newest backup" in run("backup", data=data, **OWN).stdout
    listed = run("backups", "--verify", data=data, **OWN).stdout
    assert listed.startswith("OK  ")
    assert "Nothing had changed since the newest until" in listed
    for file in data.glob("muniment.sqlite3*"):
        if not file.name.endswith("-registry"):
            file.unlink()
    told = run("restore", "--at", "latest", data=data, **OWN)
    assert "Every change after " in told.stdout
    assert "Restored " in told.stdout
    assert "first@harbour.example" in run("user", "list", data=data, **OWN).stdout


def test_wrong_places_and_times_are_usage_errors(tmp_path):
    for words, says in (
        (["restore"], "Name the file of a backup, or a time with --at."),
        (["backups", "s3:bucket"], "The place must be a URL such as s3://"),
        (["backups", "off"], "Name the place, or set MUNIMENT_BACKUPS."),
        (["backups", str(tmp_path / "none")], "is not a folder"),
        (["restore", "--at", "yesterday", str(tmp_path)], "is not a time with its offset from UTC"),
    ):
        told = CliRunner().invoke(main, words)
        assert told.exit_code in {1, 2}
        assert says in " ".join(told.output.split()), told.output


def test_a_place_without_backups_yet_says_so(tmp_path):
    told = run("backups", data=tmp_path / "data", check=False)
    assert told.returncode == 1
    assert f"No backups in {tmp_path}/data/backups yet" in told.stderr
