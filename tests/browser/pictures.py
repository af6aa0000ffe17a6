"""The pictures of the README: ``make pictures`` takes them from the demo registry and stores them in docs/pictures."""

import asyncio
import json
import sys
import tempfile
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from PIL import Image

from services.chromium import chromium
from services.owner import COMPANY, EMAIL, owned_registry
from services.product import Product, run

STYLE = """
body { margin: 0; padding: 28px 32px; width: 836px }
body { background: #fff; color: #1f2328; font: 16px/1.5 system-ui, sans-serif }
.ask { margin: 22px 0 10px; padding: 10px 16px; border-radius: 14px; background: #e8f0fb; width: fit-content }
.ask:first-child { margin-top: 0 }
.call, .answer { font: 13.5px/1.55 ui-monospace, "DejaVu Sans Mono", monospace }
.call, .answer { white-space: pre-wrap; overflow-wrap: anywhere; border: 1px solid #d1d9e0 }
.call { margin: 10px 0 0; padding: 6px 12px; border-bottom: 0; background: #f6f8fa; border-radius: 6px 6px 0 0 }
.call b { color: #0550ae }
.answer { padding: 8px 12px; border-radius: 0 0 6px 6px; color: #3d444d }
"""

CONVERSATION: list[tuple[str, list[tuple[str, str, dict[str, Any], tuple[str, ...]]]]] = [
    (
        "Which organizations are raising money for clean energy?",
        [("/api/mcp", "list_companies", {"raising": True, "theme": "energy"}, ("id", "name", "treasury"))],
    ),
    (
        "Who works at Tarnwick?",
        [
            ("/api/mcp", "get_company", {"slug": "tarnwick", "parts": ["positions"]}, ()),
            (
                "/api/mcp",
                "get_company",
                {"slug": COMPANY, "parts": ["positions"]},
                ("positions", "title", "person", "name"),
            ),
        ],
    ),
    (
        "Our treasury is 4.9 million now. Show me the change, then publish it.",
        [
            (
                "/api/manage/mcp",
                "update_my_company",
                {"slug": COMPANY, "changes": {"treasury": "$4.9M"}, "dryRun": dry_run},
                ("version", "applied", "awaitingReview", "diff", "treasury", "before", "after"),
            )
            for dry_run in (True, False)
        ],
    ),
]
"""Questions, and the calls that answer them: tool server, tool, arguments, and the members of the answer to show."""


def main(folder: Path) -> None:
    """Take both pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Product(owned_registry(Path(place) / "data")) as product:
        product.wait_ready()
        token = run("user", "token", EMAIL, "--name", "Agent", data=product.data).stdout.strip()
        with chromium(whole=True) as browser:
            page = browser.new_page(viewport={"width": 1100, "height": 760})
            page.goto(f"{product.url}/companies/{COMPANY}")
            page.wait_for_load_state()
            _store(page.screenshot(), folder / "company.png")
        transcript = asyncio.run(_transcript(product.url, token))
        with chromium(whole=True) as browser:
            page = browser.new_page(viewport={"width": 900, "height": 400})
            page.set_content(transcript)
            _store(page.screenshot(full_page=True), folder / "agent.png")


async def _transcript(url: str, token: str) -> str:
    """Hold the conversation with the official client and return it as a page."""
    parts = [f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>"]
    for question, calls in CONVERSATION:
        parts.append(f"<div class=ask>{escape(question)}</div>")
        for server, tool, arguments, members in calls:
            async with (
                create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http_client,
                Client(streamable_http_client(url + server, http_client=http_client)) as client,
            ):
                answer = (await client.call_tool(tool, arguments)).structured_content or {}
            shown = _abridged(answer.get("data"), members) if "data" in answer else answer
            parts.append(
                f"<div class=call><b>{tool}</b> {escape(json.dumps(arguments, ensure_ascii=False))}</div>"
                f"<div class=answer>{escape(_lines(shown))}</div>"
            )
    return "\n".join(parts)


def _abridged(value: Any, members: tuple[str, ...]) -> Any:
    """Return *value* with only the named members of its objects, in the order in which it has them."""
    if isinstance(value, dict):
        return {name: _abridged(one, members) for name, one in value.items() if name in members}
    return [_abridged(one, members) for one in value] if isinstance(value, list) else value


def _lines(value: Any) -> str:
    """Return *value* as JSON, each item of a list on its own line."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(next(iter(value.values())), list):
        return "\n".join(_lines(one) for one in value.values())
    if isinstance(value, list):
        return "\n".join(json.dumps(one, ensure_ascii=False) for one in value)
    return json.dumps(value, ensure_ascii=False)


def _store(picture: bytes, file: Path) -> None:
    """Store *picture* with 256 colours, which is a third of its size and looks the same."""
    Image.open(BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size // 1024} KB")  # noqa: T201 - a command speaks on its output


if __name__ == "__main__":
    main(Path(sys.argv[1]))
