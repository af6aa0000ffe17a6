"""
What a refused request costs beside the same request answered from memory: CPU time of the server process, in turns.

Both servers believe the same proxy, which names one client: a refused client that connects by itself is not read from
for a while, and could not be compared. Run alone, it prints the two costs and their ratio.
"""

import contextlib
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from systems import ROOT, WORK, Server, load, started

MAX_RATIO = 1.2
ANSWERED, REFUSED = "a thousand answered requests", "a thousand refused requests"
_PROXY = ("-H", "X-Forwarded-For: 198.51.100.7")
_RATES = {ANSWERED: "1000000000", REFUSED: "60"}


def costs_ms(data: Path, *, rounds: int = 5, seconds: int = 3) -> dict[str, float]:
    """Return CPU milliseconds of a thousand requests, answered and refused."""
    found: dict[str, list[float]] = {ANSWERED: [], REFUSED: []}
    slug, _, _ = (WORK / "data" / "main.slugs").read_text().partition("\n")
    detail = f"/api/v1/companies/{slug}"
    with _servers(data) as running:
        for number in range(rounds + 1):
            for name, server in running.items():
                rate = load(server, detail, seconds if number else 1, *_PROXY, is_refused=name == REFUSED)
                if number:  # the first round only warms
                    found[name].append(1e6 / rate)
    return {name: statistics.median(each) for name, each in found.items()}


def ratio(costs: dict[str, float]) -> float:
    return costs[REFUSED] / costs[ANSWERED]


@contextlib.contextmanager
def _servers(data: Path) -> Iterator[dict[str, Server]]:
    command = [ROOT / ".venv" / "bin" / "python", ROOT / "bench" / "warmed.py", "serve", "--port", "{port}"]
    with contextlib.ExitStack() as stack:
        running = {}
        for name, rate in _RATES.items():
            settings = {
                "MUNIMENT_DATA": str(data),
                "MUNIMENT_BASE_URL": "http://registry.example",
                "MUNIMENT_TRUSTED_PROXIES": "127.0.0.1",
                "MUNIMENT_RATE_LIMIT": rate,
                "MUNIMENT_RATE_BURST": rate,
                "MUNIMENT_EXPORTS_INTERVAL_S": "0",
            }
            server = stack.enter_context(started(name.replace(" ", "-"), command, settings, ROOT))
            if server is None:
                raise RuntimeError(f"the server of {name} did not start: see {WORK}")
            running[name] = server
        yield running


def main() -> int:
    found = costs_ms(WORK / "muniment" / "main")
    for name, cost in found.items():
        print(f"{name}: {cost:.2f} ms of CPU")
    print(f"ratio {ratio(found):.2f}, at most {MAX_RATIO}")
    return int(ratio(found) > MAX_RATIO)


if __name__ == "__main__":
    sys.exit(main())
