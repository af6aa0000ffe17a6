"""A registry on loopback with a public log, honest until a test changes what it has or replaces an answer."""

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muniment.kernel.merkle import EMPTY_ROOT, Frontier, consistency_proof, inclusion_proof, leaf_hash
from muniment.kernel.signed_notes import Checkpoint, Succession, WitnessKey, cosign, sign, vkey
from muniment.mirror.verifying import leaf_of
from services.origin import NAMES, Given, OriginSite

NAME = "registry.example/cafe"


def private_key(number: int) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)


def witness_key(number: int) -> WitnessKey:
    return WitnessKey(f"witness{number}.example", private_key(number).public_key().public_bytes_raw())


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class LogSite(OriginSite):
    """
    The registry, in a context.

    Attributes:
        leaves: what each leaf is the hash of, with its data.
        keys: numbers of the keys that sign, the newest first.
        size: of the log that is shown, if it is not the present one.
        cosigned: sizes that witnesses have cosigned, the newest first, with the time of each by its number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = NAME
        self.keys = [1]
        self.successions: list[str] = []
        self.former: dict[str, Any] | None = None
        self.leaves: list[dict[str, Any]] = []
        self.size: int | None = None
        self.cosigned: list[tuple[int, dict[int, int]]] = []

    def cosign(self, *witnesses: int, size: int | None = None, at: int | None = None) -> None:
        """Let witnesses, by their numbers, cosign the log as it is, or as it was with *size* leaves."""
        moment = int(time.time()) if at is None else at
        count = len(self.leaves) if size is None else size
        self.cosigned.insert(0, (count, dict.fromkeys(witnesses, moment)))

    def cosigned_note(self, size: int, times: dict[int, int]) -> str:
        text = Checkpoint(self.name, size, self.root(size)).text()
        lines = [cosign(text, f"witness{number}.example", private_key(number), at) for number, at in times.items()]
        return self.note(size) + "".join(lines)

    def vkey(self, number: int) -> str:
        return vkey(self.name, private_key(number).public_key().public_bytes_raw())

    def rotate(self, number: int) -> None:
        """Let key *number* sign, named by the one before."""
        note = Succession(self.name, self.vkey(number)).text()
        self.successions.append(sign(note, self.name, private_key(self.keys[0])))
        self.keys = [number]

    def _record(self, kind: str, key: str, change: str, at: str) -> None:
        super()._record(kind, key, change, at)
        document = self.documents.get((kind, key))
        self.log(kind, key, change, None if document is None else self.digest_of(document))

    @staticmethod
    def digest_of(document: bytes) -> bytes:
        return hashlib.sha256(b'{"data":%b}' % document).digest()

    def log(self, kind: str, key: str, change: str, digest: bytes | None, *, salt: bytes = b"") -> None:
        salt = salt or hashlib.sha256(b"salt %d" % len(self.leaves)).digest()[:16]
        data = leaf_of(salt, kind, key, change, digest)
        leaf = {"kind": kind, "key": key, "change": change, "salt": salt, "digest": digest, "data": data}
        self.leaves.append(leaf)

    def erase(self, kind: str, key: str) -> None:
        """Erase a person: the leaves stay, and nothing tells of whom they were."""
        self.unlist(kind, key)
        for leaf in self.leaves:
            if leaf["key"] == key:
                leaf.update(kind=None, key=None, salt=None, digest=None)

    def root(self, size: int) -> bytes:
        frontier = Frontier()
        for leaf in self.leaves[:size]:
            frontier.append(leaf_hash(leaf["data"]))
        return frontier.root() if size else EMPTY_ROOT

    def shown_size(self) -> int:
        return len(self.leaves) if self.size is None else self.size

    def note(self, size: int | None = None) -> str:
        count = self.shown_size() if size is None else size
        text = Checkpoint(self.name, count, self.root(count)).text()
        return sign(text, self.name, *[private_key(number) for number in self.keys])

    def _nodes(self) -> dict[tuple[int, int], bytes]:
        frontier = Frontier()
        nodes = {}
        for leaf in self.leaves:
            for level, number, made in frontier.append(leaf_hash(leaf["data"])):
                nodes[level, number] = made
        return nodes

    def _answer(self, request: Any) -> Given:
        parts = urlsplit(request.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        if path == "/api/v1/log":
            return self._json(self.described())
        if path == "/api/v1/log/checkpoint":
            return Given(200, self.note().encode(), {"Content-Type": "text/plain; charset=utf-8"})
        if path == "/api/v1/log/cosigned":
            return self._json([{"checkpoint": self.cosigned_note(*each), "size": each[0]} for each in self.cosigned])
        if path == "/api/v1/log/proof":
            found = self.proof(query)
            return Given(404, b"{}") if found is None else self._json(found)
        if path == "/api/v1/log/leaves":
            first, limit = int(query.get("after", -1)) + 1, int(query["limit"])
            leaves = self.leaves[first : min(first + limit, self.shown_size())]
            return self._json([self.listed(first + place, leaf) for place, leaf in enumerate(leaves)])
        return self._listed_or_document(path, query) or super()._answer(request)

    def _listed_or_document(self, path: str, query: dict[str, str]) -> Given | None:
        for kind, name in NAMES.items():
            if path == f"/api/v1/{name}":
                keys = [key for each, key in self.documents if each == kind]
                member = {"company": "id", "person": "slug", "framework": "frameworkId"}[kind]
                if kind == "framework":
                    return self._json([{member: key} for key in keys])
                chosen = [{member: key} for key in keys[int(query["page"]) - 1 :][:1]]
                return Given(200, json.dumps({"data": chosen, "pagination": {"total": len(keys)}}).encode())
            document = self.documents.get((kind, path.removeprefix(f"/api/v1/{name}/")))
            if path.startswith(f"/api/v1/{name}/") and document is not None:
                return Given(200, b'{"data":%b}' % document)
        return None

    @staticmethod
    def _json(data: Any) -> Given:
        return Given(200, json.dumps({"data": data}).encode())

    def described(self) -> dict[str, Any]:
        size = self.shown_size()
        told = {"origin": self.name, "size": size, "root": encoded(self.root(size)), "begunAt": "2026-11-01T00:00:00Z"}
        return {
            **told,
            "keys": [self.vkey(number) for number in self.keys],
            "former": self.former,
            "successions": self.successions,
        }

    @staticmethod
    def members(leaf: dict[str, Any]) -> dict[str, Any]:
        salt, digest = leaf["salt"], leaf["digest"]
        shown = {"salt": None if salt is None else encoded(salt), "digest": None if digest is None else digest.hex()}
        return {"kind": leaf["kind"], "key": leaf["key"], "change": leaf["change"], **shown}

    def listed(self, index: int, leaf: dict[str, Any]) -> dict[str, Any]:
        return {"index": index, **self.members(leaf), "leaf": encoded(leaf["data"])}

    def proof(self, query: dict[str, str]) -> dict[str, Any] | None:
        nodes = self._nodes()
        if "formerSize" in query:
            former, size = int(query["formerSize"]), int(query["size"])
            if not former <= size <= self.shown_size():
                return None
            hashes = consistency_proof(former, size, lambda *node: nodes[node])
            return {"formerSize": former, "size": size, "hashes": [encoded(each) for each in hashes]}
        size, note = int(query.get("size", self.shown_size())), ""
        if "cosignatures" in query:
            enough = [each for each in self.cosigned if len(each[1]) >= int(query["cosignatures"])]
            if not enough:
                return None
            size, note = enough[0][0], self.cosigned_note(*enough[0])
        if "index" in query:
            index = int(query["index"])
        else:
            index = self._latest(query["kind"], query["id"], size)
            if index is None or self.leaves[index]["digest"] is None:
                return None
        leaf = self.leaves[index]
        hashes = inclusion_proof(index, size, lambda *node: nodes[node])
        return {
            "index": index,
            "size": size,
            "leaf": self.members(leaf),
            "leafData": encoded(leaf["data"]),
            "hashes": [encoded(each) for each in hashes],
            "checkpoint": note or self.note(size),
        }

    def _latest(self, kind: str, key: str, size: int) -> int | None:
        latest = None
        for index, leaf in enumerate(self.leaves[:size]):
            if (leaf["kind"], leaf["key"]) == (kind, key):
                latest = index
        return latest
