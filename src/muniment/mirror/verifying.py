"""
Verify the public log of a registry whose operator and server are not trusted.

What is remembered between two runs is one checkpoint, which the log has signed, and the key that has signed it. Each
run requires that the log of today continues that checkpoint, with a proof; so a change of what was published before
needs another history, and the two signed checkpoints show that there are two. Then documents are compared with their
leaves: some, or all of them.

Everything that comes from the registry has bounds: bytes and time of an answer (:mod:`muniment.mirror.origin`), the
number of hashes of a proof, which its sizes say, and the time of a run.
"""

import contextlib
import hashlib
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from random import Random, SystemRandom
from typing import Annotated, Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from muniment.durable_files import replacing
from muniment.kernel.ids import now
from muniment.kernel.merkle import (
    HASH_BYTES,
    MAX_SIZE,
    Frontier,
    ProofError,
    leaf_hash,
    verify_consistency,
    verify_inclusion,
)
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Unavailable
from muniment.kernel.signed_notes import (
    MAX_NOTE_BYTES,
    Checkpoint,
    Cosignature,
    NoteError,
    Succession,
    UnknownSignerError,
    VerifierKey,
    WitnessKey,
    cosignatures,
    verify,
)
from muniment.kernel.wire import timestamp
from muniment.mirror.copying import Mirror, data_of, lines_of
from muniment.mirror.origin import Answer, Origin
from muniment.store.public_log import leaf_of
from muniment.store.published_document import Kind

SAMPLES: Final = 20
"""Documents, and leaves, that a run compares that does not compare all."""
RUN_S: Final = 600.0
WHOLE_RUN_S: Final = 6 * 3600.0
MAX_LEAVES: Final = 20_000_000
"""Of a log that is read as a whole; the latest leaf of each document is kept in memory."""
LEAVES_AT_ONCE: Final = 1_000
MAX_FAULTS: Final = 20
"""A run ends after so many documents that are not as logged."""
TRIES: Final = 3
"""A document may change between two requests, and one node of several may be behind for a moment."""
PAUSE_S: Final = 1.0
MAX_STATE_BYTES: Final = 256 << 10
WITNESSED_WITHIN: Final = timedelta(hours=48)
"""A registry has its log cosigned again each day, so older cosignatures are of a log that witnesses refuse."""
CLOCKS_DIFFER_BY: Final = timedelta(minutes=10)
"""A cosignature of a time that is further ahead does not count."""
MAX_COSIGNED_BYTES: Final = 1 << 20
_MAX_ADDRESSES: Final = 4
_PATHS: Final[dict[Kind, str]] = {"company": "companies", "person": "people", "framework": "frameworks"}
_PAGED: Final[tuple[Kind, ...]] = ("company", "person")
_NOT_FOUND: Final = frozenset({404})
_REFUSED: Final = frozenset({400, 404})
_OWN_ADDRESS: Final = re.compile(
    rb'(?<!\\)"(https?://[^/"\\]{1,300})(?=/pictures/[0-9a-f]{32}-(?:144|512)\.webp")'
    rb'|(?<="url":)"(https?://[^/"\\]{1,300})(?=/companies/[^"/\\]+/assessments/[^"/\\]+")'
)
"""The scheme and host that a server puts before the paths of its own pictures and summaries."""
_WHAT_TO_DO: Final = (
    "Keep the remembered file: it proves what the registry signed. Ask the operator what happened, and compare with"
    " others who follow this registry."
)

T = TypeVar("T")
Hash = Annotated[bytes, msgspec.Meta(min_length=HASH_BYTES, max_length=HASH_BYTES)]
Number = Annotated[int, msgspec.Meta(ge=0, le=MAX_SIZE)]
HexDigest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
Hashes = Annotated[list[Hash], msgspec.Meta(max_length=128)]
Name = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f]{1,300}$")]
"""What may be shown in a terminal."""
Vkey = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x20\x7f-\x9f]{1,1000}$")]
Note = Annotated[str, msgspec.Meta(max_length=MAX_NOTE_BYTES)]
Salt = Annotated[bytes, msgspec.Meta(min_length=16, max_length=64)]


class _Former(msgspec.Struct):
    origin: Name
    size: Number


class _Log(msgspec.Struct, rename="camel"):
    origin: Name
    keys: Annotated[list[Vkey], msgspec.Meta(min_length=1, max_length=100)]
    begun_at: Name = "an unknown time"
    former: _Former | None = None
    successions: Annotated[list[Note], msgspec.Meta(max_length=1_000)] = []


class _Described(msgspec.Struct):
    data: _Log


class _Consistency(msgspec.Struct):
    hashes: Hashes


class _ConsistencyProof(msgspec.Struct):
    data: _Consistency


class _HashesByIndex(msgspec.Struct):
    hashes: Hashes


class _ProofByIndex(msgspec.Struct):
    data: _HashesByIndex


class _LeafMembers(msgspec.Struct):
    """What a leaf is the hash of; the members are null once its person was erased."""

    kind: Kind | None
    key: Name | None
    change: Name
    salt: Salt | None
    digest: HexDigest | None


class _Inclusion(msgspec.Struct, rename="camel"):
    index: Number
    size: Number
    leaf: _LeafMembers
    leaf_data: Hash
    hashes: Hashes
    checkpoint: Note


class _InclusionProof(msgspec.Struct):
    data: _Inclusion


class _ListedLeaf(_LeafMembers):
    index: Number
    leaf: Hash


class _Leaves(msgspec.Struct):
    data: Annotated[list[_ListedLeaf], msgspec.Meta(max_length=LEAVES_AT_ONCE)]


class _Cosigned(msgspec.Struct):
    checkpoint: Note


class _CosignedList(msgspec.Struct):
    data: Annotated[list[_Cosigned], msgspec.Meta(max_length=1_000)]


class _Item(msgspec.Struct, rename="camel"):
    id: str = ""
    slug: str = ""
    framework_id: str = ""


class _Pagination(msgspec.Struct):
    total: Number


class _List(msgspec.Struct):
    data: Annotated[list[_Item], msgspec.Meta(max_length=1)]
    pagination: _Pagination


class _Frameworks(msgspec.Struct):
    data: Annotated[list[_Item], msgspec.Meta(max_length=100_000)]


class _Named(msgspec.Struct, rename="camel"):
    slug: str = ""
    framework_id: str = ""
    company: "_Item | None" = None


class Remembered(msgspec.Struct, rename="camel"):
    """What is kept between two runs."""

    registry: Annotated[str, msgspec.Meta(max_length=1_000)]
    key: Vkey
    checkpoint: Note
    at: Name
    form: Literal[1] = 1


class Witnesses(NamedTuple):
    """The witnesses that a reader trusts, and how many of them have to cosign."""

    keys: tuple[WitnessKey, ...] = ()
    needed: int = 0


NO_WITNESSES: Final = Witnesses()


class Witnessed(NamedTuple):
    """
    The newest checkpoint that as many witnesses have cosigned as are needed.

    Args:
        behind: leaves that the log has more.
        cosignatures: those of the reader's witnesses, the latest first.
    """

    checkpoint: Checkpoint
    behind: int
    cosignatures: tuple[Cosignature, ...]


class Verified(NamedTuple):
    """
    What a run has verified.

    Args:
        key: the vkey of the key that has signed.
        former_key: the vkey that was remembered, if it is another one: it has named its successor.
        former: the checkpoint that was remembered at *former_at*; None on first use.
        documents: how many were compared with their leaves.
        leaves: how many were compared with the log.
        faults: what is not as it was logged, each as a sentence.
        witnessed: None if no witness was named.
    """

    checkpoint: Checkpoint
    key: str
    former_key: str | None
    former: Checkpoint | None
    former_at: str
    documents: int
    leaves: int
    faults: tuple[str, ...]
    witnessed: Witnessed | None = None


class _Latest(NamedTuple):
    """The latest leaf of a document; *digest* is None if it ended the document."""

    leaf: int
    digest: bytes | None


class _Enough(Exception):  # noqa: N818 - a state, not an error
    """So many faults were found that more tell nothing new."""


class Deadline:
    """
    The end of a run, also while it waits for a registry.

    Args:
        wait: waits for seconds, and returns whether to stop.
    """

    def __init__(self, seconds: float, wait: Callable[[float], bool]) -> None:
        self._end = time.monotonic() + seconds
        self._wait = wait

    def check(self, pause_s: float = 0) -> None:
        if time.monotonic() + pause_s > self._end:
            message = "The registry answers too slowly to be verified."
            raise Unavailable(message, "Nothing speaks for or against its history. Run the command again later.")

    def wait(self, seconds: float) -> bool:
        self.check(seconds)
        return self._wait(seconds)


class Verifier:
    """
    One run, against the registry that *origin* asks.

    Args:
        state: the file that remembers the checkpoint.
        expected_key: the vkey that must have signed, or be a former key of the one that has; "" if it is not known.
        witnesses: those whose cosignatures are demanded.
        tells: receives what happens as a sentence.
        random: chooses the sample, which must not be foreseen.
    """

    def __init__(
        self,
        origin: Origin,
        state: Path,
        deadline: Deadline,
        *,
        expected_key: str = "",
        witnesses: Witnesses = NO_WITNESSES,
        tells: Callable[[str], None] = lambda _: None,
        random: Random | None = None,
    ) -> None:
        self._origin, self._state, self._deadline = origin, state, deadline
        self._expected_key, self._tells = expected_key, tells
        self._witnesses = witnesses
        self._random = random or SystemRandom()
        self._faults: list[str] = []
        self._documents = self._leaves = 0
        self._key: VerifierKey
        self._head: Checkpoint
        self._note = ""

    def run(self, *, is_all: bool) -> Verified:
        """
        Verify the log, remember its checkpoint, and compare documents with it.

        Raises:
            Conflict: the registry does not keep to what it signed before.
            BadRequest: it has no log, or what it sends is malformed.
            Unavailable: it does not answer.
        """
        remembered = read_state(self._state)
        remembered_key = None if remembered is None else remembered.key
        former_key = None if remembered_key is None else VerifierKey.parse(remembered_key)
        log = self._described()
        former: Checkpoint | None = None
        if remembered is not None:
            former = self._remembered_checkpoint(remembered)
            self._require_same_log(log, former)
        self._key = self._key_of(log, former_key)
        self._begin(former)
        self._remember()
        witnessed = self._require_witnessed() if self._witnesses.keys else None
        with contextlib.suppress(_Enough):
            self._compare_some()
            if is_all:
                self._compare_all()
        self._remember()
        return Verified(
            checkpoint=self._head,
            key=self._key.text(),
            former_key=None if former_key in {None, self._key} else remembered_key,
            former=former,
            former_at="" if remembered is None else remembered.at,
            documents=self._documents,
            leaves=self._leaves,
            faults=tuple(self._faults),
            witnessed=witnessed,
        )

    # ------------------------------------------------------------ key and checkpoint

    def _described(self) -> _Log:
        answer = self._get("/api/v1/log", expected=_NOT_FOUND)
        if answer.status in _NOT_FOUND:
            message = Phrase("{address} has no public log.", address=self._origin.address)
            raise BadRequest(message, "If it is a mirror, verify its origin. Former versions of Muniment have none.")
        return self._origin.decoded(answer.body, _Described).data

    def _remembered_checkpoint(self, remembered: Remembered) -> Checkpoint:
        try:
            return Checkpoint.parse(verify(remembered.checkpoint, [remembered.key]).text)
        except NoteError as error:
            raise _damaged_state(self._state, str(error)) from None

    def _require_same_log(self, log: _Log, former: Checkpoint) -> None:
        if log.origin == former.origin:
            return
        reason: str = "It does not say that it was another one before."
        if log.former is not None and log.former.origin == former.origin:
            reason = Phrase("It says that the log began again at {at}, because it was lost.", at=log.begun_at)
        message = Phrase(
            "{address} has another log than the remembered one: {origin} instead of {former}. {reason} Nothing shows"
            " that what was logged before is unchanged.",
            address=self._origin.address,
            origin=log.origin,
            former=former.origin,
            reason=reason,
        )
        hint = Phrase(
            "Ask its operator. To follow the other log, name another --state FILE, and keep {file}.",
            file=str(self._state),
        )
        raise Conflict(message, hint)

    def _key_of(self, log: _Log, former: VerifierKey | None) -> VerifierKey:
        """Return the key that must have signed: the one that the known key leads to, or the log's own on first use."""
        try:
            if former is not None and not self._expected_key:
                first_key = former
            else:
                first_key = VerifierKey.parse(self._expected_key or log.keys[0])
        except NoteError as error:
            if self._expected_key:
                message = Phrase("--key is malformed: {reason}.", reason=str(error))
                raise BadRequest(message, "Give it as the operator publishes it: name+id+key.") from None
            raise self._foreign(str(error)) from None
        key = self._successors(log, first_key)[-1]
        if former is not None and self._successors(log, former)[-1] != key:
            message = Phrase("The remembered key does not lead to --key: {key}", key=former.text())
            raise Conflict(message, "Ask the operator which one is right. Nothing was verified.")
        if key.name != log.origin:
            raise self._foreign("its key has another name than its log")
        return key

    def _successors(self, log: _Log, first: VerifierKey) -> list[VerifierKey]:
        """Return *first* and the keys that follow it, each named by the former one."""
        keys = [first]
        for note in log.successions:
            try:
                succession = Succession.parse(verify(note, [keys[-1]]).text)
            except UnknownSignerError:
                continue  # of a key before the one that is known
            except NoteError as error:
                raise self._foreign(f"a succession of its keys is malformed: {error}") from None
            if succession.origin != log.origin:
                raise self._foreign("a succession of its keys is of another log")
            keys.append(VerifierKey.parse(succession.successor))
        return keys

    def _begin(self, former: Checkpoint | None) -> None:
        """Read the checkpoint, and verify that it continues the remembered one."""
        for attempt in range(TRIES):
            answer = self._get("/api/v1/log/checkpoint", most_bytes=MAX_NOTE_BYTES)
            checkpoint = self._signed(answer.body)
            if former is None or checkpoint.size >= former.size or attempt == TRIES - 1:
                break
            self._origin.pause(PAUSE_S)  # a node, or a cache, that is a moment behind
        note = answer.body.decode()
        if former is not None:
            if checkpoint.size < former.size:
                raise self._rewritten(
                    Phrase(
                        "The log has {size} leaves, and had {former}: leaves are gone that the registry has signed. An"
                        " old backup was restored, or the history was rewritten.",
                        size=checkpoint.size,
                        former=former.size,
                    ),
                    note,
                )
            self._require_consistent(former, checkpoint, note)
        self._head, self._note = checkpoint, note

    def _signed(self, note: bytes | str) -> Checkpoint:
        """Return the checkpoint of a note that the key has signed."""
        try:
            checkpoint = Checkpoint.parse(verify(note, [self._key]).text)
        except UnknownSignerError:
            message = Phrase(
                "The checkpoint of {address} is not signed by the key {key}, nor by one that this key has named as its"
                " successor. Someone else may answer in the registry's place.",
                address=self._origin.address,
                key=self._key.text(),
            )
            hint = Phrase(
                "Ask its operator whether the key was lost, and for the new one. To trust another key, name another"
                " --state FILE, and keep {file}.",
                file=str(self._state),
            )
            raise Conflict(message, hint) from None
        except NoteError as error:
            raise self._foreign(f"its checkpoint is malformed: {error}") from None
        if checkpoint.origin != self._key.name:
            raise self._foreign("its checkpoint is of another log")
        return checkpoint

    def _accept(self, note: str) -> Checkpoint:
        """Return the checkpoint of a proof, once it is shown to be of the same history as those before."""
        checkpoint = self._signed(note)
        if checkpoint.size < self._head.size:
            self._require_consistent(checkpoint, self._head, note)
            return checkpoint
        self._require_consistent(self._head, checkpoint, note)
        self._head, self._note = checkpoint, note
        return checkpoint

    def _require_consistent(self, former: Checkpoint, later: Checkpoint, note: str) -> None:
        """Verify that one checkpoint continues the other; *note* is the one that was not known before."""
        if former.size == later.size:
            if former.root != later.root:
                message = Phrase(
                    "The registry has signed two different logs of {size} leaves: its history was rewritten, or it"
                    " shows each reader another one.",
                    size=later.size,
                )
                raise self._rewritten(message, note)
            return
        try:
            hashes = self._consistency_proof(former.size, later.size)
            verify_consistency(former.size, former.root, later.size, later.root, hashes)
        except ProofError as error:
            message = Phrase(
                "The log of {size} leaves does not continue the signed one of {former}: {reason}. Its history was"
                " rewritten, or it shows each reader another one.",
                size=later.size,
                former=former.size,
                reason=str(error),
            )
            raise self._rewritten(message, note) from None

    def _consistency_proof(self, former: int, size: int) -> list[bytes]:
        if former == 0:
            return []
        answer = self._get(f"/api/v1/log/proof?formerSize={former}&size={size}", expected=_REFUSED)
        if answer.status in _REFUSED:
            raise ProofError(f"the registry refuses the proof with {answer.status}")
        return self._origin.decoded(answer.body, _ConsistencyProof).data.hashes

    def _rewritten(self, message: Phrase, note: str) -> Conflict:
        """Keep the note that contradicts the remembered one, and return the problem."""
        contradicting = self._state.with_name(f"{self._state.name}.contradicting")
        hint: str = _WHAT_TO_DO
        if self._state.exists():
            with replacing(contradicting) as file:
                file.write(note.encode())
            hint = Phrase(
                "Keep {file} and {other}: the two signed checkpoints prove it to everyone. Ask the operator what"
                " happened, and compare with others who follow this registry.",
                file=str(self._state),
                other=str(contradicting),
            )
        return Conflict(message, hint)

    def _remember(self) -> None:
        state = Remembered(self._origin.address, self._key.text(), self._note, timestamp(now()))
        write_state(self._state, state)

    # ------------------------------------------------------------ witnesses

    def _require_witnessed(self) -> Witnessed:
        """Return the newest checkpoint that witnesses have cosigned, which must be of the same history and not old."""
        keys, needed = self._witnesses
        answer = self._get("/api/v1/log/cosigned", expected=_NOT_FOUND, most_bytes=MAX_COSIGNED_BYTES)
        listed = [] if answer.status in _NOT_FOUND else self._origin.decoded(answer.body, _CosignedList).data
        for cosigned in listed:
            try:
                found = cosignatures(cosigned.checkpoint, keys)
            except NoteError as error:
                raise self._foreign(f"a cosigned checkpoint is malformed: {error}") from None
            # One with a time to come would be recent for as long, and hide that no newer one is shown.
            latest = (now() + CLOCKS_DIFFER_BY).timestamp()
            found = [cosignature for cosignature in found if cosignature.at <= latest]
            if len(found) >= needed:
                checkpoint = self._accept(cosigned.checkpoint)
                found.sort(key=lambda cosignature: cosignature.at, reverse=True)
                self._require_recent(checkpoint, found[needed - 1].at)
                return Witnessed(checkpoint, self._head.size - checkpoint.size, tuple(found))
        message = Phrase(
            "{address} shows no checkpoint that {needed} of the {named} named witnesses have cosigned.",
            address=self._origin.address,
            needed=needed,
            named=len(keys),
        )
        raise Conflict(
            message,
            "They may not be witnesses of this log, may not have been asked yet, or may refuse to cosign it. Compare"
            " the keys with those that its operator and the witnesses publish.",
        )

    def _require_recent(self, checkpoint: Checkpoint, at: int) -> None:
        """Require that enough witnesses have cosigned of late: they refuse a history that was rewritten."""
        if at >= (now() - WITNESSED_WITHIN).timestamp():
            return
        message = Phrase(
            "The latest checkpoint with enough cosignatures has {size} leaves and is {hours} hours old. A registry has"
            " its log cosigned every day, so this one may show you another history than it shows to the witnesses.",
            hours=round((now().timestamp() - at) / 3600),
            size=checkpoint.size,
        )
        raise Conflict(message, "Ask the operators of the witnesses which checkpoint they cosigned last.")

    # ------------------------------------------------------------ documents

    def _compare_some(self) -> None:
        """Compare documents that are listed, and leaves, each chosen at random."""
        # Frameworks are listed at once, the others in pages.
        frameworks = self._read("/api/v1/frameworks", _Frameworks).data
        companies, people = [self._listed(kind, 1).pagination.total for kind in _PAGED]
        total = min(companies + people + len(frameworks), MAX_SIZE)
        for place in sorted(self._random.sample(range(total), min(SAMPLES, total))):
            if place < companies:
                self._compare_listed("company", place)
            elif place < companies + people:
                self._compare_listed("person", place - companies)
            else:
                self._compare_document("framework", frameworks[place - companies - people].framework_id)
        for index in self._random.sample(range(self._head.size), min(SAMPLES, self._head.size)):
            self._compare_leaf(index)

    def _compare_listed(self, kind: Kind, place: int) -> None:
        # A list may have become shorter meanwhile.
        for item in self._listed(kind, place + 1).data:
            self._compare_document(kind, _key_of_item(kind, item))

    def _listed(self, kind: Kind, page: int) -> _List:
        return self._read(f"/api/v1/{_PATHS[kind]}?pageSize=1&page={page}", _List)

    def _compare_document(self, kind: Kind, key: str) -> bool:
        """Compare a document as it is published with its leaf; return whether there are neither of the two."""
        fault, is_gone = "", False
        for attempt in range(TRIES):
            if attempt:
                self._origin.pause(PAUSE_S)
            document = self._get(f"/api/v1/{_PATHS[kind]}/{quote(key, safe='')}", expected=_NOT_FOUND)
            path = f"/api/v1/log/proof?kind={kind}&id={quote(key, safe='')}"
            proof = self._get(path, expected=_NOT_FOUND)
            is_published = document.status not in _NOT_FOUND
            is_logged = proof.status not in _NOT_FOUND
            is_gone = not is_published and not is_logged
            fault = ""
            if is_published and is_logged:
                fault = self._fault_of(kind, key, document.body, self._origin.decoded(proof.body, _InclusionProof).data)
            elif is_published:
                fault = f"{kind} {key} is published, and the log has no leaf of it: it was never logged"
            elif is_logged:
                fault = f"{kind} {key} is not published, and the log has it: it was removed without a leaf"
            if not fault:
                break
        self._documents += 1
        self._note_fault(fault)
        return is_gone

    def _fault_of(self, kind: Kind, key: str, body: bytes, proof: _Inclusion) -> str:
        """Return why a proof does not show that a document is the one logged; "" if it does."""
        checkpoint = self._accept(proof.checkpoint)
        name = f"{kind} {key}"
        if (proof.leaf.kind, proof.leaf.key) != (kind, key):
            return f"{name}: its proof is of another document"
        fault = self._fault_of_leaf(f"{name}: leaf {proof.index}", proof.leaf, proof.leaf_data)
        if fault:
            return fault
        if proof.size != checkpoint.size:
            return f"{name}: its proof is of another size than its checkpoint"
        try:
            verify_inclusion(leaf_hash(proof.leaf_data), proof.index, checkpoint.size, proof.hashes, checkpoint.root)
        except ProofError as error:
            return f"{name} is not in the log: {error}"
        if proof.leaf.digest is None or bytes.fromhex(proof.leaf.digest) not in set(digests(body)):
            return f"{name} is not the document that was logged: it was changed without a leaf"
        return ""

    def _fault_of_leaf(self, name: str, leaf: _LeafMembers, data: bytes) -> str:
        """Return why a leaf is not the hash of what it says; "" if it is, or is of an erased person."""
        if leaf.kind is None and leaf.key is None and leaf.salt is None and leaf.digest is None:
            return ""
        if leaf.kind is None or leaf.key is None or leaf.salt is None:
            return f"{name} is incomplete"
        digest = None if leaf.digest is None else bytes.fromhex(leaf.digest)
        if leaf_of(leaf.salt, leaf.kind, leaf.key, leaf.change, digest) != data:
            return f"{name} is not the hash of what it says: a row of the log was changed"
        return ""

    def _compare_leaf(self, index: int) -> None:
        """Compare one leaf with the log."""
        leaf = self._listed_leaves(index, 1)[0]
        size = self._head.size
        fault = self._fault_of_leaf(f"leaf {index}", leaf, leaf.leaf)
        try:
            hashes = self._inclusion_proof(index, size)
            verify_inclusion(leaf_hash(leaf.leaf), index, size, hashes, self._head.root)
        except ProofError as error:
            fault = f"leaf {index} is not in the log: {error}"
        self._leaves += 1
        self._note_fault(fault)

    def _inclusion_proof(self, index: int, size: int) -> list[bytes]:
        answer = self._get(f"/api/v1/log/proof?index={index}&size={size}", expected=_REFUSED)
        if answer.status in _REFUSED:
            raise ProofError(f"the registry refuses the proof with {answer.status}")
        return self._origin.decoded(answer.body, _ProofByIndex).data.hashes

    # ------------------------------------------------------------ everything

    def _compare_all(self) -> None:
        """Compare every leaf with the root, and every document with its latest leaf."""
        if self._head.size > MAX_LEAVES:
            message = Phrase("The log has {size} leaves, more than --all reads.", size=self._head.size)
            raise BadRequest(message, "Run the command without --all.")
        self._documents = self._leaves = 0
        latest: dict[tuple[Kind, str], _Latest] = {}
        frontier = Frontier()
        self._read_leaves(frontier, latest)
        suspects = self._compare_exports(latest)
        gone = [identity for identity in suspects if self._compare_document(*identity)]
        if gone:
            self._compare_gone(gone, frontier, latest)

    def _read_leaves(self, frontier: Frontier, latest: dict[tuple[Kind, str], _Latest]) -> None:
        """Append the leaves that *frontier* lacks of the head, whose root they must lead to."""
        self._tells(f"reading {self._head.size - frontier.size:,} leaves")
        while frontier.size < self._head.size:
            count = min(LEAVES_AT_ONCE, self._head.size - frontier.size)
            for leaf in self._listed_leaves(frontier.size, count):
                self._note_fault(self._fault_of_leaf(f"leaf {leaf.index}", leaf, leaf.leaf))
                frontier.append(leaf_hash(leaf.leaf))
                if leaf.kind is not None and leaf.key is not None:
                    digest = None if leaf.digest is None else bytes.fromhex(leaf.digest)
                    latest[leaf.kind, leaf.key] = _Latest(leaf.index, digest)
            self._leaves = frontier.size
        if frontier.root() != self._head.root:
            message = Phrase(
                "The {size} leaves of the log do not lead to the root that is signed: leaves were changed.",
                size=frontier.size,
            )
            raise Conflict(message, _WHAT_TO_DO)

    def _listed_leaves(self, first: int, count: int) -> list[_ListedLeaf]:
        after = f"after={first - 1}&" if first else ""
        leaves = self._read(f"/api/v1/log/leaves?{after}limit={count}", _Leaves).data
        if [leaf.index for leaf in leaves] != list(range(first, first + count)):
            raise self._foreign(f"it does not list {count} leaves from {first} on")
        return leaves

    def _compare_exports(self, latest: dict[tuple[Kind, str], _Latest]) -> list[tuple[Kind, str]]:
        """Compare the exported documents with their latest leaves, and return those to look at one by one."""
        remaining = {identity: leaf.digest for identity, leaf in latest.items() if leaf.digest is not None}
        suspects = []
        with tempfile.TemporaryDirectory(prefix="muniment-verify-") as folder:
            snapshot = Mirror(self._origin, Path(folder), tells=self._tells).fetch()
            self._tells(f"comparing {sum(snapshot.rows.values()):,} documents")
            for kind, path in snapshot.files.items():
                for line in lines_of(path):
                    self._deadline.check()
                    data = data_of(kind, line, path.name)
                    key = self._key_of_document(kind, data)
                    digest = remaining.pop((kind, key), None)
                    if digest is not None and digest in set(digests(b'{"data":%b}' % data)):
                        self._documents += 1
                    else:
                        suspects.append((kind, key))
        # What is logged and not exported may have been published since; what differs may have changed since.
        return [*suspects, *remaining]

    def _key_of_document(self, kind: Kind, data: bytes) -> str:
        named = self._origin.decoded(data, _Named)
        item = _Item(slug=named.slug, framework_id=named.framework_id)
        if kind == "company" and named.company:
            item = named.company
        return _key_of_item(kind, item)

    def _compare_gone(
        self,
        gone: list[tuple[Kind, str]],
        frontier: Frontier,
        latest: dict[tuple[Kind, str], _Latest],
    ) -> None:
        """Require that the log has the end of each document that is not published any more."""
        self._accept(self._get("/api/v1/log/checkpoint", most_bytes=MAX_NOTE_BYTES).body.decode(errors="replace"))
        self._read_leaves(frontier, latest)
        for kind, key in gone:
            latest_of_document = latest.get((kind, key))
            if latest_of_document is None or latest_of_document.digest is None:
                continue
            leaf = self._listed_leaves(latest_of_document.leaf, 1)[0]
            is_erased = leaf.key is None
            if not is_erased:
                self._note_fault(f"{kind} {key} is not published, and the log has it: it was removed without a leaf")

    # ------------------------------------------------------------ requests

    def _get(self, path: str, *, expected: frozenset[int] = frozenset(), most_bytes: int = 0) -> Answer:
        self._deadline.check()
        return self._origin.get(path, expected=expected, most_bytes=most_bytes)

    def _read(self, path: str, form: type[T]) -> T:
        return self._origin.decoded(self._get(path).body, form)

    def _note_fault(self, fault: str) -> None:
        if not fault or fault in self._faults:
            return
        self._faults.append(fault)
        if len(self._faults) >= MAX_FAULTS:
            raise _Enough

    def _foreign(self, reason: str) -> BadRequest:
        message = Phrase("{address} sends something wrong: {reason}.", address=self._origin.address, reason=reason)
        return BadRequest(message, "Nothing of it was used. Run the command again, or tell its operator.")


def digests(body: bytes) -> Iterator[bytes]:
    """
    Yield the digests that the leaf of a document may have, given the document as it is served.

    A server puts its address before the paths of pictures and summaries that are its own. The leaf is of the document
    without, so that it stays the same when the registry moves.
    """
    yield hashlib.sha256(body).digest()
    addresses: set[bytes] = set()
    for match in _OWN_ADDRESS.finditer(body):
        addresses.add(match[1] or match[2])
        if len(addresses) > _MAX_ADDRESSES:
            return
    for address in sorted(addresses):
        yield hashlib.sha256(_without_address(body, address)).digest()


def _without_address(body: bytes, address: bytes) -> bytes:
    def shortened(match: re.Match[bytes]) -> bytes:
        is_own = (match[1] or match[2]) == address
        return b'"' if is_own else match[0]

    return _OWN_ADDRESS.sub(shortened, body)


def _key_of_item(kind: Kind, item: _Item) -> str:
    return {"company": item.id, "person": item.slug, "framework": item.framework_id}[kind]


# ---------------------------------------------------------------- what is remembered


def default_state(address: str) -> Path:
    """Return the file that remembers a registry, by its address, in the user's folder for the state of programs."""
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", address.partition("://")[2])
    return Path.home() / ".local" / "state" / "muniment" / f"log-{name}.json"


def read_state(path: Path) -> Remembered | None:
    """
    Return what is remembered; None on first use.

    Raises:
        BadRequest: the file is not one of this command, or damaged.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_STATE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged_state(path, error.strerror or "it cannot be read") from None
    try:
        remembered = msgspec.json.decode(content, type=Remembered)
        VerifierKey.parse(remembered.key)
    except (msgspec.MsgspecError, NoteError) as error:
        raise _damaged_state(path, str(error)) from None
    return remembered


def write_state(path: Path, state: Remembered) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(state)) + b"\n")


def _damaged_state(path: Path, reason: str) -> BadRequest:
    message = Phrase("{file} is not what this command remembers: {reason}.", file=str(path), reason=reason)
    return BadRequest(
        message, "Restore it from a copy. Without it, an earlier history of the registry cannot be compared."
    )
