"""An origin on loopback, and the mirror of it."""

import threading

import pytest

from services.origin import OriginSite, company, framework, person


@pytest.fixture
def site():
    """Provide a registry with one document of each kind, exported."""
    with OriginSite() as origin:
        origin.publish("company", "harbor-trust", company("harbor-trust", themes=["water"]))
        origin.publish("person", "ada-lund", person("ada-lund"))
        origin.publish("framework", "river-score", framework("river-score"))
        origin.export()
        yield origin


class Pauses(list):
    """The pauses that were asked for, none of which is made; the last of *most* ends the command."""

    def __init__(self, most=100):
        super().__init__()
        self.most = most

    def __call__(self, seconds):
        self.append(seconds)
        return len(self) >= self.most


@pytest.fixture
def pauses():
    return Pauses()


class Copied:
    """A mirror in a folder, and what it said."""

    def __init__(self, folder, site, wait, **options):
        from django.conf import settings

        from muniment.mirror.copying import Mirror
        from muniment.mirror.origin import Origin

        self.told = []
        self.folder = folder
        self.origin = Origin(site.address, wait=wait, tells=self.told.append, **options)
        self.mirror = Mirror(self.origin, folder, tells=self.told.append)
        self.schema = settings.SCHEMA
        self.place = None

    def make(self):
        snapshot = self.mirror.fetch()
        self.mirror.build(snapshot, self.schema)
        self.place = self.mirror.place()
        return self

    def follow(self):
        """Apply the changes that the origin has."""
        following = self.mirror.follow(self.place, self.schema, waits=False)
        while following != self.place:
            self.place = following
            following = self.mirror.follow(self.place, self.schema, waits=False)
        return self

    def rows(self, statement, *values):
        with self.mirror._opened() as file:
            return file.execute(statement, values).fetchall()

    def documents(self):
        rows = self.rows("SELECT kind, key, body FROM published_document")
        return {(kind, key): bytes(body)[len(b'{"data":') : -1] for kind, key, body in rows}

    def keys(self):
        return [key for (key,) in self.rows("SELECT key FROM published_change ORDER BY sequence")]


@pytest.fixture
def copied(tmp_path, site, pauses):
    """Return a mirror that has not begun."""
    found = Copied(tmp_path / "mirror", site, pauses)
    found.folder.mkdir()
    yield found
    found.origin.close()


@pytest.fixture
def held():
    """Provide an event that lets an origin go on that is silent until the end of the test."""
    event = threading.Event()
    yield event
    event.set()
