"""Reading a file apart: a web address through the guard, and a file that costs too much."""

import io
import ssl
import zipfile

import pytest

from muniment.kernel.problems import BadRequest
from muniment.registry.tables import operations, reading
from muniment.registry.tables.reading import TableFile, read_file
from services.logo_site import LogoSite
from services.site import certificate_for, head
from services.site import site as served

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
    assert refused.value.message == "slow.csv takes too much time to read."
    assert refused.value.hint.startswith("Nothing was imported.")


def test_a_file_that_needs_more_memory_than_its_process_may_have_is_refused_with_that_reason(monkeypatch):
    monkeypatch.setattr(reading, "MEMORY_BYTES", 220 << 20)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("wide.csv", b"Name,City,Country,Note\n" + b"Alder,Rome,Italy,a note\n" * 2_000_000)
    with pytest.raises(BadRequest) as refused:
        read_file(TableFile("wide.zip", packed.getvalue()))
    assert refused.value.message == "wide.zip takes more than 220 MB of memory to read."
    assert "Split the file" in refused.value.hint


def test_a_file_that_takes_its_process_too_much_processor_time_is_refused_with_that_reason(monkeypatch):
    monkeypatch.setattr(reading, "CPU_S", 1)
    with pytest.raises(BadRequest) as refused:
        read_file(TableFile("long.csv", b"Name,City\n" + b"Alder,Rome\n" * 4_000_000))
    assert refused.value.message == "long.csv takes too much time to read."


def test_a_process_that_ends_without_a_word_is_a_refusal(monkeypatch):
    monkeypatch.setattr(reading, "CPU_S", "none")
    with pytest.raises(BadRequest, match="takes too much time or memory"):
        read_file(TableFile("a.csv", b"Name\nAlder\n"))


def test_a_table_is_fetched_over_https_from_a_server_with_a_trusted_certificate(monkeypatch, tmp_path):
    certificate = certificate_for("tables.example", tmp_path)
    body = TABLE.encode()
    answer = head(Content_Type="text/csv", Content_Length=str(len(body)), Connection="close") + body
    with served(certificate, answer) as (port, asked):
        connect(monkeypatch, port, ssl.create_default_context(cafile=str(certificate)))
        prepared = operations.prepare("https://tables.example/members.csv")
    assert prepared.file.name == "members.csv"
    assert prepared.sheets[0].rows[1] == ["École d'Été", "Nîmes"]
    assert asked[0].startswith(b"GET /members.csv ")


def test_a_server_without_a_trusted_certificate_is_refused(monkeypatch, tmp_path):
    certificate = certificate_for("tables.example", tmp_path)
    with served(certificate, head() + b"Name\nAlder\n") as (port, asked):
        connect(monkeypatch, port, ssl.create_default_context())
        with pytest.raises(BadRequest) as refused:
            operations.prepare("https://tables.example/members.csv")
    assert "cannot be fetched" in refused.value.message
    assert asked == []


def connect(monkeypatch, port, tls):
    options = {"resolve": lambda *_: ["127.0.0.1"], "is_allowed": lambda _: True, "port": port, "tls": tls}
    monkeypatch.setattr(reading, "connection", options)
