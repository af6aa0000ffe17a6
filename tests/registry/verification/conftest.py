"""A name server and websites on loopback, which the product is told to use; only 127.0.0.1 counts as public."""

import ssl

import pytest

from muniment import config
from services.name_server import NameServer
from services.site import certificate_for

HOST = "harbour.example"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    return certificate_for(HOST, tmp_path_factory.mktemp("tls"))


@pytest.fixture
def names(monkeypatch):
    """The name server that the product asks; it says that the host is at 127.0.0.1."""
    now = config.current()
    kept = {setting.name: getattr(now, setting.name) for setting in config.SETTINGS}
    with NameServer() as server:
        server.records[HOST] = {"A": ["127.0.0.1"]}
        address = (config.NameServer(*server.address),)
        monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, "dns_servers": address}))
        yield server


@pytest.fixture
def open_to(certificate, monkeypatch):
    """Let websites be fetched from 127.0.0.1 at a port, with the certificate of the test."""

    def use(port, **more):
        how = {
            "is_allowed": lambda address: address == "127.0.0.1",
            "tls": ssl.create_default_context(cafile=certificate),
            "port": port,
            **more,
        }
        monkeypatch.setattr("muniment.registry.verification.checks.connection", how)

    return use
