"""The tables of a node are verified by the scrub of the node, and made again."""

import sqlite3
from contextlib import closing

import pytest

from make.published import Publisher, company
from muniment.config import Config
from muniment.declared_fields import instance_schema
from muniment.server.node_scrub import TABLES, node_checks
from muniment.store.reader import Reader
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables


@pytest.fixture
def config(tmp_path):
    return Config({}, data=tmp_path)


@pytest.fixture
def tables(config):
    publisher = Publisher(config.published_file)
    publisher.publish(*(company(number) for number in range(1, 9)))
    reader = Reader(config.published_file)
    path = config.published_file.with_name(FILE_NAME)
    made = Tables(path, reader, instance_schema(config))
    made.follow()
    yield made
    made.close()
    reader.close()
    publisher.close()


def damages(config, *, mend=False):
    (check,) = (each for each in node_checks(config) if each.name == TABLES)
    assert check.size() == 9
    return [damage for part in check.whole(mend=mend, limit=3) for damage in part.damages]


def test_a_row_that_differs_is_found_and_the_tables_are_made_again(config, tables):
    assert damages(config) == []
    with closing(sqlite3.connect(tables.path, isolation_level=None)) as own:
        own.execute("UPDATE companies SET name = 'x' WHERE slug = 'company-5'")
    (damage,) = damages(config)
    assert (damage.subject, damage.is_mended) == ("company company-5", False)
    assert damages(config, mend=True)[0].is_mended
    assert tables.follow()
    assert damages(config) == []


def test_damaged_pages_are_found_and_the_file_is_made_again(config, tables):
    tables._close_own()
    content = bytearray(tables.path.read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\xff" * 4096
    tables.path.write_bytes(content)
    (damage,) = damages(config, mend=True)
    assert damage.subject == FILE_NAME
    assert tables.follow()
    assert damages(config) == []
