"""The command that verifies the log of a registry."""

import pytest

from muniment.kernel.merkle import leaf_hash
from services.log_site import LogSite
from services.origin import company, person
from services.product import run

pytestmark = pytest.mark.sqlite


@pytest.fixture
def site():
    with LogSite() as origin:
        origin.publish("company", "harbor-trust", company("harbor-trust"))
        origin.publish("person", "ada-lund", person("ada-lund"))
        origin.export()
        yield origin


@pytest.fixture
def verify(site, tmp_path):
    def verified(*options):
        return run("verify", site.address, "--state", str(tmp_path / "log.json"), *options, data=tmp_path, check=False)

    return verified


def test_each_run_says_what_holds(site, verify, tmp_path):
    first = verify()
    assert first.returncode == 0, first.stderr
    assert f"Key {site.vkey(1)}" in first.stdout
    assert f"First use: remembered in {tmp_path}/log.json" in first.stdout
    assert "OK   2 documents and 2 leaves, chosen at random, are as logged. --all compares all." in first.stdout
    assert "OK   The log is the one of 20" in verify().stdout
    site.rotate(2)
    site.publish("company", "quay", company("quay"))
    later = verify("--all")
    assert later.returncode == 0, later.stderr
    assert "OK   The log continues the 2 leaves of 20" in later.stdout
    assert f"OK   The key is new. The remembered one has named it: {site.vkey(1)}" in later.stdout
    assert "OK   All 3 documents and all 3 leaves are as logged." in later.stdout


def test_a_rewritten_history_ends_the_command_with_what_to_do(site, verify, tmp_path):
    assert verify().returncode == 0
    site.leaves[0]["data"] = leaf_hash(b"another")
    refused = verify()
    assert refused.returncode == 1
    assert "error: The registry has signed two different logs of 2 leaves" in refused.stderr
    assert f"Keep {tmp_path}/log.json and {tmp_path}/log.json.contradicting" in refused.stderr


def test_each_fault_is_named(site, verify):
    site.documents["person", "ada-lund"] = b'{"slug":"ada-lund","name":"Forged"}'
    refused = verify()
    assert refused.returncode == 1
    assert "FAIL person ada-lund is not the document that was logged: it was changed without a leaf." in refused.stdout
    assert "error: 1 documents or leaves are not as they were logged." in refused.stderr
    assert "OK   2 documents" not in refused.stdout


def test_without_an_option_the_file_is_in_the_home_of_the_user(site, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run("verify", site.address, data=tmp_path).returncode == 0
    host = site.address.removeprefix("http://").replace(":", "_")
    assert (tmp_path / f".local/state/muniment/log-{host}.json").exists()
