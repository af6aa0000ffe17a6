"""
What an attack can do: any number of connections from one address, until its budget is used.

A new attack is one function in `methods.py` with the decorator :func:`attack`; the suite then runs it directly and
through each proxy.
"""

import asyncio
import contextlib
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import psutil

from services.mcp import legacy

LENGTH = re.compile(rb"(?i)\r\ncontent-length: (\d+)")
PATIENCE_S = 120.0
SMALL_HOLD_S = 1.0
OPENING_S = 15.0


class Site(NamedTuple):
    """What is attacked: a product at its own port and behind proxies, and the accounts of attacker and victim."""

    ports: dict[str, int]
    pid: int
    log: Callable[[], str]
    company: str
    """A published listing of the attacker."""
    token: str
    cookies: str
    csrf: str
    victim_company: str
    victim_token: str


class Attacker:
    """
    One address that attacks.

    Args:
        front: ``direct`` or the name of a proxy.
        source: its loopback address.
        seconds: how long to attack; None for the small form, which sends a fixed number of requests.
    """

    def __init__(self, site: Site, front: str, source: str, seconds: float | None = None) -> None:
        self.site, self.front, self.source = site, front, source
        self.port = site.ports[front]
        self.seconds = seconds
        self.began = time.monotonic()
        self.counts: Counter[int | str] = Counter()
        """Answers by status; ``closed`` counts connections that ended without one."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def rounds(self, small: int) -> Iterator[int]:
        """Count up: *small* rounds, or as many as fit into the time."""
        number = 0
        while number < small if self.seconds is None else self.elapsed < self.seconds:
            yield number
            number += 1

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.source, 0))
        try:
            yield reader, writer
        finally:
            writer.close()

    def head(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"

    def request(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> bytes:
        length = {"Content-Length": str(len(body))} if body or method == "POST" else {}
        return self.head(method, path, {**(headers or {}), **length}) + body

    def tool_call(self, name: str, token: str = "", **arguments: Any) -> bytes:
        lines, body = legacy("tools/call", {"name": name, "arguments": arguments})
        headers = {key: value for key, value in lines if key != "host"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return self.request("POST", "/api/manage/mcp" if token else "/api/mcp", headers, body)

    def form(self, path: str, *, signed_in: bool = True, **fields: str) -> bytes:
        """Build a form, of the attacker's account or of a visitor."""
        body = urlencode({**fields, "csrfmiddlewaretoken": self.site.csrf}).encode()
        cookies = self.site.cookies if signed_in else f"csrftoken={self.site.csrf}"
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        return self.request("POST", path, headers, body)

    async def flood(self, make: Callable[[int], bytes], *, small: int, connections: int = 8) -> None:
        """Send ``make(number)`` for each round on kept connections, and count the answers."""
        numbers = self.rounds(small)

        async def client() -> None:
            for number in numbers:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    async with self.connected() as (reader, writer):
                        await self._talk(reader, writer, make, number, numbers)

        await asyncio.gather(*(client() for _ in range(connections)))

    async def _talk(self, reader: Any, writer: Any, make: Any, number: int, numbers: Iterator[int]) -> None:
        while True:
            try:
                writer.write(make(number))
                await writer.drain()
                self.counts[await answered(reader)] += 1
            except (OSError, asyncio.IncompleteReadError):
                self.counts["closed"] += 1
                return
            following = next(numbers, None)
            if following is None:
                return
            number = following

    async def hold(
        self, first: Callable[[int], bytes], *, connections: int, drip: bytes = b"", every_s: float = 0.2
    ) -> None:
        """
        Open *connections*, each with ``first(number)``, and keep them unfinished until the time is over.

        In the small form, they are kept for a second after all have been opened. Ended connections are opened again.

        Args:
            drip: sent on each of them every *every_s*.
        """
        started, all_open = 0, asyncio.Event()

        async def client(number: int) -> None:
            nonlocal started
            again = self.rounds(1)
            for _ in again:
                with contextlib.suppress(OSError):
                    async with self.connected() as (reader, writer):
                        self.counts["opened"] += 1
                        writer.write(first(number))
                        started += 1
                        if started == connections:
                            all_open.set()
                        await self._drip(reader, writer, drip, every_s, all_open)
                await asyncio.sleep(0.05)

        await asyncio.gather(*(client(number) for number in range(connections)))

    async def _drip(self, reader: Any, writer: Any, drip: bytes, every_s: float, all_open: asyncio.Event) -> None:
        reading = asyncio.ensure_future(answered(reader))
        try:
            if self.seconds is None:
                with contextlib.suppress(TimeoutError):  # some may not have been let in
                    async with asyncio.timeout(OPENING_S):
                        await all_open.wait()
            until = self.began + self.seconds if self.seconds is not None else time.monotonic() + SMALL_HOLD_S
            while time.monotonic() < until and not reading.done():
                await asyncio.wait([reading], timeout=min(every_s if drip else 5.0, max(0.0, until - time.monotonic())))
                if drip and not reading.done():
                    writer.write(drip)
                    await writer.drain()
            if reading.done():
                self.counts[reading.result()] += 1
            else:
                self.counts["held"] += 1
        except (OSError, asyncio.IncompleteReadError):
            self.counts["closed"] += 1
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, OSError, asyncio.IncompleteReadError):
                await reading

    @staticmethod
    def reset(writer: asyncio.StreamWriter) -> None:
        """Close a connection without reading what is left."""
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()


async def answered(reader: asyncio.StreamReader) -> int:
    """Read one answer and return its status."""
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        if status in {204, 304}:
            return status
        if found := LENGTH.search(head):
            await reader.readexactly(int(found[1]))
        elif b"chunked" in head.lower():
            while size := int((await reader.readline()).split(b";")[0], 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        return status


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its children."""
    process = psutil.Process(pid)
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


Method = Callable[[Attacker], Awaitable[None]]
ATTACKS: dict[str, Method] = {}
BEHIND_PROXIES: set[str] = set()
"""Attacks whose small form also runs through the proxies; the long one always does."""


def attack(*, proxies_matter: bool = False) -> Callable[[Method], Method]:
    """Add an attack to the suite."""

    def added(method: Method) -> Method:
        name = method.__name__  # type: ignore[attr-defined]  # functions have names
        ATTACKS[name] = method
        if proxies_matter:
            BEHIND_PROXIES.add(name)
        return method

    return added
