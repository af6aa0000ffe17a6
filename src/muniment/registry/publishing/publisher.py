"""
Publish changes as documents, in the transaction that makes them.

So that no reader misses a change, the order is fixed: finish all writes to the source rows; lock the edition; only then
read what publishers before have committed; reserve a sequence number for each change; render; write the documents;
commit. A row's publication number is the
sequence of its first publication, so the order is total and stable.

Source: decisions, section 2, only reviewed; createdAt, order.
"""

import importlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings
from django.db import connection, connections, transaction
from django.dispatch import Signal
from msgspec.structs import replace

from muniment.jobs import queue
from muniment.jobs.handlers import Abandoned, Handler
from muniment.jobs.queue import JobRun
from muniment.kernel.http.representations import stamp_after
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.wire import parse_timestamp, timestamp
from muniment.plugins.loading import installed
from muniment.plugins.values import Publication
from muniment.registry.declared import current
from muniment.registry.declared.stored import mark_of
from muniment.registry.fields import marks, rows
from muniment.registry.models import Framework, Person, Position, State, WaitingPerson
from muniment.registry.publishing import documents
from muniment.registry.publishing.documents import CHUNK, TABLES, CompanyView, all_documents, render
from muniment.store import public_log
from muniment.store.database.migrations import migration_lock
from muniment.store.database.snapshots import snapshot
from muniment.store.published import SchemaMismatch, last_stamp, mark_in, put_stamp
from muniment.store.published_document import PublishedDocument, PublishedEntry

LONGEST_OPERATION: Final = timedelta(hours=1)
"""Rows dated within this time were dated by this clock, for a change that is being published."""
MAX_FAULTS: Final = 100
published = Signal()
"""Sent with ``edition`` after each commit that published."""


@dataclass(slots=True)
class AffectedRows:
    """The rows, by primary key, whose documents a change may affect, in the order of their publication."""

    companies: dict[int, None] = field(default_factory=dict)
    people: dict[int, None] = field(default_factory=dict)
    frameworks: dict[int, None] = field(default_factory=dict)
    later: dict[int, bool] = field(default_factory=dict)
    """People whose documents lack what is new but show nothing untrue, and whether they keep their time of change. If
    they are public, :mod:`muniment.registry.publishing.later` publishes them; otherwise they are published at once."""
    loaded: dict[int, CompanyView] | None = None
    """Filled by :func:`publish` with the companies that it loads, for callers that show them."""

    def company(self, *keys: int) -> "AffectedRows":
        """Add companies whose references elsewhere are unchanged."""
        self.companies.update(dict.fromkeys(keys))
        return self

    def person(self, *keys: int) -> "AffectedRows":
        self.people.update(dict.fromkeys(keys))
        return self

    def framework(self, *keys: int) -> "AffectedRows":
        self.frameworks.update(dict.fromkeys(keys))
        return self

    def company_with_dependents(self, *keys: int) -> "AffectedRows":
        """Add companies with their people and frameworks, after a change of name, symbol, icon or state."""
        self.company(*keys)
        named = Position.objects.filter(company_id__in=keys, person__isnull=False)
        self.person(*named.values_list("person_id", flat=True))
        return self.frameworks_of(*keys)

    def frameworks_of(self, *companies: int) -> "AffectedRows":
        """Add the frameworks that show companies: as their own, with the description, or by a published score."""
        if not companies:
            return self
        chosen = marks(companies)
        showing = rows(
            f"SELECT id, publication_number FROM registry_framework WHERE company_id IN ({chosen})"
            " UNION SELECT framework.id, framework.publication_number FROM registry_framework framework"
            f" JOIN registry_score score ON score.framework_id = framework.id WHERE score.company_id IN ({chosen})"
            " ORDER BY publication_number, id",
            [*companies, *companies],
        )
        return self.framework(*(key for key, _ in showing))

    def framework_with_companies(self, *keys: int) -> "AffectedRows":
        """Add frameworks and the companies that show their names with a published score."""
        return self.framework(*keys).company(*documents.companies_with(keys))

    def person_with_companies(self, *keys: int) -> "AffectedRows":
        """Add people and the companies that show their names."""
        self.person(*keys)
        return self.company(*Position.objects.filter(person_id__in=keys).values_list("company_id", flat=True))


class FeedIdentity(NamedTuple):
    """The identity of a feed, and of one state of it."""

    feed_id: str
    edition: int
    chain: str
    state_digest: str


Standing = tuple[int, str, bool, bool, int | None]
"""A row: its key and slug, whether it is public and was public before, its publication number."""


class _Move(NamedTuple):
    """The change of a document; *number* is the row's publication number, None before its first publication."""

    kind: str
    pk: int
    slug: str
    change: str
    number: int | None


def _change(*, is_public: bool, was_public: bool) -> str:
    """Return the change of a document as the feed names it; empty if there is none, before and after."""
    if is_public:
        return "updated" if was_public else "published"
    return "unlisted" if was_public else ""


def _feed(using: str = "default") -> tuple[Any, Any]:
    """Return the module of the published tables, in the SQLite file or on PostgreSQL, and the connection it takes."""
    chosen: Any = connections[using]
    chosen.ensure_connection()
    name = "muniment.store.published" if chosen.vendor == "sqlite" else "muniment.store.postgres_feed"
    return importlib.import_module(name), chosen.connection


def create_tables(using: str = "default") -> None:
    """Create the tables of published documents, and begin their log and chain if they have not begun."""
    store, raw = _feed(using)
    with suppress(SchemaMismatch), transaction.atomic(using):  # renewed once all migrations are applied
        store.create(raw)
        if public_log.latest_link(raw) is None or public_log.state(raw) is None:
            store.lock(raw)
            edition = store.head(raw)[0]
            root = public_log.continue_log(raw, edition)
            # A chain that exists without a log continues: those who have followed it must not start again.
            if public_log.latest_link(raw) is None:
                public_log.begin_chain(raw, edition, root)


def head(using: str = "default") -> tuple[int, str, str]:
    """Return the edition, the epoch and the time of the last change of the published documents."""
    store, raw = _feed(using)
    edition, epoch, at = store.head(raw)
    return edition, epoch, at


def feed_head() -> tuple[int, str]:
    """Return the latest sequence of the change feed, and its identity."""
    edition, epoch, _ = head()
    return edition, epoch.rpartition(":")[2]


def etags(using: str = "default") -> Iterator[tuple[str, str, str]]:
    """Return kind, key and ETag of every published document. Call it in a transaction or a snapshot."""
    store, raw = _feed(using)
    rows_with_etag: Iterator[tuple[str, str, str]] = store.etags(raw)
    return rows_with_etag


def log_faults(using: str = "default") -> list[str]:
    """Return what is wrong with the public log and the chain; nothing if they verify."""
    _, raw = _feed(using)
    with snapshot(using):
        return list(islice(public_log.faults(raw), MAX_FAULTS))


def state_digest(using: str = "default") -> str:
    """Return the digest of all published documents; equal registries have equal ones. Call it in a transaction."""
    _, raw = _feed(using)
    return public_log.state_digest(raw).hex()


def identity(using: str = "default") -> FeedIdentity:
    with snapshot(using):
        edition, epoch, _ = head(using)
        last = public_log.latest_link(_feed(using)[1])
        return FeedIdentity(epoch.rpartition(":")[2], edition, last.chain.hex() if last else "", state_digest(using))


def lock() -> None:
    """Lock the edition in the caller's transaction, which then sees every earlier publisher's writes."""
    store, raw = _feed()
    with connection.wrap_database_errors:
        store.lock(raw)


def lock_people(keys: Iterable[int]) -> None:
    """
    Lock the rows of people before the edition, as other operations do, and in a fixed order: this prevents deadlocks.

    Other transactions may still commit positions of them, as one that holds the edition is about to.
    """
    locked = Person.objects.filter(pk__in=list(keys)).order_by("pk").select_for_update(no_key=True)
    list(locked.values_list("pk"))


def clear(*, edition: int) -> None:
    """Delete all published documents, in the caller's transaction; readers and replicas will notice."""
    store, raw = _feed()
    store.clear(raw, edition=edition)


def publish_all(*, at: str, told: Callable[[int], object] = lambda _: None) -> None:
    """
    Publish every public document after :func:`clear`, without feed entries; *at*: their last change on the wire.

    All get a new stamp, because what was served before is not known. The people who wait are among them.
    Call :func:`continue_log` afterwards. *told* gets the progress.
    """
    undated = WaitingPerson.objects.filter(is_dated=False).values("pk")
    Person.objects.filter(pk__in=undated).update(updated_at=now())
    WaitingPerson.objects.all().delete()
    store, raw = _feed()
    with connection.wrap_database_errors:
        stamp = stamp_after(timestamp(now()), last_stamp(raw)[1])  # later than those of all former documents
        documents = (replace(document, modified_at=stamp) for document in all_documents(told))
        store.load(raw, documents, at=at)
        put_stamp(raw, store.head(raw)[0], stamp)


def continue_log(*, is_same: bool = False) -> None:
    """
    Continue the log by the documents that have changed without an entry in the feed, in the caller's transaction.

    Args:
        is_same: whether followers have these documents too, so that the chain continues; otherwise it begins again.
    """
    store, raw = _feed()
    with connection.wrap_database_errors:
        store.lock(raw)
        edition = store.head(raw)[0]
        root = public_log.continue_log(raw, edition)
        if not is_same:
            public_log.begin_chain(raw, edition, root)


def forget_in_log(kind: str, key: str) -> None:
    """Remove what could confirm a guess at a document from the log, in the caller's transaction."""
    _, raw = _feed()
    with connection.wrap_database_errors:
        public_log.erase(raw, kind, key)


def renew_identity() -> str:
    """
    Renew the identity of the change feed, whose database was restored to an older state, and return its new id.

    Nodes rebuild their files, and clients start again. The chain continues: a client that has read only what was
    restored may continue with it.
    """
    store, raw = _feed()
    with transaction.atomic(), connection.wrap_database_errors:
        store.lock(raw)
        store.renew_epoch(raw)
        edition, epoch, _ = head()
    published.send(None, edition=edition)
    return epoch.rpartition(":")[2]


def renew_outdated() -> bool:
    """Render all published documents again, under a new feed, if they are outdated; return whether they were."""
    if not is_outdated():
        return False
    # Rendering takes longer than a writer may wait, so other processes wait for the lock of the migrations.
    with migration_lock(), transaction.atomic():
        if not is_outdated():
            return False
        render_again(edition=head()[0], mark=mark_of(settings.DECLARED_FIELDS))
    return True


def rebuild() -> None:
    """
    Render all published documents again in one transaction, as the next edition of a new feed.

    Readers see the former documents until it commits; writers wait. Replicas and followers start over. A log that does
    not verify begins again, as one that names the former.
    """
    _, raw = _feed()
    with migration_lock(), transaction.atomic():
        lock()
        edition, epoch, _ = head()
        if public_log.is_damaged(raw):
            public_log.begin_again(raw)
        render_again(edition=edition + 1, mark=mark_in(epoch))  # a new number: the exports are made again too
        transaction.on_commit(lambda: published.send(None, edition=edition + 1))


def render_again(*, edition: int, mark: str, told: Callable[[int], object] = lambda _: None) -> None:
    """Render all documents again under a new feed, in the caller's transaction; *mark* is of declared fields."""
    store, raw = _feed()
    last = store.lock(raw)
    clear(edition=edition)
    store.mark_epoch(raw, mark)
    publish_all(at=_moment_after(last), told=told)
    continue_log()


def is_outdated() -> bool:
    """Return whether another version, or this one with other declared fields, has rendered the documents."""
    store, raw = _feed()
    try:
        store.check(raw)
    except SchemaMismatch:
        return True
    _, epoch, _ = head()
    return mark_in(epoch) != mark_of(settings.DECLARED_FIELDS)


def publish(affected: AffectedRows) -> int | None:
    """
    Update the published documents of the affected rows.

    Call it once, as the last step of an operation, in its transaction. Rows that are not public and were not public
    before create no entry.

    Returns:
        The new edition, or None if nothing public changed.
    """
    store, raw = _feed()
    # The raw connection raises the driver's errors; callers expect Django's.
    with connection.wrap_database_errors:
        last: str = store.lock(raw)  # so that the following decisions stay valid
        epoch: str = store.head(raw)[1]
        _, former_stamp = last_stamp(raw)
    if affected.later:
        _note_waiting(affected)
    if mark_in(epoch) != mark_of(settings.DECLARED_FIELDS):
        current.look()  # another process has applied other fields, and the documents have them
    framework_moves = _moves("framework", affected.frameworks, _framework_standings)
    frameworks_appearing_or_gone = [move.pk for move in framework_moves if move.change != "updated"]
    if frameworks_appearing_or_gone:
        # Companies show scores of public frameworks only.
        affected.company(*documents.companies_with(frameworks_appearing_or_gone))
    moves = [
        *_moves("company", affected.companies, _company_standings),
        *_moves("person", affected.people, _person_standings),
        *framework_moves,
    ]
    if not moves:
        return None
    at = _moment_after(last)
    stamp = stamp_after(at, former_stamp)  # later than those of all documents and former editions
    with connection.wrap_database_errors:
        first: int = store.reserve(raw, len(moves))
    appearing_or_gone = []
    for offset, move in enumerate(moves):
        if move.number is None:
            moves[offset] = move._replace(number=first + offset)
        if move.change != "updated":
            appearing_or_gone.append(moves[offset])
    if appearing_or_gone:
        _write_moves(appearing_or_gone)
    if at == last:  # the clock was set back
        _stamp(moves, at)
    edition = first + len(moves) - 1
    with connection.wrap_database_errors:
        store.apply(raw, _entries(moves, first, at, stamp, affected.loaded), stamp=stamp)
    announce_to_plugins((move.kind, move.slug, move.change, sequence) for sequence, move in enumerate(moves, first))
    transaction.on_commit(lambda: published.send(None, edition=edition))
    return edition


def _note_waiting(affected: AffectedRows) -> None:
    """Note who is published later, under the lock of the edition, which tells who is public."""
    hidden = set(Person.objects.filter(pk__in=list(affected.later), published=False).values_list("pk", flat=True))
    Person.objects.filter(pk__in=[key for key in hidden if not affected.later[key]]).update(updated_at=now())
    affected.person(*(key for key in affected.later if key in hidden))  # their order is that of the list of people
    waiting = []
    for key, is_dated in affected.later.items():
        if key not in affected.people:
            waiting.append(WaitingPerson(person_id=key, is_dated=is_dated))
    WaitingPerson.objects.bulk_create(
        waiting, update_conflicts=True, unique_fields=["person"], update_fields=["is_dated"]
    )


def record_unlisted(kind: str, key: str) -> int:
    """Record in the change feed that *key* is unlisted, although no document has it; return the edition."""
    store, raw = _feed()
    with connection.wrap_database_errors:
        at = _moment_after(store.lock(raw))
        stamp = stamp_after(at, last_stamp(raw)[1])
        edition: int = store.reserve(raw, 1)
        entry = PublishedEntry(sequence=edition, kind=kind, key=key, change="unlisted", at=at)
        store.apply(raw, [entry], stamp=stamp)
    announce_to_plugins([(kind, key, "unlisted", edition)])
    transaction.on_commit(lambda: published.send(None, edition=edition))
    return edition


def _moment_after(last: str) -> str:
    """Return the time for the next change: never before the *last* one, also when the clock was set back."""
    return max(last, timestamp(now()))


def _stamp(moves: list[_Move], at: str) -> None:
    """Let rows that a clock which was set back has just dated tell the time *at* instead."""
    moment, here = parse_timestamp(at), now()
    for kind, model in TABLES.items():
        keys = [move.pk for move in moves if move.kind == kind and move.change != "unlisted"]
        dated = model._default_manager.filter(  # noqa: SLF001 - Django's public name
            pk__in=keys, updated_at__range=(here - LONGEST_OPERATION, min(here, moment))
        )
        dated.update(updated_at=moment)


def _moves(kind: str, keys: dict[int, None], standings: Callable[[list[int]], Iterable[Standing]]) -> list[_Move]:
    """Return the changes of the documents of *keys*, in their order."""
    if not keys:
        return []
    moves = {}
    for pk, slug, is_public, was_public, number in standings(list(keys)):
        change = _change(is_public=bool(is_public), was_public=bool(was_public))
        if change:
            moves[pk] = _Move(kind, pk, slug, change, number)
    return [moves[key] for key in keys if key in moves]


def _write_moves(moves: list[_Move]) -> None:
    """Store which rows are public now, of those that were not or are not any more, and the numbers of new ones."""
    for kind, model in TABLES.items():
        changed = []
        for move in moves:
            if move.kind == kind:
                changed.append((move.number, move.change != "unlisted", move.pk))
        if changed:
            table = model._meta.db_table  # noqa: SLF001 - Django's public name
            with connection.cursor() as cursor:
                cursor.executemany(f"UPDATE {table} SET publication_number = %s, published = %s WHERE id = %s", changed)


def _entries(
    moves: list[_Move], first: int, at: str, stamp: str, loaded: dict[int, CompanyView] | None
) -> Iterator[PublishedEntry]:
    # In chunks, so that an import of a registry does not hold all of its documents at once.
    numbered = iter(enumerate(moves, first))
    while chunk := list(islice(numbered, CHUNK)):
        documents = _rendered(chunk, loaded)
        published_before = _stored_bodies(chunk)
        for sequence, move in chunk:
            body_before, modified_before = published_before.get((move.kind, move.slug), (b"", ""))
            document = documents.get((move.kind, move.pk))
            fields = None
            if document is not None:
                is_new = move.number is not None and move.number >= first
                if not modified_before and not is_new:
                    modified_at = stamp  # published again after it was unlisted: its former stamp is not known
                elif document.body == body_before:
                    modified_at = modified_before
                else:
                    modified_at = stamp_after(at, modified_before)
                document = replace(document, modified_at=modified_at)
                if body_before:
                    fields = known_changes(move.kind, body_before, document.body)
            yield PublishedEntry(
                sequence=sequence,
                kind=move.kind,
                key=move.slug,
                change=move.change,
                at=at,
                document=document,
                fields=fields,
            )


def _rendered(
    chunk: list[tuple[int, _Move]], loaded: dict[int, CompanyView] | None
) -> dict[tuple[str, int], PublishedDocument]:
    """Return the document of each row that is public, by its kind and primary key."""
    documents: dict[tuple[str, int], PublishedDocument] = {}
    for kind in TABLES:
        keys = [move.pk for _, move in chunk if move.kind == kind and move.change != "unlisted"]
        if keys:
            for pk, document in render(kind, keys, loaded).items():
                documents[kind, pk] = document
    return documents


def _stored_bodies(chunk: list[tuple[int, _Move]]) -> dict[tuple[str, str], tuple[bytes, str]]:
    """Return the published body and stamp of each document that is updated, by kind and key."""
    store, raw = _feed()
    stored = {}
    for kind in TABLES:
        keys = [move.slug for _, move in chunk if move.kind == kind and move.change == "updated"]
        if keys:
            for key, body_and_stamp in store.bodies(raw, kind, keys).items():
                stored[kind, key] = body_and_stamp
    return stored


_MOMENTS = frozenset({"updatedAt"})
_decode = msgspec.json.Decoder(dict[str, dict[str, msgspec.Raw]]).decode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def changed_fields(kind: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """Return the names of members that differ between two bodies of a document, in the order of the later one."""
    old, new = _flat(kind, before), _flat(kind, after)
    names = []
    for name in {**new, **old}:  # those of the later one first
        # Every change moves its moment, which says nothing of what changed.
        if name not in _MOMENTS and old.get(name) != new.get(name):
            names.append(name)
    return tuple(names)


def known_changes(kind: str, before: bytes, after: bytes) -> tuple[str, ...] | None:
    """Return :func:`changed_fields`; None if the former body is damaged."""
    try:
        return changed_fields(kind, before, after)
    except (msgspec.DecodeError, KeyError, TypeError):
        return None


def _flat(kind: str, body: bytes) -> dict[str, bytes]:
    """Return the encoded members of a document; the members of a company beside its parts."""
    # The members stay encoded: their values are only compared.
    members = _decode(body)["data"]
    if kind == "company":
        members = {**_members(members.pop("company")), **members}
    return {name: bytes(value) for name, value in members.items()}


def _company_standings(keys: list[int]) -> Iterator[Standing]:
    statement = "SELECT id, slug, state, published, publication_number FROM registry_company"
    for pk, slug, state, was_public, number in rows(f"{statement} WHERE id IN ({marks(keys)})", keys):
        yield pk, slug, state == State.PUBLISHED, was_public, number


def _person_standings(keys: list[int]) -> Iterator[Standing]:
    # CROSS JOIN begins with the positions of the person: SQLite may choose to begin with all published companies.
    places = (
        "SELECT 1 FROM registry_position place CROSS JOIN registry_company company"
        " WHERE place.person_id = person.id AND company.id = place.company_id AND company.state = %s"
    )
    for pk, slug, listed, unlisted_by, was_public, number, is_named in rows(
        "SELECT id, slug, listed, unlisted_by, published, publication_number,"
        f" EXISTS ({places}) FROM registry_person person WHERE id IN ({marks(keys)})",
        [State.PUBLISHED.value, *keys],
    ):
        yield pk, slug, not unlisted_by and bool(listed or is_named), was_public, number


def _framework_standings(keys: list[int]) -> Iterator[Standing]:
    frameworks = Framework.objects.filter(pk__in=keys)
    for pk, slug, kind, listed, was_public, number, state in frameworks.values_list(
        "pk", "slug", "kind", "listed", "published", "publication_number", "company__state"
    ):
        # A program is that of a company, and is public with it.
        is_public = listed and (kind == Framework.Kind.SCORE or state == State.PUBLISHED)
        yield pk, slug, is_public, was_public, number


# ---------------------------------------------------------------- what plugins hear of publications
# Each hears of them in jobs of its own: enqueued by the transaction that publishes, and run after it. A plugin that
# fails or is slow delays its own jobs only: they have a lane of their own, and one at a time runs for each plugin.

PUBLISHED_JOB: Final = "registry.published"
PLUGIN_LANE: Final = "plugins"
PUBLICATIONS_IN_A_JOB: Final = 500
"""An import has thousands."""


def announce_to_plugins(entries: Iterable[tuple[str, str, str, int]]) -> None:
    """Enqueue what plugins are told: kind, slug, change and edition of each document. Call it in the transaction."""
    calls = installed().calls("published")
    if not calls:
        return
    for chunk in _job_rows(entries):
        for call in calls:
            queue.enqueue(PUBLISHED_JOB, {"plugin": call.plugin, "publications": chunk}, group=call.plugin)


def _job_rows(entries: Iterable[tuple[str, str, str, int]]) -> Iterator[list[list[Any]]]:
    rows = iter(entries)
    while chunk := [list(row) for row in islice(rows, PUBLICATIONS_IN_A_JOB)]:
        yield chunk


def tell_plugin(run: JobRun) -> dict[str, int]:
    """
    Call the plugin for each publication that it has not heard of; after a failure, again from that one on.

    Raises:
        Abandoned: the plugin is not installed any more, or has no such hook.
        RuntimeError: the plugin cannot be loaded.
    """
    name, rows = run.payload["plugin"], run.payload["publications"]
    plugins = installed()
    call = next((call for call in plugins.calls("published") if call.plugin == name), None)
    if call is None:
        failed = next((plugin for plugin in plugins.failed if plugin.name == name), None)
        if failed is not None:  # a corrected version may be installed before the attempts end
            raise RuntimeError(Phrase("the plugin {name} cannot be loaded: {fault}", name=name, fault=failed.fault))
        raise Abandoned(Phrase("the plugin {name} is not installed, or does not hear of publications", name=name))
    heard = len(run.kept("told:"))
    for number, (kind, slug, change, edition) in enumerate(rows[heard:], heard):
        run.check()
        call(publication=Publication(kind=kind, id=slug, change=change, edition=edition))
        run.checkpoint(f"told:{number}", edition, done=number + 1, total=len(rows))
    return {"publications": len(rows)}


PLUGIN_HANDLER: Final = Handler(
    kind=PUBLISHED_JOB,
    work=tell_plugin,
    lease_s=60,
    max_attempts=10,
    max_kills=5,
    back_off_s=5,
    lane=PLUGIN_LANE,
    per_group=1,
)  # ten attempts take 43 minutes: a receiver that is away for longer misses them, and the job shows it
