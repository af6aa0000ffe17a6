"""The log's proofs, tiles and notes, read by an implementation that is not ours."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tlog_scales import signing, tlog
from tlog_scales.reader import TilesReader

from muniment.kernel.merkle import (
    ENTRIES,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    tile_path,
    tile_width,
    verify_consistency,
    verify_inclusion,
)
from muniment.kernel.signed_notes import Checkpoint, VerifierKey, WitnessKey, cosign, sign, verify

SIZE = 66_000
"""Leaves that need tiles of three levels."""
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
NAME = "registry.example/log"


class Served:
    """A log as its tiles, which another implementation reads."""

    def __init__(self, size):
        self.size = size
        self.leaves = [b"leaf %d" % number for number in range(size)]
        self.nodes = {}
        frontier = Frontier()
        for leaf in self.leaves:
            for level, index, made in frontier.append(leaf_hash(leaf)):
                self.nodes[level, index] = made
        self.root = frontier.root()
        self.note = sign(Checkpoint(NAME, size, self.root).text(), NAME, KEY)
        self.paths = {}
        for level in (ENTRIES, 0, 1, 2):
            number = 0
            while width := tile_width(level, number, size):
                self.paths["tile/" + tile_path(level, number, width)] = self.tile(level, number, width)
                number += 1

    def node(self, level, index):
        return self.nodes[level, index]

    def tile(self, level, number, width):
        first = number * 256
        if level == ENTRIES:
            entries = self.leaves[first : first + width]
            return b"".join([len(entry).to_bytes(2) + entry for entry in entries])
        return b"".join([self.nodes[8 * level, index] for index in range(first, first + width)])

    def get(self, *path):
        address = "/".join(path)
        return self.note.encode() if address == "checkpoint" else self.paths.get(address)


@pytest.fixture(scope="module")
def served():
    return Served(SIZE)


def test_another_implementation_reads_the_checkpoint_and_computes_its_root_from_the_tiles(served):
    reader = TilesReader(served)
    checkpoint = reader.get_checkpoint()
    public = KEY.public_key().public_bytes_raw()
    checkpoint.verify(signing.Vkey.from_string(VerifierKey(NAME, public).text()))
    assert (checkpoint.origin, checkpoint.size) == (NAME, SIZE)
    assert reader.calculate_root_hash() == checkpoint.root_hash == served.root


@pytest.mark.parametrize("index", [0, 1, 255, 256, 65_535, 65_536, SIZE - 1])
def test_a_proof_from_the_tiles_is_ours_and_each_verifies_the_others(served, index):
    reader = TilesReader(served)
    reader.set_size(SIZE)
    assert reader.get_entry(index) == served.leaves[index]
    leaf = leaf_hash(served.leaves[index])
    ours, theirs = inclusion_proof(index, SIZE, served.node), reader.get_inclusion_proof(index, SIZE)
    assert theirs.node_hashes == ours
    tlog.InclusionProof(index, SIZE, ours).check(leaf, served.root)
    verify_inclusion(leaf, index, SIZE, theirs.node_hashes, served.root)


@pytest.mark.parametrize("former", [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, SIZE - 1, SIZE])
def test_a_consistency_proof_from_the_tiles_is_ours_and_each_verifies_the_others(served, former):
    reader = TilesReader(served)
    reader.set_size(SIZE)
    former_root = reader.mth(0, former)
    ours, theirs = consistency_proof(former, SIZE, served.node), reader.get_consistency_proof(former, SIZE)
    assert theirs.node_hashes == ours
    tlog.ConsistencyProof(former, SIZE, ours).check(former_root, served.root)
    verify_consistency(former, former_root, SIZE, served.root, theirs.node_hashes)


def test_we_verify_a_checkpoint_that_another_implementation_has_signed(served):
    signer = signing.PlainEd25519Signer(NAME, KEY)
    theirs = tlog.Checkpoint.make_signed(NAME, SIZE, served.root, [signer])
    assert theirs.serialize() == served.note
    verified = verify(theirs.serialize(), [signer.vkey.serialize()])
    assert Checkpoint.parse(verified.text) == (NAME, SIZE, served.root)


def test_another_implementation_verifies_a_cosignature_of_ours(served):
    witness = WitnessKey("witness.example/w1", KEY.public_key().public_bytes_raw())
    text = Checkpoint(NAME, SIZE, served.root).text()
    theirs = tlog.Checkpoint.from_text(served.note + cosign(text, witness.name, KEY, 1_796_000_000))
    theirs.verify(signing.Vkey.from_string(witness.text()))
