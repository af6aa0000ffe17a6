"""
Make a published file with many companies, and measure what it costs to read it and to publish into it.

    python bench/published.py make FILE --count 1000000
    python bench/published.py measure FILE

Figures are CPU time of this process unless they say otherwise; nothing is sent over a network.
"""

import argparse
import json
import random
import resource
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from make.published import Publisher, company, person
from make.queries import companies_by
from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.server.fastpath.rest import RestAnswers
from muniment.store.reader import Reader

SCHEMA = registry_schema("USD")

WORDS = ("river", "harbour", "meadow", "copper", "lantern", "willow", "granite", "orchard", "signal", "ledger")


def document(number: int, chance: random.Random):
    words = " ".join(chance.choice(WORDS) for _ in range(20))
    symbol = {"symbol": f"T{number}"} if number % 4 == 0 else {}
    return company(
        number,
        day=700_000 + number // 200,
        name=f"{chance.choice(WORDS).title()} {chance.choice(WORDS)} {number}",
        description=words,
        status=chance.choice(["active", "active", "active", "upcoming", "inactive"]),
        industry=chance.choice(["Water", "Energy", "Software"]),
        **symbol,
    )


def make(path: Path, count: int) -> None:
    chance = random.Random(1)
    publisher = Publisher(path)
    publisher.connection.execute("PRAGMA cache_size=-65536")
    began = time.process_time()
    for start in range(1, count + 1, 5000):
        publisher.publish(*(document(n, chance) for n in range(start, min(start + 5000, count + 1))))
    publisher.publish(person(1))
    spent = time.process_time() - began
    print(
        f"made {count} companies: {spent:.0f} s CPU, {spent / count * 1e6:.0f} us each, {path.stat().st_size >> 20} MB"
    )
    publisher.close()


def cpu_us(action, times: int) -> float:
    rounds = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(times):
            action()
        rounds.append((time.process_time() - began) / times * 1e6)
    return statistics.median(rounds)


def pss_mb() -> float:
    text = Path("/proc/self/smaps_rollup").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("Pss:")).split()[1]) / 1024


def details(api: Api, chance: random.Random, total: int) -> None:
    answers = RestAnswers(api)

    def target(number):
        return b"/api/v1/companies/company-%d" % number

    def look_up(numbers):
        wanted = [one for number in numbers if (one := answers.detail(target(number))) is not None]
        for asked, found in answers.look_up(wanted).items():
            answers.get(asked, b"", b"", found)

    warm = chance.sample(range(1, total + 1), 1000)
    for _ in range(2):  # what was asked for twice is kept
        look_up(warm)
    print(f"detail, kept: {cpu_us(lambda: answers.get(target(chance.choice(warm)), b'', b''), 5000):.2f} us")
    for together in (1, 16):
        spent = cpu_us(lambda: look_up(chance.randint(1, total) for _ in range(together)), 500)  # noqa: B023 - called at once
        print(f"detail, random over all, {together} in one go: {spent / together:.2f} us")


def measure(path: Path) -> None:
    base = pss_mb()
    began = time.process_time()
    reader = Reader(path)
    api = Api(reader, Config({}, data=path.parent), SCHEMA)
    total = json.loads(reader.stats().body)["data"]["total"]
    spent = (time.process_time() - began) * 1e3
    print(f"open: {spent:.1f} ms CPU; {total} companies; PSS {base:.0f} -> {pss_mb():.0f} MB")
    chance = random.Random(2)
    last = -(-total // 25)

    def page(number):
        return lambda: reader.companies(companies_by(page=number))

    def random_page():
        return reader.companies(companies_by(page=chance.randint(1, last)))

    for number in (1, 2, 1000, last // 2, last - 1):
        print(f"page {number}: {cpu_us(page(number), 200):.0f} us")
    print(f"random page: {cpu_us(random_page, 500):.0f} us")
    near_end = reader.companies(companies_by(page=last - 2)).next_cursor
    print(f"cursor near the end: {cpu_us(lambda: reader.companies(companies_by(cursor=near_end)), 200):.0f} us")

    details(api, chance, total)

    for words in ({"q": "willow 4711"}, {"q": "river"}, {"q": "gran"}, {"status": "inactive"}, {"status": "active"},
                  {"status": "active", "industry": "Water", "hasToken": True}, {"sort": "name"},
                  {"q": "river", "status": "upcoming"}):  # fmt: skip
        began = time.process_time()
        found = reader.companies(companies_by(page=2, **words)).total
        first = (time.process_time() - began) * 1e3
        again = cpu_us(lambda: reader.companies(companies_by(page=2, **words)), 50)  # noqa: B023 - called at once
        print(f"{words}: {found} found, first {first:.0f} ms, then {again:.0f} us")
    print(f"PSS {pss_mb():.0f} MB, peak RSS {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")

    publisher = Publisher(path)
    publisher.connection.execute("PRAGMA synchronous=NORMAL")
    publisher.connection.execute("SELECT 1")
    publish, notice = [], []
    for number in chance.sample(range(1, total), 40):
        changed = document(number, chance)
        began = time.perf_counter()
        publisher.publish(changed)
        publish.append((time.perf_counter() - began) * 1e3)
        began = time.perf_counter()
        assert reader.refresh()
        notice.append((time.perf_counter() - began) * 1e3)
        assert changed.name.encode() in reader.document("company", changed.key).body
    print(f"publish one change: median {statistics.median(publish):.2f} ms, max {max(publish):.2f} ms")
    print(f"another reader takes notice: median {statistics.median(notice):.2f} ms, max {max(notice):.2f} ms")
    print(f"probe when nothing happened: {cpu_us(reader.refresh, 2000):.1f} us")
    publisher.close()
    reader.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("make", "measure"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=1_000_000)
    asked = parser.parse_args()
    if asked.action == "make":
        make(asked.file, asked.count)
    else:
        measure(asked.file)
