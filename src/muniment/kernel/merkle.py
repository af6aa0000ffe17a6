"""
The Merkle tree of the log: hashes of RFC 6962, proofs and their verification, and the addresses of its tiles.

A node (level, index) is the root of a complete subtree: that of the 2**level leaves from index * 2**level on. Nodes
never change once they are made, so they are what a log stores and what a proof is read from; the rest is computed.

Nothing here reads or writes. Proofs are made of nodes that the caller provides, and are verified with bounds, because
they may come from a hostile server.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
MAX_SIZE: Final = (1 << 63) - 1
"""Leaves of the largest log, as both databases count."""
TILE_LEVELS: Final = 8
"""Levels of the tree from one level of tiles to the next."""
TILE_WIDTH: Final = 1 << TILE_LEVELS
ENTRIES: Final = -1
"""The level of the tiles that hold the data of leaves instead of hashes."""
_MAX_TILE_LEVEL: Final = 7
_TILE_PATH: Final = re.compile(r"(entries|[0-9])/((?:x[0-9]{3}/){0,6}[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")

NodeReader = Callable[[int, int], bytes]
"""Returns the hash of a node, given its level and index."""


class ProofError(ValueError):
    """A proof does not show what it should."""


class TilePathError(ValueError):
    """An address is not that of a tile."""


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


class Node(NamedTuple):
    """A complete subtree; level 0 are the leaves."""

    level: int
    number: int
    hash: bytes


class Frontier:
    """
    A log that grows, by the hashes of the complete subtrees that it consists of, the largest first.

    Args:
        size: leaves that the log has.
        hashes: those of its complete subtrees: one for each bit that is set in *size*, from the highest on.
    """

    __slots__ = ("hashes", "size")

    def __init__(self, size: int = 0, hashes: Iterable[bytes] = ()) -> None:
        self.size = size
        self.hashes = list(hashes)
        if len(self.hashes) != size.bit_count():
            raise ValueError(f"a log of {size} leaves has {size.bit_count()} subtrees, not {len(self.hashes)}")

    def append(self, leaf: bytes) -> list[Node]:
        """Append the hash of a leaf, and return the nodes that it makes or completes, the leaf first."""
        level, index, made = 0, self.size, leaf
        nodes = [Node(level, index, made)]
        # Each bit that is set at the end of the index is a left sibling of the same size.
        while index & 1:
            made = node_hash(self.hashes.pop(), made)
            level, index = level + 1, index >> 1
            nodes.append(Node(level, index, made))
        self.hashes.append(made)
        self.size += 1
        return nodes

    def root(self) -> bytes:
        return _joined(self.hashes)


def frontier_nodes(size: int) -> list[tuple[int, int]]:
    """Return level and index of the complete subtrees that a log of *size* leaves consists of, the largest first."""
    return _parts(0, size)


def root_of(hashes: Iterable[bytes]) -> bytes:
    """Return the root above consecutive hashes of one level, the first of which begins a subtree large enough."""
    frontier = Frontier()
    for each in hashes:
        frontier.append(each)
    return frontier.root()


def root_at(size: int, node: NodeReader) -> bytes:
    """Return the root of the log as it was with *size* leaves."""
    return _range_root(0, size, node)


def inclusion_proof(index: int, size: int, node: NodeReader) -> list[bytes]:
    """Return the hashes by which leaf *index* leads to the root of the log of *size* leaves (RFC 6962, 2.1.1)."""
    if not 0 <= index < size <= MAX_SIZE:
        raise ValueError(f"a log of {size} leaves has no leaf {index}")
    beside = _beside_leaf(index, size)
    return [_range_root(each.begin, each.end, node) for each in beside]


def consistency_proof(former: int, size: int, node: NodeReader) -> list[bytes]:
    """Return the hashes by which the log of *former* leaves is the beginning of that of *size* (RFC 6962, 2.1.2)."""
    if not 0 <= former <= size <= MAX_SIZE:
        raise ValueError(f"a log of {size} leaves was never one of {former}")
    if former == 0:
        return []
    begin, beside = _beside_end(former, size)
    hashes = [_range_root(each.begin, each.end, node) for each in beside]
    # A verifier knows the root of the former log, but not that of a part of it.
    return [_range_root(begin, former, node), *hashes] if begin else hashes


def verify_inclusion(leaf: bytes, index: int, size: int, hashes: Sequence[bytes], root: bytes) -> None:
    """
    Verify that the leaf with the hash *leaf* is number *index* of the log of *size* leaves.

    Raises:
        ProofError: the proof does not show it.
    """
    if not 0 <= index < size <= MAX_SIZE:
        raise ProofError(f"a log of {size} leaves has no leaf {index}")
    beside = _beside_leaf(index, size)
    _require_hashes(hashes, len(beside))
    computed = leaf
    for each, its_hash in zip(beside, hashes, strict=True):
        computed = node_hash(computed, its_hash) if each.is_right else node_hash(its_hash, computed)
    if computed != root:
        raise ProofError("the proof leads to another root")


def verify_consistency(former: int, former_root: bytes, size: int, root: bytes, hashes: Sequence[bytes]) -> None:
    """
    Verify that the log of *former* leaves is the beginning of the one of *size* leaves.

    Raises:
        ProofError: the proof does not show it.
    """
    if not 0 <= former <= size <= MAX_SIZE:
        raise ProofError(f"a log of {size} leaves does not continue one of {former}")
    if former == 0:
        _require_hashes(hashes, 0)
        if former_root != EMPTY_ROOT:
            raise ProofError("the empty log has another root")
        return
    begin, beside = _beside_end(former, size)
    _require_hashes(hashes, len(beside) + (1 if begin else 0))
    # Both roots are computed from the part that the former log ends with.
    computed_former = computed = hashes[0] if begin else former_root
    for each, its_hash in zip(beside, hashes[1:] if begin else hashes, strict=True):
        if each.is_right:
            computed = node_hash(computed, its_hash)
        else:
            computed_former = node_hash(its_hash, computed_former)
            computed = node_hash(its_hash, computed)
    if computed_former != former_root:
        raise ProofError("the proof leads to another former root")
    if computed != root:
        raise ProofError("the proof leads to another root")


class Tile(NamedTuple):
    """A tile of the log (c2sp.org/tlog-tiles): *width* hashes of level ``8 * level``, or data of leaves."""

    level: int
    number: int
    width: int = TILE_WIDTH


class InTile(NamedTuple):
    """The hashes of a tile, above which a node is the root."""

    level: int
    number: int
    first: int
    width: int


def in_tile(level: int, index: int) -> InTile:
    """Return where the tiles have the node (level, index)."""
    tile_level, height = divmod(level, TILE_LEVELS)
    number, first = divmod(index << height, TILE_WIDTH)
    return InTile(tile_level, number, first, 1 << height)


def tile_width(level: int, number: int, size: int) -> int:
    """Return how many entries a tile has in a log of *size* leaves: 0 if there is no such tile."""
    entries = size >> (TILE_LEVELS * max(level, 0))
    return max(0, min(TILE_WIDTH, entries - number * TILE_WIDTH))


def tile_path(level: int, number: int, width: int = TILE_WIDTH) -> str:
    """Return the address of a tile below that of all tiles, for example ``0/x001/x234/067`` or ``entries/000.p/5``."""
    groups = [f"{number % 1000:03d}"]
    rest = number // 1000
    while rest:
        groups.append(f"x{rest % 1000:03d}")
        rest //= 1000
    first = "entries" if level == ENTRIES else str(level)
    partial = "" if width == TILE_WIDTH else f".p/{width}"
    return f"{first}/{'/'.join(reversed(groups))}{partial}"


def parse_tile_path(path: str) -> Tile:
    """
    Return the tile of an address; each tile has one.

    Raises:
        TilePathError: it is not the address of a tile that a log can have.
    """
    match = _TILE_PATH.fullmatch(path)
    if match is None:
        raise TilePathError("not the address of a tile")
    level = ENTRIES if match[1] == "entries" else int(match[1])
    number = int(match[2].replace("x", "").replace("/", ""))
    width = int(match[3]) if match[3] else TILE_WIDTH
    tile = Tile(level, number, width)
    # Of 1,000 tiles or more, the first group is not 000; a tile of full width has no width in its address.
    is_address = level <= _MAX_TILE_LEVEL and tile_path(*tile) == path
    if not is_address or width > tile_width(level, number, MAX_SIZE):
        raise TilePathError("not the address of a tile")
    return tile


class _Beside(NamedTuple):
    """Leaves that are left or right of a subtree, and are one with it in the next larger one."""

    begin: int
    end: int
    is_right: bool


def _beside_leaf(index: int, size: int) -> list[_Beside]:
    """Return what is beside a leaf, and beside each subtree of it, up to the root."""
    begin, end = 0, size
    beside = []
    while end - begin > 1:
        middle = begin + _split(end - begin)
        if index < middle:
            beside.append(_Beside(middle, end, is_right=True))
            end = middle
        else:
            beside.append(_Beside(begin, middle, is_right=False))
            begin = middle
    beside.reverse()
    return beside


def _beside_end(former: int, size: int) -> tuple[int, list[_Beside]]:
    """Return where the largest subtree begins that ends with the former log, and what is beside it, up to the root."""
    begin, end = 0, size
    beside = []
    while end != former:
        middle = begin + _split(end - begin)
        if former <= middle:
            beside.append(_Beside(middle, end, is_right=True))
            end = middle
        else:
            beside.append(_Beside(begin, middle, is_right=False))
            begin = middle
    beside.reverse()
    return begin, beside


def _split(size: int) -> int:
    """Return the largest power of two below *size*, at which a tree of more than one leaf is divided."""
    return 1 << ((size - 1).bit_length() - 1)


def _parts(begin: int, end: int) -> list[tuple[int, int]]:
    """Return level and index of the complete subtrees of a range that begins where a subtree of its size does."""
    parts = []
    while begin < end:
        level = (end - begin).bit_length() - 1
        parts.append((level, begin >> level))
        begin += 1 << level
    return parts


def _range_root(begin: int, end: int, node: NodeReader) -> bytes:
    return _joined([node(level, index) for level, index in _parts(begin, end)])


def _joined(hashes: Sequence[bytes]) -> bytes:
    """Return the root above the complete subtrees of a range."""
    if not hashes:
        return EMPTY_ROOT
    joined = hashes[-1]
    for each in reversed(hashes[:-1]):
        joined = node_hash(each, joined)
    return joined


def _require_hashes(hashes: Sequence[bytes], count: int) -> None:
    """Require as many hashes as a proof has, which its sizes say."""
    if len(hashes) != count:
        raise ProofError(f"the proof has {len(hashes)} hashes instead of {count}")
    for each in hashes:
        if len(each) != HASH_BYTES:
            raise ProofError(f"a hash of the proof has {len(each)} bytes instead of {HASH_BYTES}")
