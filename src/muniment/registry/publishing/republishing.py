"""Publish everything again from the source: what differs row by row, or all of it in one transaction."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import msgspec
from django.db import DatabaseError, connection, transaction

from muniment.registry.publishing import comparison, publisher
from muniment.store.database.snapshots import snapshot
from muniment.store.published_document import KINDS
from muniment.store.verifying.index_tables import faults_of_indexes

_CHUNK: Final = 200
"""Documents in one transaction: writers wait for so many."""


class Republished(NamedTuple):
    """
    What was published again.

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
    before = _state_digest()
    for kind in KINDS if not rebuild else ():
        last = 0
        while keys := comparison.public_keys(kind, last, _CHUNK):
            found, is_structural = _replace(kind, keys)
            rebuild = rebuild or is_structural
            replaced, examined, last = replaced + found, examined + len(keys), keys[-1]
            told(examined)
        unlisted += _unlist_strays(kind)
    rebuild = rebuild or _has_wrong_indexes()
    if rebuild:
        publisher.rebuild()
        examined = max(examined, comparison.count() - 1)
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
        while keys := comparison.public_keys(kind, last, _CHUNK):
            found, _ = _replace(kind, keys, only_outdated=True)
            replaced, examined, last = replaced + found, examined + len(keys), keys[-1]
            told(examined)
    return replaced


def _replace(kind: str, keys: list[int], *, only_outdated: bool = False) -> tuple[int, bool]:
    """Publish rows that differ; return how many did, and whether some cannot be replaced alone."""

    def differing_of(keys: list[int]) -> Iterator[comparison.Mismatch]:
        return (each for each in comparison.differences(kind, keys) if each.faults.is_outdated or not only_outdated)

    with snapshot():
        found = [each.pk for each in differing_of(keys)]
    if not found:
        return 0, False
    with transaction.atomic():
        publisher.lock()
        differing = list(differing_of(found))
        single = [each for each in differing if not each.faults.is_structural]
        comparison.publish_again(single)
    return len(differing), len(single) < len(differing)


def _unlist_strays(kind: str) -> int:
    unlisted = 0
    while keys := comparison.strays(kind):
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
