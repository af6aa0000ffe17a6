"""
Assemble the views, and name the tools that they belong to.

A view is one HTML document: the shared style and script, its own script, nothing from elsewhere. Its address has a
digest of its text, so that a client never shows a cached view with the answers of a newer server.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import Tool
from muniment.mcp.extensions import APP_TYPE, TextResource

_FOLDER: Final = Path(__file__).parent
_TITLES: Final = {
    "company": ("Company card", "A company at a glance."),
    "report": ("Report card", "The score of a report, its sections and what to do next."),
    "change": ("Change", "What a call has changed, or will do once the user confirms it."),
    "upload": ("Upload", "Takes the file of an upload link by drag and drop."),
}
PUBLIC: Final = {"get_company": "company"}
"""The views of the public server's tools."""
OWNER: Final = {
    "get_my_company": "company",
    "get_report": "report",
    "create_document_upload": "upload",
    **dict.fromkeys(("update_my_company", "update_my_profile", "submit_application"), "change"),
}
"""The views of the owner server's tools."""


def view(name: str, base_url: str) -> TextResource:
    """Return a view; *base_url* is where its links lead and its files go."""
    title, description = _TITLES[name]
    style, core, script = (
        (_FOLDER / file).read_text(encoding="utf-8") for file in ("style.css", "core.js", f"{name}.js")
    )
    text = (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>\n{style}</style>\n'
        f'<main id="view" data-base="{escape(base_url)}" aria-live="polite"></main>\n'
        f"<script>\n{core}{script}</script>\n</html>\n"
    )
    ui: JSONObject = {"prefersBorder": True}
    if name == "upload":
        parts = urlsplit(base_url)
        ui["csp"] = {"connectDomains": [f"{parts.scheme}://{parts.netloc}"]}
    return TextResource(
        uri=f"ui://muniment/{name}-{sha256(text.encode()).hexdigest()[:8]}.html",
        name=f"{name}-view",
        title=title,
        description=description,
        mime_type=APP_TYPE,
        text=text,
        meta={"ui": ui},
        former=f"ui://muniment/{name}-",
    )


def with_views(
    tools: Iterable[Tool], names: Mapping[str, str], base_url: str
) -> tuple[tuple[Tool, ...], tuple[TextResource, ...]]:
    """Return *tools* with the addresses of their views, and the views."""
    views = {name: view(name, base_url) for name in dict.fromkeys(names.values())}
    tools_with_views = []
    for tool in tools:
        has_view = tool.name in names
        tools_with_views.append(replace(tool, view=views[names[tool.name]].uri) if has_view else tool)
    return tuple(tools_with_views), tuple(views.values())
