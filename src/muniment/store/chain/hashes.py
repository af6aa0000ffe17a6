"""
The hashes of the chain.

SHA-256 over a tag and length-prefixed parts. A link covers the former link, its sequence number and a leaf; the leaf
covers a random salt and the change. Without the salt, a leaf tells nothing of the person that it was made for.
"""

import hashlib
import secrets
from collections.abc import Iterator
from typing import Final, NamedTuple

HASH_BYTES: Final = 32
_SALT_BYTES: Final = 16
_SALTS_AT_ONCE: Final = 32


class Link(NamedTuple):
    """
    The link of a change.

    Args:
        leaf: None in the copy of a node, which has the chain alone.
        salt: None also once the change's person was erased.
        digest: the digest of the document's body; None if the change left none, or its person was erased.
    """

    sequence: int
    chain: bytes
    leaf: bytes | None = None
    salt: bytes | None = None
    digest: bytes | None = None


def _hash(tag: bytes, *parts: bytes) -> bytes:
    joined = b"".join([len(part).to_bytes(8) + part for part in parts])
    return hashlib.sha256(b"muniment %b\n%b" % (tag, joined)).digest()


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()


def leaf_of(salt: bytes, kind: str, key: str, change: str, digest: bytes | None) -> bytes:
    return _hash(b"leaf", salt, kind.encode(), key.encode(), change.encode(), digest or b"")


def chain_of(former: bytes, sequence: int, leaf: bytes) -> bytes:
    return _hash(b"link", former, sequence.to_bytes(8), leaf)


def genesis_of(feed_id: str, edition: int, state: bytes) -> bytes:
    """Return the value that a chain begins with: *state* is the digest of all published documents at *edition*."""
    return _hash(b"genesis", feed_id.encode(), edition.to_bytes(8), state)


def salts() -> Iterator[bytes]:
    """Yield random salts without end; to ask the system for each takes as long as the hashes."""
    while True:
        some = secrets.token_bytes(_SALT_BYTES * _SALTS_AT_ONCE)
        for first in range(0, len(some), _SALT_BYTES):
            yield some[first : first + _SALT_BYTES]


def link(former: bytes, sequence: int, kind: str, key: str, change: str, *, digest: bytes | None, salt: bytes) -> Link:
    leaf = leaf_of(salt, kind, key, change, digest)
    return Link(sequence, chain_of(former, sequence, leaf), leaf, salt, digest)


class StateDigest:
    """The digest of all published documents, which are added in the order of kind and key."""

    def __init__(self) -> None:
        self._found = hashlib.sha256(b"muniment state\n")

    def add(self, kind: str, key: str, body: bytes) -> None:
        for part in (kind.encode(), key.encode(), body_digest(body)):
            self._found.update(len(part).to_bytes(8))
            self._found.update(part)

    def digest(self) -> bytes:
        return self._found.digest()
