"""
Let witnesses cosign the public log, and keep what they have cosigned.

A witness remembers the latest checkpoint that it has cosigned, and cosigns only a log that continues it. So an operator
who rewrites the history cannot have it cosigned too, and readers who demand cosignatures all see the same history.

After the log has grown, one job for all processes sends its checkpoint to each witness that is due, all at once. An
answer is believed only if it has a signature of the witness for the checkpoint that was sent.

Source: c2sp.org/tlog-witness, c2sp.org/tlog-cosignature.
"""

import base64
import http.client
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from django.db import connection, transaction

from muniment import config
from muniment.jobs import queue
from muniment.jobs.handlers import Handler
from muniment.jobs.models import Job
from muniment.jobs.queue import UNFINISHED, JobRun
from muniment.kernel.ids import now
from muniment.kernel.merkle import consistency_proof
from muniment.kernel.phrases.phrase import marked
from muniment.kernel.problems import Unavailable
from muniment.kernel.signed_notes import Checkpoint, Cosignature, NoteError, WitnessKey, cosignatures
from muniment.outbound.fetching import Connection, post
from muniment.registry.models import CosignedCheckpoint, LogWitness
from muniment.registry.publishing import signed_log
from muniment.setting_values import MAX_WITNESSES, Witness
from muniment.store.database.snapshots import snapshot
from muniment.store.public_log import LogState, Tiles

KIND: Final = "registry.log_grew"
CONNECTION: Final[Connection] = {
    "deadline_s": 10.0,
    "max_body_bytes": 16 << 10,
    # The operator names witnesses, which may be in a private network.
    "is_allowed": lambda _: True,
}
ASKED_EVERY: Final = timedelta(seconds=10)
"""A witness is not asked again before, however fast the log grows."""
COSIGNED_AGAIN_AFTER: Final = timedelta(hours=24)
"""A log that does not grow is cosigned again, so that readers see that it is not an old one that they are shown."""
LONGEST_PAUSE: Final = timedelta(hours=1)
"""Between two attempts at a witness that does not cosign."""
CLOCKS_DIFFER_BY: Final = timedelta(minutes=10)
"""A cosignature of another time is of an older answer, or of a wrong clock."""
MAX_KEPT: Final = 64
"""Checkpoints that are kept; those of one set of witnesses need one."""
MAX_DETAIL: Final = 300

# Why a witness did not cosign. The words are stored.
SILENT: Final = "silent"
UNKNOWN_LOG: Final = "unknown log"
UNKNOWN_KEY: Final = "unknown key"
OTHER_HISTORY: Final = "other history"
LARGER_LOG: Final = "larger log"
NO_COSIGNATURE: Final = "no cosignature"
OTHER_ANSWER: Final = "other answer"
NOT_SIGNED: Final = "not signed"
TROUBLES: Final = {
    SILENT: marked("It does not answer. It is asked again."),
    UNKNOWN_LOG: marked("It does not know this log. Give its operator the origin and the key of the log."),
    UNKNOWN_KEY: marked("It does not know the key of this log. Give its operator the new key."),
    OTHER_HISTORY: marked("It says that this log does not continue what it has cosigned: history was rewritten."),
    LARGER_LOG: marked("It says that it has cosigned more leaves than there are: an old backup was restored."),
    NO_COSIGNATURE: marked("Its answer has no valid, current cosignature by its key. Compare the key and both clocks."),
    OTHER_ANSWER: marked("Its answer was not understood. It is asked again."),
    NOT_SIGNED: marked("The key of the log cannot be opened, so there is no checkpoint to cosign."),
}
ACCUSATIONS: Final = frozenset({OTHER_HISTORY, LARGER_LOG})
"""Troubles by which a witness says that this log was rewritten."""
_SIZE: Final = re.compile(r"(0|[1-9][0-9]{0,18})\n?")


class WitnessStatus(NamedTuple):
    """
    The state of a witness.

    Args:
        size: leaves of the latest checkpoint that it has cosigned.
        behind: leaves that it has not cosigned.
        trouble: why its latest answer was no cosignature; "" if it was one, or if it was not asked yet.
        detail: what it answered.
    """

    key: str
    name: str
    url: str
    size: int
    behind: int
    cosigned_at: datetime | None
    trouble: str
    detail: str

    @property
    def explanation(self) -> str:
        return TROUBLES.get(self.trouble, "")

    @property
    def accuses(self) -> bool:
        return self.trouble in ACCUSATIONS


class Cosigned(NamedTuple):
    """
    A checkpoint that witnesses have cosigned.

    Args:
        lines: the signature line of each witness, by its key.
        times: when each has cosigned it, in seconds since 1970.
    """

    size: int
    root: bytes
    lines: dict[str, str]
    times: dict[str, int]


class _Answer(NamedTuple):
    """What came of asking a witness: a cosignature, a trouble, or the size that it has."""

    cosignature: Cosignature | None = None
    trouble: str = ""
    detail: str = ""
    size: int | None = None


class _Head(NamedTuple):
    """The checkpoint that witnesses are asked to cosign, as a signed note, and the log that it is of."""

    checkpoint: Checkpoint
    note: str


# ---------------------------------------------------------------- who is asked, and when


def look() -> None:
    """Enqueue the job if a witness is due; called every few seconds by each process that runs jobs."""
    if not config.current().witnesses:
        return
    state = signed_log.current_state()
    if state is None or not _due(state) or Job.objects.filter(kind=KIND, state__in=UNFINISHED).exists():
        return
    queue.enqueue(KIND, group=KIND)


def _due(state: LogState) -> list[tuple[Witness, LogWitness]]:
    """Return the witnesses to ask now."""
    if not state.origin or not state.size:
        return []
    moment = now()
    known = {row.key: row for row in LogWitness.objects.all()}
    due = []
    for witness in config.current().witnesses:
        row = known.get(witness.key) or LogWitness(key=witness.key)
        if row.origin != state.origin:
            # A cosignature of another log says nothing of this one.
            row.origin, row.size, row.cosigned_at = state.origin, 0, None
        if not _is_pausing(row, moment) and _lacks_cosignature(row, state.size, moment):
            due.append((witness, row))
    return due


def _is_pausing(row: LogWitness, moment: datetime) -> bool:
    """Return whether a witness is not to be asked yet, after an answer that was no cosignature."""
    # A pause that is longer than any was begun by a clock that was ahead.
    return row.next_at is not None and moment < row.next_at <= moment + LONGEST_PAUSE


def _lacks_cosignature(row: LogWitness, size: int, moment: datetime) -> bool:
    """Return whether a witness has not cosigned the log at *size*, or so long ago that it is asked again."""
    if row.size != size or row.trouble or row.cosigned_at is None:
        return True
    return row.cosigned_at + COSIGNED_AGAIN_AFTER <= moment


# ---------------------------------------------------------------- asking


def ask(run: JobRun) -> dict[str, int]:
    """Send the checkpoint to each witness that is due, and keep the cosignatures."""
    state = signed_log.current_state()
    due = [] if state is None else _due(state)
    if state is None or not due:
        return {"asked": 0, "cosigned": 0}
    checkpoint = Checkpoint(state.origin, state.size, state.root)
    try:
        head = _Head(checkpoint, signed_log.sign_checkpoint(checkpoint))
    except Unavailable as problem:
        with transaction.atomic():
            for _, row in due:
                _note(row, _Answer(trouble=NOT_SIGNED, detail=problem.message), checkpoint.size)
        return {"asked": 0, "cosigned": 0}
    sizes = {witness.key: row.size for witness, row in due}
    answers = _answers(run, head, due, sizes)
    cosigned = []
    with transaction.atomic():
        for witness, row in due:
            answer = _judged(answers[witness.key], sizes[witness.key], head.checkpoint.size)
            _note(row, answer, head.checkpoint.size)
            if answer.cosignature is not None:
                cosigned.append(answer.cosignature)
        if cosigned:
            _keep(head.checkpoint, cosigned)
        result = {"asked": len(due), "cosigned": len(cosigned)}
        run.finish(result)
    return result


def _answers(
    run: JobRun, head: _Head, due: Sequence[tuple[Witness, LogWitness]], sizes: dict[str, int]
) -> dict[str, _Answer]:
    """Ask the witnesses, and once more from the size that they name; *sizes* gets these."""
    answers: dict[str, _Answer] = {}
    asked = []
    for witness, row in due:
        if row.size > head.checkpoint.size:
            # There is no proof that a log continues a larger one: leaves are gone, as this database remembers.
            answers[witness.key] = _Answer(size=row.size)
        else:
            asked.append(witness)
    answers.update(_ask_all(head, asked, sizes))
    run.check()
    # A witness knows better than this database how far it has cosigned: the database may be an older backup.
    again = []
    for witness in asked:
        size = answers[witness.key].size
        if size is not None and size != sizes[witness.key] and size <= head.checkpoint.size:
            sizes[witness.key] = size
            again.append(witness)
    answers.update(_ask_all(head, again, sizes))
    return answers


def _ask_all(head: _Head, witnesses: Sequence[Witness], sizes: Mapping[str, int]) -> dict[str, _Answer]:
    """Ask witnesses at once, each by the proof from the size that it has cosigned."""
    if not witnesses:
        return {}
    bodies = []
    with snapshot():
        tiles = Tiles(connection.connection)
        for witness in witnesses:
            bodies.append(request_body(head.note, sizes[witness.key], head.checkpoint.size, tiles))
    with ThreadPoolExecutor(MAX_WITNESSES, thread_name_prefix="witness") as pool:
        answers = list(pool.map(_ask, [head.note] * len(witnesses), witnesses, bodies))
    return {witness.key: answer for witness, answer in zip(witnesses, answers, strict=True)}


def request_body(note: str, old_size: int, size: int, tiles: Tiles) -> bytes:
    lines = [f"old {old_size}"]
    lines += [base64.b64encode(each).decode() for each in consistency_proof(old_size, size, tiles.node)]
    return ("\n".join(lines) + "\n\n" + note).encode()


def _ask(note: str, witness: Witness, body: bytes) -> _Answer:
    """Ask a witness once. It reads no database, so it may run in any thread."""
    parts = urlsplit(witness.url)
    options: Connection = {**CONNECTION}
    if parts.port is not None:
        options["port"] = parts.port
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    try:
        status, text = post(f"{witness.url}/add-checkpoint", body, headers, **options)
    except TimeoutError:
        return _Answer(trouble=SILENT, detail="no answer in time")
    except (OSError, ValueError, http.client.HTTPException) as error:
        return _Answer(trouble=SILENT, detail=str(error) or type(error).__name__)
    answer = f"{status} {text}"
    if status == http.HTTPStatus.OK:
        return _cosigned(note, witness, text)
    if status == http.HTTPStatus.CONFLICT:
        size = _SIZE.fullmatch(text)
        return _Answer(trouble=OTHER_ANSWER, detail=answer) if size is None else _Answer(size=int(size[1]))
    return _Answer(trouble=_STATUSES.get(status, OTHER_ANSWER), detail=answer)


_STATUSES: Final[dict[int, str]] = {
    http.HTTPStatus.FORBIDDEN: UNKNOWN_KEY,
    http.HTTPStatus.NOT_FOUND: UNKNOWN_LOG,
    http.HTTPStatus.UNPROCESSABLE_ENTITY: OTHER_HISTORY,
}


def _cosigned(note: str, witness: Witness, lines: str) -> _Answer:
    try:
        (cosignature,) = cosignatures(note + lines, [WitnessKey.parse(witness.key)])
    except NoteError as error:
        return _Answer(trouble=NO_COSIGNATURE, detail=str(error))
    except ValueError:
        return _Answer(trouble=NO_COSIGNATURE, detail=lines or "an empty answer")
    off_s = abs(cosignature.at - now().timestamp())
    if off_s > CLOCKS_DIFFER_BY.total_seconds():
        return _Answer(trouble=NO_COSIGNATURE, detail=f"its time is {cosignature.at}, which is not now")
    return _Answer(cosignature)


def _judged(answer: _Answer, old_size: int, size: int) -> _Answer:
    """Return the answer; a size that the witness names instead of a cosignature is a trouble."""
    if answer.size is None:
        return answer
    detail = f"it has cosigned {answer.size} leaves"
    if answer.size > size:
        return _Answer(trouble=LARGER_LOG, detail=detail)
    if answer.size == old_size == size:
        # It was sent the size that it has, and another root.
        return _Answer(trouble=OTHER_HISTORY, detail=detail)
    return _Answer(trouble=OTHER_ANSWER, detail=detail)


# ---------------------------------------------------------------- what is kept


def _note(row: LogWitness, answer: _Answer, size: int) -> None:
    """Store what a witness has answered, and when it may be asked again."""
    moment = now()
    pause = ASKED_EVERY
    row.trouble = answer.trouble
    # PostgreSQL stores no NUL.
    row.detail = answer.detail.replace("\0", "\ufffd")[:MAX_DETAIL]
    if answer.cosignature is not None:
        row.size, row.failures = size, 0
        row.cosigned_at = datetime.fromtimestamp(answer.cosignature.at, UTC)
    else:
        pause = min(ASKED_EVERY * 2 ** min(row.failures, 16), LONGEST_PAUSE)
        row.failures += 1
    row.next_at = moment + pause
    values = {name: getattr(row, name) for name in _STORED}
    LogWitness.objects.update_or_create(key=row.key, defaults=values)


_STORED: Final = ("origin", "size", "cosigned_at", "trouble", "detail", "failures", "next_at")


def _keep(checkpoint: Checkpoint, found: Iterable[Cosignature]) -> None:
    kept, is_new = CosignedCheckpoint.objects.select_for_update().get_or_create(
        origin=checkpoint.origin, size=checkpoint.size, defaults={"root": checkpoint.root}
    )
    if not is_new and bytes(kept.root) != checkpoint.root:
        # The log was rewritten in the database. Cosignatures of the other root prove nothing of this one.
        kept.root, kept.signatures = checkpoint.root, {}
    for cosignature in found:
        kept.signatures[cosignature.key.text()] = {"line": cosignature.line, "at": cosignature.at}
    kept.save()
    _forget(checkpoint.origin)


def _forget(origin: str) -> None:
    """Delete checkpoints of which a newer one has all cosignatures too, and those beyond the limit."""
    CosignedCheckpoint.objects.exclude(origin=origin).delete()
    newer: list[set[str]] = []
    for row in CosignedCheckpoint.objects.filter(origin=origin).order_by("-size"):
        keys = set(row.signatures)
        is_covered = any(keys <= others for others in newer)
        if is_covered or len(newer) == MAX_KEPT:
            row.delete()
        else:
            newer.append(keys)


def cosigned(origin: str, size: int) -> list[Cosigned]:
    """Return the checkpoints of a log of *size* leaves that witnesses have cosigned, the newest first."""
    found = []
    for row in CosignedCheckpoint.objects.filter(origin=origin, size__lte=size).order_by("-size"):
        lines = {key: each["line"] for key, each in row.signatures.items()}
        times = {key: each["at"] for key, each in row.signatures.items()}
        found.append(Cosigned(row.size, bytes(row.root), lines, times))
    return found


def statuses() -> list[WitnessStatus]:
    """Return the state of each witness, in the order of the setting."""
    witnesses = config.current().witnesses
    if not witnesses:
        return []
    state = signed_log.current_state()
    origin, size = ("", 0) if state is None else (state.origin, state.size)
    known = {row.key: row for row in LogWitness.objects.all()}
    found = []
    for witness in witnesses:
        row = known.get(witness.key) or LogWitness(key=witness.key)
        is_of_log = row.origin == origin
        its_size = row.size if is_of_log else 0
        found.append(
            WitnessStatus(
                key=witness.key,
                name=WitnessKey.parse(witness.key).name,
                url=witness.url,
                size=its_size,
                behind=max(0, size - its_size),
                cosigned_at=row.cosigned_at if is_of_log else None,
                trouble=row.trouble,
                detail=row.detail,
            )
        )
    return found


HANDLER: Final = Handler(
    kind=KIND, work=ask, lease_s=60, per_group=1, max_attempts=1, successes_kept=timedelta(minutes=10)
)
