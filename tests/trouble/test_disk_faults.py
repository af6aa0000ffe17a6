"""Full and read-only disks: reads continue, writes say why they are refused, and both recover without a restart."""

import contextlib
import re
import subprocess

import pytest

from contract.shapes import check_error
from services.disk import Disk
from services.load import Load
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product, run
from services.uploads import Owner

pytestmark = [pytest.mark.proof, pytest.mark.sqlite, pytest.mark.timeout(300)]  # a PostgreSQL server has its own disk
PATHS = ("/api/v1/companies", "/api/v1/companies?q=tidal", "/companies", "/api/v1/people/ilsabet-corrowan", "/")


@pytest.fixture
def disk(tmp_path):
    with Disk(tmp_path, size_mb=96) as disk:
        yield disk


@pytest.fixture
def served(disk, tmp_path, request):
    data = demo_registry(disk.path / "data", database_url="")
    product = Product(data, "--workers", getattr(request, "param", "1"), database_url="")
    product.log = tmp_path / "server.log"  # the disk has no room for it
    with product:
        product.wait_ready()
        yield product


def description(owner, text):
    return owner.call("update_my_company", slug=owner.slug, changes={"description": text})


def until_refused(owner):
    """Change a listing until a change is refused: the write-ahead log may have room. Return the refusal's message."""
    for number in range(400):
        found = description(owner, f"No. {number}. " + "The board meets. " * 60)
        if "error" in found:
            return found["error"]["message"]
    raise AssertionError("a full disk accepts 400 changes")


def check_refusals(product, owner, reason):
    """Every surface names the reason."""
    assert reason in until_refused(owner)
    document = owner.call("upload_document", companySlug=owner.slug, filename="minutes.txt", text="Minutes. " * 700)
    assert reason in document["error"]["message"]
    form = product.get("/accounts/login/", Accept="text/html")
    (token,) = re.findall(rb'name="csrfmiddlewaretoken" value="(\w+)"', form.body)[:1]
    cookie = form.headers["set-cookie"].partition(";")[0]
    fields = b"csrfmiddlewaretoken=" + token + b"&login=owner@harbour.example&password=wrong"
    sent = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html"}
    page = product.request("POST", "/accounts/login/", sent, fields)
    while page.status == 429:  # the load has taken this address's share of pages
        page = product.request("POST", "/accounts/login/", sent, fields)
    assert page.status == 503, page
    assert reason in page.body.decode().lower()
    wait_until(lambda: reason in product.get("/readyz?writes").body.decode(), within_s=5, what="readiness to say so")
    check_error(product.get("/readyz?writes"), 503, "internal_error")


def check_reads(product):
    for path in PATHS:
        assert product.get(path).status == 200, path
    answers = product.get_of_each("/readyz")
    assert [answer.status for answer in answers] == [200] * product.workers
    assert all("reads only" in answer.json()["status"] for answer in answers)


@pytest.mark.parametrize("served", ["1", "2"], indirect=True)
def test_on_a_full_disk_reads_continue_also_after_restarts_and_writes_say_why(disk, served):
    owner = Owner(served, database_url="")
    with Load([served.port], paths=PATHS, threads=2, pause_s=0.02) as load:
        disk.fill()
        check_refusals(served, owner, "the disk is full")
        check_reads(served)
        disk.empty()
        served.wait_ready("/readyz?writes", within_s=5)
        assert "data" in description(owner, "There is room again.")
        disk.fill()
    assert load.failures == []
    served.stop()
    for end in (served.kill, served.stop):
        served.start()
        wait_until(lambda: served.get("/").status == 200, within_s=30, what="the pages on a full disk")
        check_reads(served)
        assert "the disk is full" in until_refused(owner)
        end()
    served.start()
    wait_until(lambda: served.get("/").status == 200, within_s=30, what="the pages on a full disk")
    with Load([served.port], paths=PATHS, threads=2, pause_s=0.02) as load:
        disk.empty()
        served.wait_ready("/readyz?writes", within_s=5)
        assert "data" in description(owner, "There is room once more.")
        shown = f"/api/v1/companies/{owner.slug}"
        assert served.get(shown).status == 404, "an unreviewed listing is private"
    assert load.failures == []
    assert "Traceback" not in served.output()


@pytest.mark.parametrize("is_clean", [True, False], ids=["after a stop", "after a kill"])
@pytest.mark.parametrize("served", ["1", "2"], indirect=True)
def test_started_on_a_read_only_disk_it_reads_writes_say_why_and_it_recovers_without_a_restart(disk, served, is_clean):
    owner = Owner(served, database_url="")
    assert "data" in description(owner, "Before.")
    served.stop() if is_clean else served.kill()
    wait_until(disk.is_idle, within_s=20, what="the processes to end")
    disk.remount("ro")
    served.start()
    served.wait_ready(within_s=60)
    with Load([served.port], paths=PATHS, threads=2, pause_s=0.02) as load:
        check_reads(served)
        check_refusals(served, owner, "the disk is read-only")
        disk.remount("rw")
        served.wait_ready("/readyz?writes", within_s=5)
        assert "data" in description(owner, "After.")
        uploaded = owner.call("upload_document", companySlug=owner.slug, filename="minutes.txt", text="Minutes. " * 700)
        assert "data" in uploaded, uploaded
    assert load.failures == []
    assert served.output().partition("Traceback")[2] == ""


def test_an_emergency_of_the_file_system_is_noticed_while_running(disk, served):
    owner = Owner(served, database_url="")
    assert served.get("/readyz?writes").status == 200
    with Load([served.port], paths=PATHS, threads=2, pause_s=0.02) as load:
        disk.fail()
        wait_until(lambda: served.get("/readyz?writes").status == 503, within_s=15, what="readiness to notice")
        check_refusals(served, owner, "the disk is read-only")
        check_reads(served)
    assert load.failures == []
    assert "Traceback" not in served.output()


def test_commands_say_why_on_a_full_or_read_only_disk(disk, served):
    served.stop()
    disk.fill()
    refused = run(
        "user", "create", "new@harbour.example", "--no-password", data=served.data, check=False, database_url=""
    )
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), refused.stderr
    disk.empty()
    with contextlib.suppress(subprocess.CalledProcessError):
        disk.remount("ro")
    refused = run(
        "user", "create", "new@harbour.example", "--no-password", data=served.data, check=False, database_url=""
    )
    assert (refused.returncode, "Traceback" in refused.stderr) == (1, False), refused.stderr
