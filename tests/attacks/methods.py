"""Every attack that worked once, as one function each: one address, with whatever it can send."""

import asyncio
import contextlib
import json
import random
import secrets

from attacks.harness import Attacker, answered, attack

KINDS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
MODES = ("Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "X-Client-IP")


@attack()
async def nothing(by: Attacker) -> None:
    """Leave the honest clients alone: what the machine needs without an attack."""
    for _ in by.rounds(1):
        await asyncio.sleep(0.1)
        by.counts["calm"] += 1


def _other_address(number: int) -> str:
    return f"198.18.{number >> 8 & 255}.{number & 255}"


@attack(proxies_matter=True)
async def other_addresses_in_headers(by: Attacker) -> None:
    """Claim another address for each request, in every header that is not maintained by a proxy."""

    def make(number: int) -> bytes:
        address = _other_address(number)
        headers = {name: f"for={address}" if name == "Forwarded" else address for name in MODES}
        return by.request("GET", "/api/v1/stats", {**headers, "X-Forwarded-For": address})

    await by.flood(make, small=150)


@attack(proxies_matter=True)
async def unfinished_bodies(by: Attacker) -> None:
    """Announce a large body on many connections, and send one byte of it."""
    announced = (
        ("/api/mcp", 60_000),
        ("/api/manage/mcp", 1_000_000),
        ("/accounts/login/", 10_000_000),
        ("/oauth/token", 60_000),
        ("/uploads/no-such-link", 40_000_000),
    )

    def first(number: int) -> bytes:
        path, size = announced[number % len(announced)]
        method = "PUT" if path.startswith("/uploads") else "POST"
        return by.head(method, path, {**KINDS, "Content-Length": str(size)}) + b"{"

    await by.hold(first, connections=2000 if by.seconds else 320)


@attack(proxies_matter=True)
async def dripping_bodies(by: Attacker) -> None:
    """Send forms and tool calls a byte at a time."""

    def first(number: int) -> bytes:
        path = ("/api/mcp", "/accounts/login/", "/oauth/token", "/companies")[number % 4]
        return by.head("POST", path, {**KINDS, "Content-Length": "900000"}) + b"x" * (70_000 if number % 8 < 4 else 1)

    await by.hold(first, connections=400 if by.seconds else 40, drip=b"x")


@attack(proxies_matter=True)
async def slow_headers(by: Attacker) -> None:
    """Begin requests and add a header line now and then."""
    first = by.head("GET", "/api/v1/stats").removesuffix(b"\r\n")
    await by.hold(lambda _: first, connections=1000 if by.seconds else 60, drip=b"X: y\r\n", every_s=1.0)


@attack()
async def silent_connections(by: Attacker) -> None:
    """Open connections and send nothing."""
    await by.hold(lambda _: b"", connections=2000 if by.seconds else 320)


@attack()
async def pages_of_the_own_history(by: Attacker) -> None:
    """Make the largest different edits of the own listing, and let their differences be worked out."""
    chance = random.Random(18)

    def words() -> str:
        return " ".join(chance.choice("ab") for _ in range(3000))

    def edit(_: int) -> bytes:
        changes = {"body": words(), "description": words()[:5000]}
        return by.tool_call("update_my_company", by.site.token, slug=by.site.company, changes=changes)

    async with by.connected() as (reader, writer):
        for number in range(24 if by.seconds else 3):
            writer.write(edit(number))
            by.counts[await answered(reader)] += 1
    page = by.request("GET", f"/manage/companies/{by.site.company}/history", {"Cookie": by.site.cookies})
    await by.flood(lambda _: page, small=4, connections=4)


@attack()
async def largest_writes(by: Attacker) -> None:
    """Write as much as one call takes, with ever new members."""

    def make(number: int) -> bytes:
        changes = {"distribution": {f"member{number}": "y" * 900_000}}
        return by.tool_call("update_my_company", by.site.token, slug=by.site.company, changes=changes)

    await by.flood(make, small=4, connections=4)


@attack()
async def many_drafts(by: Attacker) -> None:
    """Create one listing after the other."""

    def make(number: int) -> bytes:
        name = f"Draft {by.front} {number} Of Many"
        fields = {"name": name, "type": "company", "description": "One of many.", "status": "active"}
        slug = f"draft-{by.front}-{number}-of-many"
        return by.form("/manage/companies/new", **fields, slug=slug, different="yes", once=f"{by.front}{number}")

    await by.flood(make, small=25, connections=2)


@attack()
async def many_runs(by: Attacker) -> None:
    """Prepare one report after the other."""

    def make(_: int) -> bytes:
        return by.tool_call(
            "create_company_report_run", by.site.token, companySlug=by.site.company, frameworkId="long-life"
        )

    await by.flood(make, small=25, connections=2)


@attack()
async def any_entity_tag(by: Attacker) -> None:
    """Have other searches worked out for each request, and claim to have every answer."""

    def make(number: int) -> bytes:
        path = "/api/v1/companies" if number % 2 else "/companies"
        return by.request("GET", f"{path}?q=tide+{number}", {"If-None-Match": "*"})

    await by.flood(make, small=150)


@attack()
async def long_argument_names(by: Attacker) -> None:
    """Call a public tool with names of arguments that are as long as the body may be."""

    def make(number: int) -> bytes:
        return by.tool_call("list_companies", **{"a" * (950_000 if number % 2 else 60_000): 1})

    await by.flood(make, small=12, connections=4)


@attack(proxies_matter=True)
async def health_checks(by: Attacker) -> None:
    """Request every form of the health checks, as often as can be."""
    paths = ("/metrics", "/readyz", "/readyz?writes", "/healthz", "/metrics/", "/%6detrics", "/readyz%2f", "/metricsx")
    await by.flood(lambda number: by.request("GET", paths[number % len(paths)]), small=480)


@attack()
async def static_files(by: Attacker) -> None:
    """Request static files, and names of none."""
    paths = ("/static/x{}.css", "/static/{}", "/static/../{}", "/static/%2e%2e/{}")
    await by.flood(lambda number: by.request("GET", paths[number % len(paths)].format(number)), small=600)


@attack(proxies_matter=True)
async def client_registrations(by: Attacker) -> None:
    """Register apps, good and bad ones; what registers again as it was is the same app, and does not count."""
    flood = secrets.token_hex(8)

    def make(number: int) -> bytes:
        address = "https://app.example/cb" if number % 2 else "nothing"
        body = json.dumps({"client_name": f"App {flood} {number}", "redirect_uris": [address]}).encode()
        return by.request("POST", "/oauth/register", {"Content-Type": "application/json"}, body)

    await by.flood(make, small=60, connections=2)


@attack()
async def passwords(by: Attacker) -> None:
    """Try one password at many accounts, and many at one."""

    def make(number: int) -> bytes:
        login = f"person{number}@harbour.example" if number % 2 else "owner@harbour.example"
        return by.form("/accounts/login/", signed_in=False, login=login, password=f"four harbours {number}")

    await by.flood(make, small=8, connections=4)


@attack()
async def counters_of_others(by: Attacker) -> None:
    """Fill the table of counters with marks of forms that were sent once."""

    def make(number: int) -> bytes:
        return by.form("/manage/companies/new", name="", once=f"mark-{by.front}-{number}")

    await by.flood(make, small=30, connections=4)


@attack()
async def hang_ups(by: Attacker) -> None:
    """Request large answers and leave in the middle of them."""
    request = by.request("GET", "/companies?pageSize=100") + by.request("GET", "/api/v1/companies?pageSize=100")
    numbers = by.rounds(40)

    async def client() -> None:
        for _ in numbers:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                async with by.connected() as (reader, writer):
                    writer.write(request)
                    await reader.readexactly(40)
                    by.counts["left"] += 1
                    by.reset(writer)

    await asyncio.gather(*(client() for _ in range(8)))


@attack(proxies_matter=True)
async def chunk_extensions(by: Attacker) -> None:
    """Send a small body in chunks with endless extensions."""
    head = by.head("POST", "/api/mcp", {**KINDS, "Transfer-Encoding": "chunked"})
    chunk = b"1;" + b"e" * 16_000 + b"\r\n{\r\n"
    numbers = by.rounds(4)

    async def client() -> None:
        for _ in numbers:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                async with by.connected() as (reader, writer):
                    writer.write(head)
                    reading = asyncio.ensure_future(answered(reader))
                    try:
                        for _ in range(1500 if by.seconds else 200):
                            if reading.done():
                                break
                            writer.write(chunk)
                            await writer.drain()
                            by.counts["chunks"] += 1
                        if reading.done():
                            by.counts[reading.result()] += 1
                    except (OSError, asyncio.IncompleteReadError):
                        by.counts["closed"] += 1
                    finally:
                        reading.cancel()

    await asyncio.gather(*(client() for _ in range(4)))


@attack()
async def long_header_values(by: Attacker) -> None:
    """Send header values as long as can be, another one each time."""

    def make(number: int) -> bytes:
        value = f"x{number}-{by.front}/" + "y" * 28_000
        return by.request("GET", "/companies" if number % 2 else "/api/v1/stats", {"Accept": value})

    await by.flood(make, small=150, connections=4)


@attack(proxies_matter=True)
async def large_forms(by: Attacker) -> None:
    """Send forms that are as large as can be, to pages that anyone may open, with files and without."""
    fields = b"login=x&password=" + b"z" * (11 << 20)
    part = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    large = part % (b"login", b'; filename="x.png"', b"z" * (11 << 20)), part % (b"login", b"", b"z" * (2 << 20))
    kinds = [("application/x-www-form-urlencoded", fields), ("application/x-www-form-urlencoded", fields[: 2 << 20])]
    kinds += [("multipart/form-data; boundary=b", each + b"--b--\r\n") for each in large]
    forms = [by.request("POST", "/accounts/login/", {"Content-Type": kind}, body) for kind, body in kinds]
    await by.flood(lambda number: forms[number % 4], small=4, connections=16 if by.seconds else 4)
