"""`muniment backup`, `restore` and `doctor --backup`, beside a running server and from one database to the other."""

import re
import stat
import threading

import pytest

from muniment.cli.backup import _files
from services.prepared import demo_registry
from services.product import Product, run

PATHS = (
    "/api/v1/companies?perPage=100",
    "/api/v1/companies?query=harbour&sort=name",
    "/api/v1/people?perPage=100",
    "/api/v1/frameworks",
    "/api/v1/stats",
    "/api/v1/changes",
)


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory):
    """Return a backup that was made while the instance was served and written, and what the instance answered."""
    folder = tmp_path_factory.mktemp("backed-up")
    data, file = demo_registry(folder / "data"), folder / "registry.backup"
    run("user", "create", "first@harbour.example", "--no-password", data=data)
    with Product(data) as product:
        product.wait_ready()
        answers = {path: product.get(path) for path in PATHS}
        writer = threading.Thread(
            target=run, args=("user", "create", "second@harbour.example", "--no-password"), kwargs={"data": data}
        )
        writer.start()
        told = run("backup", str(file), data=data)
        writer.join()
    assert all(answer.status == 200 for answer in answers.values()), answers
    return file, told, answers


def test_a_backup_beside_a_running_server_is_verified_and_reported(backed_up, tmp_path):
    file, told, _ = backed_up
    assert "read back and verified" in told.stdout
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    proof = run("doctor", "--backup", str(file), data=tmp_path / "none")
    assert "OK    checksum matches" in proof.stdout
    assert "OK    registry_company: 60 rows" in proof.stdout
    assert not (tmp_path / "none").exists(), "no instance is needed, and none is made"
    again = run("backup", str(file), data=file.parent / "data", check=False)
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
    elsewhere = run("backup", str(tmp_path / "b"), data=tmp_path / "none", check=False)
    assert (elsewhere.returncode, "There is no instance here" in elsewhere.stderr) == (1, True)


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 document files"), (1, "1 document file"), (1_234, "1,234 document files")]
)
def test_document_files_are_counted_in_words(number, said):
    assert _files(number) == said


def test_a_backup_into_a_folder_that_does_not_exist_says_so(backed_up, tmp_path):
    told = run("backup", str(tmp_path / "none" / "x.backup"), data=tmp_path / "data", check=False)
    assert told.returncode == 1
    assert told.stderr == f"error: The folder {tmp_path / 'none'} does not exist. Create it, or name another.\n"


def test_a_damaged_backup_is_refused_before_anything_is_written(backed_up, tmp_path):
    content = bytearray(backed_up[0].read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "bad").write_bytes(content)
    for command in (("doctor", "--backup"), ("restore",)):
        told = run(*command, str(tmp_path / "bad"), data=tmp_path / "data", check=False)
        assert told.returncode == 1
        assert "is damaged: its checksum does not match. Use another backup." in told.stderr
        assert not list((tmp_path / "data").glob("*.sqlite3*"))
    run("restore", str(backed_up[0]), data=tmp_path / "data")
    refused = run("restore", str(backed_up[0]), data=tmp_path / "data", check=False)
    assert "The instance is not empty" in refused.stderr
    assert "Point MUNIMENT_DATA at another folder" in refused.stderr
    assert "If a move or restore filled it, it is complete and ready to serve." in refused.stderr


def without_feed_id(body):
    """Leave out the identity of the feed: a restored instance has another."""
    return re.sub(rb'"feedId":"[0-9a-f-]+"', b"", body)


@pytest.mark.proof
def test_a_restored_instance_answers_the_same_on_either_database(backed_up, tmp_path, postgres):
    file, _, answers = backed_up
    url = postgres.create("restored")
    try:
        run("restore", str(file), data=tmp_path / "grown", database_url=url)
        with Product(tmp_path / "grown", database_url=url) as product:
            product.wait_ready()
            for path in PATHS:
                assert without_feed_id(product.get(path).body) == without_feed_id(answers[path].body), path
        run("backup", str(tmp_path / "back"), data=tmp_path / "grown", database_url=url)
    finally:
        postgres.drop("restored")
    run("restore", str(tmp_path / "back"), data=tmp_path / "small")
    assert (tmp_path / "small/keys/django.key").read_bytes() == (tmp_path / "grown/keys/django.key").read_bytes()
    with Product(tmp_path / "small") as product:
        product.wait_ready()
        for path in PATHS:
            assert without_feed_id(product.get(path).body) == without_feed_id(answers[path].body), path
    for name, settings in (("a", {"data": file.parent / "data"}), ("b", {"data": tmp_path / "small"})):
        run("export", str(tmp_path / name), "--private", **settings)
    for exported in (tmp_path / "a").glob("*.jsonl"):
        assert exported.read_bytes() == (tmp_path / "b" / exported.name).read_bytes(), exported.name
