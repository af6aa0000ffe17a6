"""The public log moves with a backup, and is continued where documents are not those of the backup."""

import msgspec
import pytest
from django.db import connection

from make import instances, registry
from make.logged import logged_again
from make.registry import bodies
from muniment import config
from muniment.backup import container
from muniment.backup.container import HEADER, MANIFEST, ROWS, Count, Header, Manifest, part, table_of
from muniment.backup.restoring import restore
from muniment.backup.snapshot import RunningInstance, back_up
from muniment.documents.records import storage
from muniment.registry.models import FeedTombstone
from muniment.registry.people.erasing import erase_person
from muniment.registry.publishing import publisher
from muniment.store import public_log

pytestmark = pytest.mark.django_db(transaction=True)


def parts():
    return RunningInstance(config.current(), "default", storage()).parts()


def rows(statement, *values):
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def of_another_form():
    """Yield the parts of an instance whose published documents are rendered otherwise by this version."""
    for each in parts():
        if each.name == MANIFEST:
            manifest = msgspec.json.decode(each.read(), type=Manifest)
            other = msgspec.structs.replace(manifest, published=Count(manifest.published.n, "0" * 64))
            yield part(MANIFEST, msgspec.json.encode(other))
        else:
            yield each


def leaves():
    return rows("SELECT number, kind, key, change, leaf, salt, digest FROM published_leaf ORDER BY number")


def test_documents_that_are_not_those_of_the_backup_begin_the_chain_again_and_continue_the_log(tmp_path):
    slug = registry.published(registry.owner()).slug
    root, logged = public_log.state(connection.connection).root, leaves()
    edited = bodies()["company", slug].replace(b"Harbour", b"Other")
    logged_again(slug, edited)  # as if a former version had rendered it
    container.write(tmp_path / "b", of_another_form(), verify=lambda _: None)
    instances.emptied()
    assert restore(config.current(), tmp_path / "b").notes != []
    first, second, third = leaves()
    assert [first] == logged
    assert (third[1:4], third[6]) == ((first[1], slug, 3), first[6]), "what is published, without an entry"
    assert second[6] != third[6]
    last = public_log.state(connection.connection)
    assert last.root.hex() == publisher.identity().chain != root.hex()
    assert publisher.log_faults() == []


def test_documents_that_are_those_of_the_backup_continue_the_log_without_a_leaf(tmp_path):
    instances.filled()
    logged = leaves()
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    restore(config.current(), tmp_path / "b")
    assert leaves() == logged
    assert publisher.log_faults() == []


def test_a_backup_from_before_the_log_begins_one_with_every_document(tmp_path):
    instances.filled()
    identity = publisher.identity()
    without_log = {public_log.STATE_TABLE, public_log.LEAF_TABLE, public_log.TILE_TABLE}

    def of_a_former_version():
        for each in parts():
            if each.name == HEADER:
                header = msgspec.json.decode(each.read(), type=Header)
                tables = {name: columns for name, columns in header.tables.items() if name not in without_log}
                yield part(HEADER, msgspec.json.encode(msgspec.structs.replace(header, tables=tables)))
            elif not each.name.startswith(ROWS) or table_of(each.name) not in without_log:
                yield each

    container.write(tmp_path / "b", of_a_former_version(), verify=lambda _: None)
    instances.emptied()
    assert restore(config.current(), tmp_path / "b").notes == []
    assert publisher.identity().chain == identity.chain, "followers continue"
    assert len(leaves()) == len(bodies())
    assert publisher.log_faults() == []


def test_a_restored_chain_is_continued(tmp_path):
    registry.published(registry.owner())
    before = publisher.identity()
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    restore(config.current(), tmp_path / "b")
    registry.published(registry.owner())
    assert publisher.log_faults() == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT chain FROM published_chain WHERE sequence = %s", [before.edition])
        assert bytes(cursor.fetchone()[0]).hex() == before.chain


def test_a_backup_holds_nothing_that_confirms_a_guess_about_an_erased_person():
    registry.published(registry.owner(), positions=[{"title": "Chair", "person": {"name": "Ottoline Ferrisbrook"}}])
    erase_person(registry.reviewer(), "ottoline-ferrisbrook")
    (number,) = FeedTombstone.objects.values_list("sequence", flat=True)
    # As a former version has left the link of the last entry, whose slug the feed tells for a month.
    a_hash = bytes(32)
    rows(
        "UPDATE published_chain SET leaf = %s, salt = %s, digest = %s WHERE sequence = %s",
        a_hash,
        a_hash,
        a_hash,
        number,
    )
    lines = {"published_chain": [], "published_leaf": []}
    for each in parts():
        if each.name.startswith(ROWS) and table_of(each.name) in lines:
            lines[table_of(each.name)] += [msgspec.json.decode(line) for line in each.read().splitlines()]
    (link,) = (line for line in lines["published_chain"] if line[0] == number)
    assert all(link[1:3])
    assert link[3:] == [None, None]
    of_people = [line for line in lines["published_leaf"] if line[2] is None]
    assert len(of_people) == 2, "published and unlisted"
    for _, _, kind, key, _, leaf, salt, digest in of_people:
        assert leaf is not None
        assert (kind, key, salt, digest) == (None, None, None, None)
