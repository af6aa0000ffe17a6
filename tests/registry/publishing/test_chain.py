"""Every change is chained to the one before; erasing a person leaves the chain whole; a changed past is found."""

from datetime import timedelta

import pytest
from django.db import connection

from make.registry import bodies, changes, owner, published, reviewer
from muniment.kernel.ids import now
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.people.erasing import erase_person
from muniment.registry.publishing import publisher
from muniment.registry.publishing.redaction import replace_due_tombstones
from muniment.store import chain, postgres_feed
from muniment.store import published as published_file
from muniment.store.chain import StateDigest, body_digest

pytestmark = pytest.mark.django_db


def run(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def stored():
    """Return the chain: sequence, chain, leaf, salt and digest of each link."""
    found = run("SELECT sequence, chain, leaf, salt, digest FROM published_chain ORDER BY sequence")
    return [(number, *(None if part is None else bytes(part) for part in parts)) for number, *parts in found]


def head():
    connection.ensure_connection()
    return chain.latest(connection.connection)


def test_each_change_has_a_link_with_the_digest_of_its_document():
    (genesis,) = stored()
    me = owner()
    slug = published(me).slug
    update_company(me, slug, CompanyChange(description="Ferries."))
    first, *rest = stored()
    assert first == genesis
    assert [number for number, *_ in rest] == list(range(genesis[0] + 1, publisher.head()[0] + 1))
    assert rest[-1][4] == body_digest(bodies()["company", slug])
    assert publisher.chain_faults() == []


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
        ("UPDATE published_change SET key = 'other' WHERE sequence = %s", "is not the one that was chained"),
        ("DELETE FROM published_change WHERE sequence = %s", "is missing from the feed"),
        ("DELETE FROM published_chain WHERE sequence = %s", "the chain has no link for change"),
        ("UPDATE published_chain SET leaf = chain WHERE sequence = %s", "the chain breaks at change"),
        ("UPDATE published_chain SET digest = NULL WHERE sequence = %s", "is not the one that was chained"),
    ],
)
def test_an_altered_past_is_found(statement, fault):
    for _ in range(3):
        published(owner())
    assert publisher.chain_faults() == []
    run(statement, publisher.head()[0] - 1)
    assert [each for each in publisher.chain_faults() if fault in each]


def test_an_erased_person_leaves_the_chain_whole_and_nothing_to_guess_at():
    published(owner(), positions=[{"title": "Chair", "person": {"name": "Ottoline Ferrisbrook"}}])
    (number,) = (each + 1 for each, change in enumerate(changes()) if change[0] == "person")
    before = stored()
    erase_person(reviewer(), "ottoline-ferrisbrook")
    replace_due_tombstones(at=now() + timedelta(days=31))
    replaced = run("SELECT sequence FROM published_change WHERE key LIKE 'erased:%%' AND sequence <= %s", before[-1][0])
    assert [(number,)] == replaced
    after = {each[0]: each for each in stored()}
    for sequence, value, leaf, salt, digest in before:
        assert after[sequence] == (sequence, value, leaf, *((None, None) if sequence == number else (salt, digest)))
    assert publisher.chain_faults() == []


def test_a_feed_without_a_chain_begins_one_where_it_stands():
    published(owner())
    run("DELETE FROM published_chain")
    state, edition = publisher.state_digest(), publisher.head()[0]
    published(owner())
    assert stored()[0][0] == edition
    assert publisher.chain_faults() == []
    run("DELETE FROM published_chain")
    publisher.create_tables()
    assert [number for number, *_ in stored()] == [publisher.head()[0]]
    assert publisher.state_digest() != state


def test_documents_that_change_without_an_entry_begin_the_chain_anew():
    published(owner())
    before = head()
    publisher.begin_chain()
    assert head().sequence == before.sequence
    assert head().chain != before.chain
    assert len(stored()) == 1


def test_the_chain_reaches_as_far_back_as_the_feed(monkeypatch):
    for module in (published_file, postgres_feed):
        monkeypatch.setattr(module, "CHANGES_KEPT", 2)
    for _ in range(4):
        published(owner())
    edition = publisher.head()[0]
    assert [number for number, *_ in stored()] == [edition - 2, edition - 1, edition]
    assert publisher.chain_faults() == []


def test_another_identity_keeps_edition_chain_and_documents():
    published(owner())
    before = publisher.identity()
    assert publisher.renew_identity() == publisher.identity().feed_id != before.feed_id
    assert publisher.identity()._replace(feed_id=before.feed_id) == before
    assert publisher.renew_outdated() is False, "the schema that the epoch names stays"
    published(owner())
    assert publisher.chain_faults() == []
