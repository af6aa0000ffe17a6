"""
Install the wheel of `make dist` as users do, and serve the demo from it.

With pip for each Python version that pyproject.toml names and this machine has, with `uvx` and with `pipx`; then get
the front page, the documentation and a company. Prints a line for each way, and exits with 1 if one failed. Needs a
package index. Usage: wheel.py [FOLDER]
"""

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

ROOT = Path(__file__).parents[1]
PATHS = ("/", "/docs", "/companies/quillmere", "/api/v1/companies/quillmere")
START_S = 120


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
        failed = [path for path in PATHS if not answers(f"http://127.0.0.1:{port}{path}")]
        if failed:
            raise RuntimeError(f"no answer at {', '.join(failed)}")
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
    began = time.monotonic()
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)  # as users do: by the ranges of the wheel
    took_s = time.monotonic() - began
    size = sum(file.stat().st_size for file in venv.rglob("*") if file.is_file() and not file.is_symlink()) >> 20
    version = run(venv / "bin" / "muniment", "--version")
    return f"{version}; installed in {took_s:.0f} s, {size} MB; {try_serving([venv / 'bin' / 'muniment'], folder)}"


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
    [wheel] = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve().glob("*.whl")
    ways = [(f"pip, Python {version}", by_pip, (python, wheel)) for version, python in pythons()]
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
