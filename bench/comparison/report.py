"""The results of a comparison: a table in Markdown, a plot of each path, and what got slower since the last ones."""

import json
import re
import statistics
from html import escape
from pathlib import Path
from typing import NamedTuple

BENCH = Path(__file__).resolve().parents[1]
KEPT = BENCH / "results.json"
RESULTS = BENCH / "RESULTS.md"
PLOTS = BENCH / "plots"
BASE = "nginx"
OURS = "muniment"
TOLERATED = 0.1
"""The part of a ratio or a rate that a path may lose."""
_WIDTH, _ROW, _LEFT, _RIGHT = 720, 34, 110, 100
_COLOURS = {OURS: "#8a2b2b", "nginx": "#2c5674", "fastify": "#74520f", "fastapi": "#38603f"}


class Results(NamedTuple):
    """
    What one run found.

    Args:
        rounds: of each path and system the requests by CPU second in each round.
        costs_ms: CPU milliseconds of what has no reference.
    """

    measured_at: str
    commit: str
    note: str
    rounds: dict[str, dict[str, list[float]]]
    costs_ms: dict[str, float]

    def rate(self, path: str, name: str = OURS) -> float:
        return statistics.median(self.rounds[path][name])

    def ratio(self, path: str, base: str = BASE) -> float | None:
        """Return the median of the ratios of the rounds, or None without that system."""
        if not self.rounds[path].get(base):
            return None
        pairs = zip(self.rounds[path][OURS], self.rounds[path][base], strict=True)
        return statistics.median(ours / theirs for ours, theirs in pairs)


def last() -> Results | None:
    """Return the results that are in the repository."""
    return Results(**json.loads(KEPT.read_text())) if KEPT.exists() else None


def lost(found: Results, before: Results | None) -> list[str]:
    """Return in words each path that lost more than is tolerated: by its ratio to nginx, else by its own figure."""
    if before is None:
        return []
    told = []
    for path in found.rounds.keys() & before.rounds.keys():
        now, then = found.ratio(path), before.ratio(path)
        if now is None or then is None:
            now, then = found.rate(path), before.rate(path)
        if now < then * (1 - TOLERATED):
            told.append(f"{path}: {now:,.3g} after {then:,.3g}")
    for path in found.costs_ms.keys() & before.costs_ms.keys():
        now, then = found.costs_ms[path], before.costs_ms[path]
        if now * (1 - TOLERATED) > then:
            told.append(f"{path}: {now:,.2f} ms after {then:,.2f} ms")
    return sorted(told)


def table(found: Results, before: Results | None) -> str:
    """Return the figures as tables in Markdown."""
    names = list(dict.fromkeys(name for each in found.rounds.values() for name in each))
    others = [name for name in names if name != OURS]
    lines = [
        f"| requests by CPU second | {' | '.join([*names, *(f'{OURS} / {name}' for name in others)])} | before |",
        f"|---|{'--:|' * (len(names) + len(others) + 1)}",
    ]
    for path, of in found.rounds.items():
        rates = [f"{statistics.median(of[name]):,.0f}" if name in of else "" for name in names]
        ratios = ["" if (ratio := found.ratio(path, name)) is None else f"{ratio:.2f}" for name in others]
        lines.append(f"| {path} | {' | '.join([*rates, *ratios, _before(path, before)])} |")
    if found.costs_ms:
        lines += ["", "| CPU | ms | before |", "|---|--:|--:|"]
        then = before.costs_ms if before else {}
        for path, cost in found.costs_ms.items():
            lines.append(f"| {path} | {cost:,.2f} | {f'{then[path]:,.2f}' if path in then else ''} |")
    return "\n".join(lines)


def _before(path: str, before: Results | None) -> str:
    if before is None or path not in before.rounds:
        return ""
    ratio = before.ratio(path)
    return f"{before.rate(path):,.0f}" if ratio is None else f"{ratio:.2f}"


def write(found: Results, before: Results | None) -> None:
    """Write the results where the next run finds them, with plots and an explanation."""
    KEPT.write_text(json.dumps(found._asdict(), indent=1) + "\n")
    PLOTS.mkdir(exist_ok=True)
    shown = []
    for path, of in found.rounds.items():
        file = re.sub(r"\W+", "-", path).strip("-").lower() + ".svg"
        (PLOTS / file).write_text(plot(path, of))
        shown.append(f"![{path}](plots/{file})")
    slower = [f"- {each}" for each in lost(found, before)] or ["Nothing lost more than 10 %."]
    RESULTS.write_text(
        "\n".join(
            [
                "# Results",
                "",
                f"Measured on {found.measured_at} at {found.commit} by `make bench`. {found.note}".strip(),
                "",
                table(found, before),
                "",
                "## Slower than the results before",
                "",
                *slower,
                "",
                _HOW,
                "",
                *shown,
                "",
            ]
        )
    )


_HOW = """\
## How to read it

- **A rate is requests by CPU second** of the server's processes: what one core would answer if it did nothing else. It
  hardly depends on what else the machine does; wall-clock rates do.
- **Compare ratios, not rates.** All servers run at once on one core and are asked in turn within each round, so a slow
  moment is slow for all. Rates move by 10 to 30 % from machine to machine and from hour to hour. *before* is the ratio
  to nginx of the results before, or the rate where nginx has no such path.
- **nginx** serves static files, with `open_file_cache` and without access log. For zstd and the kept page they hold the
  same compressed bytes that the product answers; for 304 nginx compares its own ETag. It is the limit of a server that
  does nothing but send bytes.
- **fastapi** and **fastify** answer finished bytes from memory and stored JSON, the best that their frameworks allow.
  One that the machine lacks is left out.
- The product runs as operators run it, with all headers and checks and one server process; only the rate limit is off.
  Data: 5,000 generated companies, a list page of 25 with about 37 KB, a detail with about 2.5 KB, random slugs.
- **CPU in milliseconds**: a page that is new in its edition, an owner's update with a durable commit, and the import of
  the real registry (about 12,400 companies), each by the CPU time of its process. A thousand requests of one client
  behind a trusted proxy for a detail, answered from memory and refused over its limit: a refusal may cost 1.2 times an
  answer.
- **tool server**: calls of the public tools without a reference beside them.
- A bar is the median of the rounds; each dot is a round. Dots far apart mean that the machine was not quiet.

## What is left

Profiles of one server process under wrk (`perf record -e cpu-clock`, `strace -c`): nginx on 23 November 2026, the
product on 26 November, after repeated requests are looked up by their bytes (decision 84):

| share of the CPU time | kernel | uvloop or nginx | Python and C library |
|---|--:|--:|--:|
| 304, muniment | 63 % | 5 % | 32 % |
| 304, nginx | 76 % | 24 % | |
| detail, muniment | 60 % | 4 % | 36 % |
| detail, nginx | 83 % | 17 % | |
| list with zstd, muniment | 65 % | 5 % | 30 % |
| list with zstd, nginx | 75 % | 25 % | |

- Both servers make one read and one write system call for a request, and one epoll call for many requests. No system
  call is left to save.
- The kernel's part of a 304 costs the product as much as nginx needs for all of it, so a ratio of 0.95 to a 304 of
  nginx is out of reach in Python. For zstd, nginx also sends the file's pages without copying them (sendfile).
- A repeated request without a socket takes 0.75 (list) to 0.95 µs (5,000 details, in turns with the version before:
  1.5 to 1.9): the look-up by its bytes, the limiter's call, the request id and the date, handing over buffers, and
  the counters. The rate limit adds about 0.85 µs, which the rates above do not contain.
- **Import** of the real registry, with the start of the process: 7.2 to 7.6 s of CPU and 7.3 to 7.8 s in all, after
  10.1 to 10.7 and 10.7 to 11.3 s of the version before (three turns of both); with small first transactions, in three
  runs alone, 7.2 to 7.5 and 7.0 to 7.3 s. Of the time after the start of Django, sampled on 26 November: comparing
  and inserting rows 25 %, the search index 23 %, rendering 21 %, documents, lists, facets, feed and chain 17 %,
  commits 14 %. Reading and checking takes as long as the commits and is done in a thread meanwhile. No part stands
  out. People are published with their own file, and 6,950 times again with the companies that name them.
- **Beside an import**, 20 updates a second, report runs and 2,000 connections (`make bench-load`, the server on one
  core and the import of low priority, 26 November): p99 of reads 7.3 ms, p99.9 17, at most 27 ms; p99 of updates
  172 ms, at most 283, since each waits for the end of a transaction of the import. A change shows in the process that
  wrote it after 0.9 ms (p95), in another process after 96 ms, on another node after 193 ms (`make bench-visibility`).
- **Memory** (PSS, real registry, 26 November): 91 MB after the start; at most 147 MB in 30 minutes of mixed load with
  1.8 million reads (`make bench-memory`), in the last ten minutes 144.5 MB on average, 140.6 before.
- Tried without gain: joining headers and body for one buffer costs as much as `writev` up to 7 KB, and 10 to 40 % more
  from 12 KB on. A larger page cache (128 MB) and no garbage collection save less than 2 % of an import.
- Tried and left: threads behind the event loop with niceness 10. Alone on a core, or beside an import of low priority,
  reads wait less; but beside another program of usual priority on that core, p99 of reads rises from 6 to 19 ms and the
  median of new pages from 3 to 15 ms, because a thread that waits for the core holds the interpreter lock.

## Plots
"""


def plot(title: str, of: dict[str, list[float]]) -> str:
    """Return bars of the medians with a dot for each round."""
    most = max(max(each) for each in of.values())
    height = 44 + _ROW * len(of)
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    rows: list[str] = []
    for number, (name, rates) in enumerate(of.items()):
        y, median = 36 + number * _ROW, statistics.median(rates)
        colour = _COLOURS.get(name, "#4a4e57")
        rows.append(f'<text x="{_LEFT - 8}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        rows.append(f'<rect x="{_LEFT}" y="{y + 2}" width="{median * scale:.1f}" height="22" rx="3" fill="{colour}"/>')
        dots = (f'<circle cx="{_LEFT + rate * scale:.1f}" cy="{y + 13}" r="3"/>' for rate in rates)
        rows.append(f'<g fill="#fff" stroke="{colour}">{"".join(dots)}</g>')
        end = _LEFT + max(rates) * scale + 8
        rows.append(f'<text x="{end:.1f}" y="{y + 17}">{median:,.0f}</text>')
    said = "; ".join(f"{name} {statistics.median(rates):,.0f}" for name, rates in of.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}"'
        f' role="img" aria-label="{escape(title)}, requests by CPU second: {escape(said)}" font-family="sans-serif"'
        f' font-size="14" fill="#1b1b1f"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="{_LEFT}" y="22" font-weight="600">{escape(title)}: requests by CPU second</text>'
        f"{''.join(rows)}</svg>\n"
    )
