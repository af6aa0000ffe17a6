"""Reading a file apart: a web address through the guard, and a file that costs too much."""

import resource

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


def test_a_file_that_is_too_large_for_the_process_is_refused():
    row = ",".join("x" * 20 for _ in range(40))
    content = ("\n".join([row] * 250_000)).encode()
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(BadRequest) as refused:
        read_file(TableFile("big.csv", content))
    assert "too much" in refused.value.message or "too many" in refused.value.message
    assert refused.value.hint == "Nothing was imported."
    assert resource.getrlimit(resource.RLIMIT_AS) == before
