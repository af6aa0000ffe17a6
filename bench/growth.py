"""
Check that nothing grows faster than its data: `python bench/growth.py [--part registry|busy]`, or `make growth`.

Every row does the same work on a small and on a ten times larger instance, and fails if the larger one costs more
CPU than ten times the smaller and 30 % (work on all data), or half as much again (work on a page of it). Registries
have 10,000 and 100,000 companies; besides, one account, one person, one listing and one audit log have 1,000 and
10,000 rows, and the account a tenth as many listings. Where a limit is stated, such as 50 saved searches, rows end
there. Names are fictional. CPU is counted over all processes of a command, and over the server's for requests; each
figure is shown when it is known. Exits with 1 if a row fails.
"""

import argparse
import http.client
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from services.ports import wait_until
from services.product import COMMAND, Product, environment

TIMES = 10
WITH_DATA, CONSTANT = TIMES * 1.3, 1.5
EMAIL = "busy@harbour.example"
CITIES = ("Zug", "Tarnwick", "Oxmoor", "Lisle", "Harrow", "Quill", "Sarn", "Vash", "Corro", "Drift")
THEMES = ("energy", "coast", "community", "lending", "water", "seeds", "maps", "ferries")
LISTINGS_IN = 10
"""Documents, runs and other rows of the busy account for each of its listings."""
ROUNDS = 20
"""Requests of each kind that are measured at least."""
ENOUGH_MS, MOST_CALLS = 250.0, 400
WITH_ALL_WORDS = frozenset({"search", "search with a slip", "filter with facets", "list page in HTML with a filter"})
"""Requests that read what all documents have in common, lists of words and the bits of values: these grow with both."""
LATE_CHANGES = 5_000
"""Changes at the end of the feed, which are asked for."""
FLOOR_MS = 0.3
"""The clock of a process ticks more coarsely than a cheap request costs."""


class Figure(NamedTuple):
    """The cost of one piece of work on the small and on the large instance, in milliseconds of CPU."""

    name: str
    small: float
    large: float
    most: float

    @property
    def times(self) -> float:
        return self.large / max(self.small, FLOOR_MS)

    @property
    def passes(self) -> bool:
        return self.times <= self.most or self.large <= FLOOR_MS


# What a registry consists of.


def companies(count: int, *, busy: int = 0) -> Iterator[dict[str, Any]]:
    """Yield *count* companies in the import form; the first *busy* have one director, the first one *busy* holders."""
    chance = random.Random(7)
    for number in range(count):
        directors = [f"person-{chance.randrange(max(1, count // 2))}" for _ in range(2)]
        # In every registry somebody sits on many boards: here on one board of 500, and in a busy one on *busy*.
        if number < busy or number % 500 == 0:
            directors.append("person-0")
        city = CITIES[min(int(chance.expovariate(0.6)), len(CITIES) - 1)]
        company: dict[str, Any] = {
            "id": f"company-{number}",
            "name": f"{chance.choice(CITIES)} {chance.choice(THEMES)} {number}",
            "type": chance.choice(("DAO", "nonprofit", "corporation", "cooperative")),
            "industry": chance.choice(("Energy", "Finance", "Water", "Software")),
            "themes": chance.sample(THEMES, 3),
            "status": "active",
            "listedAt": f"202{number % 6}-{1 + number % 12:02}-{1 + number % 28:02}",
            "treasury": f"${chance.randrange(1, 900)}K",
            "description": f"Keeps {chance.choice(THEMES)} and {chance.choice(THEMES)} for {city} since its founding.",
            "website": f"https://company-{number}.example",
            "address": [{"address_1": f"{number} Slack Water Lane", "city": city, "country": "CH"}],
        }
        row: dict[str, Any] = {
            "company": company,
            "positions": [
                {"title": "Director", "person": {"name": slug.replace("-", " ").title(), "slug": slug}}
                for slug in dict.fromkeys(directors)
            ],
        }
        if number == 0 and busy:
            row["capTable"] = [{"name": f"Holder {holder}", "quantity": str(1 + holder)} for holder in range(busy)]
        yield row


def people(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {
            "documentId": f"{number:024x}",
            "name": f"Person {number}",
            "slug": f"person-{number}",
            "bio": f"Sits on boards of {CITIES[number % len(CITIES)]}.",
        }


def write_registry(folder: Path, count: int, *, busy: int = 0) -> Path:
    """Write a registry of *count* companies and half as many people in the import form."""
    folder.mkdir(parents=True)
    for name, rows in (("companies", companies(count, busy=busy)), ("people", people(max(1, count // 2)))):
        with (folder / f"{name}.jsonl").open("w") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    (folder / "frameworks.jsonl").write_text("")
    return folder


# How work is measured.


def command_ms(data: Path, *arguments: str, **settings: str) -> float:
    """Return the CPU milliseconds of a command and of all processes that it started."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(data, **settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"muniment {' '.join(arguments)}: {process.returncode}\n{told[-3000:]}")
    spent_ms = (used.ru_utime + used.ru_stime) * 1e3
    print(f"     {data.parent.name}: {arguments[0]} {spent_ms:,.0f} ms", file=sys.stderr, flush=True)
    return spent_ms


class Visitor:
    """Asks a server and measures the CPU of its processes, on one connection."""

    def __init__(self, product: Product, *, cookie: str = "", token: str = "") -> None:
        self._product = product
        self._process = psutil.Process(product.pid)
        self._connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=300)
        self._headers: dict[str, str] = {}
        if cookie:
            self._headers["Cookie"] = cookie
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
            self._headers["Accept"] = "application/json, text/event-stream"

    def _cpu_ms(self) -> float:
        used = 0.0
        for process in (self._process, *self._process.children(recursive=True)):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system  # also of those that ended
        return used * 1e3

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request("GET" if body is None else "POST", path, body, headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status}\n{content[:1000]!r}")
        return content

    def call(self, tool: str, **arguments: Any) -> bytes:
        """Call an owner's tool."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        answer = self.ask("/api/manage/mcp", json.dumps(message).encode())
        if b'"isError":true' in answer or b'"error":{' in answer:
            raise SystemExit(f"{tool}: {answer[:1000]!r}")
        return answer

    def is_resting(self) -> bool:
        """Return whether the server needs less than a twentieth of a core, which takes 5 s to find out."""
        before_ms = self._cpu_ms()
        time.sleep(5)
        return self._cpu_ms() - before_ms < 250

    def cost_ms(self, work: Callable[[int], object], rounds: int = ROUNDS) -> float:
        """
        Return the CPU milliseconds of the server for one call of *work*, which is called with the number of the round.

        The kernel counts CPU in ticks of 10 ms, so cheap work is repeated until a tick no longer matters.
        """
        work(0)
        spent, calls = 0.0, 0
        began = self._cpu_ms()
        while calls < rounds or (spent < ENOUGH_MS and calls < MOST_CALLS):
            work(1 + calls)
            calls += 1
            spent = self._cpu_ms() - began
        return spent / calls


def settled_s(visitor: Visitor) -> float:
    """Wait until what a start leaves to be done is done, which is no cost of a request; return how long that took."""
    began = time.monotonic()
    wait_until(visitor.is_resting, within_s=1_800, what="a server at rest")
    return time.monotonic() - began


# Work on all data: commands, at 10,000 and 100,000 companies.


def commands(folder: Path, count: int) -> dict[str, float]:
    """Return what each command costs in a registry of *count* companies, which stays in *folder*/data."""
    data, registry = folder / "data", write_registry(folder / "registry", count)
    costs = {"import": command_ms(data, "import", str(registry))}
    costs["import without changes"] = command_ms(data, "import", str(registry))
    costs["republish"] = command_ms(data, "republish")
    costs["doctor --deep"] = command_ms(data, "doctor", "--deep")
    costs["scrub"] = command_ms(data, "scrub")
    costs["export"] = command_ms(data, "export", str(folder / "export"), "--private")
    costs["backup"] = command_ms(data, "backup", str(folder / "backup.zip"))
    costs["restore"] = command_ms(folder / "restored", "restore", str(folder / "backup.zip"))
    costs["move"] = command_ms(data, "move", "--to", f"sqlite:{folder / 'moved'}")
    return costs


# Work on a page of the data: requests to a server.


def late_change(data: Path) -> int:
    """Return the number of a change that the feed still has: it does not keep all of a large registry."""
    with closing(sqlite3.connect(f"file:{data / 'muniment.sqlite3'}?mode=ro", uri=True)) as file:
        (latest,) = file.execute("SELECT edition FROM published_meta").fetchone()
    return max(0, int(latest) - LATE_CHANGES)


def requests(visitor: Visitor, count: int, *, changed: int) -> dict[str, float]:
    """Return what requests cost in a registry of *count* companies; the feed still has the changes after *changed*."""
    chance = random.Random(11)

    def get(address: Callable[[int], str]) -> float:
        return visitor.cost_ms(lambda number: visitor.ask(address(number)))

    def company() -> str:
        return f"company-{chance.randrange(1, count)}"

    combinations = [f"city={city}&sort={sort}" for city in CITIES for sort in ("treasury", "name", "updated", "team")]
    return {
        # Each page once: of a small registry, random ones would often be kept already.
        "list page, any": get(lambda number: f"/api/v1/companies?page={1 + number}&pageSize=5"),
        "list page, 304 and kept": get(lambda _: "/api/v1/companies"),
        "detail, any": get(lambda _: f"/api/v1/companies/{company()}"),
        "filter with sort, first use": get(
            lambda number: f"/api/v1/companies?{combinations[number % len(combinations)]}"
        ),
        "filter with sort, again": get(
            lambda number: f"/api/v1/companies?{combinations[number % len(combinations)]}&pageSize=7"
        ),
        "two filters": get(lambda number: f"/api/v1/companies?theme=water&city={CITIES[number % 10]}&pageSize=9"),
        "filter with facets": get(
            lambda number: f"/api/v1/companies?city={CITIES[number % 10]}&facets=theme,type&pageSize=8"
        ),
        "search": get(lambda number: f"/api/v1/companies?q={THEMES[number % 8]}+{CITIES[number % 7]}&pageSize=9"),
        "search with a slip": get(lambda number: f"/api/v1/companies?q=tarnwik+enrgy+{number}"),
        "person, any": get(lambda _: f"/api/v1/people/person-{chance.randrange(1, count // 2)}"),
        "company page": get(lambda _: f"/companies/{company()}"),
        "list page in HTML": get(lambda number: f"/companies?page={2 + number % 300}"),
        "list page in HTML with a filter": get(
            lambda number: f"/companies?city={CITIES[number % 10]}&page={2 + number}"
        ),
        "changes": get(lambda number: f"/api/v1/changes?after={changed + number}"),
    }


def busy_requests(owner: Visitor, reader: Visitor, agent: Visitor, rows: int) -> dict[str, tuple[float, float]]:
    """Return what an owner's, a reviewer's and a visitor's requests cost beside *rows*, with the growth permitted."""

    def page(path: str) -> tuple[float, float]:
        return owner.cost_ms(lambda _: owner.ask(path)), CONSTANT

    def public(path: str, most: float) -> tuple[float, float]:
        # A parameter that no page knows makes each address new, so that no kept page is measured.
        asked = (lambda _: path) if path.startswith("/api/") else (lambda number: f"{path}?new={number}")
        return reader.cost_ms(lambda number: reader.ask(asked(number))), most

    def tool(name: str, **arguments: Any) -> tuple[float, float]:
        return agent.cost_ms(lambda _: agent.call(name, **arguments)), CONSTANT

    costs = {
        f"page {path}": page(path)
        for path in (
            *("/manage", "/manage/documents", "/manage/reports", "/manage/credits", "/manage/searches"),
            *("/manage/applications", "/manage/tokens", "/manage/security", "/manage/companies/company-1"),
            *("/manage/companies/company-1/history", "/review", "/review/audit", "/review/people", "/operate"),
        )
    }
    costs |= {
        "tool list_my_companies": tool("list_my_companies"),
        "tool list_my_documents": tool("list_my_documents"),
        "tool list_my_runs": tool("list_my_runs"),
        "tool get_my_company": tool("get_my_company", slug="company-1"),
        "page of a person in many teams": public("/people/person-0", CONSTANT),
        "person in many teams": public("/api/v1/people/person-0", WITH_DATA),
        "page of a listing with many holders": public("/companies/company-0", CONSTANT),
        "listing with many holders": public("/api/v1/companies/company-0", WITH_DATA),
    }

    def update(slug: str, most: float) -> tuple[float, float]:
        def change(number: int) -> bytes:
            return agent.call("update_my_company", slug=slug, changes={"description": f"Keeps {number + rows} boats."})

        return agent.cost_ms(change), most

    costs["update beside many rows"] = update("company-1", CONSTANT)
    costs["update of a listing with many holders"] = update("company-0", WITH_DATA)
    return costs


def fill(rows: int) -> None:
    """Give one account of this process's instance *rows* of everything that an account can have."""
    from muniment import cli  # the settings are known only now

    cli.use_django()
    from django.db import transaction

    from make.skewed import grow_account
    from muniment.accounts.models import Account

    with transaction.atomic():
        grow_account(Account.objects.get(email=EMAIL), 0, rows, listings=rows // LISTINGS_IN, are_stored=True)


@contextmanager
def busy_instance(folder: Path, rows: int, base: int) -> Iterator[tuple[Visitor, Visitor, Visitor]]:
    """Serve a registry of *base* companies with *rows* of everything for one account; yield its browser and others."""
    data = folder / "data"
    command_ms(data, "import", str(write_registry(folder / "registry", base, busy=rows)))
    subprocess.run(
        [*COMMAND, "user", "create", EMAIL, "--password-stdin"],
        input="four harbours, one tide\n",
        env=environment(data),
        check=True,
        text=True,
        capture_output=True,
    )
    command_ms(data, "user", "role", EMAIL, "operator")
    again = [sys.executable, __file__, "--fill", str(rows)]
    subprocess.run(again, env=environment(data), check=True)
    token = _told(data, "user", "token", EMAIL, "--name", "growth").split()[-1]
    with Product(data, exports_interval_s="0") as product:
        product.wait_ready(within_s=300)
        link = _told(data, "user", "sign-in-link", EMAIL).split()
        address = next(word for word in link if "/accounts/link/" in word)
        cookie = _signed_in(product, address)
        settled_s(Visitor(product))
        yield Visitor(product, cookie=cookie), Visitor(product), Visitor(product, token=token)


def _told(data: Path, *arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], env=environment(data), check=True, text=True, capture_output=True)
    return done.stdout


def _signed_in(product: Product, address: str) -> str:
    """Open a link that signs in, press its button, and return the session's cookie."""
    path = address[address.index("/accounts/link/") :]
    with httpx.Client(base_url=product.url, timeout=60) as client:
        client.get(path).raise_for_status()
        token = client.cookies["csrftoken"]
        client.post(path, data={"csrfmiddlewaretoken": token}, headers={"Origin": product.url})
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def measure_registry(folder: Path, sizes: tuple[int, int]) -> list[Figure]:
    """Measure commands and public requests at both sizes."""
    costs: list[dict[str, tuple[float, float]]] = []
    for size in sizes:
        place = folder / str(size)
        place.mkdir()
        found = {name: (cost, WITH_DATA) for name, cost in commands(place, size).items()}
        changed = late_change(place / "data")
        with Product(place / "data", exports_interval_s="0") as product:
            product.wait_ready(within_s=300)
            settled_s(Visitor(product))
            for name, cost in requests(Visitor(product), size, changed=changed).items():
                found[name] = (cost, WITH_DATA if name in WITH_ALL_WORDS else CONSTANT)
        costs.append(found)
    return figures(*costs)


def measure_busy(folder: Path, rows: tuple[int, int]) -> list[Figure]:
    """Measure the requests of one busy account, and those about one busy person and listing."""
    costs = []
    for count in rows:
        place = folder / f"busy-{count}"
        place.mkdir()
        with busy_instance(place, count, base=rows[1]) as visitors:
            costs.append(busy_requests(*visitors, count))
    return figures(*costs)


def figures(small: dict[str, tuple[float, float]], large: dict[str, tuple[float, float]]) -> list[Figure]:
    return [Figure(name, cost, large[name][0], most) for name, (cost, most) in small.items()]


def show(rows: list[Figure]) -> None:
    for row in rows:
        sign = "ok  " if row.passes else "FAIL"
        print(
            f"{sign} {row.name:42s} {row.small:10.1f} {row.large:11.1f} ms  {row.times:6.2f} times, at most {row.most}",
            flush=True,
        )


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--companies", type=int, default=10_000, help="size of the smaller registry")
    parser.add_argument("--rows", type=int, default=1_000, help="rows of the less busy account")
    parser.add_argument("--part", choices=("registry", "busy", "all"), default="all")
    parser.add_argument("--fill", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        fill(given.fill)
        return 0
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        if given.part != "busy":
            found += measure_registry(Path(folder), (given.companies, given.companies * TIMES))
            show(found)
        if given.part != "registry":
            busy = measure_busy(Path(folder), (given.rows, given.rows * TIMES))
            show(busy)
            found += busy
    failed = [row.name for row in found if not row.passes]
    print(
        f"{len(found) - len(failed)} of {len(found)} rows grow as their data" + (f"; not: {failed}" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
