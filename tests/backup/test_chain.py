"""The chain of the change feed moves with a backup, and begins again where documents are not those of the backup."""

import msgspec
import pytest
from django.db import connection

from make import instances, registry
from muniment import config
from muniment.backup import container
from muniment.backup.container import MANIFEST, ROWS, Count, Manifest, part, table_of
from muniment.backup.restoring import restore
from muniment.backup.snapshot import RunningInstance, back_up
from muniment.documents.records import storage
from muniment.registry.models import FeedTombstone
from muniment.registry.people.erasing import erase_person
from muniment.registry.publishing import publisher

pytestmark = pytest.mark.django_db(transaction=True)


def parts():
    return RunningInstance(config.current(), "default", storage()).parts()


def rendered_otherwise():
    """Yield the parts of an instance whose published documents were others."""
    for each in parts():
        if each.name == MANIFEST:
            manifest = msgspec.json.decode(each.read(), type=Manifest)
            other = msgspec.structs.replace(manifest, published=Count(manifest.published.n, "0" * 64))
            yield part(MANIFEST, msgspec.json.encode(other))
        else:
            yield each


def test_documents_that_are_not_those_of_the_backup_begin_the_chain_again(tmp_path):
    registry.published(registry.owner())
    before = publisher.identity()
    container.write(tmp_path / "b", rendered_otherwise(), verify=lambda _: None)
    instances.emptied()
    assert restore(config.current(), tmp_path / "b").notes != []
    after = publisher.identity()
    assert (after.edition, after.state_digest) == (before.edition, before.state_digest)
    assert after.chain != before.chain
    assert publisher.chain_faults() == []


def test_a_restored_chain_is_continued(tmp_path):
    registry.published(registry.owner())
    before = publisher.identity()
    back_up(config.current(), tmp_path / "b")
    instances.emptied()
    restore(config.current(), tmp_path / "b")
    registry.published(registry.owner())
    assert publisher.chain_faults() == []
    with connection.cursor() as cursor:
        cursor.execute("SELECT chain FROM published_chain WHERE sequence = %s", [before.edition])
        assert bytes(cursor.fetchone()[0]).hex() == before.chain


def test_a_backup_holds_nothing_that_confirms_a_guess_about_an_erased_person():
    registry.published(registry.owner(), positions=[{"title": "Chair", "person": {"name": "Ottoline Ferrisbrook"}}])
    erase_person(registry.reviewer(), "ottoline-ferrisbrook")
    (number,) = FeedTombstone.objects.values_list("sequence", flat=True)
    lines = [
        msgspec.json.decode(line)
        for each in parts()
        if each.name.startswith(ROWS) and table_of(each.name) == "published_chain"
        for line in each.read().splitlines()
    ]
    (link,) = (line for line in lines if line[0] == number)
    assert all(link[1:3])
    assert link[3:] == [None, None]
