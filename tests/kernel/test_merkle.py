"""The Merkle tree of the log."""

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.kernel import merkle
from muniment.kernel.merkle import (
    EMPTY_ROOT,
    ENTRIES,
    Frontier,
    ProofError,
    Tile,
    TilePathError,
    consistency_proof,
    frontier_nodes,
    in_tile,
    inclusion_proof,
    leaf_hash,
    node_hash,
    parse_tile_path,
    root_at,
    root_of,
    tile_path,
    tile_width,
    verify_consistency,
    verify_inclusion,
)

# The test vectors of the reference implementation of RFC 6962.
LEAVES = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
SIZES = [*range(1, 35), 63, 64, 65, 100]


class Log:
    """Leaves with their nodes, as a log stores them."""

    def __init__(self, leaves):
        self.leaves = leaves
        self.nodes = {}
        self.roots = [EMPTY_ROOT]
        frontier = Frontier()
        for leaf in leaves:
            for level, index, made in frontier.append(leaf):
                assert (level, index) not in self.nodes
                self.nodes[level, index] = made
            self.roots.append(frontier.root())

    def node(self, level, index):
        return self.nodes[level, index]


@functools.cache
def log_of(size):
    return Log([leaf_hash(b"%d" % number) for number in range(size)])


def by_definition(hashes):
    """The root as RFC 6962 defines it."""
    if not hashes:
        return EMPTY_ROOT
    if len(hashes) == 1:
        return hashes[0]
    middle = 1
    while middle * 2 < len(hashes):
        middle *= 2
    return node_hash(by_definition(hashes[:middle]), by_definition(hashes[middle:]))


def altered(hashes):
    """Each way in which a proof can be wrong by one hash."""
    for place, each in enumerate(hashes):
        yield [*hashes[:place], bytes([each[0] ^ 1]) + each[1:], *hashes[place + 1 :]]
        yield [*hashes[:place], *hashes[place + 1 :]]
        yield [*hashes[:place], each, *hashes[place:]]
    yield [*hashes, bytes(32)]


def test_the_roots_are_those_of_the_reference_implementation():
    log = Log([leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES])
    assert [root.hex() for root in log.roots[1:]] == ROOTS
    assert EMPTY_ROOT.hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("index", "size", "hashes"),
    [
        (0, 1, []),
        (
            0,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (2, 3, ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"]),
    ],
)
def test_the_inclusion_proofs_are_those_of_the_reference_implementation(index, size, hashes):
    log = Log([leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES])
    assert [each.hex() for each in inclusion_proof(index, size, log.node)] == hashes


@pytest.mark.parametrize(
    ("former", "size", "hashes"),
    [
        (1, 1, []),
        (
            1,
            8,
            [
                "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
            ],
        ),
        (
            6,
            8,
            [
                "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ],
        ),
        (
            2,
            5,
            [
                "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
            ],
        ),
    ],
)
def test_the_consistency_proofs_are_those_of_the_reference_implementation(former, size, hashes):
    log = Log([leaf_hash(bytes.fromhex(leaf)) for leaf in LEAVES])
    assert [each.hex() for each in consistency_proof(former, size, log.node)] == hashes


@pytest.mark.parametrize("size", SIZES)
def test_a_root_is_the_one_that_the_definition_gives(size):
    log = log_of(100)
    assert log.roots[size] == by_definition(log.leaves[:size])
    assert log.roots[size] == root_at(size, log.node)
    assert log.roots[size] == root_of(log.leaves[:size])


def test_an_empty_log_has_the_root_of_nothing():
    assert root_of([]) == EMPTY_ROOT
    assert root_at(0, log_of(1).node) == EMPTY_ROOT
    assert Frontier().root() == EMPTY_ROOT


@pytest.mark.parametrize("size", SIZES)
def test_a_frontier_continues_from_the_hashes_that_it_had(size):
    log = log_of(101)
    hashes = [log.node(level, index) for level, index in frontier_nodes(size)]
    frontier = Frontier(size, hashes)
    assert frontier.root() == log.roots[size]
    assert frontier.hashes == hashes
    nodes = frontier.append(log.leaves[size])
    assert nodes[0] == (0, size, log.leaves[size])
    assert frontier.size == size + 1
    assert frontier.root() == log.roots[size + 1]


@pytest.mark.parametrize("hashes", [[], [bytes(32)], [bytes(32)] * 3])
def test_a_frontier_with_the_wrong_number_of_hashes_is_refused(hashes):
    with pytest.raises(ValueError, match="a log of 3 leaves has 2 subtrees"):
        Frontier(3, hashes)


@pytest.mark.parametrize("size", SIZES)
def test_each_leaf_is_proven_and_no_altered_proof_is_accepted(size):
    log = log_of(100)
    root = log.roots[size]
    for index in range(size):
        hashes = inclusion_proof(index, size, log.node)
        verify_inclusion(log.leaves[index], index, size, hashes, root)
        for wrong in altered(hashes):
            with pytest.raises(ProofError):
                verify_inclusion(log.leaves[index], index, size, wrong, root)
        with pytest.raises(ProofError, match="another root"):
            verify_inclusion(leaf_hash(b"another"), index, size, hashes, root)
        if size > 1:
            with pytest.raises(ProofError):
                verify_inclusion(log.leaves[index], index ^ 1, size, hashes, root)


@pytest.mark.parametrize("size", SIZES)
def test_each_former_log_is_proven_and_no_altered_proof_is_accepted(size):
    log = log_of(100)
    root = log.roots[size]
    for former in range(size + 1):
        hashes = consistency_proof(former, size, log.node)
        verify_consistency(former, log.roots[former], size, root, hashes)
        for wrong in altered(hashes):
            with pytest.raises(ProofError):
                verify_consistency(former, log.roots[former], size, root, wrong)
        with pytest.raises(ProofError):
            verify_consistency(former, leaf_hash(b"another"), size, root, hashes)
        if former:
            with pytest.raises(ProofError):
                verify_consistency(former, log.roots[former], size, leaf_hash(b"another"), hashes)


@settings(max_examples=200)
@given(st.integers(1, 100), st.integers(0, 99), st.lists(st.binary(min_size=32, max_size=32), max_size=12))
def test_invented_hashes_prove_nothing(size, index, hashes):
    log = log_of(100)
    with pytest.raises(ProofError):
        verify_inclusion(leaf_hash(b"another"), index, size, hashes, log.roots[size])
    with pytest.raises(ProofError):
        verify_consistency(index + 1, leaf_hash(b"another"), size, log.roots[size], hashes)


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0), (0, merkle.MAX_SIZE + 1)])
def test_a_leaf_that_a_log_does_not_have_has_no_proof(index, size):
    with pytest.raises(ValueError, match="has no leaf"):
        inclusion_proof(index, size, log_of(100).node)
    with pytest.raises(ProofError, match="has no leaf"):
        verify_inclusion(bytes(32), index, size, [], bytes(32))


@pytest.mark.parametrize(("former", "size"), [(-1, 3), (4, 3), (1, merkle.MAX_SIZE + 1)])
def test_a_log_that_another_does_not_begin_with_has_no_proof(former, size):
    with pytest.raises(ValueError, match="was never one of"):
        consistency_proof(former, size, log_of(100).node)
    with pytest.raises(ProofError, match="does not continue"):
        verify_consistency(former, bytes(32), size, bytes(32), [])


def test_another_root_for_the_same_size_is_refused():
    log = log_of(100)
    with pytest.raises(ProofError, match="leads to another root"):
        verify_consistency(7, log.roots[7], 7, leaf_hash(b"another"), [])
    with pytest.raises(ProofError, match="the empty log has another root"):
        verify_consistency(0, log.roots[7], 7, log.roots[7], [])
    with pytest.raises(ProofError, match="has 0 hashes instead of 4"):
        verify_consistency(3, log.roots[3], 7, log.roots[7], [])


def test_a_proof_is_bounded_before_it_is_computed():
    with pytest.raises(ProofError, match="has 100000 hashes instead of"):
        verify_inclusion(bytes(32), 0, merkle.MAX_SIZE, [bytes(32)] * 100_000, bytes(32))
    with pytest.raises(ProofError, match="has 100000 hashes instead of"):
        verify_consistency(1, bytes(32), merkle.MAX_SIZE, bytes(32), [bytes(32)] * 100_000)
    with pytest.raises(ProofError, match="has 31 bytes instead of 32"):
        verify_inclusion(bytes(32), 0, 2, [bytes(31)], bytes(32))


@pytest.mark.parametrize("size", [1, 255, 256, 257, 511, 512, 700])
def test_each_node_is_the_root_above_hashes_of_one_tile(size):
    log = log_of(700)
    tiles = {}
    for (level, index), made in sorted(log.nodes.items()):
        if level % 8 == 0:
            tiles.setdefault((level // 8, index // 256), []).append(made)
    for (level, index), made in log.nodes.items():
        place = in_tile(level, index)
        hashes = tiles[place.level, place.number][place.first : place.first + place.width]
        assert root_of(hashes) == made


@pytest.mark.parametrize(
    ("level", "number", "size", "width"),
    [(0, 273, 70_000, 112), (1, 1, 70_000, 17), (2, 0, 70_000, 1), (0, 272, 70_000, 256), (1, 0, 256, 1)]
    + [(0, 274, 70_000, 0), (3, 0, 70_000, 0), (ENTRIES, 273, 70_000, 112), (0, 0, 0, 0), (0, 1, 256, 0)],
)
def test_the_tiles_of_a_log_are_those_of_the_specification(level, number, size, width):
    assert tile_width(level, number, size) == width


@pytest.mark.parametrize(
    ("tile", "path"),
    [
        (Tile(0, 0), "0/000"),
        (Tile(0, 999), "0/999"),
        (Tile(0, 1000), "0/x001/000"),
        (Tile(2, 1_234_067), "2/x001/x234/067"),
        (Tile(7, 0, 127), "7/000.p/127"),
        (Tile(ENTRIES, 1_234_067, 255), "entries/x001/x234/067.p/255"),
    ],
)
def test_a_tile_has_the_address_of_the_specification(tile, path):
    assert tile_path(*tile) == path
    assert parse_tile_path(path) == tile


@pytest.mark.parametrize(
    "path",
    ["", "0", "0/", "0/0", "0/0000", "0/x000/001", "0/x001", "0/001/x002", "8/000", "-1/000", "00/000", "0/000/"]
    + ["0/000.p/0", "0/000.p/256", "0/000.p/01", "0/000.p/", "0/000.p/1/2", "0/٠٠٠", "entry/000", "0/000\n"]
    + [
        "0/x999/x999/x999/x999/x999/x999/999",
        "7/001",
        "7/000",
        "7/000.p/128",
        "6/128",
        "0/x001/x001/x001/x001/x001/x001/x001/000",
    ],
)
def test_another_address_than_the_one_of_a_tile_is_refused(path):
    with pytest.raises(TilePathError):
        parse_tile_path(path)
