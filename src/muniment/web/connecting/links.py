"""
Links that add a tool server to a client with one click.

They hold no token: clients sign in by themselves, and browsers keep what was clicked in their history.
"""

import json
from base64 import b64encode
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from muniment.kernel.json import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectableServer:
    """
    A tool server as clients know it.

    Args:
        key: its name in configuration files and commands; some clients accept only letters, digits and hyphens.
        title: its name for people; any text.
    """

    key: str
    title: str
    description: str
    url: str


def tool_servers(base_url: str, registry_name: str) -> tuple[ConnectableServer, ConnectableServer]:
    """Return the public and the owner server of the instance at *base_url*, which has no trailing slash."""
    return (
        ConnectableServer(
            key="registry",
            title=registry_name,
            description="Search and read companies, people and frameworks.",
            url=f"{base_url}/api/mcp",
        ),
        ConnectableServer(
            key="my-registry",
            title=f"{registry_name} (my listings)",
            description="Manage your own listings, documents and reports.",
            url=f"{base_url}/api/manage/mcp",
        ),
    )


def cursor(server: ConnectableServer) -> str:
    config = _base64({"url": server.url})
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={_quoted(server.key)}&config={config}"


def vscode(server: ConnectableServer) -> str:
    return f"vscode:mcp/install?{_quoted(vscode_json(server))}"


def claude(server: ConnectableServer) -> str:
    name, url = _quoted(server.title), _quoted(server.url)
    address = "https://claude.ai/customize/connectors?modal=add-custom-connector"
    return f"{address}&connectorName={name}&connectorUrl={url}"


def lm_studio(server: ConnectableServer) -> str:
    return f"lmstudio://add_mcp?name={_quoted(server.key)}&config={_base64({'url': server.url})}"


def goose(server: ConnectableServer) -> str:
    return (
        f"goose://extension?type=streamable_http&url={_quoted(server.url)}&id={_quoted(server.key)}"
        f"&name={_quoted(server.title)}&description={_quoted(server.description)}"
    )


LINKS: Final = {"claude": claude, "cursor": cursor, "vscode": vscode, "lm-studio": lm_studio, "goose": goose}
"""Each client with a link, by its key on the page."""


def vscode_json(server: ConnectableServer) -> str:
    """Return what VS Code reads from a link and from `code --add-mcp`."""
    return _json({"name": server.key, "type": "http", "url": server.url})


def _json(value: JSONObject) -> str:
    # ASCII, because some clients decode base64 byte by byte.
    return json.dumps(value, separators=(",", ":"))


def _base64(value: JSONObject) -> str:
    return _quoted(b64encode(_json(value).encode()).decode())


def _quoted(text: str) -> str:
    return quote(text, safe="")
