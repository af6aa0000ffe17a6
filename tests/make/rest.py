"""The REST application over a small published file."""

import sqlite3
from contextlib import closing
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from make.asgi import Client
from make.published import Publisher
from muniment.api.application import Api
from muniment.config import Config
from muniment.kernel.signed_notes import sign, vkey
from muniment.schema.objects import registry_schema
from muniment.store import public_log
from muniment.store.reader import Reader

SCHEMA = registry_schema("USD")


class Rest(Client):
    """A client with the application's publisher and reader."""

    def __init__(self, folder, schema=SCHEMA):
        config = Config({}, data=folder, base_url="https://registry.example")
        self.publisher = Publisher(config.published_file)
        self.reader = Reader(config.published_file)
        self.api = Api(self.reader, config, schema)
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


class FileLog:
    """The log of a published file, signed by a key of its own, as the server gives it to the API."""

    def __init__(self, path, host="registry.example"):
        self.path, self.private = path, Ed25519PrivateKey.from_private_bytes(bytes(31) + b"\x07")
        self.host = host
        self.found = []
        """The cosigned checkpoints, the newest first."""

    def read(self, work):
        with closing(sqlite3.connect(self.path, isolation_level=None)) as own:
            public_log.name_origin(own, self.host)
            return work(own, SignedLog(public_log.state(own), [self.key(own)], []))

    def sign(self, checkpoint):
        return sign(checkpoint.text(), checkpoint.origin, self.private)

    def cosigned(self, state):
        return [each for each in self.found if each.size <= state.size]

    def key(self, own):
        return vkey(public_log.state(own).origin, self.private.public_key().public_bytes_raw())


class SignedLog(NamedTuple):
    state: public_log.LogState
    keys: list[str]
    successions: list[str]
