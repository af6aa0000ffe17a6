"""
Install the wheel of `make dist` as users do, and serve the demo from it.

With pip for each Python version that pyproject.toml names and this machine has, with `uvx` and with `pipx`: these take
the newest versions that the wheel permits. And with `uv` the oldest ones, with all optional features. Then ask the
demo what people, clients of the API and agents ask first. Prints a line for each way, and exits with 1 if one failed.
Needs a package index. Usage: wheel.py [FOLDER]
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[1]
START_S = 120
MAX_MB: Final = 240
"""What Muniment may take on the disk with its libraries and bytecode; 236 in November 2026."""
ANSWERS: Final = {
    "/": "<h1",
    "/docs": "REST",
    "/companies/quillmere": "Quillmere",
    "/accounts/login/": 'name="password"',
    "/accounts/signup/": 'name="email"',
    "/companies?q=quilmere": "/companies/quillmere",
    "/companies/quillmere/card.png": "PNG",
    "/api/v1/companies/quillmere": '"id":"quillmere"',
    "/api/v1/search?q=quillmere": '"quillmere"',
    "/openapi.json": '"openapi"',
    "/.well-known/oauth-authorization-server": '"authorization_endpoint"',
    "/.well-known/oauth-protected-resource/api/manage/mcp": '"authorization_servers"',
    "/.well-known/mcp.json": "/api/mcp",
    "/metrics": "muniment_ready 1.0",
}
"""What the demo answers at some addresses must contain."""
FEATURES: Final = (
    "muniment.credits.stripe_checkout",
    "muniment.assessments.evaluation.language_model.evaluator",
    "muniment.server.observability.traces",
)
"""The modules that need the optional libraries."""


def pythons() -> Iterator[tuple[str, str]]:
    """Yield each supported version with its interpreter, an empty text if this machine has none."""
    text = (ROOT / "pyproject.toml").read_text()
    for version in re.findall(r"Python :: (3\.\d+)\"", text):
        homes = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        yield version, str(homes[-1]) if homes else shutil.which(f"python{version}") or ""


def try_serving(command: list[str | Path], folder: Path) -> str:
    """Serve the demo in an empty folder; return what was measured."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "DJANGO_"))}
    clean.pop("PYTHONPATH", None)
    log = folder / "log"
    began = time.monotonic()
    with log.open("wb") as out:
        server = subprocess.Popen(  # noqa: S603 - what was just installed
            [*command, "serve", "--demo", "--port", str(port)],
            cwd=folder,
            env=clean,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        while not answers(f"http://127.0.0.1:{port}/readyz"):
            if server.poll() is not None or time.monotonic() - began > START_S:
                raise RuntimeError(log.read_text()[-2000:])
            time.sleep(0.2)
        ready_s = time.monotonic() - began
        if faults := [*wrong_answers(f"http://127.0.0.1:{port}", log.read_text())]:
            raise RuntimeError(", ".join(faults))
        if loud := [line for line in log.read_text().splitlines() if '"level": "error"' in line]:
            raise RuntimeError(loud[0][:2000])
        return f"demo served, ready after {ready_s:.1f} s"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - on loopback
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def wrong_answers(base: str, log: str) -> Iterator[str]:
    """Ask for pages, the API, both tool servers and the metadata of sign-in; yield what is answered wrong."""
    for path, expected in ANSWERS.items():
        if expected not in text_at(f"{base}{path}"):
            yield f"no {expected} at {path}"
    found = call(f"{base}/api/mcp", "tools/call", name="get_company", arguments={"slug": "quillmere"})
    if "Quillmere" not in json.dumps(found):
        yield f"get_company: {found}"
    [token] = re.findall(r"Token of the owner for /api/manage/mcp: (\S+)", log)
    mine = call(f"{base}/api/manage/mcp", "tools/call", token, name="list_my_companies", arguments={})
    if "tarnwick-tidal" not in json.dumps(mine):
        yield f"list_my_companies: {mine}"


def text_at(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:  # noqa: S310 - on loopback
            return bytes(answer.read()).decode("latin-1")
    except (OSError, urllib.error.URLError) as error:
        return f"{error}"


def call(address: str, method: str, token: str = "", **params: Any) -> Any:
    """Send a request to a tool server and return its answer."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(address, body, headers)  # noqa: S310 - on loopback
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310 - on loopback
            return json.load(answer)
    except (OSError, ValueError) as error:
        return f"{error}"


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(  # noqa: S603 - installers of this machine
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}, timeout=600
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout.strip()


def by_pip(python: str, wheel: Path, folder: Path) -> str:
    venv = folder / "venv"
    run(python, "-m", "venv", venv)
    pip_mb = disk_mb(venv)
    began = time.monotonic()
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)  # as users do: by the ranges of the wheel
    took_s = time.monotonic() - began
    size_mb = disk_mb(venv) - pip_mb
    if size_mb > MAX_MB:
        raise RuntimeError(f"installs {size_mb} MB, more than {MAX_MB}: see which library grew")
    version = run(venv / "bin" / "muniment", "--version")
    return f"{version}; installed in {took_s:.0f} s, {size_mb} MB; {try_serving([venv / 'bin' / 'muniment'], folder)}"


def disk_mb(folder: Path) -> int:
    """Return the space that the files of *folder* take, in whole blocks as du counts them."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_blocks * 512 for file in files) >> 20


def by_uv_oldest(python: str, wheel: Path, folder: Path) -> str:
    """Install the oldest versions that the wheel permits, with every optional feature."""
    uv, venv = Path(sys.executable).with_name("uv"), folder / "venv"
    run(python, "-m", "venv", venv)
    wanted = f"muniment[stripe,language-model,telemetry] @ {wheel.as_uri()}"
    into = ("--quiet", "--python", venv / "bin" / "python")
    run(uv, "pip", "install", *into, "--resolution", "lowest-direct", wanted)  # the oldest, not those of the lock
    imports = "; ".join(f"import {module}" for module in FEATURES)
    set_up = "import django; django.setup()"
    run(venv / "bin" / "python", "-c", f"{set_up}; {imports}", **django_environment(folder))
    return try_serving([venv / "bin" / "muniment"], folder)


def django_environment(folder: Path) -> dict[str, str]:
    return {"DJANGO_SETTINGS_MODULE": "muniment.settings", "MUNIMENT_DATA": str(folder / "imports")}


def by_uvx(wheel: Path, folder: Path) -> str:
    uv = Path(sys.executable).with_name("uv")
    command: list[str | Path] = [uv, "tool", "run", "--python", sys.executable, "--from", wheel, "muniment"]
    return f"{run(*command, '--version')}; {try_serving(command, folder)}"


def by_pipx(wheel: Path, folder: Path) -> str:
    tools = folder / "pipx"
    run(sys.executable, "-m", "venv", tools)
    run(tools / "bin" / "python", "-m", "pip", "install", "--quiet", "pipx")  # as users do
    places = {"PIPX_HOME": str(folder / "home"), "PIPX_BIN_DIR": str(folder / "bin")}
    run(tools / "bin" / "pipx", "install", "--python", sys.executable, wheel, **places)
    command = [folder / "bin" / "muniment"]
    return f"{run(*command, '--version')}; {try_serving([*command], folder)}"


def main() -> int:
    [wheel] = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve().glob("muniment-*.whl")
    ways = [(f"pip, Python {version}", by_pip, (python, wheel)) for version, python in pythons()]
    ways += [(f"oldest, Python {version}", by_uv_oldest, (python, wheel)) for version, python in pythons()]
    ways += [("uvx", by_uvx, (wheel,)), ("pipx", by_pipx, (wheel,))]
    failed = False
    for name, install, arguments in ways:
        if not arguments[0]:
            print(f"SKIP  {name}: not on this machine")
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(f"OK    {name}: {install(*arguments, Path(folder))}", flush=True)  # type: ignore[operator]  # by way
            except (RuntimeError, subprocess.SubprocessError, OSError) as error:
                failed = True
                print(f"FAIL  {name}: {error}", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
