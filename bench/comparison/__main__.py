"""
Compare the product with nginx, fastify and FastAPI in interleaved rounds: `make bench`.

All servers run at once on one core, and the load generator on the other. In each round every path is asked of every
system that has it, one after the other, so that what disturbs the machine disturbs all of them. A rate is requests by
CPU second of the server; ratios are taken in each round, and their median is shown. New pages, an owner's update and
the import are measured by CPU time of a process, without a reference.

The cost of a refused request is compared with that of an answered one.

Writes bench/RESULTS.md, bench/results.json and a plot of each path into bench/plots, unless --dry. Exits with 1 if a
path lost more than a tenth against the results before (its ratio to nginx, or without one its rate), or a refused
request costs more than 1.2 times an answered one.
"""

import argparse
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import refusals
import report
from sample import import_sample
from systems import ROOT, WORK, Server, load, prepare, run, servers

from services.mcp import modern

SCRIPT = str(Path(__file__).with_name("requests.lua"))
CALL = str(Path(__file__).with_name("call.lua"))
LIST = "/api/v1/companies?page=1&pageSize=25"
ZSTD = {"Accept-Encoding": "zstd"}
QUERIES = 2_000
Ask = Callable[[int], float]
SYSTEMS = ("muniment", "nginx", "fastify", "fastapi")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="length of one measurement")
    parser.add_argument("--note", default="", help="what a reader of the results should know of the machine")
    parser.add_argument(
        "--without",
        default="",
        help="update or costs: leave out the owner's update, or all that is measured without a reference",
    )
    parser.add_argument("--dry", action="store_true", help="print the table and write nothing")
    given = parser.parse_args()
    named = os.environ.get("MUNIMENT_REFERENCE_BENCH", "")
    reference = Path(named).resolve()
    if not named or not (reference / "servers").exists():
        print("MUNIMENT_REFERENCE_BENCH must name the folder of the reference systems (with servers in it).")
        return 1
    data = prepare(reference)
    with servers(reference, data, names=frozenset(SYSTEMS)) as running:
        paths = asked_of(running)
        rounds: dict[str, dict[str, list[float]]] = {path: {name: [] for name in of} for path, of in paths.items()}
        for number in range(given.rounds + 1):
            for path, of in paths.items():
                for name in sorted(of, reverse=bool(number % 2)):
                    rate = of[name](1 if number == 0 else given.seconds)
                    if number:  # the first round only warms
                        rounds[path][name].append(rate)
            print(f"round {number} of {given.rounds}", flush=True)
    costs = refusals.costs_ms(data, rounds=given.rounds, seconds=given.seconds)
    is_refusal_dear = refusals.ratio(costs) > refusals.MAX_RATIO
    costs |= {} if "costs" in given.without else costs_ms(given.without)
    found = report.Results(
        measured_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        commit=run("git", "-C", ROOT, "rev-parse", "--short=10", "HEAD").strip(),
        note=given.note,
        rounds=rounds,
        costs_ms=costs,
    )
    before = report.last()
    print(report.table(found, before))
    lost = report.lost(found, before)
    for path in lost:
        print(f"FAIL {path}")
    if is_refusal_dear:
        print(f"FAIL a refused request costs more than {refusals.MAX_RATIO} times an answered one")
    if not given.dry:
        report.write(found, before)
    return int(bool(lost) or is_refusal_dear)


def asked_of(running: dict[str, Server]) -> dict[str, dict[str, Ask]]:
    """Return each path with what asks it of each system for some seconds."""
    same = WORK / "same"
    same.mkdir(exist_ok=True)
    slugs = (WORK / "data" / "main.slugs").read_text().split()
    ours = running["muniment"]
    page = f"/companies/{slugs[0]}"
    (same / "list.zst").write_bytes(ours.get(LIST, ZSTD)[0])
    (same / "page.zst").write_bytes(ours.get(page, ZSTD)[0])
    words = random.Random(1).choices([each.split("-")[0] for each in slugs], k=QUERIES)
    searches = written("search.paths", [f"/api/v1/search?q={word}" for word in words])
    encoded = ("-H", "Accept-Encoding: zstd")

    def simply(server: Server, path: str, *options: str) -> Ask:
        return lambda seconds: load(server, path, seconds, *options)

    def by_script(server: Server, *files: str) -> Ask:
        return lambda seconds: load(server, "", seconds, script=(SCRIPT, *files))

    prefix = {"fastify": "/stored"}
    paths: dict[str, dict[str, Ask]] = {}
    paths["list"] = {name: simply(each, prefix.get(name, "") + LIST) for name, each in running.items()}
    paths["detail"] = {}
    for name, server in running.items():
        lines = [f"{prefix.get(name, '')}/api/v1/companies/{slug}" for slug in slugs]
        paths["detail"][name] = by_script(server, written(f"{name}.paths", lines))
    paths["list, zstd"] = {"muniment": simply(ours, LIST, *encoded)}
    paths["list, 304"] = {"muniment": known(ours, LIST)}
    paths["kept page"] = {"muniment": simply(ours, page, *encoded)}
    if nginx := running.get("nginx"):
        paths["list, zstd"]["nginx"] = simply(nginx, "/zstd")
        paths["list, 304"]["nginx"] = known(nginx, LIST)
        paths["kept page"]["nginx"] = simply(nginx, "/page")
    paths["search"] = {"muniment": by_script(ours, searches)}
    calls = {
        "tools/list": modern("tools/list"),
        "get_company": modern("tools/call", {"name": "get_company", "arguments": {"slug": slugs[0]}}),
        "list_companies": modern("tools/call", {"name": "list_companies", "arguments": {}}),
    }
    for number, (name, call) in enumerate(calls.items()):
        paths[f"tool server, {name}"] = {"muniment": called(ours, f"{number}.call", call)}
    return paths


def known(server: Server, path: str) -> Ask:
    etag = server.get(path)[1]["etag"]
    return lambda seconds: load(server, path, seconds, "-H", f"If-None-Match: {etag}")


def called(server: Server, name: str, call: tuple[list[tuple[str, str]], bytes]) -> Ask:
    """Return what calls the public tool server, as the host that the product is configured for."""
    headers, body = call
    # wrk adds a second one to a "host" in lower case.
    lines = ["Host: registry.example", *(f"{key}: {value}" for key, value in headers if key != "host")]
    file = written(name, [*lines, "", body.decode()])
    return lambda seconds: load(server, "", seconds, script=(CALL, file))


def written(name: str, lines: list[str]) -> str:
    file = WORK / name
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def costs_ms(without: str) -> dict[str, float]:
    """Return CPU milliseconds of new pages and an owner's update, and those of the import of the real registry."""
    found = {}
    sample = os.environ.get("MUNIMENT_SAMPLE_DATA", "")
    with tempfile.TemporaryDirectory() as made:
        if sample:
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            import_sample(Path(sample), Path(made))
            after, wall_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - began
            found["import"] = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3
            print(f"import: {wall_s:.1f} s of wall time")
            kinds = "list,company,sign-in,home,person,framework,optimism"
            pages = json.loads(bench("pages.py", "--instance", made, "--json", "--only", kinds).splitlines()[-1])
            found |= {f"new page: {kind}": pages[kind]["new"] for kind in kinds.split(",")}
    if "update" not in without:
        told = bench("owner_cost.py")
        found["owner's update"] = float(re.findall(r"update_my_company, description\s+([\d.]+) ms", told)[0])
    return found


def bench(program: str, *options: str) -> str:
    command = [sys.executable, str(ROOT / "bench" / program), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout  # a missed goal exits with 1


if __name__ == "__main__":
    sys.exit(main())
