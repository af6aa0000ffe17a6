"""A witness that is not ours cosigns the log of a running product, and refuses an operator who rewrites it."""

import base64
import shutil
import sqlite3
from contextlib import closing

import pytest
from tlog_scales import tlog
from tlog_scales.signing import Vkey

from muniment.kernel.merkle import Frontier, leaf_hash, verify_inclusion
from muniment.kernel.signed_notes import Checkpoint, WitnessKey, cosignatures, verify
from muniment.store.public_log import leaf_of
from services.other_witness import OtherWitness
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import Product, run

pytestmark = pytest.mark.sqlite


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """Provide the data folder of an instance that has a log, and what the log is; each test copies the folder."""
    data = demo_registry(tmp_path_factory.mktemp("witnessed") / "data")
    with Product(data) as product:
        product.wait_ready()
        log = product.get("/api/v1/log").json()["data"]
    return data, log


@pytest.fixture
def data(instance, tmp_path):
    return shutil.copytree(instance[0], tmp_path / "data")


@pytest.fixture
def witness(instance, tmp_path):
    made = OtherWitness(tmp_path / "witness")
    made.know(instance[1]["origin"], *instance[1]["keys"])
    with made:
        yield made


def served(data, witness):
    return Product(data, witnesses=f"{witness.key} {witness.url}")


@pytest.fixture
def verified(tmp_path, witness):
    """Return a function that runs the command, and demands the cosignature of the witness."""

    def run_it(product, *options):
        state = str(tmp_path / "log.json")
        options = ("--state", state, "--witness", witness.key, *options)
        return run("verify", product.url, *options, data=tmp_path / "elsewhere", check=False)

    return run_it


def holds(done):
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def renamed(data, name):
    """Change a published document by an import, so that the log gets a leaf."""
    file = data.parent / "change.jsonl"
    file.write_text(f'{{"company": {{"id": "saltmarsh-commons", "name": "{name}"}}}}\n')
    run("import", str(file), data=data)


def size_of(product):
    return product.get("/api/v1/log").json()["data"]["size"]


def cosigned_sizes(product):
    return [each["size"] for each in product.get("/api/v1/log/cosigned").json()["data"]]


def wait_cosigned(product):
    """Wait until all leaves are cosigned, and return their number."""
    size = size_of(product)
    wait_until(lambda: cosigned_sizes(product)[:1] == [size], within_s=60, what="the cosignature")
    return size


def wait_disputed(data, witness, reason):
    """Wait until the operator is told what the witness says."""

    def shown():
        return run("log", "show", data=data, witnesses=f"{witness.key} {witness.url}").stdout

    wait_until(lambda: f"FAIL {reason}" in shown(), within_s=60, what="the dispute", every_s=1)


OTHER = "It says that this log does not continue what it has cosigned"
LARGER = "It says that it has cosigned more leaves than there are"


def test_the_log_is_cosigned_as_it_grows_and_its_proofs_verify_offline(data, witness, verified):
    with served(data, witness) as product:
        product.wait_ready()
        wait_cosigned(product)
        renamed(data, "Saltmarsh Trust")
        size = wait_cosigned(product)
        assert f"OK   Cosigned leaves: {size:,}, by other.example/w1 at 20" in holds(verified(product))
        log = product.get("/api/v1/log").json()["data"]
        assert log["witnesses"] == [witness.key]
        note = product.get("/api/v1/log/checkpoint?cosignatures=1").body.decode()
        proof = product.get("/api/v1/log/proof?kind=company&id=saltmarsh-commons&cosignatures=1").json()["data"]
    theirs = tlog.Checkpoint.from_text(note)
    theirs.verify(Vkey.from_string(witness.key))
    theirs.verify(Vkey.from_string(log["keys"][0]))
    # What follows asks no server.
    checkpoint = Checkpoint.parse(verify(proof["checkpoint"], log["keys"]).text)
    key = WitnessKey.parse(witness.key)
    assert [each.key for each in cosignatures(proof["checkpoint"], [key])] == [key]
    tlog.InclusionProof(proof["index"], proof["size"], decoded(proof["hashes"])).check(
        leaf_hash(decoded([proof["leafData"]])[0]), checkpoint.root
    )
    assert witness.evidence() == []


def decoded(texts):
    return [base64.b64decode(text) for text in texts]


def rewrite_leaf(data):
    """Change what a leaf says, and all that follows from it, as an operator with SQL and this code can."""
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as file, file:
        file.execute("UPDATE published_leaf SET digest = zeroblob(32) WHERE number = 3")
        kinds, changes = ("company", "person", "framework"), ("published", "updated", "unlisted", "state")
        frontier = Frontier()
        rows = file.execute("SELECT salt, kind, key, change, digest FROM published_leaf ORDER BY number").fetchall()
        for salt, kind, key, change, digest in rows:
            frontier.append(leaf_hash(leaf_of(salt, kinds[kind], key, changes[change], digest)))
        file.execute("UPDATE published_log SET frontier = ?", (b"".join(frontier.hashes),))


def test_an_operator_who_rewrites_the_log_by_sql_is_refused_by_the_witness(data, witness, verified):
    with served(data, witness) as product:
        product.wait_ready()
        before = wait_cosigned(product)
        holds(verified(product))
        rewrite_leaf(data)
        renamed(data, "Saltmarsh Trust")
        wait_disputed(data, witness, OTHER)
        assert cosigned_sizes(product) in ([], [before])
        refused = verified(product)
    assert refused.returncode == 1
    assert "does not continue the signed one" in refused.stderr
    assert {each["reason"] for each in witness.evidence()}


def test_an_operator_who_restores_an_old_backup_is_refused_by_the_witness_at_once_and_later(
    data, tmp_path, witness, verified
):
    run("backup", str(tmp_path / "old.backup"), data=data)
    with served(data, witness) as product:
        product.wait_ready()
        renamed(data, "Saltmarsh Trust")
        renamed(data, "Saltmarsh Union")
        wait_cosigned(product)
        holds(verified(product))
    restored = tmp_path / "restored"
    run("restore", str(tmp_path / "old.backup"), data=restored)
    with served(restored, witness) as product:
        product.wait_ready()
        wait_disputed(restored, witness, LARGER)
        stranger = verified(product, "--state", str(tmp_path / "stranger.json"))
        assert stranger.returncode == 1
        assert "shows no checkpoint that 1 of the 1 named witnesses have cosigned" in stranger.stderr
        for name in ("One", "Two", "Three"):
            renamed(restored, name)
        wait_disputed(restored, witness, OTHER)
        assert verified(product).returncode == 1


def test_an_operator_who_forks_for_one_reader_is_refused_by_the_witness_for_one_of_the_two(
    data, tmp_path, witness, verified
):
    fork = shutil.copytree(data, tmp_path / "fork")
    renamed(data, "For all")
    renamed(fork, "For one")
    with served(data, witness) as product:
        product.wait_ready()
        wait_cosigned(product)
        holds(verified(product))
    with served(fork, witness) as product:
        product.wait_ready()
        wait_disputed(fork, witness, OTHER)
        # A reader who was never shown the other history is told too.
        refused = verified(product, "--state", str(tmp_path / "other.json"))
        assert cosigned_sizes(product) == []
    assert refused.returncode == 1
    assert "shows no checkpoint that" in refused.stderr


def test_a_person_is_erased_and_every_proof_and_cosignature_still_verifies(data, witness, verified):
    person = "evander-lisle"
    with served(data, witness) as product:
        product.wait_ready()
        wait_cosigned(product)
        holds(verified(product))
        before = product.get(f"/api/v1/log/proof?kind=person&id={person}&cosignatures=1").json()["data"]
        run("person", "erase", person, "--yes", data=data)
        wait_until(lambda: product.get(f"/api/v1/people/{person}").status == 404, within_s=20, what="the change")
        wait_cosigned(product)
        holds(verified(product, "--all"))
        log = product.get("/api/v1/log").json()["data"]
        after = product.get(f"/api/v1/log/proof?index={before['index']}&cosignatures=1").json()["data"]
    key = WitnessKey.parse(witness.key)
    for proof in (before, after):
        checkpoint = Checkpoint.parse(verify(proof["checkpoint"], log["keys"]).text)
        assert [each.key for each in cosignatures(proof["checkpoint"], [key])] == [key]
        (data_of_leaf,) = decoded([proof["leafData"]])
        hashes = decoded(proof["hashes"])
        verify_inclusion(leaf_hash(data_of_leaf), proof["index"], proof["size"], hashes, checkpoint.root)
    assert after["leafData"] == before["leafData"]
    assert after["leaf"]["key"] is None


def test_after_a_rotation_a_witness_that_knows_the_former_key_still_cosigns(data, witness, verified):
    with served(data, witness) as product:
        product.wait_ready()
        wait_cosigned(product)
        run("log", "rotate-key", data=data)
        renamed(data, "Saltmarsh Trust")
        wait_cosigned(product)
        holds(verified(product))


def test_a_witness_that_does_not_know_the_log_is_told_to_the_operator(instance, data, tmp_path):
    with OtherWitness(tmp_path / "stranger") as stranger, served(data, stranger) as product:
        product.wait_ready()

        def shown():
            return run("log", "show", data=data, witnesses=f"{stranger.key} {stranger.url}").stdout

        wait_until(lambda: "WARN It does not know this log." in shown(), within_s=60, what="the refusal", every_s=1)
        assert cosigned_sizes(product) == []
        metrics = product.get("/metrics").body.decode()
        labels = f'{{key="{stranger.key.split("+")[1]}",witness="other.example/w1"}}'
        assert f"muniment_log_witness_accuses{labels} 0" in metrics
        assert f"muniment_log_witness_behind_leaves{labels} {size_of(product)}" in metrics
