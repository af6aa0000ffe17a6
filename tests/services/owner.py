"""A running instance with an owner who has a listing, a browser to sign in with, and a redirect address for apps."""

import asyncio
import http.server
import queue
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from services.node import NODE, PINNED, environment, packages
from services.ports import free_port, wait_until
from services.prepared import copied, demo_registry
from services.product import Product, run

EMAIL = "owner@harbour.example"
PASSWORD = "four harbours, one tide"
COMPANY = "tarnwick-tidal"


def owned_registry(data: Path, **database: str) -> Path:
    """Create an instance in *data* with the demo registry and EMAIL, the owner of COMPANY; return *data*."""
    return copied(_with_owner, data, **database)


def _with_owner(data: Path, **settings: str) -> None:
    demo_registry(data, **settings)
    run("user", "create", EMAIL, "--password-stdin", data=data, stdin=PASSWORD + "\n", **settings)
    run("own", EMAIL, COMPANY, data=data, **settings)


@contextmanager
def owned_instance(folder: Path, **settings: str) -> Iterator[tuple[Product, str]]:
    """Serve the demo registry with an owned listing; yield the product and the slug."""
    database = {name: value for name, value in settings.items() if name == "database_url"}
    with Product(owned_registry(folder / "data", **database), **settings) as product:
        # A node answers 503 until its replica is built.
        wait_until(
            lambda: product.get(f"/api/v1/companies/{COMPANY}").status == 200, within_s=30, what="the demo registry"
        )
        product.wait_ready()
        yield product, COMPANY


@contextmanager
def answers() -> Iterator[tuple[str, "queue.Queue[dict[str, str]]"]]:
    """Yield a redirect address on loopback, and the parameters that arrive there."""
    found: queue.Queue[dict[str, str]] = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if self.path.startswith("/callback"):
                found.put({name: values[0] for name, values in query.items()})
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Done</title><p>Back in the app.</p>")

        def log_message(self, *_: object) -> None:
            """Write no log line."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/callback", found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def agree(page: Any, address: str, *, sign_in: bool) -> None:
    """Open *address* in the browser as an app does; sign in if asked, and consent."""
    page.goto(address)
    if sign_in:
        page.fill("input[name=login]", EMAIL)
        page.fill("input[name=password]", PASSWORD)
        page.click("form[action$='/login/'] button[type=submit]")
        page.wait_for_url("**/oauth/authorize**")
    page.click("button[value=allow]")
    page.wait_for_url("**/callback?**")


def by_browser(page: Any, *arguments: str, **more: str) -> str:
    """
    Run node, open the address it requests in *page*, sign in there and consent; return the output.

    Args:
        more: additional environment variables.

    Raises:
        AssertionError: it requested nothing, or failed; includes its output.
    """
    packages()
    process = subprocess.Popen(
        [NODE, *arguments],
        cwd=PINNED,
        env=environment(BROWSER="true", **more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    told = ""
    try:
        for line in process.stdout or ():
            told += line
            if found := re.search(r"https?://\S+/oauth/authorize\?\S+", line):
                agree(page, found[0], sign_in=True)
                break
        told += process.communicate(timeout=60)[0]
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, told
    assert "/oauth/authorize?" in told, told
    return told


def spoil(folder: Path) -> set[str]:
    """Invalidate the access tokens in the files of *folder*, as if expired; return every token found there."""
    found: set[str] = set()
    for file in folder.rglob("*.json"):
        text = file.read_text()
        found |= set(re.findall(r"mun_[ar]t_\w+", text))
        file.write_text(re.sub(r"(mun_at_\w{16}_)\w", r"\1-", text))
    return found


class Kept:
    """What a client stores between runs."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.info: Any = None
        self.every: list[str] = []

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens
        self.every += [tokens.access_token, tokens.refresh_token]

    async def get_client_info(self) -> Any:
        return self.info

    async def set_client_info(self, client_info: Any) -> None:
        self.info = client_info


class Agent:
    """
    The official Python client with its own OAuth, in its own thread, so that a browser can answer meanwhile.

    Args:
        url: the tool server.
        redirect: the redirect address.
        codes: the parameters that arrived there.
    """

    def __init__(self, url: str, redirect: str, codes: "queue.Queue[dict[str, str]]", kept: Kept | None = None) -> None:
        self.url = url
        self.kept = kept or Kept()
        self.to_open: queue.Queue[str] = queue.Queue()
        self.sent_bytes = 0
        self._codes = codes
        self.answered: list[dict[str, str]] = []
        metadata = OAuthClientMetadata(redirect_uris=[redirect], client_name="Suite Agent")
        self.provider = OAuthClientProvider(url, metadata, self.kept, self._open, self._came)

    async def _open(self, url: str) -> None:
        self.to_open.put(url)

    async def _came(self) -> AuthorizationCodeResult:
        found = await asyncio.to_thread(self._codes.get, True, 60)
        self.answered.append(found)
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    def work(self, job: Any) -> "queue.Queue[Any]":
        """Run ``job(client)``; its result or exception arrives in the returned queue."""
        done: queue.Queue[Any] = queue.Queue()

        async def whole() -> Any:
            async with (
                create_mcp_http_client(auth=self.provider) as http_client,
                Client(streamable_http_client(self.url, http_client=http_client)) as client,
            ):
                return await job(client)

        def thread() -> None:
            try:
                done.put(asyncio.run(whole()))
            except BaseException as error:  # noqa: BLE001 - the test raises it
                done.put(error)

        threading.Thread(target=thread, daemon=True).start()
        return done

    def secrets(self) -> dict[str, str]:
        codes = [found["code"] for found in self.answered]
        return {**dict.fromkeys(self.kept.every, "token of the Python client"), **dict.fromkeys(codes, "code")}

    def expire(self) -> None:
        """Make the access token look expired to the client."""
        self.provider.context.token_expiry_time = time.time() - 1


def result_of(done: "queue.Queue[Any]", within_s: float = 60) -> Any:
    """Return the result of a job, or raise its exception."""
    found = done.get(timeout=within_s)
    if isinstance(found, BaseException):
        raise found
    return found
