"""
Publish again from the source: the check of published documents, what differs row by row, or all in one transaction.

The check renders each document again from its source and compares it with what is published. The digests tell which
of the two is damaged. A published body that has the digest of its publication is what was published, so its source
has changed without an operation: such a document is reported and left alone, since a damaged source must not be
published. Any other difference is mended from the source.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from django.db import DatabaseError, connection, transaction

from muniment.registry.company.funding import due
from muniment.registry.fields import rows
from muniment.registry.models import WaitingPerson
from muniment.registry.publishing import publisher
from muniment.registry.publishing.documents import TABLES, render
from muniment.registry.publishing.later import publish_waiting
from muniment.scrub.checks import RESTORE, Check, Damage, Slice
from muniment.scrub.instance import record_met
from muniment.store import public_log
from muniment.store.database.snapshots import snapshot
from muniment.store.public_log import body_digest
from muniment.store.published_document import KINDS, PublishedDocument
from muniment.store.verifying import published_rows
from muniment.store.verifying.published_rows import RowFaults, faults_of_indexes

NAME: Final = "published documents"
COLLECTIONS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
MOST_TO_REBUILD: Final = 50_000
"""The scrub does not render more documents again in one transaction: writers wait for 12 s for so many."""
_STRAYS: Final = "strays"
_AGAIN: Final = "run muniment republish"
_NEW_FEED: Final = (
    f"{RESTORE}; or run muniment republish --rebuild, which begins a new feed, so that its followers start over,"
    " and another log if this one does not verify"
)
_REPLACED: Final = "it was published again from its source"
_UPGRADING: Final = "a job publishes it again within minutes of the last change by the earlier version"
_UNSURE: Final = (
    f"its source has changed without an operation: correct the source or {RESTORE}; {_AGAIN} to publish the source as"
    " it is"
)


class Mismatch(NamedTuple):
    """A document that is not published as its source says."""

    kind: str
    pk: int
    key: str
    faults: RowFaults

    @property
    def subject(self) -> str:
        return f"{COLLECTIONS[self.kind]}/{self.key}"


def differences(kind: str, keys: list[int]) -> Iterator[Mismatch]:
    """Compare the published documents of rows with their source. Call it in a snapshot or a transaction."""
    changing: set[int] = set()  # jobs publish these soon
    if kind == "company":  # a round opens or closes today
        changing = set(due().filter(pk__in=keys).values_list("pk", flat=True))
    elif kind == "person":  # a long import has brought positions
        changing = set(WaitingPerson.objects.filter(pk__in=keys).values_list("pk", flat=True))
    for pk, document in render(kind, keys).items():
        faults = _faults(document)
        mismatch = Mismatch(kind, pk, document.key, faults)
        if faults.names and not (pk in changing and _is_former(mismatch)):
            yield mismatch


def _faults(document: PublishedDocument) -> RowFaults:
    if connection.vendor == "sqlite":
        faults = published_rows.faults_of(connection.connection, document)
    else:
        faults = published_rows.faults_of_feed_row(connection.connection, document)
    if "body" not in faults.names:
        # An intact body accuses the source only if the source says something else.
        return faults._replace(is_intact=False)
    return faults


def public_keys(kind: str, after: int, limit: int) -> list[int]:
    model = TABLES[kind]._default_manager  # noqa: SLF001 - Django's public name
    found = model.filter(published=True, pk__gt=after).order_by("pk").values_list("pk", flat=True)
    return list(found[:limit])


def strays(kind: str) -> list[str]:
    """Return the keys of published documents without a public source, at most a hundred."""
    table = TABLES[kind]._meta.db_table  # noqa: SLF001 - documented by Django
    statement = (
        "SELECT d.key FROM published_document d WHERE d.kind = %s AND NOT EXISTS"
        f" (SELECT 1 FROM {table} s WHERE s.slug = d.key AND s.published) ORDER BY d.key LIMIT 100"
    )
    return [key for (key,) in rows(statement, [kind])]


def publish_again(found: list[Mismatch]) -> None:
    """Publish rows that differ, in the caller's transaction; the change feed tells their followers."""
    affected = publisher.AffectedRows()
    add = {"company": affected.company, "person": affected.person, "framework": affected.framework}
    for mismatch in found:
        add[mismatch.kind](mismatch.pk)
    publisher.publish(affected)


def _look(after: str, limit: int, mend: bool) -> Slice:  # noqa: FBT001 - the signature of a check
    kind, _, last = (after or f"{KINDS[0]} 0").partition(" ")
    if kind == _STRAYS:
        return Slice(1, [*_stray_damages(), *_index_damages(mend=mend)], None)
    keys = public_keys(kind, int(last), limit)
    # Found before any is mended: mending writes, and a snapshot only reads.
    with snapshot():
        mismatches = list(differences(kind, keys))
    damages = [_damage(mismatch, mend=mend) for mismatch in mismatches]
    if len(keys) == limit:
        return Slice(len(keys), damages, f"{kind} {keys[-1]}")
    following = [*KINDS, _STRAYS][KINDS.index(kind) + 1]
    return Slice(len(keys), damages, f"{following} 0")


def mend_damaged(names: Sequence[tuple[str, str]]) -> None:
    """
    Publish documents again from their source in which a read found damage.

    Args:
        names: their kinds and keys.
    """
    damages = []
    for kind, key in names:
        source = TABLES[kind]._default_manager.filter(slug=key, published=True)  # noqa: SLF001 - Django's public name
        keys = list(source.values_list("pk", flat=True))
        with snapshot():
            found = list(differences(kind, keys))
        damages += [_damage(each, mend=True) for each in found]
    if damages:  # otherwise another process was faster
        record_met(damages)


def _damage(each: Mismatch, *, mend: bool) -> Damage:
    says = f"{' and '.join(each.faults.names)} not as in the source"
    if each.faults.names == ("missing",):
        says = "is not published, though its source is public"
    is_outdated = each.faults.is_outdated
    if is_outdated:
        says = "was published by a node of an earlier version, during an upgrade"
    elif each.faults.is_intact and not _was_edited(each):
        return Damage(check=NAME, subject=each.subject, says=says, remedy=_UNSURE)
    if mend and _mended(each):
        return Damage(check=NAME, subject=each.subject, says=says, remedy=_REPLACED, is_mended=True)
    remedy = _UPGRADING if is_outdated else _AGAIN
    return Damage(check=NAME, subject=each.subject, says=says, remedy=remedy, is_minor=is_outdated)


def _is_former(each: Mismatch) -> bool:
    """Return whether a document differs from its source because it is the one that was published last."""
    return each.faults.is_intact and not each.faults.is_structural and not _was_edited(each)


def _was_edited(each: Mismatch) -> bool:
    """Return whether the stored body is not the one that the public log names."""
    if connection.vendor == "sqlite":
        body = published_rows.stored_body(connection.connection, each.kind, each.key)
    else:
        document = published_rows.stored_document(connection.connection, each.kind, each.key)
        body = document.body if document else None
    leaf = public_log.latest_leaf(connection.connection, each.kind, each.key)
    if body is None or leaf is None or leaf.digest is None:
        return False  # not published: there is nothing to edit, or nothing to compare it with
    return leaf.digest != body_digest(body)


def _mended(each: Mismatch) -> bool:
    """Publish a document again, and return whether it is now as its source says."""
    if each.faults.is_structural:
        return rebuilt()
    with transaction.atomic():
        publish_again([each])
        return not list(differences(each.kind, [each.pk]))


def rebuilt() -> bool:
    """Render all documents again if they are few enough to let writers wait; return whether that was so."""
    if count() > MOST_TO_REBUILD:
        return False
    publisher.rebuild()
    return True


def _stray_damages() -> Iterator[Damage]:
    for kind in KINDS:
        for key in strays(kind):
            yield Damage(
                check=NAME,
                subject=f"{COLLECTIONS[kind]}/{key}",
                says="is published without a public source",
                remedy=f"{RESTORE} if it should be public; {_AGAIN} to unlist it",
            )


def _index_damages(*, mend: bool) -> Iterator[Damage]:
    if connection.vendor != "sqlite":
        return
    with snapshot():
        found = faults_of_indexes(connection.connection)
    if not found:
        return
    is_mended = mend and rebuilt()
    remedy = "all documents were published again" if is_mended else "run muniment republish --rebuild"
    for says in found:
        yield Damage(check=NAME, subject="index tables", says=says, remedy=remedy, is_mended=is_mended)


def count() -> int:
    return sum(model._default_manager.filter(published=True).count() for model in TABLES.values()) + 1  # noqa: SLF001 - Django's public name


def _look_at_log(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    faults = publisher.log_faults()
    damages = [Damage(check=LOG.name, subject="the log", says=says, remedy=_NEW_FEED) for says in faults]
    return Slice(1, damages, None)


CHECK: Final = Check(
    name=NAME, fine="each is what its source says; lists, filters and search agree", count=count, look=_look
)
LOG: Final = Check(
    name="public log", fine="every leaf verifies, and every document is in it", count=lambda: 1, look=_look_at_log
)


_CHUNK: Final = 200
"""Documents in one transaction: writers wait for so many."""


class Republished(NamedTuple):
    """
    The result of publishing again.

    Args:
        examined: the documents rendered.
        replaced: those that differed from their source.
        unlisted: published documents without a public source.
        is_rebuilt: all documents were written again, under a new feed.
        before: the digest of all published documents as they were.
        after: the same now; equal to *before* if nothing was wrong.
    """

    examined: int
    replaced: int
    unlisted: int
    is_rebuilt: bool
    before: str
    after: str


def republish(*, rebuild: bool = False, told: Callable[[int], object] = lambda _: None) -> Republished:
    """
    Publish every document as its source says; the source is right, whatever is published.

    Reads continue. Writers wait for one chunk at a time, unless everything has to be rebuilt.

    Args:
        rebuild: write all documents again, under a new feed. Done also if the index tables do not match.
        told: called with the number of documents examined so far.
    """
    examined = replaced = unlisted = 0
    if not rebuild:  # which may be to mend what a publication would meet
        for _ in publish_waiting():
            pass
    before = _state_digest()
    kinds = () if rebuild else KINDS
    for kind in kinds:
        last = 0
        while keys := public_keys(kind, last, _CHUNK):
            differing, is_structural = _replace(kind, keys)
            rebuild = rebuild or is_structural
            replaced += differing
            examined += len(keys)
            last = keys[-1]
            told(examined)
        unlisted += _unlist_strays(kind)
    rebuild = rebuild or _has_wrong_indexes()
    if rebuild:
        publisher.rebuild()
        examined = max(examined, count() - 1)  # the count has one more, for the strays
    return Republished(examined, replaced, unlisted, rebuild, before, _state_digest())


def _state_digest() -> str:
    """Return the digest of all published documents; empty if they cannot be read."""
    try:
        with snapshot():
            return publisher.state_digest()
    except (DatabaseError, sqlite3.DatabaseError, msgspec.DecodeError, TypeError):  # text in place of bytes, too
        return ""


def replace_outdated(told: Callable[[int], object] = lambda _: None) -> int:
    """
    Publish the documents again that nodes of an earlier version have rendered, and return how many differed.

    On PostgreSQL, such a node continues to publish until it is upgraded too.
    """
    examined = replaced = 0
    for kind in KINDS:
        last = 0
        while keys := public_keys(kind, last, _CHUNK):
            differing, _ = _replace(kind, keys, only_outdated=True)
            replaced += differing
            examined += len(keys)
            last = keys[-1]
            told(examined)
    return replaced


def _replace(kind: str, keys: list[int], *, only_outdated: bool = False) -> tuple[int, bool]:
    """Publish rows that differ; return how many did, and whether some cannot be replaced alone."""

    def differing(keys: list[int]) -> list[Mismatch]:
        mismatches = differences(kind, keys)
        return [mismatch for mismatch in mismatches if mismatch.faults.is_outdated or not only_outdated]

    # First without the lock, because most documents are as their source says and writers need not wait for these.
    with snapshot():
        suspected = [mismatch.pk for mismatch in differing(keys)]
    if not suspected:
        return 0, False
    with transaction.atomic():
        publisher.lock()
        mismatches = differing(suspected)  # an operation may have published one of them since
        single = [mismatch for mismatch in mismatches if not mismatch.faults.is_structural]
        publish_again(single)
    return len(mismatches), len(single) < len(mismatches)


def _unlist_strays(kind: str) -> int:
    unlisted = 0
    while keys := strays(kind):
        with transaction.atomic():
            publisher.lock()
            for key in keys:
                publisher.record_unlisted(kind, key)
        unlisted += len(keys)
    return unlisted


def _has_wrong_indexes() -> bool:
    if connection.vendor != "sqlite":
        return False
    with snapshot():
        return bool(faults_of_indexes(connection.connection))
