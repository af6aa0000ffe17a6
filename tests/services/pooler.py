"""pgbouncer in transaction mode in front of a throwaway PostgreSQL."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import psycopg

from services.ports import free_port, wait_until

SHIPPED = Path(__file__).parents[2] / "deploy" / "cluster" / "pgbouncer.ini"


class Pooler:
    """
    A pgbouncer with few server connections, so that clients really share them.

    Args:
        server_url: of a database of the cluster.
        shipped: take the settings of deploy/cluster instead, with its larger pool.
    """

    def __init__(self, server_url: str, *, shipped: bool = False) -> None:
        self.server_url = server_url
        self._is_shipped = shipped
        self.port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="muniment-pooler-"))
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def is_installed() -> bool:
        return shutil.which("pgbouncer") is not None

    @property
    def url(self) -> str:
        """Return the URL of the database through the pooler."""
        parts = urlsplit(self.server_url)
        return f"postgresql://{parts.username}@127.0.0.1:{self.port}{parts.path}"

    def __enter__(self) -> Self:
        server = urlsplit(self.server_url)
        (self._folder / "users").write_text(f'"{server.username}" ""\n')
        (self._folder / "pgbouncer.ini").write_text(
            self._shipped(server.port, server.username)
            if self._is_shipped
            else self._small(server.port, server.username)
        )
        owner = "postgres" if os.geteuid() == 0 else None
        if owner is not None:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, pwd.getpwnam(owner).pw_uid, -1)
        pgbouncer = shutil.which("pgbouncer")
        assert pgbouncer is not None, "pgbouncer is not installed: run `make services` as root"
        self._process = subprocess.Popen(
            [pgbouncer, "-q", str(self._folder / "pgbouncer.ini")], user=owner, stderr=subprocess.DEVNULL
        )
        wait_until(self._answers, within_s=60, what="pgbouncer answering")
        return self

    def _small(self, port: int | None, user: str | None) -> str:
        return (
            "[databases]\n"
            f"* = host=127.0.0.1 port={port} user={user}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {self._folder / 'users'}\n"
            "pool_mode = transaction\ndefault_pool_size = 4\nmax_client_conn = 200\n"
        )

    def _shipped(self, port: int | None, user: str | None) -> str:
        text = SHIPPED.read_text()
        for old, new in {
            "host=haproxy port=5432": f"host=127.0.0.1 port={port} user={user}",
            "listen_addr = *": "listen_addr = 127.0.0.1",
            "listen_port = 5432": f"listen_port = {self.port}",
            "auth_type = scram-sha-256": "auth_type = trust",
            "/run/muniment/users": str(self._folder / "users"),
        }.items():
            assert text.count(old) == 1, f"pgbouncer.ini has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        return text

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
        shutil.rmtree(self._folder, ignore_errors=True)
