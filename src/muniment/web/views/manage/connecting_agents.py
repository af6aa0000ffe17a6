"""Connection instructions for agents: ready to copy, for each client, with this instance's addresses."""

import json

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.web.context import address
from muniment.web.requests.page_cache import published

TOKEN = "mun_pat_…"  # noqa: S105 - stands for the reader's own token


@published()
def connect(request: HttpRequest) -> HttpResponse:
    """Show how to set up both tool servers in every client."""
    base = address(request)
    context = {
        "room": "connect",
        "public_url": f"{base}/api/mcp",
        "manage_url": f"{base}/api/manage/mcp",
        "rest_example": f"curl '{base}/api/v1/companies?pageSize=5'",
        "clients": clients(base),
    }
    return TemplateResponse(request, "registry/connect.html", context)


def clients(base: str) -> list[JSONObject]:
    """Return each client's instructions for the instance at *base*."""
    public, manage = f"{base}/api/mcp", f"{base}/api/manage/mcp"
    with_token = {"url": manage, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    addresses = ((gettext("Public server"), public), (gettext("Owner server"), manage))
    return [
        _client(
            "claude-code",
            "Claude Code",
            gettext("Run the command in a terminal. To sign in to the owner server, enter /mcp in Claude Code."),
            (gettext("Public server"), f"claude mcp add --transport http registry {public}"),
            (gettext("Owner server"), f"claude mcp add --transport http my-registry {manage}"),
            (gettext("Owner server, with a token"), claude_command("my-registry", manage, TOKEN)),
        ),
        _client(
            "claude",
            gettext("Claude on the web and desktop"),
            gettext(
                "Open Settings > Connectors > Add custom connector and paste an address. "
                "For the owner server, sign in when asked."
            ),
            *addresses,
        ),
        _client(
            "cursor",
            "Cursor",
            gettext("Add this to .cursor/mcp.json in a project, or to ~/.cursor/mcp.json for all projects."),
            (gettext("Both servers"), servers({"registry": {"url": public}, "my-registry": {"url": manage}})),
            (gettext("Owner server, with a token"), servers({"my-registry": with_token})),
        ),
        _client(
            "vscode",
            "VS Code",
            gettext("Add this to .vscode/mcp.json in a workspace."),
            (
                gettext("Both servers"),
                servers(
                    {"registry": {"type": "http", "url": public}, "my-registry": {"type": "http", "url": manage}},
                    key="servers",
                ),
            ),
        ),
        _client(
            "chatgpt",
            "ChatGPT",
            gettext(
                "Turn on Settings > Apps and connectors > Advanced > Developer mode. Then select Create and paste an "
                "address. Choose no authentication for the public server and OAuth for the owner server."
            ),
            *addresses,
        ),
        _client(
            "mcp-remote",
            gettext("Clients that only run local commands"),
            gettext("Use the npm package mcp-remote. It forwards standard input and output to the server."),
            (
                gettext("Both servers"),
                servers(
                    {
                        "registry": {"command": "npx", "args": ["-y", "mcp-remote", public]},
                        "my-registry": {"command": "npx", "args": ["-y", "mcp-remote", manage]},
                    }
                ),
            ),
        ),
        _client(
            "curl",
            "curl",
            gettext("Send one JSON request per call. You don't need a session."),
            (gettext("List the public tools"), _call(public, "tools/list", {})),
            (
                gettext("Search companies"),
                _call(public, "tools/call", {"name": "list_companies", "arguments": {"q": "energy", "pageSize": 3}}),
            ),
            (
                gettext("List your listings"),
                _call(manage, "tools/call", {"name": "list_my_companies", "arguments": {}}, token=True),
            ),
        ),
    ]


def _client(key: str, name: str, words: str, *snippets: tuple[str, str]) -> JSONObject:
    shown = [{"label": label, "text": text, "spoken": f"{name}: {label}"} for label, text in snippets]
    return {"id": key, "name": name, "words": words, "snippets": shown}


def claude_command(name: str, url: str, token: str) -> str:
    return f'claude mcp add --transport http {name} {url} --header "Authorization: Bearer {token}"'


def servers(value: JSONObject, *, key: str = "mcpServers") -> str:
    """Return the JSON of a client's configuration file."""
    return json.dumps({key: value}, indent=2, ensure_ascii=False)


def _call(url: str, method: str, params: JSONObject, *, token: bool = False) -> str:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    headers += ["MCP-Protocol-Version: 2025-11-25", *([f"Authorization: Bearer {TOKEN}"] if token else [])]
    return " \\\n  ".join([f"curl {url}", *(f"-H '{header}'" for header in headers), f"-d '{body}'"])
