"""The REST application over a small published file of its own."""

import pytest

from make.asgi import Client
from make.published import Publisher, company, framework, person
from muniment.api.application import Api
from muniment.config import Config
from muniment.store.reader import Reader


class Rest(Client):
    """A client, with the application's publisher and reader at hand."""

    def __init__(self, folder):
        config = Config({}, data=folder, base_url="https://registry.example")
        self.publisher = Publisher(config.published_file)
        self.reader = Reader(config.published_file)
        self.api = Api(self.reader, config)
        super().__init__(self.api)

    def publish(self, *documents):
        self.publisher.publish(*documents)
        self.reader.refresh()

    def unlist(self, kind, *keys):
        self.publisher.unlist(kind, *keys)
        self.reader.refresh()

    def close(self):
        self.api.close()
        self.reader.close()
        self.publisher.close()


@pytest.fixture
def rest(tmp_path):
    made = Rest(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Sixty companies, thirty people, four frameworks; only read."""
    made = Rest(tmp_path_factory.mktemp("filled"))
    made.publish(
        *(
            company(
                n,
                status=("active", "upcoming", "inactive")[n % 3],
                themes=["rivers"] if n % 2 else [],
                description="A long description. " * 20,
                capTable=[{"address": f"0x{holder}"} for holder in range(30)] if n == 7 else [],
                **({"symbol": f"T{n}"} if n % 4 == 0 else {}),
            )
            for n in range(1, 61)
        ),
        company(61, "a,b", name="Comma"),
        company(62, "中国电信", name="中国电信"),
        *(person(n) for n in range(1, 31)),
        *(framework(n, kind="score" if n % 2 else "program") for n in range(1, 5)),
    )
    yield made
    made.close()
