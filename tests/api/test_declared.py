"""What the API says of declared settings, and that kept answers become new."""

from typing import Any

import msgspec
import pytest

from make.declared import declared
from make.published import Publisher, company
from make.rest import Rest
from muniment import config
from muniment.api.contract import ReferencePage, llms_text, openapi_document
from muniment.api.responses import Answer
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader


def info():
    return openapi_document(config.current(), registry_schema("USD"))["info"]


def test_the_contract_names_the_license_of_the_data_and_the_contact():
    before = info()
    assert before["license"]["name"] == "Apache-2.0"
    url = "https://creativecommons.org/licenses/by/4.0/"
    with declared(
        registry={"name": "Guild", "contact": "o@clocks.example", "licence": "CC BY 4.0", "licence_url": url},
        legal={"terms": "Be kind."},
    ):
        found = info()
        assert found["title"] == "Guild"
        assert found["license"] == {"name": "CC BY 4.0", "url": url}
        assert found["contact"] == {"email": "o@clocks.example"}
        assert found["termsOfService"].endswith("/terms")
        assert llms_text(config.current()).startswith("# Guild\n")
        assert f'link: <{url}>; rel="license"\r\n'.encode() in Answer(b"{}", b"x").make(b"").head
        assert f"The data are licensed under CC BY 4.0 {url}." in llms_text(config.current())
    assert info() == before
    assert b"link:" not in Answer(b"{}", b"x").make(b"").head


def test_exports_and_the_public_tools_state_the_license(tmp_path, monkeypatch):
    monkeypatch.setattr("muniment.api.application.until_made", _made)  # no thread makes them here
    url = "https://creativecommons.org/licenses/by/4.0/"
    rest = Rest(tmp_path)
    try:
        rest.publish(company(1, "harbour"))
        assert "license" not in msgspec.json.decode(rest.ask("/api/v1/exports").body)
        with declared(registry={"licence": "CC BY 4.0", "licence_url": url}):
            assert msgspec.json.decode(rest.ask("/api/v1/exports").body)["license"] == {"name": "CC BY 4.0", "url": url}
            assert _instructions(rest).endswith(f"- License of the data: CC BY 4.0 {url}\n")
        assert "License of the data" not in _instructions(rest)
    finally:
        rest.close()


async def _made(_: object) -> None:
    """Wait for nothing."""


def _instructions(rest: Rest) -> str:
    schema = registry_schema("USD")
    return public_declarations(rest.reader, base_url="", registry_name="Guild", schema=schema).instructions


def test_a_reference_page_is_made_again_when_settings_change():
    page = ReferencePage(b"text/plain", lambda: llms_text(config.current()).encode())
    unused: Any = None
    before = page.answer(unused)
    with declared(registry={"name": "Guild"}):
        assert page.answer(unused).body.startswith(b"# Guild\n")
    assert page.answer(unused).body == before.body


@pytest.fixture
def reader(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "harbour"))
    reader = Reader(tmp_path / "published.sqlite3")
    yield reader
    reader.close()
    publisher.close()


def test_a_renewed_reader_shows_the_same_documents_as_another_version(reader):
    version, edition = reader.version, reader.edition
    body = reader.stats().body
    reader.renew("2098-01-01T00:00:00Z")
    assert reader.version != version
    assert reader.edition == edition
    assert reader.stats().body == body
    assert msgspec.json.decode(body)["data"]["total"] == 1
