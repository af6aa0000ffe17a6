"""
The routes of the public log: what it is, its checkpoint, tiles, proofs and leaves.

The log is read from the database, on PostgreSQL not from the copy of a node. What the routes need of it is given by the
server, so that the API needs no Django.

Source: c2sp.org/tlog-checkpoint, c2sp.org/tlog-tiles.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

import msgspec

from muniment.api.parameters import V1
from muniment.api.responses import JSON, Answer
from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.merkle import (
    ENTRIES,
    TILE_WIDTH,
    ProofError,
    Tile,
    TilePathError,
    consistency_proof,
    inclusion_proof,
    parse_tile_path,
    root_at,
    tile_width,
    verify_consistency,
)
from muniment.kernel.problems import BadRequest, NotFound, Unavailable
from muniment.kernel.signed_notes import Checkpoint
from muniment.kernel.wire import proof_path, timestamp
from muniment.store import public_log
from muniment.store.public_log import Leaf, LogState, Tiles
from muniment.store.published_document import KINDS

LOG: Final = f"{V1}/log"
TILES: Final = f"{LOG}/tile/"
MAX_LEAVES: Final = 1_000
MAX_COSIGNATURES: Final = 64
"""That a request may ask for; an operator can name fewer witnesses."""
CURRENT: Final = b"public, max-age=5"
OF_TILE: Final = b"public, max-age=3600, immutable"
"""Not for longer: a log that begins again has other tiles under the same addresses."""
PLAIN: Final = b"text/plain; charset=utf-8"
BINARY: Final = b"application/octet-stream"

T = TypeVar("T")


class DescribedLog(Protocol):
    """The log as strangers know it."""

    @property
    def state(self) -> LogState: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def successions(self) -> list[str]: ...


class CosignedCheckpoint(Protocol):
    """A checkpoint that witnesses have cosigned: signature lines, and seconds since 1970, by the key of each."""

    @property
    def size(self) -> int: ...
    @property
    def root(self) -> bytes: ...
    @property
    def lines(self) -> dict[str, str]: ...
    @property
    def times(self) -> dict[str, int]: ...


class LogSource(Protocol):
    """Where the log is read and signed."""

    def read(self, work: Callable[[Any, DescribedLog], T]) -> T:
        """Call *work* with a connection in one snapshot, and with the log."""
        ...

    def sign(self, checkpoint: Checkpoint) -> str: ...

    def cosigned(self, state: LogState) -> Sequence[CosignedCheckpoint]:
        """Return what witnesses have cosigned, the newest first; call it inside of *work*."""
        ...


class PublicLog:
    """
    Answers the routes of the log.

    Args:
        source: None while the server starts, or if there is no log here.
        origin: the address of the registry that this instance mirrors.
        witnesses: the verifier keys of those that are asked to cosign.
    """

    def __init__(
        self, base_url: str, *, source: LogSource | None = None, origin: str = "", witnesses: Sequence[str] = ()
    ) -> None:
        self._base_url, self._source, self._origin = base_url, source, origin
        self._witnesses = witnesses
        self.proof_links: dict[str, tuple[bytes, bytes]] = {}
        """
        By kind: what is before and after the percent-encoded key of a document in the Link header line to its proof.

        The number of its leaf is not in the published file, and to look it up would cost every read. There are none if
        a header cannot hold the address of the origin.
        """
        if origin.isascii():
            for kind in KINDS:
                address = f"{origin}{proof_path(kind, '')}"
                self.proof_links[kind] = f"link: <{address}".encode(), b'>; rel="describedby"; title="proof"\r\n'

    def _read(self, work: Callable[[Any, DescribedLog], T]) -> T:
        if self._origin:
            raise NotFound("A mirror has no log of its own.", f"GET {self._origin}{LOG} is that of its origin.")
        if self._source is None:
            raise Unavailable("The log cannot be read yet.", "Try again in a few seconds.")
        return self._source.read(work)

    def _signed(self, checkpoint: Checkpoint, cosigned: CosignedCheckpoint | None) -> str:
        """Return the note of a checkpoint, with the cosignatures that it has."""
        assert self._source is not None  # noqa: S101 - it has been read
        note = self._source.sign(checkpoint)
        # Cosignatures of another root are those of a log that was rewritten since.
        if cosigned is None or cosigned.root != checkpoint.root:
            return note
        return note + "".join([f"{line}\n" for line in cosigned.lines.values()])

    def _cosigned(self, state: LogState) -> Sequence[CosignedCheckpoint]:
        assert self._source is not None  # noqa: S101 - it has been read
        return self._source.cosigned(state)

    def _cosigned_of_this_log(self, state: LogState, tiles: Tiles) -> Iterator[CosignedCheckpoint]:
        """Yield what witnesses have cosigned, the newest first, without roots of a log that was rewritten since."""
        for cosigned in self._cosigned(state):
            if cosigned.root == _checkpoint(state, cosigned.size, tiles).root:
                yield cosigned

    def _cosigned_by(self, count: int, state: LogState, tiles: Tiles) -> CosignedCheckpoint:
        """Return the newest checkpoint that at least *count* witnesses have cosigned."""
        for cosigned in self._cosigned_of_this_log(state, tiles):
            if len(cosigned.lines) >= count:
                return cosigned
        raise NotFound(
            f"No checkpoint of the log has as many cosignatures as {count}.",
            f"Number of its witnesses: {len(self._witnesses)}. GET {LOG}/cosigned lists what they have cosigned.",
        )

    def describe(self) -> Answer:
        return _json(self._read(lambda _, log: self._described(log)))

    def _described(self, log: DescribedLog) -> JSONObject:
        state, former = log.state, None
        if state.former is not None:
            root = _encoded(state.former.root) if state.former.root else None
            former = {"origin": state.former.origin, "size": state.former.size, "root": root}
        return {
            "origin": state.origin,
            "size": state.size,
            "root": _encoded(state.root),
            "keys": log.keys,
            "successions": log.successions,
            "begunAt": state.begun_at,
            "former": former,
            "checkpointUrl": f"{self._base_url}{LOG}/checkpoint",
            "tilesUrl": f"{self._base_url}{TILES.removesuffix('/')}",
            "witnesses": list(self._witnesses),
        }

    def checkpoint(self, values: JSONObject) -> Answer:
        """Return the newest checkpoint, or the newest one with as many cosignatures as the values ask for."""
        count = values["cosignatures"] or 0

        def work(connection: Any, log: DescribedLog) -> str:
            state = log.state
            if count:
                tiles = Tiles(connection)
                cosigned = self._cosigned_by(count, state, tiles)
                return self._signed(_checkpoint(state, cosigned.size, tiles), cosigned)
            return self._signed(Checkpoint(state.origin, state.size, state.root), self._cosigned_at(state, state.size))

        return _answer(self._read(work).encode(), content_type=PLAIN)

    def _cosigned_at(self, state: LogState, size: int) -> CosignedCheckpoint | None:
        """Return what witnesses have cosigned of one size."""
        for cosigned in self._cosigned(state):
            if cosigned.size == size:
                return cosigned
        return None

    def cosigned(self) -> Answer:
        """List the checkpoints that witnesses have cosigned, the newest first: the newest of each set of witnesses."""

        def work(connection: Any, log: DescribedLog) -> list[JSONObject]:
            tiles = Tiles(connection)
            listed = []
            for cosigned in self._cosigned_of_this_log(log.state, tiles):
                note = self._signed(_checkpoint(log.state, cosigned.size, tiles), cosigned)
                witnesses = []
                for key, at in cosigned.times.items():
                    witnesses.append({"key": key, "at": timestamp(datetime.fromtimestamp(at, UTC))})
                listed.append({"size": cosigned.size, "checkpoint": note, "witnesses": witnesses})
            return listed

        return _json(self._read(work))

    def tile(self, path: str) -> Answer:
        try:
            tile = parse_tile_path(path)
        except TilePathError:
            raise NotFound(
                f"There is no tile {path[:100]}.", f"For example: GET {TILES}0/000.p/1; see c2sp.org/tlog-tiles."
            ) from None

        def work(connection: Any, log: DescribedLog) -> bytes:
            available = tile_width(tile.level, tile.number, log.state.size)
            if tile.width > available:
                raise NotFound(
                    f"The tile {path[:100]} has {available} entries, not {tile.width}.",
                    f"The log has {log.state.size} leaves; the address of an incomplete tile ends with .p/ and their"
                    " number.",
                )
            return _tile(connection, tile)

        return _answer(self._read(work), content_type=BINARY, cache_control=OF_TILE)

    def proof(self, values: JSONObject) -> Answer:
        """Return the proof that the values ask for: of a document, of a leaf, or that a log continues a former one."""

        def work(connection: Any, log: DescribedLog) -> JSONObject:
            state, tiles = log.state, Tiles(connection)
            size = state.size if values["size"] is None else values["size"]
            if size > state.size:
                raise BadRequest(
                    f"size is {size}, and the log has {state.size} leaves.", f"Leave it out, or use {state.size}."
                )
            if values["formerSize"] is not None:
                return _consistency(values["formerSize"], size, tiles)
            if values["cosignatures"]:
                size = self._cosigned_by(values["cosignatures"], state, tiles).size
                if values["index"] is None:
                    _require_cosigned(connection, values["kind"], values["id"], size)
            leaf = self._leaf(connection, values, size)
            checkpoint = _checkpoint(state, size, tiles)
            return {
                "index": leaf.number,
                "size": size,
                "leaf": _members(leaf),
                "leafData": _encoded(leaf.data),
                "hashes": [_encoded(each) for each in inclusion_proof(leaf.number, size, tiles.node)],
                "checkpoint": self._signed(checkpoint, self._cosigned_at(state, size)),
            }

        return _json(self._read(work))

    @staticmethod
    def _leaf(connection: Any, values: JSONObject, size: int) -> Leaf:
        index, kind, key = values["index"], values["kind"], values["id"]
        if index is None:
            if kind is None or key is None:
                raise BadRequest(
                    "Say what to prove.",
                    f"GET {LOG}/proof?kind=company&id=… proves a document, ?index=0 a leaf, and ?formerSize=1 that the"
                    " log continues a former one.",
                )
            leaf = public_log.latest_leaf(connection, kind, key)
            if leaf is None or leaf.digest is None:
                raise NotFound(f'The log has no published {kind} "{key[:100]}".', "Check the kind and the id.")
            index = leaf.number
        if index >= size:
            raise BadRequest(
                f"A log of {size} leaves has no leaf {index}.",
                "Use a larger size, or leave it out; indexes begin at 0.",
            )
        return public_log.leaves(connection, index, 1)[0]

    def leaves(self, values: JSONObject) -> Answer:
        first = 0 if values["after"] is None else values["after"] + 1
        count = values["limit"] or MAX_LEAVES
        found = self._read(lambda connection, _: public_log.leaves(connection, first, count))
        data = [{"index": leaf.number, **_members(leaf), "leaf": _encoded(leaf.data)} for leaf in found]
        last = found[-1].number if found else first - 1
        return _answer(msgspec.json.encode({"data": data, "nextAfter": last}))


def _require_cosigned(connection: Any, kind: str | None, key: str | None, size: int) -> None:
    """Require that the latest leaf of a document is among those that witnesses have cosigned."""
    leaf = None if kind is None or key is None else public_log.latest_leaf(connection, kind, key)
    if leaf is not None and leaf.number >= size:
        raise NotFound(
            f"The latest leaf of this document is {leaf.number}, and witnesses have cosigned {size} leaves so far.",
            "Witnesses are asked every few seconds: try again, or leave out cosignatures.",
        )


def _checkpoint(state: LogState, size: int, tiles: Tiles) -> Checkpoint:
    """
    Return the checkpoint of the log as it had *size* leaves.

    The root of a former size is computed from rows, which may be damaged or edited, and is signed: a second root of one
    size would accuse the registry of two histories. So the log of today must continue it.
    """
    if size == state.size:
        return Checkpoint(state.origin, size, state.root)
    root = root_at(size, tiles.node)
    try:
        verify_consistency(size, root, state.size, state.root, consistency_proof(size, state.size, tiles.node))
    except ProofError:
        message = "The log is damaged: it does not continue the one of that size."
        raise Unavailable(message, "Its operator can run muniment doctor --deep.") from None
    return Checkpoint(state.origin, size, root)


def _consistency(former: int, size: int, tiles: Tiles) -> JSONObject:
    if former > size:
        raise BadRequest(f"A log of {size} leaves was never one of {former}.", "Use a formerSize of at most the size.")
    hashes = [_encoded(each) for each in consistency_proof(former, size, tiles.node)]
    return {"formerSize": former, "size": size, "hashes": hashes}


def _tile(connection: Any, tile: Tile) -> bytes:
    if tile.level != ENTRIES:
        return b"".join(Tiles(connection).hashes(tile.level, tile.number)[: tile.width])
    leaves = public_log.leaves(connection, tile.number * TILE_WIDTH, tile.width)
    return b"".join([len(leaf.data).to_bytes(2) + leaf.data for leaf in leaves])


def _members(leaf: Leaf) -> JSONObject:
    salt, digest_hex = None, None
    if leaf.salt is not None:
        salt = _encoded(leaf.salt)
    if leaf.digest is not None:
        digest_hex = leaf.digest.hex()
    return {"kind": leaf.kind, "key": leaf.key, "change": leaf.change, "salt": salt, "digest": digest_hex}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _json(data: JSONObject | list[JSONObject]) -> Answer:
    return _answer(msgspec.json.encode({"data": data}))


def _answer(body: bytes, *, content_type: bytes = JSON, cache_control: bytes = CURRENT) -> Answer:
    return Answer(body, digest(body).encode(), content_type=content_type, cache_control=cache_control)
