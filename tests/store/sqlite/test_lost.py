"""A database file that is empty or gone where there was a registry is a refusal, never a new registry."""

import pytest

from muniment.server.process.exit_status import REFUSED
from muniment.store.sqlite import lost
from muniment.store.sqlite.lost import LostDatabase
from services.ports import free_port
from services.prepared import new_instance
from services.product import run

pytestmark = pytest.mark.sqlite


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "muniment.sqlite3"
    path.write_bytes(b"a registry")
    return path


def test_a_folder_without_a_registry_is_no_loss(tmp_path):
    lost.require_present(tmp_path / "muniment.sqlite3")


def test_a_registry_that_is_there_is_noted_once(file):
    lost.note(file)
    first = lost.note_of(file).read_bytes()
    lost.note(file)
    assert lost.note_of(file).read_bytes() == first
    lost.require_present(file)


@pytest.mark.parametrize("end", ["empty", "gone"])
def test_a_registry_that_is_lost_is_told_with_the_ways_out(file, end):
    lost.note(file)
    file.write_bytes(b"") if end == "empty" else file.unlink()
    with pytest.raises(LostDatabase, match=f"is {end}, although .* muniment restore.* delete "):
        lost.require_present(file)


def test_a_restore_may_take_its_place_and_a_failed_one_leaves_the_note(file):
    lost.note(file)
    file.unlink()
    with lost.restoring(file):
        lost.require_present(file)
    with pytest.raises(LostDatabase):
        lost.require_present(file)
    with pytest.raises(OSError), lost.restoring(file):
        raise OSError("the backup cannot be read")
    with pytest.raises(LostDatabase):
        lost.require_present(file)


def test_a_disk_that_refuses_the_note_does_not_matter(file, caplog):
    lost.note(file.parent / "gone" / "muniment.sqlite3")
    assert "cannot note" in caplog.text


def test_no_command_and_no_server_makes_a_new_registry_of_an_emptied_one_and_a_restore_does(tmp_path):
    data = new_instance(tmp_path / "data", database_url="")
    backup = tmp_path / "kept.backup"
    run("user", "create", "owner@harbour.example", "--no-password", data=data, database_url="")
    run("backup", str(backup), data=data, database_url="")
    database = data / "muniment.sqlite3"
    for each in data.glob("muniment.sqlite3-[ws]*"):
        if each.name.endswith(("-wal", "-shm")):
            each.unlink()
    database.write_bytes(b"")
    for command in (["user", "list"], ["serve", "--port", str(free_port())]):
        refused = run(*command, data=data, check=False, database_url="")
        assert refused.returncode == REFUSED, refused.stderr
        assert "is empty, although" in refused.stderr
        assert "Traceback" not in refused.stderr
    assert database.stat().st_size == 0
    assert run("doctor", data=data, check=False, database_url="").returncode == 1
    run("restore", str(backup), data=data, database_url="")
    assert "owner@harbour.example" in run("user", "list", data=data, database_url="").stdout
