"""Every change is logged, and so is every document; erasing a person leaves the log whole; a changed past is found."""

from datetime import timedelta

import pytest
from django.db import connection

from make.logged import logged_again
from make.registry import bodies, changes, owner, published, reviewer
from muniment.kernel.ids import now
from muniment.kernel.merkle import EMPTY_ROOT, Frontier, leaf_hash
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.people.erasing import erase_person
from muniment.registry.publishing import publisher
from muniment.registry.publishing.redaction import replace_due_tombstones
from muniment.store import postgres_feed, public_log
from muniment.store import published as published_file
from muniment.store.public_log import StateDigest, body_digest

pytestmark = pytest.mark.django_db


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def raw():
    connection.ensure_connection()
    return connection.connection


def leaves():
    return public_log.leaves(raw(), 0, 1_000)


def sequences():
    return [number for (number,) in run("SELECT sequence FROM published_leaf ORDER BY number")]


def links():
    """Return the chain: each change with its value."""
    return {number: bytes(value) for number, value in run("SELECT sequence, chain FROM published_chain")}


def test_each_change_has_a_leaf_with_the_digest_of_its_document_and_the_root_as_its_chain():
    assert (public_log.state(raw()).size, list(links().values())) == (0, [EMPTY_ROOT])
    me = owner()
    slug = published(me).slug
    update_company(me, slug, CompanyChange(description="Ferries."))
    made = leaves()
    assert [(leaf.kind, leaf.key, leaf.change) for leaf in made] == changes()
    assert sequences() == list(range(publisher.head()[0] - len(made) + 1, publisher.head()[0] + 1))
    assert made[-1].digest == body_digest(bodies()["company", slug])
    frontier = Frontier()
    for sequence, leaf in zip(sequences(), made, strict=True):
        assert leaf.data == public_log.leaf_of(leaf.salt, leaf.kind, leaf.key, leaf.change, leaf.digest)
        frontier.append(leaf_hash(leaf.data))
        assert links()[sequence] == frontier.root()
    assert public_log.state(raw()).root == frontier.root()
    assert publisher.log_faults() == []


def test_the_state_digest_covers_the_published_bodies_in_order():
    for _ in range(3):
        published(owner())
    expected = StateDigest()
    for (kind, key), body in sorted(bodies().items()):
        expected.add(kind, key, body)
    assert publisher.state_digest() == expected.digest().hex()


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("UPDATE published_change SET key = 'other' WHERE sequence = %s", "is not the one that was logged"),
        ("DELETE FROM published_change WHERE sequence = %s", "is not the one that was logged"),
        ("UPDATE published_chain SET chain = digest(chain) WHERE sequence = %s", "is not that of the log"),
        ("DELETE FROM published_leaf WHERE sequence = %s", "leaf 1 of the log is missing"),
        ("DELETE FROM published_leaf WHERE sequence >= %s", "the log is not as long as it says"),
        ("UPDATE published_leaf SET change = 1 WHERE sequence = %s", "the log has another root than was logged"),
        ("UPDATE published_leaf SET change = 9 WHERE sequence = %s", "leaf 1 of the log is damaged"),
        ("UPDATE published_leaf SET salt = NULL WHERE sequence = %s", "leaf 1 of the log is damaged"),
        ("UPDATE published_leaf SET digest = NULL WHERE sequence = %s", "the log has another root than was logged"),
        ("UPDATE published_leaf SET key = 'other' WHERE sequence = %s", "other is not published as it was logged"),
    ],
)
def test_an_altered_past_is_found(statement, fault):
    for _ in range(3):
        published(owner())
    assert publisher.log_faults() == []
    if "digest(chain)" in statement:
        run("UPDATE published_chain SET chain = %s WHERE sequence = %s", EMPTY_ROOT, publisher.head()[0] - 1)
    else:
        run(statement, publisher.head()[0] - 1)
    assert [each for each in publisher.log_faults() if fault in each]


def test_a_document_that_is_not_the_one_logged_is_found():
    slug = published(owner()).slug
    run("DELETE FROM published_document")
    assert publisher.log_faults() == [f"company {slug} is not published as it was logged"]


def test_the_tiles_are_verified_too():
    slug = published(owner()).slug
    logged_again(slug, bodies()["company", slug], times=600)
    assert publisher.log_faults() == []
    run("UPDATE published_tile SET hash = %s WHERE place = %s", EMPTY_ROOT, 1 << 48 | 1)
    assert publisher.log_faults() == ["leaves 256 to 511 are not those that were logged"]
    run("DELETE FROM published_tile")
    assert len(publisher.log_faults()) == 2


def test_an_erased_person_leaves_the_log_whole_and_nothing_to_guess_at():
    published(owner(), positions=[{"title": "Chair", "person": {"name": "Ottoline Ferrisbrook"}}])
    before, chained = leaves(), links()
    erase_person(reviewer(), "ottoline-ferrisbrook")
    after = leaves()
    assert [leaf.data for leaf in after[: len(before)]] == [leaf.data for leaf in before]
    for former, leaf in zip(before, after, strict=False):
        expected = former
        if former.kind == "person":
            expected = former._replace(kind=None, key=None, salt=None, digest=None)
        assert leaf == expected
    assert not [leaf for leaf in after if leaf.key == "ottoline-ferrisbrook"], "nor that it was unlisted"
    assert chained.items() <= links().items()
    assert publisher.log_faults() == []
    replace_due_tombstones(at=now() + timedelta(days=31))
    assert publisher.log_faults() == []


def test_a_feed_without_a_log_begins_one_with_every_document_and_keeps_its_chain():
    published(owner())
    chained = links()
    forget_log()
    published(owner())
    made = leaves()
    assert [leaf.change for leaf in made] == ["state", "published"]
    assert chained.items() <= links().items()
    assert publisher.log_faults() == []
    forget_log()
    publisher.create_tables()
    assert [leaf.change for leaf in leaves()] == ["state", "state"]
    publisher.create_tables()
    assert len(leaves()) == 2
    assert publisher.log_faults() == []


def forget_log():
    for table in (public_log.STATE_TABLE, public_log.LEAF_TABLE, public_log.TILE_TABLE):
        run(f"DELETE FROM {table}")


def test_what_a_node_of_a_former_version_has_published_follows_as_it_is():
    me = owner()
    kept, changed, gone = (published(me).slug for _ in range(3))
    run("UPDATE published_log SET sequence = sequence - 2")
    # As if it had no leaf of the last two changes.
    run("UPDATE published_leaf SET digest = %s WHERE key = %s", EMPTY_ROOT, changed)
    publisher.forget_in_log("company", gone)
    run("DELETE FROM published_document WHERE key = %s", kept)
    last = published(me).slug
    assert [(leaf.key, leaf.change, leaf.digest is None) for leaf in leaves()[3:]] == sorted(
        [(changed, "state", False), (gone, "state", False), (kept, "state", True)]
    ) + [(last, "published", False)]


def test_documents_that_change_without_an_entry_begin_the_chain_anew_and_continue_the_log():
    slug = published(owner()).slug
    before = leaves()
    publisher.rebuild()
    assert [leaf.data for leaf in leaves()] == [leaf.data for leaf in before]
    assert links() == {publisher.head()[0]: public_log.state(raw()).root}
    run("UPDATE published_leaf SET digest = %s", EMPTY_ROOT)
    publisher.continue_log()
    *_, last = leaves()
    assert (last.key, last.change, last.digest) == (slug, "state", body_digest(bodies()["company", slug]))
    publisher.continue_log()
    assert len(leaves()) == len(before) + 1


@pytest.mark.parametrize("lost", ["leaves", "frontier"])
def test_a_log_that_cannot_be_continued_begins_again_and_names_the_former(lost):
    published(owner())
    run("UPDATE published_log SET origin = 'registry.example/one'")
    former = public_log.state(raw())
    run(
        "DELETE FROM published_leaf"
        if lost == "leaves"
        else "UPDATE published_log SET frontier = salt FROM published_leaf"
    )
    assert public_log.state(raw()) is None
    published(owner())
    found = public_log.state(raw())
    root = former.root if lost == "leaves" else b""
    assert found.former == public_log.Former("registry.example/one", 1, root)
    assert found.origin == f"registry.example/{found.name}"
    assert found.name != former.name
    assert [leaf.change for leaf in leaves()] == ["state", "published"]
    assert publisher.log_faults() == []


def test_the_log_keeps_what_the_feed_no_longer_has(monkeypatch):
    for module in (published_file, postgres_feed):
        monkeypatch.setattr(module, "CHANGES_KEPT", 2)
    for _ in range(4):
        published(owner())
    edition = publisher.head()[0]
    assert sorted(links()) == [edition - 2, edition - 1, edition]
    assert len(leaves()) == 4
    assert publisher.log_faults() == []


def test_another_identity_keeps_edition_chain_and_documents():
    published(owner())
    before = publisher.identity()
    assert publisher.renew_identity() == publisher.identity().feed_id != before.feed_id
    assert publisher.identity()._replace(feed_id=before.feed_id) == before
    assert publisher.renew_outdated() is False, "the schema that the epoch names stays"
    published(owner())
    assert publisher.log_faults() == []
