"""Other users of the machine read nothing, whatever folder and mask the operator has prepared."""

import os
import subprocess
from pathlib import Path

import pytest

from services.prepared import new_instance
from services.product import COMMAND, Product, environment, run


def loose(folder: Path) -> dict[str, str]:
    """Return what other users could read: every file and folder in *folder* that is not private."""
    return {
        str(path.relative_to(folder)): oct(path.stat().st_mode)
        for path in folder.rglob("*")
        if path.stat().st_mode & 0o077
    }


@pytest.mark.sqlite  # the database is a file
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.proof)])
def test_everything_written_is_private_in_a_folder_that_everybody_can_read(tmp_path, workers):
    data, out = tmp_path / "data", tmp_path / "out"
    for folder in (data, out):
        folder.mkdir()
        folder.chmod(0o755)
    before = os.umask(0o022)  # a usual shell
    try:
        run("user", "create", "owner@demo.example", "--no-password", data=data)
        with Product(data, "--workers", workers) as product:
            product.wait_ready()
            product.request(
                "POST",
                "/accounts/password/reset/",
                {"Content-Type": "application/x-www-form-urlencoded"},
                b"email=owner@demo.example",
            )
            run("export", "--private", str(out / "private"), data=data)
            run("export", str(out / "public"), data=data)
            run("backup", str(out / "instance.backup"), data=data)
            run("user", "export", "owner@demo.example", str(out / "owner.zip"), data=data)
            assert loose(data) == {}
        assert loose(out) == {}
        assert "WARN  data folder: other users can look into" in run("doctor", data=data).stdout
        assert f"run chmod 700 {data}" in run("doctor", data=data).stdout
        data.chmod(0o700)
        assert "WARN  data folder" not in run("doctor", data=data).stdout
    finally:
        os.umask(before)


@pytest.mark.sqlite  # the database is a file
def test_files_that_an_earlier_version_left_open_are_closed_at_the_next_start(tmp_path):
    data = new_instance(tmp_path / "data")
    (data / "mail").mkdir(exist_ok=True)
    shared = tmp_path / "elsewhere"
    shared.write_text("not ours to change")
    shared.chmod(0o644)
    (data / "suppressions.folders").unlink(missing_ok=True)
    (data / "suppressions.jsonl").unlink(missing_ok=True)
    (data / "suppressions.jsonl").symlink_to(shared)
    opened = [data / "muniment.sqlite3", data / "keys" / "django.key"]
    for path in opened:
        path.chmod(0o644)
    (data / "mail").chmod(0o755)
    doctor = subprocess.run([*COMMAND, "doctor"], env=environment(data), capture_output=True, check=False)
    assert doctor.returncode == 1  # it reports a loose key and changes nothing
    assert opened[1].stat().st_mode & 0o777 == 0o644
    run("user", "list", data=data)
    assert [path.stat().st_mode & 0o077 for path in (*opened, data / "mail")] == [0, 0, 0]
    assert shared.stat().st_mode & 0o777 == 0o644
