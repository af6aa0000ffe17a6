"""
Compare the product with the reference systems: ratios by CPU second, startup, memory.

The reference systems (servers, load generator, data generator) are in the folder that MUNIMENT_REFERENCE_BENCH names;
they get an environment of their own under build/bench. Ratios are taken within one run, because rates depend on the
machine and ratios do not.

    make bench-start                         everything except the million
    make bench-start BENCH_FLAGS=--million   also random reads and pages of 1,000,000 companies
"""

import argparse
import json
import mmap
import os
import random
import re
import shlex
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import psutil
from sample import import_sample

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "bench"
VENV = WORK / "venv"
MUNIMENT = ROOT / ".venv" / "bin" / "muniment"
WARMED = (ROOT / ".venv" / "bin" / "python", ROOT / "bench" / "warmed.py")
"""The product with an API that answers 503 until startup is complete."""
PACKAGES = (
    "uvicorn>=0.54,<0.55",
    "httptools",
    "uvloop",
    "fastapi",
    "sqlalchemy",
    "aiosqlite",
    "greenlet",
    "orjson",
    "psutil",
)
GOALS = (
    ("uvicorn-asgi-hello", "R1", 0.85),
    ("uvicorn-asgi-hello", "R2", 0.85),
    ("fastapi-sa-sqlite", "R1", 80),
    ("fastapi-sa-sqlite", "R2", 150),
    ("fastapi-cached-bytes", "R1", 3),
    ("fastapi-cached-bytes", "R2", 3),
)
START_GOAL_S, MEMORY_GOAL_MB, COLD_GOAL, PAGE_GOAL = 0.6, 100, 0.6, 1.5
MILLION_TURNS = 11
MAP_LOCKED = 0x2000
"""Linux's flag, which the mmap module does not define."""
LOOKED_UP = 0.01
"""Largest share of cache misses at which a measurement counts as cached."""


def run(*command, **more):
    return subprocess.run([str(part) for part in command], check=True, **more)


def prepare(reference, count, name):
    """Make the data set and its registry, once."""
    env = {**os.environ, "BENCH_WORK": str(WORK)}
    if not (WORK / "data" / f"{name}.slugs").exists():
        small = ["--small"] if name == "big" else []
        run(sys.executable, reference / "gen.py", "--count", count, "--name", name, *small, env=env)
    data = WORK / "muniment" / name
    if not (data / "imported").exists():
        run(MUNIMENT, "import", WORK / "data" / f"{name}.import", env={**os.environ, "MUNIMENT_DATA": str(data)})
        (data / "imported").touch()
    return data


class Serving:
    """Serve a data folder on one core."""

    def __init__(self, data, command=(MUNIMENT,), **settings):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        env = {**os.environ, "MUNIMENT_DATA": str(data), "MUNIMENT_RATE_LIMIT": "off", **settings}
        began = time.perf_counter()
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", *command, "serve", "--port", str(self.port)], env=env, stderr=subprocess.DEVNULL
        )
        self.wait("/api/v1/companies", 60)
        self.start_s = time.perf_counter() - began

    def wait(self, path, within_s):
        deadline = time.perf_counter() + within_s
        while time.perf_counter() < deadline:
            try:
                with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
                    answer.read()
                    return
            except OSError:
                time.sleep(0.005)
        raise TimeoutError(path)

    def looked_up(self, asking):
        """Return the share of cache misses while *asking* ran."""
        before = self.cache()
        asking()
        hits, misses = (now - then for now, then in zip(self.cache(), before, strict=True))
        return misses / (hits + misses)

    def cache(self):
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return [int(re.search(rf'cache_requests_total{{result="{kind}"}} (\d+)', text)[1]) for kind in ("hit", "miss")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def warmed(data, **settings):
    """Serve the product after its startup, without exports that could begin during a measurement."""
    return Serving(data, WARMED, MUNIMENT_EXPORTS_INTERVAL_S="0", **settings)


def real_registry():
    """Import the registry that MUNIMENT_SAMPLE_DATA names, once; return None if it is not set."""
    sample = os.environ.get("MUNIMENT_SAMPLE_DATA", "")
    if not sample:
        print("MUNIMENT_SAMPLE_DATA is not set: start and memory are measured with 5,000 generated companies.")
        return None
    data = WORK / "muniment" / "real"
    if not (data / "imported").exists():
        import_sample(sample, data)
        (data / "imported").touch()
    return data


def start_and_memory(data):
    """Return the median of five starts, and the memory of the last one with everything imported."""
    starts = []
    for _ in range(5):
        with Serving(data) as serving:
            starts.append(serving.start_s)
            serving.wait("/readyz", 60)
            time.sleep(3)  # the tool servers' imports come after the pages
            memory_mb = psutil.Process(serving.process.pid).memory_full_info().pss / 1e6
    return sorted(starts)[2], memory_mb


def rate(serving, reference, paths, seconds):
    """Return requests per CPU second for random *paths* from a file."""
    script = ["-s", reference / "wrk" / "slugs.lua", f"http://127.0.0.1:{serving.port}/", "--", paths, "", ""]
    process = psutil.Process(serving.process.pid)
    before = process.cpu_times()
    out = run("taskset", "-c", "1", "wrk", "-t2", "-c32", f"-d{seconds}s", *script, capture_output=True, text=True)
    after = process.cpu_times()
    assert "Non-2xx" not in out.stdout, out.stdout
    done = int(out.stdout.split(" requests in")[0].split()[-1])
    return done / (after.user + after.system - before.user - before.system)


def by_turns(one, other):
    """Return the median ratio of *one* to *other*, measured in adjacent pairs in alternating order."""
    pairs = [(one(), other()) if number % 2 else tuple(reversed((other(), one()))) for number in range(MILLION_TURNS)]
    return statistics.median(first / second for first, second in pairs)


def write(name, lines):
    file = WORK / f"{name}.paths"
    file.write_text("\n".join(lines) + "\n")
    return file


@contextmanager
def in_memory(path):
    """Keep a file in the page cache, because some systems evict files within minutes."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | MAP_LOCKED, prot=mmap.PROT_READ):
            yield


def random_reads(reference, data, seconds):
    """
    Return the rate of random details without cached answers, relative to all cached. The file is in the page cache.

    Both use equally many companies, because a few would also stay in the processor's caches.
    """
    file = data / "muniment.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM published_document WHERE kind = 'company'")]
    paths = write("random", [f"/api/v1/companies/{key}" for key in random.Random(1).sample(keys, 100_000)])
    with in_memory(file), warmed(data, MUNIMENT_CACHE_MB="0") as cold, warmed(data, MUNIMENT_CACHE_MB="1000") as warm:
        while warm.looked_up(lambda: rate(warm, reference, paths, 8)) > LOOKED_UP:
            pass
        return by_turns(lambda: rate(cold, reference, paths, seconds), lambda: rate(warm, reference, paths, seconds))


def random_pages(reference, data, seconds):
    """Return the CPU of a random page relative to the first one, without cached answers."""
    first = write("first", ["/api/v1/companies?page=1"])
    with in_memory(data / "muniment.sqlite3"), warmed(data, MUNIMENT_CACHE_MB="0") as serving:
        with urlopen(f"http://127.0.0.1:{serving.port}/api/v1/companies") as answer:
            last = json.load(answer)["pagination"]["pageCount"]  # beyond it every number shows the last page
        numbers = random.Random(1).sample(range(1, last + 1), 5_000)
        pages = write("pages", [f"/api/v1/companies?page={number}" for number in numbers])
        return by_turns(
            lambda: rate(serving, reference, first, seconds), lambda: rate(serving, reference, pages, seconds)
        )


def verdict(what, found, goal, *, at_most=False):
    good = found <= goal if at_most else found >= goal
    print(f"{what:56}{found:10.2f}   goal {'<=' if at_most else '>='} {goal:<8}{'' if good else 'MISSED'}")
    return good


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=3, help="length of one measurement")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--million", action="store_true", help="also random reads and pages of 1,000,000 companies")
    asked = options.parse_args()
    named = os.environ.get("MUNIMENT_REFERENCE_BENCH", "")
    reference = Path(named).resolve()
    if not named or not (reference / "compare.py").exists():
        sys.exit("MUNIMENT_REFERENCE_BENCH must name the folder of the reference systems (with compare.py in it).")
    WORK.mkdir(parents=True, exist_ok=True)
    if not (VENV / "done").exists():
        uv = ROOT / ".venv" / "bin" / "uv"
        run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, VENV)
        run(uv, "pip", "install", "--quiet", "--python", VENV / "bin" / "python", *PACKAGES)
        (VENV / "done").touch()
    data = prepare(reference, 5_000, "main")
    results = WORK / "results.json"
    results.unlink(missing_ok=True)
    names = "|".join({name for name, _, _ in GOALS} | {"muniment"})
    run(
        *(VENV / "bin" / "python", reference / "compare.py", "--only", f"^({names})$", "--requests", "R1,R2"),
        *("--duration", asked.seconds, "--repeats", asked.repeats, "--base", "uvicorn-asgi-hello", "--out", results),
        env={
            **os.environ,
            "BENCH_WORK": str(WORK),
            "BENCH_VENV": str(VENV),
            "MUNIMENT_BENCH_CMD": shlex.join(map(str, WARMED)) + " serve --port {port}",
        },
        cwd=ROOT,
    )
    found = json.loads(results.read_text())
    print()
    good = [
        verdict(f"{request}: rate by CPU second / {name}", found["muniment"][request]["core"] / other, goal)
        for name, request, goal in GOALS
        if name in found and (other := found[name][request]["core"])
    ]
    start_s, memory_mb = start_and_memory(real_registry() or data)
    good.append(verdict("start to the first 200 of the list, s", start_s, START_GOAL_S, at_most=True))
    good.append(verdict("memory with everything imported, PSS MB", memory_mb, MEMORY_GOAL_MB, at_most=True))
    if asked.million:
        big = prepare(reference, 1_000_000, "big")
        found = random_reads(reference, big, asked.seconds)
        good.append(verdict("random reads of 1,000,000: cold / warm", found, COLD_GOAL))
        found = random_pages(reference, big, asked.seconds)
        good.append(verdict("any page of 1,000,000, uncached: CPU / page 1's", found, PAGE_GOAL, at_most=True))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
