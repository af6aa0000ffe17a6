"""The cards: documents from one object, each valid by its published format."""

import asyncio
import json
from pathlib import Path

import jsonschema
import pytest

from muniment.mcp.cards import CARD_TYPE, CATALOG_TYPE, Cards, Identity
from services.mcp import ask

pytestmark = pytest.mark.requirement("mcp.cards")

SCHEMAS = Path(__file__).parents[1] / "schemas"
FORMATS = {
    "/.well-known/mcp.json": ("server-card", "application/json"),
    "/.well-known/mcp/server-card.json": ("server-card", CARD_TYPE),
    "/api/mcp/server-card": ("server-card", CARD_TYPE),
    "/api/manage/mcp/server-card": ("server-card", CARD_TYPE),
    "/.well-known/ai-catalog.json": ("ai-catalog", CATALOG_TYPE),
    "/.well-known/mcp/server.json": ("server", "application/json"),
    "/.well-known/mcp/manage/server.json": ("server", "application/json"),
}
ADDRESSES = ("https://registry.example", "http://127.0.0.1:8000", "http://localhost:8000", "https://münzen.example")


def identity(base_url=ADDRESSES[0], title="Suite Registry"):
    return Identity(base_url=base_url, title=title, version="1.2.3")


def get(cards, path, method="GET", **headers):
    return asyncio.run(ask(cards, list(headers.items()), method=method, path=path))


@pytest.mark.parametrize("base_url", ADDRESSES)
@pytest.mark.parametrize("title", ["R", "A registry " * 20])
@pytest.mark.parametrize("path", FORMATS)
def test_every_card_is_valid_by_its_published_format(path, title, base_url):
    schema, content_type = FORMATS[path]
    answer = get(Cards(identity(base_url, title)), path)
    assert answer.status == 200
    assert answer.headers["content-type"] == content_type
    rules = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
    jsonschema.Draft202012Validator(rules).validate(answer.json())


@pytest.mark.requirement("mcp.manifest")
def test_the_manifest_names_the_public_server_and_every_version_it_speaks():
    (remote,) = get(Cards(identity()), "/.well-known/mcp.json").json()["remotes"]
    assert remote["url"] == "https://registry.example/api/mcp"
    assert remote["supportedProtocolVersions"] == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]


def test_the_catalog_leads_to_cards_that_are_served():
    cards = Cards(identity())
    for entry in get(cards, "/.well-known/ai-catalog.json").json()["entries"]:
        card = get(cards, entry["url"].removeprefix("https://registry.example"))
        assert card.headers["content-type"] == entry["type"]
        assert card.json()["title"] == entry["displayName"]


def test_a_card_leads_to_the_icon():
    cards = Cards(identity())
    (icon,) = get(cards, "/api/mcp/server-card").json()["icons"]
    answer = get(cards, icon["src"].removeprefix("https://registry.example"))
    assert (answer.status, answer.headers["content-type"]) == (200, "image/svg+xml")


def test_the_manage_card_tells_of_the_token_and_holds_none():
    (remote,) = get(Cards(identity()), "/api/manage/mcp/server-card").json()["remotes"]
    (header,) = remote["headers"]
    assert (header["name"], header["isSecret"], "value" in header) == ("Authorization", True, False)


@pytest.mark.parametrize("path", FORMATS)
def test_cards_are_open_to_browsers_and_kept_for_an_hour(path):
    cards = Cards(identity())
    answer = get(cards, path)
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cache-control"] == "public, max-age=3600"
    again = get(cards, path, **{"if-none-match": answer.headers["etag"]})
    assert (again.status, again.body) == (304, b"")
    head = get(cards, path, method="HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", str(len(answer.body)))
    refused = get(cards, path, method="POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert refused.json()["error"]["code"] == "method_not_allowed"
    assert get(cards, path, method="OPTIONS").status == 204
