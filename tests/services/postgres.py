"""A throwaway PostgreSQL cluster on a loopback port, in a temporary folder, without fsync."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

from services.ports import free_port, wait_until

DEBIAN = Path("/usr/lib/postgresql")


def binaries() -> Path:
    """
    Find the folder of the newest installed PostgreSQL.

    Raises:
        FileNotFoundError: there is none; says how to get one.
    """
    found = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    if elsewhere:
        return Path(elsewhere).parent
    message = "PostgreSQL is not installed: run `make test` as root, or `apt-get install postgresql`"
    raise FileNotFoundError(message)


class Postgres:
    """One running cluster. PostgreSQL refuses to run as root, so root runs it as the postgres user."""

    def __init__(self) -> None:
        owner = "postgres" if os.geteuid() == 0 else None
        tools = binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="muniment-postgres-"))
        if owner is not None:
            user = pwd.getpwnam(owner)
            os.chown(self._folder, user.pw_uid, user.pw_gid)
        self._cluster = self._folder / "cluster"
        self._log = self._folder / "log"
        self.port = free_port()
        subprocess.run(
            [tools / "initdb", "-D", self._cluster, "-U", "muniment", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]
            + ["--no-sync", "--no-instructions"],
            user=owner,
            cwd=self._folder,
            check=True,
            capture_output=True,
            timeout=60,
        )
        self._serve = [str(tools / "postgres"), "-D", str(self._cluster), "-p", str(self.port)]
        for option in (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
            "shared_buffers=32MB",
            "max_connections=200",
            "autovacuum=off",
        ):
            self._serve += ["-c", option]
        self._owner = owner
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Give the address of *database* as ``MUNIMENT_DATABASE_URL`` takes it."""
        return f"postgresql://muniment@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._serve, user=self._owner, cwd=self._folder, stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._answers, within_s=30, what="PostgreSQL answering")

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError("PostgreSQL ended at once:\n" + self._log.read_text())
        try:
            psycopg.connect(self.url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str) -> None:
        """Run one statement in the maintenance database, outside a transaction."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def create(self, database: str, *, template: str | None = None) -> str:
        """Create *database*, as a copy of *template* if one is named, and give its address."""
        copy = f' TEMPLATE "{template}"' if template else ""
        self.execute(f'CREATE DATABASE "{database}"{copy}')
        return self.url(database)

    def drop(self, database: str) -> None:
        """Drop *database*, whoever is still connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def stop(self) -> None:
        """Stop at once, as a crash would; :meth:`start` brings it back."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT is PostgreSQL's immediate shutdown
            self._process.wait(30)
            self._process = None

    def close(self) -> None:
        """Stop and remove everything."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
