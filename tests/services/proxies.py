"""The proxies of deploy/, as they are configured there, without TLS on free loopback ports."""

import http.client
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services import linters
from services.ports import free_port, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"


@contextmanager
def caddy(folder: Path, *nodes: str, command: str | Path = "") -> Iterator[int]:
    """Run Caddy in front of *nodes* (host:port), by default the locked version; yield its port."""
    port = free_port()
    file = folder / "Caddyfile"
    file.write_text(_replaced(DEPLOY / "caddy" / "Caddyfile", {"admin off": "admin off\n\tauto_https off"}))
    told = {"MUNIMENT_SITE": f"http://127.0.0.1:{port}", "MUNIMENT_NODES": " ".join(nodes), "HOME": str(folder)}
    program = command or linters.folder() / "bin" / "caddy"
    with _running(
        [program, "run", "--config", file, "--adapter", "caddyfile"], folder / "caddy.log", port, {**os.environ, **told}
    ):
        yield port


@contextmanager
def nginx(folder: Path, *nodes: str) -> Iterator[int]:
    """Run nginx in front of *nodes* (host:port); yield its port."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    assert Path(program).exists(), "nginx is not installed: run make services"
    port = free_port()
    file = folder / "nginx.conf"
    bodies = folder / "bodies"
    bodies.mkdir()
    servers = "\n".join(f"server {node} max_fails=0;" for node in nodes)
    file.write_text(
        _replaced(
            DEPLOY / "nginx" / "nginx.conf",
            {
                # As root, its workers would be another user, who may not write into a test's folder.
                "user www-data;": "user root;" if os.geteuid() == 0 else "",
                "pid /run/nginx.pid;": f"pid {folder}/nginx.pid;\ndaemon off;",
                "server_tokens off;": f"server_tokens off;\nclient_body_temp_path {bodies};\nproxy_temp_path {bodies};",
                "server 127.0.0.1:8000 max_fails=0;": servers,
                "listen 80 default_server;": f"listen 127.0.0.1:{free_port()};",
                "listen 443 ssl http2 default_server;": f"listen 127.0.0.1:{port};",
                "ssl_certificate /etc/nginx/certificate.pem;": "",
                "ssl_certificate_key /etc/nginx/key.pem;": "",
                "ssl_session_cache shared:tls:10m;": "",
            },
        )
    )
    with _running([program, "-p", folder, "-e", "stderr", "-c", file], folder / "nginx.log", port, dict(os.environ)):
        yield port


def _replaced(file: Path, replacements: dict[str, str]) -> str:
    text = file.read_text()
    for old, new in replacements.items():
        assert text.count(old) == 1, f"{file.name} has {old!r} {text.count(old)} times"
        text = text.replace(old, new)
    return text


@contextmanager
def _running(command: list[object], log: Path, port: int, environment: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: _answers(process, log, port), within_s=30, what=f"{command[0]} answering")
        yield
    finally:
        process.terminate()
        process.wait(30)


def _answers(process: "subprocess.Popen[bytes]", log: Path, port: int) -> bool:
    assert process.poll() is None, log.read_text()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()
