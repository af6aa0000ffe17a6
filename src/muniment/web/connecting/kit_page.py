"""The page of `muniment connect-kit`: how each client connects, to print, mail or put on another site."""

from html import escape
from typing import Final

import pyromark

from muniment.web.connecting.clients import clients
from muniment.web.connecting.links import ConnectableServer

_ESCAPES: Final = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_{}[]()#+-.!<>&|"})
"""The signs that have a meaning in Markdown, each with a backslash, so that a name stays as it is."""
_PUBLISH: Final = """
## Publish in an MCP registry

`server.json` describes the public server and `manage/server.json` the owner server. The official registry accepts
public https addresses only: prove the domain with `mcp-publisher login dns` or `mcp-publisher login http`, then run
`mcp-publisher publish` next to a server.json.

## Private instances

If clients reach this registry only in your network, give `registry.mcpb` and `my-registry.mcpb` to users of Claude
Desktop, who open them with a double click. The bundle of the owner server asks for a personal access token. Both are
also offered at /connect.
"""


def as_markdown(public: ConnectableServer, manage: ConnectableServer, name: str) -> str:
    """Return the page for the registry called *name*."""
    title = " ".join(name.split()).translate(_ESCAPES)
    lines = [f"# Connect to {title}", "", f"Public server: <{public.url}>", "", f"Owner server: <{manage.url}>", ""]
    for client in clients(public, manage):
        lines += [f"## {client['name']}", "", " ".join(filter(None, (client["needs"], client["words"]))), ""]
        for link in client["links"]:
            # Bundles lie next to this page.
            lines += [f"- [{link['text']}](<{link['href'].removeprefix('/connect/')}>)"]
        for snippet in client["snippets"]:
            lines += ["", f"{snippet['label']}:", "", "```text", snippet["text"], "```"]
        lines.append("")
    return "\n".join(lines) + _PUBLISH


def as_html(page: str, name: str) -> str:
    """Return what `as_markdown` made, as a page of its own."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Connect to {escape(name)}</title><style>"
        ":root { color-scheme: light dark } "
        "body { font: 16px/1.5 system-ui, sans-serif; max-width: 45rem; margin: 2rem auto; padding: 0 1rem } "
        "pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: 0.75rem; border: 1px solid }"
        f"</style></head><body>\n{pyromark.html(page)}</body></html>\n"
    )
