"""The long proofs of backup and move: under load, bit by bit, on a real registry, killed in the middle."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muniment.backup.container import Damaged, verify
from services.product import COMMAND, Product, environment, run

TESTS = Path(__file__).parents[1]
BACKUPS = 20


def script(name, data, **settings):
    """Return how a script of the suite is started on an instance."""
    path = {"PYTHONPATH": str(TESTS), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    return {"args": [sys.executable, str(TESTS / "services" / name)], "env": {**environment(data, **settings), **path}}


def command(*arguments, data, **settings):
    """Run a subcommand to its end, however busy the machine is."""
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment(data, **settings), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def exported(folder, data, **settings):
    command("export", str(folder), "--private", data=data, **settings)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def prove_backups_under_load(folder, settings, target):
    """Take backups of a served and written instance, restore each; *target* makes an empty instance at a folder."""
    command("migrate", data=folder / "data", **settings)
    blobs = []
    product = Product(folder / "data", **settings).start(within_s=300)
    try:
        product.wait_ready(within_s=300)
        with subprocess.Popen(**script("busy.py", folder / "data", **settings), stdout=subprocess.PIPE) as busy:
            try:
                assert busy.stdout.readline() == b"writing\n"
                for number in range(BACKUPS):
                    command("backup", str(folder / f"{number}"), data=folder / "data", **settings)
                    assert busy.poll() is None, "it writes all the while"
            finally:
                busy.kill()
    finally:
        product.stop()
    for number in range(BACKUPS):
        start = script("restored.py", folder / f"restored {number}", **target(folder / f"restored {number}"))
        start["args"].append(str(folder / f"{number}"))
        told = subprocess.run(**start, capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stderr
        found = json.loads(told.stdout)
        assert (found["notes"], found["ledger"], found["missing"], found["orphans"]) == ([], [], [], []), (
            number,
            found,
        )
        assert found["published"] == found["rendered"]
        blobs.append(found["blobs"])
    assert blobs[-1] > blobs[0], "something was written meanwhile"
    print(f"{BACKUPS} of {BACKUPS} backups restored, documents: {blobs}")  # noqa: T201 - the figure, for who runs it with -s


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_every_backup_under_write_load_restores_to_a_consistent_instance(tmp_path):
    command("migrate", data=tmp_path / "empty")

    def target(folder):
        shutil.copytree(tmp_path / "empty", folder)
        return {}

    prove_backups_under_load(tmp_path, {}, target)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_every_backup_under_write_load_restores_to_a_consistent_instance_on_postgresql(tmp_path, postgres):
    command("migrate", data=tmp_path / "empty", database_url=postgres.create("empty"))

    def target(folder):
        return {"database_url": postgres.create(folder.name, template="empty")}

    prove_backups_under_load(tmp_path, {"database_url": postgres.create("busy")}, target)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_flipped_bit_is_noticed_at_every_place_of_a_backup(tmp_path):
    command("user", "create", "keeper@harbour.example", "--no-password", data=tmp_path / "data")
    command("backup", str(tmp_path / "b"), data=tmp_path / "data")
    good = bytearray((tmp_path / "b").read_bytes())
    bad = tmp_path / "bad"
    bad.write_bytes(good)
    verify(bad)
    with bad.open("r+b", buffering=0) as file:
        for place, byte in enumerate(good):
            for bit in range(8):
                file.seek(place)
                file.write(bytes([byte ^ (1 << bit)]))
                with pytest.raises(Damaged):
                    verify(bad)
            file.seek(place)
            file.write(bytes([byte]))
    verify(bad)
    print(f"{len(good) * 8:,} flipped bits noticed")  # noqa: T201 - the figure, for who runs it with -s


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_real_registry_moves_there_and_back_byte_for_byte_also_when_it_is_killed(tmp_path, sample_data, postgres):
    run("import", str(sample_data), data=tmp_path / "data", check=False, timeout_s=600)  # leaves invalid values out
    before = exported(tmp_path / "before", tmp_path / "data")
    url = postgres.create("real")
    move_killed(tmp_path / "data", (postgres.create("spare"), url), {})
    assert exported(tmp_path / "there", tmp_path / "data", database_url=url) == before
    folders = tuple(f"sqlite:{tmp_path / name}" for name in ("spare", "back"))
    move_killed(tmp_path / "data", folders, {"database_url": url})
    assert exported(tmp_path / "again", tmp_path / "back") == before
    companies = before["companies.jsonl"].count(b"\n")
    print(f"{companies:,} companies there and back")  # noqa: T201 - the figure, for who runs it with -s


def move_killed(data, targets, settings):
    """Move to the first target to see how long it takes, then to the second, killed thrice on the way."""
    spare, to = targets
    began = time.monotonic()
    told = command("move", "--to", spare, data=data, **settings)
    seconds = time.monotonic() - began
    print(f"moved in {seconds:.0f} s: {told.splitlines()[0]}")  # noqa: T201 - as above
    for share in (0.15, 0.4, 0.65):
        with subprocess.Popen(
            [*COMMAND, "move", "--to", to], env=environment(data, **settings), stderr=subprocess.DEVNULL
        ) as moving:
            time.sleep(share * seconds)
            moving.kill()
        assert moving.wait() == -signal.SIGKILL, "killed before it ended"
    command("move", "--to", to, data=data, **settings)
