"""Visitors without an account who send everything that one can: every page and form, tool, route and OAuth request."""

import asyncio
import contextlib
import itertools
import json
import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from django.urls import URLPattern, get_resolver

from services.mcp import legacy
from services.product import Product
from services.stripe import signed

CSRF = "c" * 32
FORWARDED = "X-Forwarded-For"
COOKIES_FOR = 12
"""How many requests share the cookies that they got: flows of several steps begin, go on and are left."""
KEYS = ("quillmere", "petra-lindqvist", "long-life", "basics", "1", "verdigris")


class Sent(NamedTuple):
    """One request of a visitor."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


def patterns(found: Any = None, prefix: str = "") -> Iterator[str]:
    """Yield the addresses of all pages, with ``{}`` for a part."""
    for each in get_resolver().url_patterns if found is None else found:
        route = re.sub(r"<[^>]*>|\(\?P<[^)]*\)(?:\?)?|\([^)]*\)", "{}", str(each.pattern))
        whole = prefix + re.sub(r"[\^$?\\]|/\?$", "", route)
        if isinstance(each, URLPattern):
            yield f"/{whole}"
        else:
            yield from patterns(each.url_patterns, whole)


class Requests:
    """Requests of every kind, in turn; no two of them have the same texts."""

    def __init__(self, product: Product, seed: int) -> None:
        self._chance = random.Random(seed)
        self._number = itertools.count()
        self._paths = sorted(set(patterns()))
        lines, body = legacy("tools/list", {})
        headers = {name: value for name, value in lines if name != "host"}
        listed = product.request("POST", "/api/mcp", headers, body).json()
        self._tools = listed["result"]["tools"]
        kinds = (self.page, self.form, self.flow, self.form, self.rest, self.tool, self.oauth, self.flow, self.other)
        self._kinds = kinds

    def next(self) -> Sent:
        number = next(self._number)
        return self._kinds[number % len(self._kinds)](number)

    def _filled(self, path: str) -> str:
        return re.sub(r"\{\}", lambda _: self._chance.choice(KEYS), path)

    def page(self, number: int) -> Sent:
        path = self._filled(self._chance.choice(self._paths))
        return Sent("GET", f"{path}?next=/manage/{number}&q=tide+{number}&page=1", {})

    def form(self, number: int, path: str = "", **more: str) -> Sent:
        path = path or self._filled(self._chance.choice(self._paths))
        email = f"person{number}@drift.example" if number % 5 else "owner@harbour.example"
        password = f"nine harbours {number}"
        fields = {
            "email": email,
            "login": email,
            "password": password,
            "password1": password,
            "password2": password,
            "code": f"{number:06}",
            "name": f"Drift {number}",
            "text": f"Drifting {number}. " * 200,
            "answer": "allow",
            "website": "https://drift.example",
            "type": "cooperative",
            "language": "de",
            "next": f"/manage/{number}",
            "csrfmiddlewaretoken": CSRF,
            "action": "resend" if number % 3 else "",
            "description": "x" * 4_000,
            **more,
        }
        body = "&".join(f"{name}={quote(value)}" for name, value in fields.items()).encode()
        return Sent("POST", path, {"Content-Type": "application/x-www-form-urlencoded"}, body)

    def flow(self, number: int) -> Sent:
        """Send a form of the pages that anyone may use."""
        steps = (
            *("/accounts/signup/", "/accounts/confirm-email/", "/accounts/login/", "/accounts/password/reset/"),
            *("/accounts/password/reset/confirm/", "/accounts/login/code/", "/accounts/login/code/confirm/"),
            *("/language", "/accounts/2fa/webauthn/login/", "/setup", "/manage/companies/new"),
            *("/companies/quillmere/suggest", "/updates"),
        )
        if number % 3 == 0:  # each kind of page that begins to send updates
            topic, key = self._chance.choice((("company", "quillmere"), ("companies", f"q=tide{number}")))
            return self.form(number, "/updates/new", topic=topic, key=key, pace="daily")
        return self.form(number, self._chance.choice(steps))

    def rest(self, number: int) -> Sent:
        paths = ("companies", "people", "frameworks", "search", "facets", "stats", "changes", "exports", "companies/{}")
        path = self._filled(self._chance.choice(paths))
        return Sent("GET", f"/api/v1/{path}?q=tide+{number}&page={1 + number % 7}", {"If-None-Match": f'"{number}"'})

    def tool(self, number: int) -> Sent:
        tool = self._chance.choice(self._tools)
        text = f"tide {number}"
        plausible = {"integer": 1 + number % 9, "boolean": True, "array": [text]}
        properties = tool["inputSchema"].get("properties", {})
        arguments = {name: plausible.get(str(each.get("type")), text) for name, each in properties.items()}
        lines, body = legacy("tools/call", {"name": tool["name"], "arguments": arguments})
        headers = {name: value for name, value in lines if name != "host"}
        if number % 4 == 0:
            return Sent("POST", "/api/manage/mcp", {**headers, "authorization": f"Bearer mun_pat_{number:036}"}, body)
        return Sent("POST", "/api/mcp", headers, body)

    def oauth(self, number: int) -> Sent:
        if number % 2:
            addresses = [f"https://app{number}.example/{'x' * 200}/{each}" for each in range(15)]
            told = {"client_name": f"Drift {number}", "redirect_uris": addresses, "client_uri": "https://app.example"}
            return Sent("POST", "/oauth/register", {"Content-Type": "application/json"}, json.dumps(told).encode())
        path = self._chance.choice(("token", "revoke", "authorize"))
        asked = {"grant_type": "refresh_token", "refresh_token": f"mun_rt_{number}", "client_id": "x", "token": "y"}
        return self.form(number, f"/oauth/{path}", **asked)

    def other(self, number: int) -> Sent:
        """Send what is neither a page nor a tool: uploads, downloads, events of a payment provider, cards, files."""
        body = b"x" * 2_000
        event = {"Stripe-Signature": signed(body), "Content-Type": "application/json"}
        kinds = (
            Sent("PUT", f"/uploads/{number:043}", {"Content-Type": "text/plain"}, body),
            Sent("GET", f"/downloads/{number:043}", {}),
            Sent("POST", "/billing/stripe/webhook", event, body),
            Sent("GET", f"/companies/quillmere/card.png?x={number}", {}),
            Sent("GET", f"/static/{number}", {}),
            Sent("GET", "/.well-known/mcp.json", {}),
            Sent("GET", f"/nowhere/{number}/{'x' * 1_500}", {"User-Agent": f"drift/{number} {'y' * 500}"}),
        )
        return kinds[number % len(kinds)]


async def visit(product: Product, addresses: list[str], seconds: float, seed: int = 37) -> Counter[int]:
    """Send requests from each of *addresses* for *seconds*, as fast as they are answered; count the statuses."""
    requests, statuses, end = Requests(product, seed), Counter[int](), time.monotonic() + seconds

    async def visitor(address: str) -> None:
        async with httpx.AsyncClient(base_url=product.url, timeout=60) as web:
            while time.monotonic() < end:
                web.cookies.clear()
                web.cookies["csrftoken"] = CSRF
                for _ in range(COOKIES_FOR):
                    sent = requests.next()
                    try:
                        answer = await web.request(
                            sent.method, sent.path, headers={**sent.headers, FORWARDED: address}, content=sent.body
                        )
                    except httpx.HTTPError:
                        statuses[0] += 1
                        continue
                    statuses[answer.status_code] += 1
                    if answer.status_code == 429:
                        await asyncio.sleep(0.05)

    await asyncio.gather(*(visitor(address) for address in addresses))
    return statuses


def rows(data: Path) -> dict[str, int]:
    """Return how many rows each table has; the tables inside of a search index belong to it."""
    with sqlite3.connect(f"file:{data / 'muniment.sqlite3'}?mode=ro", uri=True) as database:
        names = [
            name
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not re.search(r"_(data|idx|content|docsize|config)$|^sqlite_", name)
        ]
        return {name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}


def areas(data: Path) -> dict[str, int]:
    """Return the bytes in each file and folder at the top of the data folder."""
    sizes: dict[str, int] = {}
    for top in data.iterdir():
        sizes[top.name] = 0
        for file in top.rglob("*") if top.is_dir() else [top]:
            # The product deletes files meanwhile.
            with contextlib.suppress(FileNotFoundError):
                sizes[top.name] += file.stat().st_size if file.is_file() else 0
    return sizes
