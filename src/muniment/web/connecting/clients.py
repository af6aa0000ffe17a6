"""Instructions for each client: links, and texts ready to copy, with the addresses of one instance."""

import json
import shlex
from typing import Final

from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.web.connecting.links import LINKS, ConnectableServer, vscode_json

TOKEN: Final = "mun_pat_…"  # noqa: S105 - stands for the reader's own token


def clients(public: ConnectableServer, manage: ConnectableServer) -> list[JSONObject]:
    """Return each client's name, instructions, links and snippets."""
    with_token = {"url": manage.url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
    addresses = ((gettext("Public server"), public.url), (gettext("Owner server"), manage.url))
    both, by_token = gettext("Both servers"), gettext("Owner server, with a token")

    def commands(form: str) -> tuple[tuple[str, str], tuple[str, str]]:
        """Fill *form* for both servers."""
        public_line, manage_line = (
            form.format(key=server.key, url=shlex.quote(server.url), json=shlex.quote(vscode_json(server)))
            for server in (public, manage)
        )
        return (gettext("Public server"), public_line), (gettext("Owner server"), manage_line)

    is_reachable = public.url.startswith("https://")
    closed = "" if is_reachable else gettext("This registry has no https address, so this client can't reach it.")

    def client(key: str, name: str, words: str, *snippets: tuple[str, str], needs: str = "") -> JSONObject:
        link = LINKS.get(key) if is_reachable or not needs else None
        texts = (gettext("Add the public server to %(client)s"), gettext("Add the owner server to %(client)s"))
        links = []
        if link:
            for text, server in zip(texts, (public, manage), strict=True):
                links.append({"text": text % {"client": name}, "href": link(server)})
        return {
            "id": key,
            "name": name,
            "needs": needs,
            "closed": closed if needs else "",
            "words": words,
            "links": links,
            "snippets": [{"label": label, "text": text, "spoken": f"{name}: {label}"} for label, text in snippets],
        }

    return [
        client(
            "claude",
            "Claude",
            gettext(
                "In Claude, open Settings > Connectors > Add custom connector and paste one of the addresses. For the "
                "owner server, sign in when asked."
            ),
            needs=gettext("Claude connects from Anthropic's servers, so the registry must be public and use https."),
        ),
        {
            **client(
                "claude-desktop",
                gettext("Claude Desktop, private registry"),
                gettext("Claude Desktop opens the bundle. For the owner server it asks for a token."),
            ),
            "needs": gettext("For a registry that only your own computer or network reaches."),
            "links": [
                {"text": gettext("Download public server bundle"), "href": f"/connect/{public.key}.mcpb"},
                {"text": gettext("Download owner server bundle"), "href": f"/connect/{manage.key}.mcpb"},
            ],
        },
        client(
            "claude-code",
            "Claude Code",
            gettext("Run the command in a terminal. To sign in to the owner server, enter `/mcp` in Claude Code."),
            *commands("claude mcp add --transport http {key} {url}"),
            (by_token, claude_command(manage.key, manage.url, TOKEN)),
        ),
        client(
            "chatgpt",
            "ChatGPT",
            gettext(
                "Turn on Settings > Apps and connectors > Advanced > Developer mode. Then select Create and paste an "
                "address. Choose no authentication for the public server and OAuth for the owner server."
            ),
            *addresses,
            needs=gettext("ChatGPT connects from OpenAI's servers, so the registry must be public and use https."),
        ),
        client(
            "codex",
            "Codex",
            gettext("Run the command in a terminal. To sign in to the owner server, run the last one too."),
            *commands("codex mcp add {key} --url {url}"),
            (gettext("Sign in"), f"codex mcp login {manage.key}"),
        ),
        client(
            "cursor",
            "Cursor",
            gettext("Or add this to `.cursor/mcp.json` in a project, or to `~/.cursor/mcp.json` for all projects."),
            (both, servers({server.key: {"url": server.url} for server in (public, manage)})),
            (by_token, servers({manage.key: with_token})),
        ),
        client(
            "vscode",
            "VS Code",
            gettext("Or run a command in a terminal, or add the servers to `.vscode/mcp.json` in a workspace."),
            *commands("code --add-mcp {json}"),
            (
                both,
                servers(
                    {server.key: {"type": "http", "url": server.url} for server in (public, manage)}, key="servers"
                ),
            ),
        ),
        client(
            "gemini",
            "Gemini CLI",
            gettext("Run the command in a terminal. To sign in to the owner server, enter `/mcp auth my-registry`."),
            *commands("gemini mcp add --transport http {key} {url}"),
        ),
        client(
            "lm-studio",
            "LM Studio",
            gettext("Or add this to `mcp.json`, under Program > Install > Edit mcp.json."),
            (gettext("Public server"), servers({public.key: {"url": public.url}})),
            (by_token, servers({manage.key: with_token})),
        ),
        client(
            "goose",
            "Goose",
            gettext(
                "Or run `goose configure` in a terminal and add a remote extension (Streamable HTTP) by its address."
            ),
        ),
        client(
            "mcp-remote",
            gettext("Clients that only run local commands"),
            gettext("Use the npm package `mcp-remote`. It forwards standard input and output to the server."),
            (both, servers({server.key: _mcp_remote(server.url) for server in (public, manage)})),
        ),
        client(
            "curl",
            "curl",
            gettext("Send one JSON request per call. You don't need a session."),
            (gettext("List the public tools"), _call(public.url, "tools/list", {})),
            (
                gettext("Search companies"),
                _call(
                    public.url, "tools/call", {"name": "list_companies", "arguments": {"q": "energy", "pageSize": 3}}
                ),
            ),
            (
                gettext("List your listings"),
                _call(manage.url, "tools/call", {"name": "list_my_companies", "arguments": {}}, token=True),
            ),
        ),
    ]


def claude_command(name: str, url: str, token: str) -> str:
    return f'claude mcp add --transport http {name} {shlex.quote(url)} --header "Authorization: Bearer {token}"'


def servers(value: JSONObject, *, key: str = "mcpServers") -> str:
    """Return the JSON of a client's configuration file."""
    return json.dumps({key: value}, indent=2, ensure_ascii=False)


def _mcp_remote(url: str) -> JSONObject:
    arguments = ["-y", "mcp-remote", url]
    if url.startswith("http:"):
        arguments.append("--allow-http")  # else mcp-remote refuses http beyond the own machine
    return {"command": "npx", "args": arguments}


def _call(url: str, method: str, params: JSONObject, *, token: bool = False) -> str:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    headers.append("MCP-Protocol-Version: 2025-11-25")
    if token:
        headers.append(f"Authorization: Bearer {TOKEN}")
    lines = [f"curl {shlex.quote(url)}"]
    lines += [f"-H '{header}'" for header in headers]
    lines.append(f"-d '{body}'")
    return " \\\n  ".join(lines)
