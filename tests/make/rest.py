"""The REST application over a small published file."""

from make.asgi import Client
from make.published import Publisher
from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
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
