"""Reading a file apart: a web address through the guard, and a file that costs too much."""

import pytest

from muniment.kernel.problems import BadRequest
from muniment.registry.tables import operations, reading
from muniment.registry.tables.reading import TableFile, read_file
from services.logo_site import LogoSite

TABLE = "Société;Ville\nÉcole d'Été;Nîmes\n"


@pytest.fixture
def site(monkeypatch):
    found = LogoSite()
    found.files = {
        "/members.csv": TABLE.encode("cp1252"),
        "/moved": (302, {"Location": "/members.csv"}),
        "/private": (302, {"Location": "http://private.example/members.csv"}),
    }
    monkeypatch.setattr(reading, "connection", found.connection)
    yield found
    found.close()


@pytest.mark.parametrize("path", ["/members.csv", "/moved"])
def test_a_table_is_fetched_and_mapped(site, path):
    prepared = operations.prepare(f"http://logos.example{path}")
    assert prepared.sheets[0].rows[1] == ["École d'Été", "Nîmes"]
    assert [each.field for each in prepared.mapping.table[0].column] == ["name", "address.city"]


def test_an_address_that_is_not_public_is_refused_with_a_way_out(site):
    with pytest.raises(BadRequest) as refused:
        operations.prepare("http://logos.example/private")
    assert "cannot be fetched" in refused.value.message
    assert "import it from the disk" in refused.value.hint


def test_a_file_over_the_limit_is_refused_and_never_cut():
    with pytest.raises(BadRequest) as refused:
        read_file(TableFile("big.csv", b"Name\n" * (reading.MAX_BYTES // 5 + 1)))
    assert refused.value.message == "big.csv is larger than 100 MB."


def test_a_file_that_costs_its_process_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(reading, "WALL_S", 0.01)
    with pytest.raises(BadRequest) as refused:
        read_file(TableFile("slow.csv", b"Name\nAlder\n"))
    assert refused.value.message == "slow.csv takes too much time or memory to read."
    assert refused.value.hint == "Nothing was imported."
