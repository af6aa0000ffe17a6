"""
A PostgreSQL cluster under Patroni, with etcd and HAProxy, on loopback, run by an ordinary user without systemd.

PostgreSQL refuses to run as root, so root runs everything as the postgres user, and Patroni with Debian's Python,
because that user may not look into the environment of root.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg
import yaml

from services import linters
from services.installed import program
from services.ports import free_port, wait_until
from services.postgres import binaries

DEPLOY = Path(__file__).parents[2] / "deploy" / "cluster"
_ANYONE = ("local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust")


class Node:
    """One PostgreSQL and the Patroni that runs it."""

    def __init__(self, cluster: "Cluster", name: str) -> None:
        self.name = name
        self.port, self.api = free_port(), free_port()
        self.data = cluster.folder / name
        self._cluster = cluster
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Patroni, which creates the database of the first node and clones the others."""
        file = self._cluster.folder / f"{self.name}.yml"
        file.write_text(yaml.safe_dump(self._settings()))
        self._process = self._cluster.popen([self._cluster.python, "-m", "patroni", str(file)], self.name)

    def _settings(self) -> dict[str, Any]:
        """Return the settings of deploy/, with places and a trust that a test has."""
        address = f"127.0.0.1:{self.port}"
        people = {"superuser": "postgres", "replication": "replicator", "rewind": "rewinder"}
        found: dict[str, Any] = yaml.safe_load((DEPLOY / "patroni.yaml").read_text())
        found["bootstrap"]["dcs"] |= self._cluster.replication
        found["bootstrap"]["post_init"] = str(self._cluster.folder / "post-init")
        found["postgresql"] |= {
            "listen": address,
            "connect_address": address,
            "data_dir": str(self.data),
            "pgpass": str(self._cluster.folder / f"pgpass-{self.name}"),
            "bin_dir": str(binaries()),
            "parameters": {"unix_socket_directories": str(self._cluster.folder), "shared_buffers": "32MB"},
            "authentication": {role: {"username": name, "password": name} for role, name in people.items()},
            "pg_hba": list(_ANYONE),
        }
        api = f"127.0.0.1:{self.api}"
        return found | {
            "name": self.name,
            "restapi": {"listen": api, "connect_address": api},
            "etcd3": {"host": f"127.0.0.1:{self._cluster.etcd_port}"},
        }

    def status(self, path: str) -> int:
        """Return the status that Patroni answers at *path*; 0 if it does not answer."""
        return _asked(self.api, path)[0]

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, **more: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(), autocommit=True, connect_timeout=3, **more)

    @property
    def postmaster(self) -> psutil.Process:
        return psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))

    def kill(self) -> None:
        """Kill PostgreSQL and all its processes at once; Patroni keeps running."""
        postmaster = self.postmaster
        doomed = [postmaster, *postmaster.children(recursive=True)]
        for each in doomed:
            each.suspend()  # so that no child notices that another one died
        for each in doomed:
            each.kill()

    def senders(self) -> list[psutil.Process]:
        """Return the processes that send changes to the other nodes."""
        with self.connect() as connection:
            return [psutil.Process(pid) for (pid,) in connection.execute("SELECT pid FROM pg_stat_replication")]

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def end(self) -> None:
        """Wait for Patroni, and kill what is left."""
        if self._process is None:
            return
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        if (self.data / "postmaster.pid").exists():
            with contextlib.suppress(psutil.Error, OSError):
                self.kill()


class Cluster:
    """
    Nodes, etcd and HAProxy, in a context.

    Args:
        replication: Patroni's dynamic settings of it, such as ``synchronous_mode``.
    """

    def __init__(self, count: int = 3, **replication: Any) -> None:
        self.replication = replication
        for name in ("etcd", "haproxy"):
            program(name)
        self.folder = Path(tempfile.mkdtemp(prefix="muniment-patroni-"))
        self._owner = "postgres" if os.geteuid() == 0 else None
        self.python = "/usr/bin/python3" if self._owner else sys.executable
        self.etcd_port, self._peer_port, self.port = free_port(), free_port(), free_port()
        self.nodes = [Node(self, f"n{number}") for number in range(count)]
        self._others: list[subprocess.Popen[bytes]] = []

    def url(self, database: str, user: str = "muniment") -> str:
        """Return the URL of *database* on whichever node is the primary."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def popen(self, command: list[str], name: str) -> "subprocess.Popen[bytes]":
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                user=self._owner,
                group=self._owner,
                extra_groups=[] if self._owner else None,
                cwd=self.folder,
                env={
                    "PATH": "/usr/bin:/bin",
                    "PYTHONPATH": str(self.folder / "python"),
                    "HOME": str(self.folder),
                    "POSTGRES_PASSWORD": "a password of the tests",
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    @property
    def primary(self) -> Node | None:
        """Return the node that Patroni calls the primary, if there is one."""
        return next((node for node in self.nodes if node.status("/primary") == 200), None)

    def wait_primary(self, *, other_than: Node | None = None, within_s: float = 60) -> Node:
        found: list[Node] = []

        def is_there() -> bool:
            node = self.primary
            if node is not None and node is not other_than:
                found.append(node)
            return bool(found)

        wait_until(is_there, within_s=within_s, what="a primary")
        return found[0]

    def wait_whole(self, *, within_s: float = 90, patience_s: float = 25) -> int:
        """
        Wait until every other node streams from the primary.

        A node that does not come back by itself after *patience_s* is cloned again, as ``patronictl reinit`` does;
        returns how many were.
        """

        def is_whole() -> bool:
            members = self.members()
            return len(members) == len(self.nodes) and {each["state"] for each in members} == {"running", "streaming"}

        try:
            wait_until(is_whole, within_s=patience_s, what="all nodes streaming", every_s=0.1)
        except TimeoutError:
            states = {each["name"]: each["state"] for each in self.members()}
            lost = [node for node in self.nodes if states.get(node.name) not in {"running", "streaming"}]
            for node in lost:
                _asked(node.api, "/reinitialize", "POST", b'{"force": true}')
            wait_until(is_whole, within_s=within_s, what="all nodes streaming", every_s=0.1)
            return len(lost)
        return 0

    def members(self) -> list[dict[str, Any]]:
        """Return the members as Patroni lists them."""
        for node in self.nodes:
            status, body = _asked(node.api, "/cluster")
            if status == 200:
                found: list[dict[str, Any]] = json.loads(body)["members"]
                return found
        return []

    def configure(self, **settings: Any) -> None:
        """Change Patroni's dynamic settings."""
        body = json.dumps(settings).encode()
        node = self.wait_primary()
        connection = http.client.HTTPConnection("127.0.0.1", node.api, timeout=10)
        connection.request("PATCH", "/config", body, {"Content-Type": "application/json"})
        assert connection.getresponse().status == 200
        connection.close()

    def create(self, database: str) -> str:
        """Create *database*, owned by the role that post-init has made; return its URL through HAProxy."""
        with self.wait_primary().connect() as connection:
            connection.execute(f'CREATE DATABASE "{database}" OWNER muniment')
        return self.url(database)

    def __enter__(self) -> Self:
        try:
            return self._begin()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def _begin(self) -> Self:
        packages = linters.folder("cluster", "--python", self.python)
        shutil.copytree(packages, self.folder / "python", ignore=shutil.ignore_patterns("bin"))
        shutil.copy(DEPLOY / "post-init", self.folder)
        self._haproxy_file().write_text(self._haproxy_settings())
        if self._owner:
            shutil.chown(self.folder, self._owner, self._owner)
        self._others.append(self.popen(self._etcd(), "etcd"))
        wait_until(lambda: _asked(self.etcd_port, "/health")[0] == 200, within_s=30, what="etcd answering")
        first, *others = self.nodes
        first.start()
        wait_until(lambda: first.status("/primary") == 200, within_s=60, what="the first primary")
        for node in others:
            node.start()
        self._others.append(self.popen([program("haproxy"), "-f", str(self._haproxy_file()), "-db"], "haproxy"))
        self.wait_whole()
        wait_until(self._answers, within_s=60, what="HAProxy leading to the primary")
        return self

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url("postgres", "postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _etcd(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self.etcd_port}", f"http://127.0.0.1:{self._peer_port}"
        told = {"name": "etcd", "data-dir": str(self.folder / "etcd"), "log-level": "warn"}
        told |= {"listen-client-urls": client, "advertise-client-urls": client, "listen-peer-urls": peer}
        told |= {"initial-advertise-peer-urls": peer, "initial-cluster": f"etcd={peer}"}
        return [program("etcd"), *(f"--{name}={value}" for name, value in told.items()), "--unsafe-no-fsync"]

    def _haproxy_file(self) -> Path:
        return self.folder / "haproxy.cfg"

    def _haproxy_settings(self) -> str:
        """Return the settings of deploy/ with these nodes."""
        lines = (DEPLOY / "haproxy.cfg").read_text().replace("bind :5432", f"bind 127.0.0.1:{self.port}").splitlines()
        kept = [line for line in lines if not line.startswith("    server ")]
        assert f"    bind 127.0.0.1:{self.port}" in kept
        nodes = [f"    server {node.name} 127.0.0.1:{node.port} check port {node.api}" for node in self.nodes]
        return "\n".join([*kept, *nodes, ""])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.stop()
        for node in self.nodes:
            node.end()
        for process in self._others:
            process.send_signal(signal.SIGKILL)
            process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)


def _asked(port: int, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
