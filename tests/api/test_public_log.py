"""The routes of the public log: what they answer verifies, and what cannot be answered says why."""

import base64
import hashlib
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from make.published import company, person
from make.rest import FileLog, Rest
from muniment.api.public_log import PublicLog
from muniment.kernel.merkle import (
    TILE_WIDTH,
    Frontier,
    ProofError,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)
from muniment.kernel.signed_notes import Checkpoint, WitnessKey, cosign, cosignatures, verify
from muniment.store import public_log
from muniment.store.public_log import leaf_of

LEAVES = 700


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """A registry whose log has two tiles and a part of a third; only read."""
    made = Rest(tmp_path_factory.mktemp("logged"))
    made.publish(company(1), person(1))
    for number in range(LEAVES - 4):
        made.publish(company(number % 5 + 1, description=f"Change {number}."))
    made.publish(company(6))
    made.unlist("company", "company-6")
    public_log.erase(made.publisher.connection, "person", "person-1")
    made.api.open_log(FileLog(made.reader.path))
    yield made
    made.close()


def data(client, path):
    answer = client.ask(f"/api/v1/log{path}")
    assert answer.status == 200, answer.body
    return answer.json["data"]


def decoded(texts):
    return [base64.b64decode(text) for text in texts]


def checkpoint(client, note=None):
    key = data(client, "")["keys"][0]
    if note is None:
        note = client.ask("/api/v1/log/checkpoint").body
    return Checkpoint.parse(verify(note, [key]).text)


def roots(client):
    """Return the root of each size, from the leaves."""
    frontier, found = Frontier(), [Frontier().root()]
    for leaf in data(client, "/leaves"):
        frontier.append(leaf_hash(base64.b64decode(leaf["leaf"])))
        found.append(frontier.root())
    return found


def test_the_log_is_described_with_its_keys(logged):
    described = data(logged, "")
    assert described["size"] == LEAVES
    assert described["origin"].startswith("registry.example/")
    assert described["former"] is None
    assert described["checkpointUrl"] == "https://registry.example/api/v1/log/checkpoint"
    assert base64.b64decode(described["root"]) == roots(logged)[-1]


def test_the_checkpoint_is_signed_and_has_the_root(logged):
    answer = logged.ask("/api/v1/log/checkpoint")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=5"
    assert answer.headers["access-control-allow-origin"] == "*"
    found = checkpoint(logged)
    assert (found.origin, found.size, found.root) == (data(logged, "")["origin"], LEAVES, roots(logged)[-1])


@pytest.mark.parametrize("key", ["company-1", "company-5"])
def test_a_published_document_is_proven(logged, key):
    body = logged.ask(f"/api/v1/companies/{key}").body
    proof = data(logged, f"/proof?kind=company&id={key}")
    leaf, leaf_data = proof["leaf"], base64.b64decode(proof["leafData"])
    assert leaf["digest"] == hashlib.sha256(body).hexdigest()
    salt, digest = base64.b64decode(leaf["salt"]), bytes.fromhex(leaf["digest"])
    assert leaf_data == leaf_of(salt, "company", key, leaf["change"], digest)
    found = checkpoint(logged, proof["checkpoint"])
    assert proof["size"] == found.size == LEAVES
    verify_inclusion(leaf_hash(leaf_data), proof["index"], found.size, decoded(proof["hashes"]), found.root)


@pytest.mark.parametrize(("index", "size"), [(0, 1), (0, LEAVES), (255, 256), (256, 257), (511, 600), (699, 700)])
def test_a_leaf_is_proven_in_the_log_of_any_size_that_has_it(logged, index, size):
    proof = data(logged, f"/proof?index={index}&size={size}")
    found = checkpoint(logged, proof["checkpoint"])
    assert (found.size, found.root) == (size, roots(logged)[size])
    leaf = leaf_hash(base64.b64decode(proof["leafData"]))
    verify_inclusion(leaf, index, size, decoded(proof["hashes"]), found.root)


@pytest.mark.parametrize(("former", "size"), [(1, 2), (255, 700), (256, 512), (300, 301), (700, 700), (0, 700)])
def test_a_log_is_proven_to_continue_a_former_one(logged, former, size):
    proof = data(logged, f"/proof?formerSize={former}&size={size}")
    of = roots(logged)
    verify_consistency(former, of[former], size, of[size], decoded(proof["hashes"]))


def test_an_erased_person_is_proven_without_being_named(logged):
    (leaf,) = [each for each in data(logged, "/leaves") if each["key"] is None]
    assert (leaf["index"], leaf["kind"], leaf["salt"], leaf["digest"]) == (1, None, None, None)
    proof = data(logged, "/proof?index=1")
    assert proof["leaf"]["key"] is None
    found = checkpoint(logged, proof["checkpoint"])
    leaf = leaf_hash(base64.b64decode(proof["leafData"]))
    verify_inclusion(leaf, 1, found.size, decoded(proof["hashes"]), found.root)
    assert logged.ask("/api/v1/log/proof?kind=person&id=person-1").status == 404


def test_leaves_are_listed_in_pages(logged):
    first = logged.ask("/api/v1/log/leaves?limit=3").json
    assert [leaf["index"] for leaf in first["data"]] == [0, 1, 2]
    assert first["nextAfter"] == 2
    rest = logged.ask(f"/api/v1/log/leaves?after={first['nextAfter']}&limit=1000").json
    assert len(rest["data"]) == LEAVES - 3
    last = logged.ask(f"/api/v1/log/leaves?after={rest['nextAfter']}").json
    assert last == {"data": [], "nextAfter": LEAVES - 1}
    assert logged.ask("/api/v1/log/leaves?after=-1&limit=3").json == first


def test_tiles_have_the_hashes_and_the_data_of_leaves(logged):
    leaves = [base64.b64decode(leaf["leaf"]) for leaf in data(logged, "/leaves")]
    full = logged.ask("/api/v1/log/tile/0/001")
    assert full.headers["content-type"] == "application/octet-stream"
    assert full.headers["cache-control"] == "public, max-age=3600, immutable"
    hashes = [leaf_hash(leaf) for leaf in leaves]
    assert full.body == b"".join(hashes[TILE_WIDTH : 2 * TILE_WIDTH])
    assert logged.ask("/api/v1/log/tile/0/002.p/188").body == b"".join(hashes[2 * TILE_WIDTH :])
    assert logged.ask("/api/v1/log/tile/0/002.p/3").body == b"".join(hashes[2 * TILE_WIDTH :][:3])
    above = logged.ask("/api/v1/log/tile/1/000.p/2").body
    assert above == root_of(hashes[:TILE_WIDTH]) + root_of(hashes[TILE_WIDTH : 2 * TILE_WIDTH])
    assert node_hash(above[:32], above[32:]) == root_of(hashes[: 2 * TILE_WIDTH])
    entries = logged.ask("/api/v1/log/tile/entries/002.p/188").body
    assert entries == b"".join([b"\x00\x20" + leaf for leaf in leaves[2 * TILE_WIDTH :]])


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/proof", 400, "Say what to prove."),
        ("/proof?kind=company", 400, "Say what to prove."),
        ("/proof?kind=company&id=company-7", 404, 'The log has no published company "company-7".'),
        ("/proof?kind=company&id=company-6", 404, 'The log has no published company "company-6".'),
        ("/proof?kind=city&id=x", 400, "kind"),
        ("/proof?index=700", 400, "A log of 700 leaves has no leaf 700."),
        ("/proof?index=1&size=1", 400, "A log of 1 leaves has no leaf 1."),
        ("/proof?index=0&size=0", 400, "A log of 0 leaves has no leaf 0."),
        ("/proof?index=0&size=701", 400, "size is 701, and the log has 700 leaves."),
        ("/proof?index=-1", 400, "index"),
        ("/proof?index=1e3", 400, "index"),
        ("/proof?formerSize=2&size=1", 400, "A log of 1 leaves was never one of 2."),
        ("/proof?formerSize=701", 400, "A log of 700 leaves was never one of 701."),
        ("/leaves?limit=1001", 400, "limit"),
        ("/leaves?after=-2", 400, "after"),
        ("/tile/0/002", 404, "has 188 entries, not 256"),
        ("/tile/0/002.p/189", 404, "has 188 entries, not 189"),
        ("/tile/1/000.p/3", 404, "has 2 entries, not 3"),
        ("/tile/2/000.p/1", 404, "has 0 entries, not 1"),
        ("/tile/0/x001/000", 404, "has 0 entries, not 256"),
        ("/tile/0/1", 404, "There is no tile 0/1."),
        ("/tile/9/000", 404, "There is no tile 9/000."),
        ("/tile/0/000.p/256", 404, "There is no tile 0/000.p/256."),
        ("/tile/../../companies", 404, "There is no tile"),
        ("/tile/", 404, ""),
        ("/tile/0/000%2Fx", 404, ""),
    ],
)
def test_what_cannot_be_answered_says_why(logged, path, status, says):
    answer = logged.ask(f"/api/v1/log{path}")
    assert answer.status == status
    assert says in answer.error["message"]
    assert answer.error["hint"]


def test_an_empty_log_has_a_checkpoint_and_no_leaf(tmp_path):
    rest = Rest(tmp_path)
    public_log.continue_log(rest.publisher.connection, 0)
    rest.api.open_log(FileLog(rest.reader.path))
    assert checkpoint(rest).root == hashlib.sha256(b"").digest()
    assert data(rest, "/leaves") == []
    assert data(rest, "/proof?formerSize=0") == {"formerSize": 0, "size": 0, "hashes": []}
    assert rest.ask("/api/v1/log/proof?index=0").status == 400
    rest.close()


def test_a_row_that_was_changed_makes_no_second_root_of_a_size(tmp_path):
    rest = Rest(tmp_path)
    for number in range(1, 6):
        rest.publish(company(number))
    rest.api.open_log(FileLog(rest.reader.path))
    honest = checkpoint(rest)
    assert checkpoint(rest, data(rest, "/proof?index=0&size=3")["checkpoint"]).root == roots(rest)[3]
    rest.publisher.connection.execute("UPDATE published_leaf SET digest = zeroblob(32) WHERE number = 1")
    proof = data(rest, "/proof?index=0")
    assert checkpoint(rest, proof["checkpoint"]) == honest
    leaf = leaf_hash(base64.b64decode(proof["leafData"]))
    with pytest.raises(ProofError, match="leads to another root"):
        verify_inclusion(leaf, 0, honest.size, decoded(proof["hashes"]), honest.root)
    refused = rest.ask("/api/v1/log/proof?index=0&size=3")
    assert refused.status == 503
    assert "it does not continue the one of that size" in refused.error["message"]
    rest.close()


def test_before_the_server_has_opened_the_log_it_is_unavailable(tmp_path):
    rest = Rest(tmp_path)
    answer = rest.ask("/api/v1/log")
    assert (answer.status, answer.error["message"]) == (503, "The log cannot be read yet.")
    rest.close()


# ---------------------------------------------------------------- witnesses


WITNESSES = [Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2)]
WITNESS_KEYS = [
    WitnessKey(f"w{place}.example", key.public_key().public_bytes_raw()) for place, key in enumerate(WITNESSES)
]


def cosigned_by(client, size, *places):
    """Return a checkpoint that witnesses have cosigned."""
    found = Checkpoint(data(client, "")["origin"], size, roots(client)[size])
    lines, times = {}, {}
    for place in places:
        key = WITNESS_KEYS[place]
        lines[key.text()] = cosign(found.text(), key.name, WITNESSES[place], 1_800_000_000).removesuffix("\n")
        times[key.text()] = 1_800_000_000
    return Cosigned(size, found.root, lines, times)


class Cosigned(NamedTuple):
    size: int
    root: bytes
    lines: dict[str, str]
    times: dict[str, int]


@pytest.fixture
def witnessed(logged):
    """The registry, of whose log one witness has cosigned 600 leaves, and both 300."""
    source = FileLog(logged.reader.path)
    source.found = [cosigned_by(logged, 600, 0), cosigned_by(logged, 300, 0, 1)]
    logged.api.open_log(source)
    yield source
    logged.api.open_log(FileLog(logged.reader.path))


def cosigners(note):
    return [each.key for each in cosignatures(note, WITNESS_KEYS)]


def test_the_newest_checkpoint_with_as_many_cosignatures_as_are_asked_for(logged, witnessed):
    for asked, size, keys in [
        ("", LEAVES, []),
        ("?cosignatures=0", LEAVES, []),
        ("?cosignatures=1", 600, WITNESS_KEYS[:1]),
    ]:
        note = logged.ask(f"/api/v1/log/checkpoint{asked}").body
        assert checkpoint(logged, note).size == size
        assert cosigners(note) == keys
    note = logged.ask("/api/v1/log/checkpoint?cosignatures=2").body
    assert checkpoint(logged, note) == (data(logged, "")["origin"], 300, roots(logged)[300])
    assert cosigners(note) == WITNESS_KEYS


def test_the_newest_checkpoint_has_the_cosignatures_that_there_are_of_it(logged, witnessed):
    witnessed.found.insert(0, cosigned_by(logged, LEAVES, 1))
    assert cosigners(logged.ask("/api/v1/log/checkpoint").body) == WITNESS_KEYS[1:]
    proof = data(logged, "/proof?index=0")
    assert cosigners(proof["checkpoint"]) == WITNESS_KEYS[1:]


def test_cosigned_checkpoints_are_listed_the_newest_first(logged, witnessed):
    listed = data(logged, "/cosigned")
    assert [each["size"] for each in listed] == [600, 300]
    assert [[of["key"] for of in each["witnesses"]] for each in listed] == [
        [WITNESS_KEYS[0].text()],
        [key.text() for key in WITNESS_KEYS],
    ]
    assert listed[0]["witnesses"][0]["at"] == "2027-01-15T08:00:00.000000Z"
    for each in listed:
        assert checkpoint(logged, each["checkpoint"]).size == each["size"]
        assert len(cosigners(each["checkpoint"])) == len(each["witnesses"])


def test_more_cosignatures_than_there_are_is_not_found(logged, witnessed):
    answer = logged.ask("/api/v1/log/checkpoint?cosignatures=3")
    assert (answer.status, answer.json["error"]["message"]) == (
        404,
        "No checkpoint of the log has as many cosignatures as 3.",
    )
    assert logged.ask("/api/v1/log/checkpoint?cosignatures=65").status == 400
    assert logged.ask("/api/v1/log/checkpoint?cosignatures=-1").status == 400
    witnessed.found = []
    assert logged.ask("/api/v1/log/checkpoint?cosignatures=1").status == 404
    assert data(logged, "/cosigned") == []


def test_a_proof_is_for_the_newest_checkpoint_that_witnesses_have_cosigned(logged, witnessed):
    proof = data(logged, "/proof?index=299&cosignatures=2")
    assert proof["size"] == 300
    assert cosigners(proof["checkpoint"]) == WITNESS_KEYS
    leaf = leaf_hash(base64.b64decode(proof["leafData"]))
    verify_inclusion(leaf, 299, 300, decoded(proof["hashes"]), checkpoint(logged, proof["checkpoint"]).root)
    refused = logged.ask("/api/v1/log/proof?index=300&cosignatures=2")
    assert (refused.status, refused.json["error"]["message"]) == (400, "A log of 300 leaves has no leaf 300.")
    later = logged.ask("/api/v1/log/proof?kind=company&id=company-1&cosignatures=2")
    assert later.status == 404
    assert "witnesses have cosigned 300 leaves so far" in later.json["error"]["message"]
    assert logged.ask("/api/v1/log/proof?kind=company&id=none&cosignatures=1").status == 404
    assert logged.ask("/api/v1/log/proof?cosignatures=1").status == 400


def test_cosignatures_of_another_root_are_not_given_with_this_one(logged, witnessed):
    witnessed.found = [cosigned_by(logged, 300, 0)._replace(root=bytes(32))]
    for path in ("/checkpoint?cosignatures=1", "/proof?kind=company&id=company-1&cosignatures=1"):
        assert logged.ask(f"/api/v1/log{path}").status == 404
    assert data(logged, "/cosigned") == []
    witnessed.found.append(cosigned_by(logged, 200, 0))
    note = logged.ask("/api/v1/log/checkpoint?cosignatures=1").body
    assert checkpoint(logged, note).root == roots(logged)[200]
    assert len(cosigners(note)) == 1


# ---------------------------------------------------------------- what leads to a proof


@pytest.mark.parametrize(
    ("path", "kind", "key"),
    [("/api/v1/companies/company-1", "company", "company-1"), ("/api/v1/people/person-1", "person", "person-1")],
)
def test_a_document_names_the_address_of_its_proof(logged, path, kind, key):
    answer = logged.ask(path)
    assert answer.headers["link"] == f'</api/v1/log/proof?kind={kind}&id={key}>; rel="describedby"; title="proof"'
    if kind == "company":  # the person was erased from the log
        proof = data(logged, answer.headers["link"].partition(">")[0].removeprefix("</api/v1/log"))
        assert proof["leaf"]["digest"] == hashlib.sha256(answer.body).hexdigest()


def test_a_document_that_has_not_changed_names_its_proof_too(logged):
    tag = logged.ask("/api/v1/companies/company-1").headers["etag"]
    unchanged = logged.ask("/api/v1/companies/company-1", if_none_match=tag)
    assert unchanged.status == 304
    assert 'title="proof"' in unchanged.headers["link"]


def test_the_proof_of_a_document_of_a_mirror_is_that_of_its_origin():
    log = PublicLog("https://mirror.example", origin="https://registry.example")
    assert log.proof_links["framework"] == (
        b"link: <https://registry.example/api/v1/log/proof?kind=framework&id=",
        b'>; rel="describedby"; title="proof"\r\n',
    )
    assert PublicLog("", origin="https://régistre.example").proof_links == {}, "a header has no such letters"
