"""
Signed notes with Ed25519 (c2sp.org/signed-note): checkpoints of a log, successions of its keys, and cosignatures.

A note is a text that ends with a newline, an empty line, and a line for each signature. A verifier knows keys by their
text, the vkey. It ignores signatures of other keys, by which a key can be replaced and witnesses can sign too; a
signature of a key that it knows must be valid.

Source: c2sp.org/signed-note, c2sp.org/tlog-checkpoint, c2sp.org/tlog-cosignature.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from muniment.kernel.merkle import HASH_BYTES, MAX_SIZE

MAX_NOTE_BYTES: Final = 64 << 10
MAX_SIGNATURES: Final = 64
"""A verifier must accept 16; witnesses may add some."""
MAX_NAME_CHARACTERS: Final = 300
MAX_TIMESTAMP: Final = (1 << 63) - 1
_ED25519: Final = b"\x01"
_COSIGNATURE: Final = b"\x04"
_COSIGNED: Final = "cosignature/v1\ntime {at}\n"
_TIMESTAMP_BYTES: Final = 8
_PUBLIC_KEY_BYTES: Final = 32
_KEY_ID_BYTES: Final = 4
_SIGNATURE_MARK: Final = "— "
_SUCCESSION: Final = "next key"
_VKEY: Final = re.compile(r"([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]{1,8192})")
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}")


class NoteError(ValueError):
    """A note, a key or a checkpoint is malformed, or not signed by a key that is known."""


class UnknownSignerError(NoteError):
    """None of the signatures is of a key that is known."""


class VerifierKey(NamedTuple):
    """A public key with its name; its text is the vkey."""

    name: str
    public_key: bytes

    @property
    def id(self) -> bytes:
        return key_id(self.name, self.public_key)

    def text(self) -> str:
        return vkey(self.name, self.public_key)

    @classmethod
    def parse(cls, text: str) -> "VerifierKey":
        """
        Return the key of a vkey.

        Raises:
            NoteError: it is malformed, or not one of Ed25519.
        """
        key = cls(*_parsed_key(text, _ED25519, "Ed25519"))
        if key.text() != text:
            raise NoteError("the verifier key has another id than its name and key give")
        return key


class WitnessKey(NamedTuple):
    """
    The public key of a witness with its name; its text is the vkey.

    A witness signs a time too, so its keys are of another type than those of logs, and neither can be the other.
    """

    name: str
    public_key: bytes

    @property
    def id(self) -> bytes:
        return key_id(self.name, self.public_key, _COSIGNATURE)

    def text(self) -> str:
        return vkey(self.name, self.public_key, _COSIGNATURE)

    @classmethod
    def parse(cls, text: str) -> "WitnessKey":
        """
        Return the key of a vkey.

        Raises:
            NoteError: it is malformed, or not one of Ed25519 cosignatures.
        """
        key = cls(*_parsed_key(text, _COSIGNATURE, "a witness with Ed25519"))
        if key.text() != text:
            raise NoteError("the verifier key has another id than its name and key give")
        return key


class Cosignature(NamedTuple):
    """
    A cosignature that was verified.

    Args:
        at: when the witness says that it saw no larger log, in seconds since 1970.
        line: the signature line, without its end.
    """

    key: WitnessKey
    at: int
    line: str


class Signature(NamedTuple):
    """A signature line; *value* is what the key made."""

    name: str
    key_id: bytes
    value: bytes


class SignedNote(NamedTuple):
    """A note of which nothing has been verified."""

    text: str
    signatures: tuple[Signature, ...]


class VerifiedNote(NamedTuple):
    """A note with the keys whose signatures were verified, in the order of the note."""

    text: str
    keys: tuple[VerifierKey, ...]


class Checkpoint(NamedTuple):
    """A statement of a log: it is named *origin*, and its *size* leaves have the root *root*."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{_encoded(self.root)}\n"

    @classmethod
    def parse(cls, text: str) -> "Checkpoint":
        """
        Return the checkpoint of a note's text. Extension lines may follow; they are not part of it.

        Raises:
            NoteError: it is not a checkpoint.
        """
        origin, *rest = text.removesuffix("\n").split("\n")
        if len(rest) < 2 or not text.endswith("\n") or not all([origin, *rest]):
            raise NoteError("not a checkpoint: expected the lines of origin, size and root")
        size_text, root_text = rest[0], rest[1]
        if len(origin) > MAX_NAME_CHARACTERS:
            raise NoteError(f"the checkpoint's origin has more than {MAX_NAME_CHARACTERS} characters")
        if not _SIZE.fullmatch(size_text) or int(size_text) > MAX_SIZE:
            raise NoteError("the checkpoint's size is not a number")
        root = _decoded(root_text, "the checkpoint's root")
        if len(root) != HASH_BYTES:
            raise NoteError(f"the checkpoint's root has {len(root)} bytes instead of {HASH_BYTES}")
        return cls(origin, int(size_text), root)


class Succession(NamedTuple):
    """
    A statement of a former key: the log named *origin* is signed by the key with the vkey *successor* from now on.

    A signature covers the text of a note alone, not the other signatures below it. So that a checkpoint has signatures
    of two keys does not show that one trusts the other; the former key has to sign the name of the new one.
    """

    origin: str
    successor: str

    def text(self) -> str:
        return f"{self.origin}\n{_SUCCESSION}\n{self.successor}\n"

    @classmethod
    def parse(cls, text: str) -> "Succession":
        """
        Return the succession of a note's text, which cannot be that of a checkpoint.

        Raises:
            NoteError: it is not a succession.
        """
        lines = text.removesuffix("\n").split("\n")
        if len(lines) != 3 or not text.endswith("\n") or not lines[0] or lines[1] != _SUCCESSION:
            raise NoteError("not a succession: expected the lines of origin, next key and the key")
        return cls(lines[0], VerifierKey.parse(lines[2]).text())


def key_id(name: str, public_key: bytes, algorithm: bytes = _ED25519) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + algorithm + public_key).digest()[:_KEY_ID_BYTES]


def vkey(name: str, public_key: bytes, algorithm: bytes = _ED25519) -> str:
    return f"{name}+{key_id(name, public_key, algorithm).hex()}+{_encoded(algorithm + public_key)}"


def _parsed_key(text: str, algorithm: bytes, what: str) -> tuple[str, bytes]:
    """Return name and public key of a vkey, whose id is not verified."""
    match = _VKEY.fullmatch(text)
    if match is None or not _is_name(match[1]):
        raise NoteError("not a verifier key: expected name+id+key")
    encoded = _decoded(match[3], "the verifier key")
    if encoded[:1] != algorithm or len(encoded) != 1 + _PUBLIC_KEY_BYTES:
        raise NoteError(f"the verifier key is not one of {what}")
    return match[1], encoded[1:]


def sign(text: str, name: str, *keys: Ed25519PrivateKey) -> str:
    """
    Return the note of *text*, signed by each of *keys* under *name*.

    Raises:
        NoteError: the text or the name cannot be that of a note.
    """
    _require_text(text)
    if not _is_name(name):
        raise NoteError("a key's name is empty, too long, or has a space or a plus sign")
    lines = []
    for key in keys:
        identity = key_id(name, key.public_key().public_bytes_raw())
        lines.append(f"{_SIGNATURE_MARK}{name} {_encoded(identity + key.sign(text.encode()))}\n")
    return f"{text}\n{''.join(lines)}"


def parse(note: bytes | str) -> SignedNote:
    """
    Return the text and the signatures of a note, which are not verified.

    Raises:
        NoteError: it is malformed.
    """
    encoded = note.encode() if isinstance(note, str) else note
    if len(encoded) > MAX_NOTE_BYTES:
        raise NoteError(f"the note is larger than {MAX_NOTE_BYTES >> 10} KB")
    try:
        decoded = encoded.decode()
    except UnicodeDecodeError:
        raise NoteError("the note is not UTF-8") from None
    _require_text(decoded)
    before, separator, after = decoded.rpartition("\n\n")
    if not separator or not after:
        raise NoteError("the note has no signatures")
    text = before + "\n"
    lines = after.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteError(f"the note has more than {MAX_SIGNATURES} signatures")
    return SignedNote(text, tuple([_signature(line) for line in lines]))


def verify(note: bytes | str, keys: Iterable[VerifierKey | str]) -> VerifiedNote:
    """
    Return the text of a note that at least one of *keys* has signed; a key may be given as its vkey.

    Raises:
        UnknownSignerError: none of them has.
        NoteError: it is malformed, or a signature of one of them is not valid.
    """
    known = {}
    for given in keys:
        known_key = VerifierKey.parse(given) if isinstance(given, str) else given
        known[known_key.name, known_key.id] = known_key
    signed = parse(note)
    verified: list[VerifierKey] = []
    for signature in signed.signatures:
        key = known.get((signature.name, signature.key_id))
        if key is None:
            continue
        try:
            Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature.value, signed.text.encode())
        except (InvalidSignature, ValueError):
            raise NoteError(f"the signature of {key.name} is not valid") from None
        if key not in verified:
            verified.append(key)
    if not verified:
        raise UnknownSignerError("no key that is known has signed the note")
    return VerifiedNote(signed.text, tuple(verified))


def cosign(text: str, name: str, key: Ed25519PrivateKey, at: int) -> str:
    """Return the signature line, with its end, of a witness for a checkpoint, at *at* seconds since 1970."""
    identity = key_id(name, key.public_key().public_bytes_raw(), _COSIGNATURE)
    signed = key.sign((_COSIGNED.format(at=at) + text).encode())
    return f"{_SIGNATURE_MARK}{name} {_encoded(identity + at.to_bytes(_TIMESTAMP_BYTES) + signed)}\n"


def cosignatures(note: bytes | str, keys: Iterable[WitnessKey]) -> list[Cosignature]:
    """
    Return the cosignatures of *keys* that a note has, the latest of each key; those of other keys are ignored.

    Raises:
        NoteError: the note is malformed, or a signature of one of them is not valid.
    """
    known = {(key.name, key.id): key for key in keys}
    signed = parse(note)
    latest: dict[WitnessKey, Cosignature] = {}
    for signature in signed.signatures:
        key = known.get((signature.name, signature.key_id))
        if key is None:
            continue
        at = int.from_bytes(signature.value[:_TIMESTAMP_BYTES])
        message = (_COSIGNED.format(at=at) + signed.text).encode()
        try:
            Ed25519PublicKey.from_public_bytes(key.public_key).verify(signature.value[_TIMESTAMP_BYTES:], message)
        except (InvalidSignature, ValueError):
            raise NoteError(f"the cosignature of {key.name} is not valid") from None
        if at > MAX_TIMESTAMP:
            raise NoteError(f"the cosignature of {key.name} has no time")
        line = f"{_SIGNATURE_MARK}{key.name} {_encoded(signature.key_id + signature.value)}"
        if key not in latest or at > latest[key].at:
            latest[key] = Cosignature(key, at, line)
    return list(latest.values())


def _signature(line: str) -> Signature:
    if not line.startswith(_SIGNATURE_MARK):
        raise NoteError("a signature line of the note does not begin with an em dash")
    name, separator, encoded = line.removeprefix(_SIGNATURE_MARK).partition(" ")
    if not separator or not _is_name(name):
        raise NoteError("a signature line of the note has no name")
    value = _decoded(encoded, "a signature of the note")
    if len(value) <= _KEY_ID_BYTES:
        raise NoteError("a signature of the note is too short")
    return Signature(name, value[:_KEY_ID_BYTES], value[_KEY_ID_BYTES:])


def _require_text(text: str) -> None:
    if not text.endswith("\n"):
        raise NoteError("the note does not end with a newline")
    for character in text:
        if character < " " and character != "\n":
            raise NoteError("the note has a control character")


def _is_name(name: str) -> bool:
    has_space = any(character.isspace() for character in name)
    return bool(name) and len(name) <= MAX_NAME_CHARACTERS and not has_space and "+" not in name


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decoded(text: str, what: str) -> bytes:
    """Return what base64 encodes; each value has one encoding."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data or _encoded(data) != text:
        raise NoteError(f"{what} is not base64")
    return data
