"""The servers that are compared, all running at once on one core; those without requests use no CPU."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import psutil

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "bench"
VENV = WORK / "venv"
SERVER_CORE, LOAD_CORE = "0", "1"
STARTS_WITHIN_S = 60
COMPILED_WITHIN_S = 600
"""The database of fastify is compiled when it is installed."""
NGINX = """
daemon off; worker_processes 1; worker_rlimit_nofile 40000; {user} pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 100000000; etag on;
  default_type application/json;
  open_file_cache max=20000 inactive=600s; open_file_cache_valid 600s;
  server {{
    listen 127.0.0.1:{port};
    location = /api/v1/companies {{ alias {static}/list.json; }}
    location /api/v1/companies/ {{ alias {static}/companies/; }}
    location = /zstd {{ alias {work}/same/list.zst; add_header Content-Encoding zstd; }}
    location = /page {{ alias {work}/same/page.zst; default_type text/html; add_header Content-Encoding zstd; }}
  }}
}}
"""


class Server(NamedTuple):
    """A running server."""

    name: str
    port: int
    process: psutil.Process

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu_s(self) -> float:
        """Return the CPU seconds of all its processes."""
        times = [each.cpu_times() for each in (self.process, *self.process.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[bytes, dict[str, str]]:
        with urlopen(Request(self.address(path), headers=dict(headers or {})), timeout=30) as answer:
            return answer.read(), {name.lower(): value for name, value in answer.headers.items()}


@contextlib.contextmanager
def servers(reference: Path, data: Path, *, names: frozenset[str]) -> Iterator[dict[str, Server]]:
    """Start those of the systems that this machine has; one that does not start is named and left out."""
    with contextlib.ExitStack() as stack:
        running: dict[str, Server] = {}
        for name, (command, environment, folder) in commands(reference, data).items():
            if name not in names:
                continue
            server = stack.enter_context(started(name, command, environment, folder))
            if server is not None:
                running[name] = server
            else:
                print(f"{name} did not start and is left out: see {WORK / name}.log")
        yield running


@contextlib.contextmanager
def started(name: str, command: list[object], environment: dict[str, str], folder: Path) -> Iterator[Server | None]:
    """Start one system on the core of the servers; None if it does not answer."""
    port = free_port()
    shown = [str(each).replace("{port}", str(port)) for each in command]
    if name == "nginx":
        user = "user root;" if os.geteuid() == 0 else ""
        values = {"port": port, "work": WORK, "static": WORK / "data" / "main.static", "user": user}
        (WORK / "rounds.conf").write_text(NGINX.format(**values))
    with (WORK / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, *shown],
            env={**os.environ, **environment},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield Server(name, port, psutil.Process(process.pid)) if answers(port, process) else None
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)


def commands(reference: Path, data: Path) -> dict[str, tuple[list[object], dict[str, str], Path]]:
    """Return command, environment and folder of each system that this machine has."""
    programs = reference / "servers"
    database = WORK / "data" / "main.sqlite"
    found: dict[str, tuple[list[object], dict[str, str], Path]] = {}
    settings = {
        "MUNIMENT_DATA": str(data),
        "MUNIMENT_BASE_URL": "http://registry.example",
        "MUNIMENT_RATE_LIMIT": "off",
        "MUNIMENT_EXPORTS_INTERVAL_S": "0",
    }
    product = [ROOT / ".venv" / "bin" / "python", ROOT / "bench" / "warmed.py", "serve", "--port", "{port}"]
    found["muniment"] = (product, settings, ROOT)
    if shutil.which("nginx"):
        found["nginx"] = (["nginx", "-p", WORK, "-c", WORK / "rounds.conf"], {}, WORK)
    if shutil.which("node") and (WORK / "fast" / "node_modules" / "fastify").exists():
        found["fastify"] = (["node", programs / "peer_fastify.mjs", "{port}", database], {}, WORK / "fast")
    options = "--host 127.0.0.1 --port {port} --loop uvloop --http httptools --no-access-log --log-level warning"
    fastapi = [VENV / "bin" / "uvicorn", "peer_fastapi_cached:app", *options.split()]
    found["fastapi"] = (fastapi, {"BENCH_SQLITE": str(database)}, programs)
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Return whether the server answers soon."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and process.poll() is None:
        for path in ("/api/v1/companies?page=1&pageSize=25", "/stored/api/v1/companies?page=1&pageSize=25"):
            with contextlib.suppress(OSError), urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
                answer.read()
                return True
        time.sleep(0.05)
    return False


def prepare(reference: Path) -> Path:
    """Make what the systems need, once: their packages, the generated registry, and its import."""
    WORK.mkdir(parents=True, exist_ok=True)
    packages = ("uvicorn", "httptools", "uvloop", "fastapi", "sqlalchemy", "aiosqlite", "greenlet", "orjson", "psutil")
    if not (VENV / "done").exists():
        uv = ROOT / ".venv" / "bin" / "uv"
        run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, VENV)
        run(uv, "pip", "install", "--quiet", "--python", VENV / "bin" / "python", *packages)
        (VENV / "done").touch()
    modules = WORK / "fast"
    if shutil.which("npm") and not (modules / "node_modules" / "fastify").exists():
        modules.mkdir(exist_ok=True)
        with contextlib.suppress(subprocess.SubprocessError):  # then fastify is left out
            wanted = ("fastify", "better-sqlite3")
            run("npm", "i", "--silent", "--no-audit", "--no-fund", *wanted, cwd=modules, timeout=COMPILED_WITHIN_S)
    if not (WORK / "data" / "main.slugs").exists():
        environment = {**os.environ, "BENCH_WORK": str(WORK)}
        run(sys.executable, reference / "gen.py", "--count", 5_000, "--name", "main", env=environment)
    data = WORK / "muniment" / "main"
    if not (data / "imported").exists():
        muniment = ROOT / ".venv" / "bin" / "muniment"
        run(muniment, "import", WORK / "data" / "main.import", env={**os.environ, "MUNIMENT_DATA": str(data)})
        (data / "imported").touch()
    return data


def run(*command: object, **more: object) -> str:
    shown = [str(part) for part in command]
    done = subprocess.run(shown, check=True, capture_output=True, text=True, **more)  # type: ignore[call-overload]  # what subprocess takes
    text: str = done.stdout
    return text


def load(
    server: Server, path: str, seconds: int, *options: str, script: tuple[str, ...] = (), is_refused: bool = False
) -> float:
    """Return the requests that *server* answers, or refuses, in a CPU second, under 32 connections."""
    command = ["taskset", "-c", LOAD_CORE, "wrk", "-t2", "-c32", f"-d{seconds}s", *options]
    before = server.cpu_s()
    if script:
        out = run(*command, "-s", script[0], server.address("/"), "--", *script[1:])
    else:
        out = run(*command, server.address(path))
    used_s = server.cpu_s() - before
    if ("Non-2xx" in out) != is_refused or not used_s:
        raise RuntimeError(f"{server.name} {path}: {out}")
    answered = int(re.findall(r"(\d+) requests in", out)[0])
    if not answered:
        raise RuntimeError(f"{server.name} {path}: no answer")
    return answered / used_s
