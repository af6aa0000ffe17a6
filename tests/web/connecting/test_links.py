"""Each link is decoded as its client does, for addresses and names of every shape."""

import json
import shlex
from base64 import b64decode
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from muniment.web.connecting.clients import clients
from muniment.web.connecting.links import LINKS, tool_servers

BASES = (
    "https://registry.example",
    "https://münzen.example",
    "http://192.168.7.20:8000",
    "http://registry.local",
    "http://[fd00::1]:8443",
)
NAMES = ("Registry", 'The "Quayside" & Sons+ Registry? #1 100%', "登録簿 <b>=/\\'", "x" * 300)


def query(link):
    return {name: value for name, (value,) in parse_qs(urlsplit(link).query, strict_parsing=True).items()}


def cursor(link):
    given = query(link)
    return given["name"], json.loads(b64decode(given["config"], validate=True))["url"]


def vscode(link):
    given = json.loads(unquote(link.removeprefix("vscode:mcp/install?")))
    assert given["type"] == "http"
    return given["name"], given["url"]


def claude(link):
    given = query(link)
    assert given["modal"] == "add-custom-connector"
    return given["connectorName"], given["connectorUrl"]


def goose(link):
    given = query(link)
    assert (given["type"], bool(given["description"])) == ("streamable_http", True)
    assert given["id"] in {"registry", "my-registry"}
    return given["name"], given["url"]


CLIENTS = {
    "claude": ("https://claude.ai/", claude, "title"),
    "cursor": ("cursor://anysphere.cursor-deeplink/mcp/install?", cursor, "key"),
    "vscode": ("vscode:mcp/install?", vscode, "key"),
    "lm-studio": ("lmstudio://add_mcp?", cursor, "key"),
    "goose": ("goose://extension?", goose, "title"),
}


def test_every_link_has_a_client_that_decodes_it():
    assert set(CLIENTS) == set(LINKS)


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_decodes_name_and_address(client, name, base):
    start, decode, named = CLIENTS[client]
    for server, path in zip(tool_servers(base, name), ("/api/mcp", "/api/manage/mcp"), strict=True):
        link = LINKS[client](server)
        assert link.startswith(start)
        assert decode(link) == (getattr(server, named), base + path)
        assert link.isascii()
        assert not set(link) & set("\"'<>\\ {}|^`")


@pytest.mark.parametrize("base", BASES)
def test_a_shell_reads_each_command_as_it_is_meant(base):
    public, manage = tool_servers(base, "Registry")
    shown = {client["id"]: client for client in clients(public, manage)}
    lines = {
        key: [shlex.split(snippet["text"]) for snippet in shown[key]["snippets"][:2]]
        for key in ("claude-code", "codex", "gemini", "vscode")
    }
    for server, place in ((public, 0), (manage, 1)):
        for key in ("claude-code", "gemini"):
            assert lines[key][place][1:] == ["mcp", "add", "--transport", "http", server.key, server.url]
        assert lines["codex"][place] == ["codex", "mcp", "add", server.key, "--url", server.url]
        assert json.loads(lines["vscode"][place][2]) == {"name": server.key, "type": "http", "url": server.url}


def test_no_link_holds_a_token():
    for client in clients(*tool_servers(BASES[0], "Registry")):
        for link in client["links"]:
            assert not {"token", "Authorization", "Bearer", "mun_pat"} & set(unquote(link["href"]).split())
            assert "mun_" not in link["href"]


def test_mcp_remote_is_told_that_a_private_registry_has_no_certificate():
    given = {}
    for base in ("https://registry.example", "http://registry.local"):
        (both,) = next(each for each in clients(*tool_servers(base, "R")) if each["id"] == "mcp-remote")["snippets"]
        given[base] = json.loads(both["text"])["mcpServers"]["registry"]["args"]
    assert given["https://registry.example"] == ["-y", "mcp-remote", "https://registry.example/api/mcp"]
    assert given["http://registry.local"][-1] == "--allow-http"


@pytest.mark.parametrize(("base", "is_offered"), [("https://registry.example", True), ("http://127.0.0.1:8000", False)])
def test_a_client_that_connects_from_elsewhere_is_offered_only_a_public_registry(base, is_offered):
    found = {each["id"]: each for each in clients(*tool_servers(base, "Harbour"))}
    for key in ("claude", "chatgpt"):
        assert "https" in found[key]["needs"]
        assert bool(found[key]["closed"]) != is_offered
    assert bool(found["claude"]["links"]) == is_offered
    for key in ("claude-desktop", "cursor"):
        assert found[key]["links"]
        assert not found[key]["closed"]
