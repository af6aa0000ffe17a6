"""The public log of a registry: whether a proof shows that a document is in it (RFC 9162, c2sp.org/signed-note)."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

import msgspec

# A server puts its address before the paths of its own pictures and summaries; the log has them without.
_OWN_ADDRESS: Final = re.compile(
    rb'(?<!\\)"(https?://[^/"\\]{1,300})(?=/pictures/[0-9a-f]{32}-(?:144|512)\.webp")'
    rb'|(?<="url":)"(https?://[^/"\\]{1,300})(?=/companies/[^"/\\]+/assessments/[^"/\\]+")'
)
_MAX_ADDRESSES: Final = 4
_ED25519: Final = b"\x01"
_COSIGNATURE: Final = b"\x04"
_TIMESTAMP_BYTES: Final = 8
VERIFY_TRIES: Final = 3

Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Leaf(msgspec.Struct):
    """What a leaf is the hash of; *digest* is None if it ended the document."""

    kind: str
    key: str
    change: str
    salt: bytes
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None


class LogProof(msgspec.Struct, rename="camel"):
    index: Number
    size: Number
    leaf: Leaf
    leaf_data: Hash
    hashes: Annotated[list[Hash], msgspec.Meta(max_length=64)]
    checkpoint: Annotated[str, msgspec.Meta(max_length=64 << 10)]


def is_logged(
    kind: str, key: str, body: bytes, proof: LogProof, *, log_key: str | None, witnesses: Sequence[str] = ()
) -> bool:
    """
    Return whether *proof* shows that the log has the document with this *body*.

    Args:
        log_key: the key that must have signed the checkpoint; None if its signature is not verified.
        witnesses: the keys of witnesses that must have cosigned it.

    Raises:
        ValueError: a key is malformed.
    """
    leaf = proof.leaf
    if (leaf.kind, leaf.key) != (kind, key) or leaf.digest is None or leaf.digest not in set(_digests(body)):
        return False
    if _leaf_data(leaf) != proof.leaf_data:
        return False
    text, _, signatures = proof.checkpoint.rpartition("\n\n")
    lines = text.split("\n")
    if len(lines) < 3 or lines[1] != str(proof.size):
        return False
    root = _root(proof)
    if root is None or lines[2] != base64.b64encode(root).decode():
        return False
    if log_key is not None and not _is_signed(text + "\n", signatures, lines[0], log_key):
        return False
    return all(_is_cosigned(text + "\n", signatures, witness) for witness in witnesses)


def _digests(body: bytes) -> Iterator[str]:
    yield hashlib.sha256(body).hexdigest()
    addresses = {match[1] or match[2] for match in _OWN_ADDRESS.finditer(body)}
    for address in sorted(addresses)[:_MAX_ADDRESSES]:
        yield hashlib.sha256(_without(body, address)).hexdigest()


def _without(body: bytes, address: bytes) -> bytes:
    def shortened(match: re.Match[bytes]) -> bytes:
        is_own = (match[1] or match[2]) == address
        return b'"' if is_own else match[0]

    return _OWN_ADDRESS.sub(shortened, body)


def _leaf_data(leaf: Leaf) -> bytes:
    digest = b"" if leaf.digest is None else bytes.fromhex(leaf.digest)
    parts = (leaf.salt, leaf.kind.encode(), leaf.key.encode(), leaf.change.encode(), digest)
    measured = b"".join([len(part).to_bytes(8, "big") + part for part in parts])
    return hashlib.sha256(b"muniment leaf\n" + measured).digest()


def _root(proof: LogProof) -> bytes | None:
    """Return the root to which the proof leads; None if it does not have the hashes that its place needs."""
    if proof.index >= proof.size:
        return None
    sides = []
    begin, end = 0, proof.size
    while end - begin > 1:
        middle = begin + (1 << ((end - begin - 1).bit_length() - 1))
        is_right = proof.index < middle
        sides.append(is_right)
        begin, end = (begin, middle) if is_right else (middle, end)
    if len(sides) != len(proof.hashes):
        return None
    root = hashlib.sha256(b"\x00" + proof.leaf_data).digest()
    for is_right, beside in zip(reversed(sides), proof.hashes, strict=True):
        root = hashlib.sha256(b"\x01" + (root + beside if is_right else beside + root)).digest()
    return root


def _is_signed(text: str, signatures: str, origin: str, log_key: str) -> bool:
    """Return whether the key has signed, and is one of the log *origin*."""
    name, key_id, public_key = _parsed_key(log_key, _ED25519)
    if name != origin:
        return False
    value = _signature_of(signatures, name, key_id)
    return value is not None and _is_valid(public_key, value, text.encode())


def _is_cosigned(text: str, signatures: str, witness: str) -> bool:
    """Return whether the witness has cosigned (c2sp.org/tlog-cosignature)."""
    name, key_id, public_key = _parsed_key(witness, _COSIGNATURE)
    value = _signature_of(signatures, name, key_id)
    if value is None:
        return False
    at = int.from_bytes(value[:_TIMESTAMP_BYTES], "big")
    return _is_valid(public_key, value[_TIMESTAMP_BYTES:], f"cosignature/v1\ntime {at}\n{text}".encode())


def _parsed_key(text: str, algorithm: bytes) -> tuple[str, bytes, bytes]:
    """Return name, id and public key of a verifier key."""
    name, _, rest = text.partition("+")
    id_text, _, encoded = rest.partition("+")
    public = _decoded(encoded)
    key_id = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
    if len(public) != 33 or public[:1] != algorithm or key_id.hex() != id_text:
        whose = "log" if algorithm == _ED25519 else "witness"
        raise ValueError(f"The key of a {whose} has the form name+id+key, as its operator publishes it.")
    return name, key_id, public[1:]


def _signature_of(signatures: str, name: str, key_id: bytes) -> bytes | None:
    """Return what a key has made, without its id."""
    for line in signatures.splitlines():
        value = _decoded(line.removeprefix(f"— {name} "))
        if value[:4] == key_id:
            return value[4:]
    return None


def _is_valid(public_key: bytes, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # an extra: only signatures need it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
