"""A name server and websites on loopback, which the product is told to use; only 127.0.0.1 counts as public."""

import ssl

import pytest

from muniment import config, setting_values
from services.name_server import NameServer
from services.site import certificate_for

HOST = "harbour.example"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return certificate_for(HOST, tmp_path_factory.mktemp("tls"))


@pytest.fixture
def set_config(monkeypatch):
    """Replace settings of the running instance."""

    def replace(**values):
        now = config.current()
        kept = {setting.name: getattr(now, setting.name) for setting in config.SETTINGS}
        monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, **values}))

    return replace


@pytest.fixture
def names(set_config):
    """The name server that the product asks; it says that the host is at 127.0.0.1."""
    with NameServer() as server:
        server.records[HOST] = {"A": ["127.0.0.1"]}
        set_config(dns_servers=(setting_values.NameServer(*server.address),))
        yield server


@pytest.fixture
def connect(certificate, monkeypatch):
    """Let a part of the product reach 127.0.0.1 at a port, with the certificate of the test."""

    def use(part, port, **more):
        how = {
            "is_allowed": lambda address: address == "127.0.0.1",
            "tls": ssl.create_default_context(cafile=certificate),
            "port": port,
            **more,
        }
        monkeypatch.setattr(f"muniment.registry.{part}.connection", how)

    return use
