"""Whatever is sent to a surface, the answer is no fault of the server, and memory stays bounded."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
from django.urls import URLPattern, get_resolver

from attacks.conftest import ATTACKED_WITH, ATTACKER, attacked_with, signed_in, token
from attacks.harness import resident_bytes
from attacks.hostile_requests import Known, Request, requests
from services.owner import COMPANY, EMAIL
from services.prepared import copied
from services.product import Product, run
from services.stripe import Stripe

SEED = 18
SMALL, WHOLE = 350, 10_000
GROWTH_BYTES = 64 << 20
ENDS_THE_SESSION = re.compile(
    r"logout|password/(?:change|set)|sessions|delete|inactive|/data|static|admin/|2fa|disconnect"
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Product, Known]]:
    """Yield an instance without limits on requests, so that every one of them reaches the code behind."""
    folder = tmp_path_factory.mktemp("fuzzed")
    data = copied(attacked_with, folder / "data")
    run("user", "role", EMAIL, "operator", data=data)
    with contextlib.ExitStack() as stack:
        stripe = stack.enter_context(Stripe())
        off = {"rate_limit": "off", "account_writes": "off", "account_cpu_ms": "off"}
        product = stack.enter_context(Product(data, constants=stripe.constants(), **off, **stripe.settings()))
        product.wait_ready(within_s=60)
        sessions = [signed_in(product.url, email) for email in (EMAIL, ATTACKER)]
        key = token(data, EMAIL)
        paths = sorted(set(_patterns()))
        yield (
            product,
            Known(
                paths,
                fields=sorted(_fields(product, paths, sessions[0][0])),
                keys=[
                    COMPANY,
                    ATTACKED_WITH,
                    "petra-lindqvist",
                    "long-life",
                    "plain-governance",
                    "basics",
                    "about",
                    "1",
                    "12",
                ],
                tools={path: _tools(product, path, key) for path in ("/api/mcp", "/api/manage/mcp")},
                sessions=sessions,
                token=key,
            ),
        )


def _patterns(patterns: object = None, prefix: str = "") -> Iterator[str]:
    for each in get_resolver().url_patterns if patterns is None else patterns:  # type: ignore[attr-defined]  # a list
        route = re.sub(r"<[^>]*>|\(\?P<[^)]*\)(?:\?)?|\([^)]*\)", "{}", str(each.pattern))
        whole = prefix + re.sub(r"[\^$?\\]|/\?$", "", route)
        if isinstance(each, URLPattern):
            if not ENDS_THE_SESSION.search(whole):
                yield f"/{whole}"
        else:
            yield from _patterns(each.url_patterns, whole)


def _fields(product: Product, paths: list[str], cookies: str) -> set[str]:
    """Return the names of the fields of all forms."""
    found: set[str] = set()
    with httpx.Client(base_url=product.url, timeout=30) as web:
        for path in paths:
            filled = path.replace("{}", COMPANY, 1).replace("{}", "basics")
            answer = web.get(filled, headers={"Cookie": cookies})
            assert answer.status_code < 500, (path, answer.text[:500])
            found |= set(re.findall(r'<(?:input|select|textarea|button)[^>]* name="([^"]+)"', answer.text))
    return found - {"csrfmiddlewaretoken"}


def _tools(product: Product, path: str, key: str) -> list[dict[str, object]]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    answer = product.request("POST", path, {**headers, "Authorization": f"Bearer {key}"}, body)
    tools: list[dict[str, object]] = answer.json()["result"]["tools"]
    return tools


def _sent(product: Product, every: list[Request]) -> tuple[list[str], Counter[tuple[str, int]]]:
    """Send each request on its own connection; return the faults, and how many answers had which status."""
    faults: list[str] = []
    counts: Counter[tuple[str, int]] = Counter()
    numbers = iter(range(len(every)))

    async def client() -> None:
        for number in numbers:
            one = every[number]
            told = f"{number} {one.surface}: {one.method} {one.path[:300]!r} {one.headers!r:.300} {one.body[:300]!r}"
            try:
                status = await asyncio.wait_for(_answer(product.port, one), 60)
            except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
                faults.append(f"{error!r}: {told}")
                continue
            counts[one.surface, status] += 1
            if status >= 500:
                faults.append(f"{status}: {told}")

    async def all_of_them() -> None:
        await asyncio.gather(*(client() for _ in range(6)))

    asyncio.run(all_of_them())
    return faults, counts


async def _answer(port: int, one: Request) -> int:
    lines = [f"{one.method} {one.path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in one.headers.items()]
    if one.body or one.method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(one.body)}")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + one.body)
        head = await reader.readuntil(b"\r\n")
        with contextlib.suppress(OSError):
            await reader.read()
        return int(head[9:12])
    finally:
        writer.close()


def _holds(product: Product, known: Known, seed: int, count: int) -> Counter[tuple[str, int]]:
    every = requests(seed, count, known)
    before = resident_bytes(product.pid)
    faults, counts = _sent(product, every)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:12])
    growth = resident_bytes(product.pid) - before
    assert growth < GROWTH_BYTES, f"{growth >> 20} MB more memory"
    assert "Traceback" not in product.output()
    return counts


def test_a_hostile_request_is_never_the_servers_fault(fuzzed):
    counts = _holds(*fuzzed, SEED, SMALL)
    answered = {surface: sum(n for (of, _), n in counts.items() if of == surface) for surface, _ in counts}
    assert len(answered) == 7
    assert sum(answered.values()) == SMALL
    for surface in ("rest", "pages", "forms", "mcp", "webhook"):
        assert counts[surface, 200] + counts[surface, 302] > 0, f"no request to {surface} was taken: {counts}"


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_ten_thousand_hostile_requests_are_never_the_servers_fault(fuzzed, capsys):
    counts = _holds(*fuzzed, SEED + 1, WHOLE)
    with capsys.disabled():
        print(f"\n{sum(counts.values())} hostile requests: {dict(sorted(counts.items()))}")  # noqa: T201 - the figures
