"""Verifying the log of a running product whose operator rewrites, restores, forks, erases and rotates."""

import shutil
import sqlite3
from contextlib import closing

import pytest
from tlog_scales.reader import TilesReader
from tlog_scales.signing import Vkey

from muniment.kernel.http.representations import digest
from muniment.kernel.merkle import leaf_hash
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product, run

pytestmark = pytest.mark.sqlite

QUICK = {"exports_interval_s": "1"}
SHORT = {"muniment.mirror.verifying.PAUSE_S": 0.05}
"""Before a document is called wrong it is read twice more, and twenty are before the command ends."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """Provide the data folder of an instance that has a log; each test copies it."""
    data = demo_registry(tmp_path_factory.mktemp("logged") / "data")
    with Product(data, **QUICK) as product:
        product.wait_ready()
        assert product.get("/api/v1/log").status == 200
    return data


@pytest.fixture
def data(instance, tmp_path):
    return shutil.copytree(instance, tmp_path / "data")


@pytest.fixture
def verify(tmp_path):
    """Return a function that runs the command, always with the same file of what is remembered."""

    def verified(product, *options):
        state = str(tmp_path / "log.json")
        elsewhere = tmp_path / "elsewhere"
        return run("verify", product.url, "--state", state, *options, data=elsewhere, check=False, constants=SHORT)

    return verified


def served(data):
    return Product(data, **QUICK)


def holds(done):
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def renamed(data, name):
    """Change a published document by an import, so that the log gets a leaf."""
    file = data.parent / "change.jsonl"
    file.write_text(f'{{"company": {{"id": "saltmarsh-commons", "name": "{name}"}}}}\n')
    run("import", str(file), data=data)


def test_an_honest_registry_is_verified_and_followed(data, verify):
    with served(data) as product:
        product.wait_ready()
        first = holds(verify(product, "--all"))
        assert "First use" in first
        assert "are as logged" in first
        renamed(data, "Saltmarsh Trust")
        size = product.get("/api/v1/log").json()["data"]["size"]
        wait_until(
            lambda: b"Saltmarsh Trust" in product.get("/api/v1/companies/saltmarsh-commons").body,
            within_s=20,
            what="the change",
        )
        assert "OK   The log continues the" in holds(verify(product))
        holds(verify(product, "--all"))
        assert product.get("/api/v1/log").json()["data"]["size"] >= size


class Wire:
    """The tiles and the checkpoint of a product, as another implementation asks for them."""

    def __init__(self, product):
        self._product = product

    def get(self, *path):
        answer = self._product.get("/api/v1/log/" + "/".join(path))
        return answer.body if answer.status == 200 else None


def test_another_implementation_verifies_the_log_of_the_product(data):
    with served(data) as product:
        product.wait_ready()
        log = product.get("/api/v1/log").json()["data"]
        reader = TilesReader(Wire(product))
        checkpoint = reader.get_checkpoint()
        checkpoint.verify(Vkey.from_string(log["keys"][0]))
        assert (checkpoint.origin, checkpoint.size) == (log["origin"], log["size"])
        assert reader.calculate_root_hash() == checkpoint.root_hash
        proof = product.get("/api/v1/log/proof?kind=company&id=saltmarsh-commons").json()["data"]
        index, size = proof["index"], proof["size"]
        entry = reader.get_entry(index)
        reader.get_inclusion_proof(index, size).check(leaf_hash(entry), checkpoint.root_hash)
        reader.get_consistency_proof(1, size).check(reader.mth(0, 1), checkpoint.root_hash)


def rewrite_documents(data):
    """Edit every published document, with its digest, so that the server does not take it for damaged."""
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as file, file:
        for kind, key, body in file.execute("SELECT kind, key, body FROM published_document").fetchall():
            edited = body.replace(b'"updatedAt":"20', b'"updatedAt":"19')
            assert edited != body
            file.execute(
                "UPDATE published_document SET body = ?, etag = ? WHERE kind = ? AND key = ?",
                (edited, digest(edited), kind, key),
            )


def test_an_operator_who_edits_documents_by_sql_is_caught(data, verify):
    with served(data) as product:
        product.wait_ready()
        holds(verify(product))
        rewrite_documents(data)
        refused = verify(product, "--all")
    assert refused.returncode == 1
    assert "is not the document that was logged: it was changed without a leaf" in refused.stdout


def test_an_operator_who_edits_the_log_by_sql_is_caught(data, verify):
    with served(data) as product:
        product.wait_ready()
        holds(verify(product))
        with closing(sqlite3.connect(data / "muniment.sqlite3")) as file, file:
            changed = file.execute("UPDATE published_leaf SET digest = zeroblob(32) WHERE number = 3").rowcount
        assert changed == 1
        refused = verify(product, "--all")
    assert refused.returncode == 1
    assert "is not in the log: the proof leads to another root" in refused.stdout


def test_an_operator_who_restores_an_old_backup_is_caught_at_once_and_later(data, tmp_path, verify):
    run("backup", str(tmp_path / "old.backup"), data=data)
    with served(data) as product:
        product.wait_ready()
        renamed(data, "Saltmarsh Trust")
        renamed(data, "Saltmarsh Union")
        wait_until(
            lambda: b"Saltmarsh Union" in product.get("/api/v1/companies/saltmarsh-commons").body,
            within_s=20,
            what="the change",
        )
        holds(verify(product))
    restored = tmp_path / "restored"
    run("restore", str(tmp_path / "old.backup"), data=restored)
    with served(restored) as product:
        product.wait_ready()
        refused = verify(product)
        assert refused.returncode == 1
        assert "leaves are gone that the registry has signed" in refused.stderr
        for name in ("One", "Two", "Three"):
            renamed(restored, name)
        wait_until(
            lambda: b'"Three"' in product.get("/api/v1/companies/saltmarsh-commons").body,
            within_s=20,
            what="the change",
        )
        later = verify(product)
    assert later.returncode == 1
    assert "does not continue the signed one" in later.stderr


def test_an_operator_who_forks_for_one_reader_is_caught(data, tmp_path, verify):
    fork = shutil.copytree(data, tmp_path / "fork")
    renamed(data, "For all")
    renamed(fork, "For one")
    with served(data) as product:
        product.wait_ready()
        holds(verify(product))
    with served(fork) as product:
        product.wait_ready()
        refused = verify(product)
    assert refused.returncode == 1
    assert "two different logs of" in refused.stderr
    assert (tmp_path / "log.json.contradicting").exists()


def test_a_person_is_erased_and_every_proof_still_verifies(data, verify):
    with served(data) as product:
        product.wait_ready()
        holds(verify(product, "--all"))
        person = "evander-lisle"
        proof = product.get(f"/api/v1/log/proof?kind=person&id={person}").json()["data"]
        run("person", "erase", person, "--yes", data=data)
        wait_until(lambda: product.get(f"/api/v1/people/{person}").status == 404, within_s=20, what="the change")
        holds(verify(product))
        holds(verify(product, "--all"))
        leaves = product.get("/api/v1/log/leaves").json()["data"]
        erased = leaves[proof["index"]]
        assert [erased[name] for name in ("kind", "key", "salt", "digest")] == [None] * 4
        assert erased["leaf"] == proof["leafData"]
        assert all(leaf["key"] != person for leaf in leaves)
        assert proof["leaf"]["salt"] not in str(leaves)


def test_a_rotated_key_is_accepted_by_those_who_know_the_former_one(data, verify):
    with served(data) as product:
        product.wait_ready()
        former = product.get("/api/v1/log").json()["data"]["keys"][0]
        holds(verify(product))
        run("log", "rotate-key", data=data)
        wait_until(
            lambda: product.get("/api/v1/log").json()["data"]["keys"][0] != former, within_s=20, what="the change"
        )
        assert f"The key is new. The remembered one has named it: {former}" in holds(verify(product))
        holds(verify(product, "--key", former))
