"""The command that verifies the log of a registry."""

import pytest

from muniment.kernel.merkle import leaf_hash
from services.log_site import LogSite, witness_key
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


def test_cosignatures_are_demanded_and_named(site, verify):
    site.cosign(1, 2)
    site.publish("company", "quay", company("quay"))
    first, second, third = [witness_key(number).text() for number in (1, 2, 3)]
    done = verify("--witness", first, "--witness", second)
    assert done.returncode == 0, done.stderr
    assert "OK   Cosigned leaves: 2, by witness1.example at 20" in done.stdout
    assert " Not cosigned yet: 1." in done.stdout
    assert verify("--witness", first, "--witness", third, "--witnesses-needed", "1").returncode == 0
    refused = verify("--witness", first, "--witness", third)
    assert refused.returncode == 1
    assert "shows no checkpoint that 2 of the 2 named witnesses have cosigned" in refused.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--witness", "x"], "not a verifier key"),
        (["--witnesses-needed", "1"], "name at least 1 by --witness; 0 named"),
        (["--witnesses-needed", "0"], "0 is not in the range"),
        (["--witness", witness_key(1).text()] * 2 + ["--witnesses-needed", "2"], "at least 2 by --witness; 1 named"),
    ],
)
def test_witnesses_that_make_no_sense_are_refused(verify, options, reason):
    refused = verify(*options)
    assert refused.returncode == 2
    assert reason in refused.stderr
