"""Varnish as it is configured in deploy/, in front of one address on loopback."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.installed import program
from services.ports import free_port
from services.proxies import DEPLOY, _replaced, _running


@contextmanager
def varnish(folder: Path, port: int) -> Iterator[int]:
    """Run Varnish in front of *port*; yield its own port."""
    own = free_port()
    file = folder / "muniment.vcl"
    file.write_text(_replaced(DEPLOY / "varnish" / "muniment.vcl", {'.port = "8000"': f'.port = "{port}"'}))
    command: list[object] = [program("varnishd"), "-j", "none", "-F", "-n", folder / "varnish"]
    command += ["-a", f"127.0.0.1:{own}", "-f", file, "-s", "malloc,64M"]
    with _running(command, folder / "varnish.log", own, {"PATH": "/usr/local/bin:/usr/bin:/bin"}):
        yield own


def compiled(folder: Path) -> "subprocess.CompletedProcess[str]":
    """Compile the file of deploy/ without starting anything."""
    command = [program("varnishd"), "-C", "-n", folder / "compiled", "-f", DEPLOY / "varnish" / "muniment.vcl"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
