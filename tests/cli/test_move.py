"""`muniment move`: from SQLite to PostgreSQL and back, documents along, whatever breaks off in between."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from muniment.cli import main
from services.ports import wait_until
from services.prepared import demo_registry, new_instance
from services.product import COMMAND, Product, environment, run
from services.s3 import S3

FILL = """
import django; django.setup()
from django.contrib.auth import get_user_model
from muniment.documents.uploads import store_document
from muniment.registry.company.listings import add_owner
from muniment.kernel.actor import COMMAND
keeper = get_user_model().objects.create_user("keeper@harbour.example")
from muniment.registry.models import Company
slug = Company.objects.order_by("pk").first().slug
add_owner(COMMAND, slug, keeper.pk)
for number in (1, 2, 3):
    store_document(keeper.actor("web", "pages"), slug, f"minutes {number}.txt",
                   [b"Minutes of the board. " * 40_000 * number],
         len(b"Minutes of the board. " * 40_000 * number))
"""


OWN = {"database_url": ""}
"""The SQLite file in the data folder, whatever the suite serves its products on."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """Return the data folder of an instance with documents."""
    data = demo_registry(tmp_path_factory.mktemp("instance") / "data", **OWN)
    settings = {**environment(data, **OWN), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    subprocess.run([sys.executable, "-c", FILL], env=settings, check=True, timeout=60)
    return data


@pytest.fixture(scope="module")
def before(instance, tmp_path_factory):
    """Return what the instance exports."""
    return exported(tmp_path_factory.mktemp("before"), instance, **OWN)


@pytest.fixture
def url(postgres):
    """Yield an empty database of PostgreSQL."""
    yield postgres.create("moved")
    postgres.drop("moved")


def exported(folder, data, **settings):
    run("export", str(folder), "--private", data=data, **settings)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def blobs(data):
    return {str(file.relative_to(data)): file.read_bytes() for file in (data / "blobs").rglob("*") if file.is_file()}


@pytest.mark.proof
def test_there_and_back_with_documents_in_another_store_gives_the_same_bytes(instance, before, url, tmp_path):
    with S3(tmp_path / "s3") as s3:
        told = run("move", "--to", "-", "--storage", s3.url(), data=instance, stdin=f"{url}\n", **OWN).stdout
        assert "3 document files" in told
        assert "secret-of-the-tests" not in told
        settings = {"database_url": url, "storage_url": s3.url()}
        assert exported(tmp_path / "there", instance, **settings) == before
        assert "each has its blob" in run("doctor", "--storage", "--ledger", data=instance, **settings).stdout
        back = ("move", "--to", f"sqlite:{tmp_path / 'back'}", "--storage", "folder")
        node = tmp_path / "node"
        shutil.copytree(instance / "keys", node / "keys")
        with Product(node, **settings) as product:
            product.wait_ready("/readyz?writes")
            refused = run(*back, data=instance, check=False, **settings)
        assert refused.returncode == 1
        assert re.search(r"The instance is in use: \d+ other connections? to its database", refused.stderr), refused
        run(*back, data=instance, **settings)
    assert exported(tmp_path / "back-again", tmp_path / "back", **OWN) == before
    assert blobs(tmp_path / "back") == blobs(instance)
    assert (tmp_path / "back/keys/django.key").read_bytes() == (instance / "keys/django.key").read_bytes()


def test_an_instance_in_use_is_not_moved_and_a_used_one_not_moved_into(instance, url, tmp_path):
    with Product(instance, **OWN) as product:
        product.wait_ready()
        refused = run("move", "--to", url, data=instance, check=False, **OWN)
    assert refused.returncode == 1
    assert "The instance is in use: another process has its database open. Stop its servers" in refused.stderr
    new_instance(tmp_path / "used", **OWN)
    run("user", "create", "developer@harbour.example", "--no-password", data=tmp_path / "used", **OWN)
    refused = run("move", "--to", f"sqlite:{tmp_path / 'used'}", data=instance, check=False, **OWN)
    assert "The instance is not empty" in refused.stderr


@pytest.mark.sqlite  # the folders stay the same
def test_a_new_store_that_refuses_its_key_is_an_error_although_there_is_no_document(tmp_path):
    new_instance(tmp_path / "empty", **OWN)
    target = ("--to", f"sqlite:{tmp_path / 'target'}")
    with S3(tmp_path / "s3") as s3:
        told = run("move", *target, "--storage", s3.url("wrong"), data=tmp_path / "empty", check=False, **OWN)
        assert told.returncode == 1
        assert "The new document store does not work: cannot write: " in told.stderr
        assert "Nothing was moved." in told.stderr
        run("move", *target, "--storage", s3.url(), data=tmp_path / "empty", **OWN)


def test_an_invalid_target_is_refused_at_once():
    for wrong in (("--to", "mysql://x"), ("--to", "sqlite:"), ("--to", "sqlite:x", "--storage", "https://x")):
        told = CliRunner().invoke(main, ["move", *wrong])
        assert (told.exit_code, " must be " in told.output) == (2, True)


@pytest.mark.proof
def test_a_move_that_is_killed_begins_again_and_ends_the_same(instance, before, tmp_path):
    target = tmp_path / "killed"
    for sign in ("muniment.sqlite3", "blobs/*/*/*"):  # its tables are being made, or the documents come
        moving = subprocess.Popen(
            [*COMMAND, "move", "--to", f"sqlite:{target}"], env=environment(instance, **OWN), stderr=subprocess.DEVNULL
        )
        wait_until(lambda sign=sign: any(target.glob(sign)), within_s=60, what=sign)
        os.kill(moving.pid, signal.SIGKILL)
        moving.wait()
    if moving.returncode == -signal.SIGKILL:  # a machine that had paused may have let it come to its end
        run("move", "--to", f"sqlite:{target}", data=instance, **OWN)
    assert exported(tmp_path / "after", target, **OWN) == before
    assert blobs(target) == blobs(instance)
