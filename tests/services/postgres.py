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
    Return the folder of the newest installed PostgreSQL.

    Raises:
        FileNotFoundError: none is installed; says how to install it.
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
    """A running cluster. PostgreSQL refuses to run as root, so root runs it as the postgres user."""

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
        """Return the URL of *database* for ``MUNIMENT_DATABASE_URL``."""
        return f"postgresql://muniment@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
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
        """Create *database*, optionally as a copy of *template*, and return its URL."""
        copy = f' TEMPLATE "{template}"' if template else ""
        self.execute(f'CREATE DATABASE "{database}"{copy}')
        return self.url(database)

    def dump(self, database: str, file: Path) -> None:
        """Write what makes *database* again to *file*."""
        self._client("pg_dump", "--no-owner", "--file", str(file), self.url(database))

    def load(self, database: str, file: Path) -> None:
        """Make in *database*, which is empty, what :meth:`dump` has written."""
        self._client("psql", "-q", "-X", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(file), self.url(database))

    @staticmethod
    def _client(name: str, *arguments: str) -> None:
        subprocess.run([binaries() / name, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=120)

    def drop(self, database: str) -> None:
        """Drop *database* despite open connections."""
        self.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    def stop(self) -> None:
        """Stop at once, as in a crash; :meth:`start` recovers it."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT is PostgreSQL's immediate shutdown
            self._process.wait(30)
            self._process = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "PostgreSQL is not running"
        return self._process.pid

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


class Kept:
    """
    The current rows of a database, to be restored quickly: creating a database takes ten times as long.

    Args:
        url: the database.
    """

    _FORM = """
        SELECT md5(string_agg(concat_ws(' ', relname, attname, atttypid, attnotnull), ',' ORDER BY relname, attnum))
        FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'S', 'v') AND NOT attisdropped
    """
    _SEQUENCES = """
        SELECT format('%I.%I', schemaname, sequencename), coalesce(last_value, start_value), last_value IS NOT NULL
        FROM pg_sequences ORDER BY 1
    """

    def __init__(self, url: str) -> None:
        self._url = url
        with psycopg.connect(url) as connection:
            self._form = connection.execute(self._FORM).fetchone()
            self._sequences = connection.execute(self._SEQUENCES).fetchall()
            found = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            each = (f"(SELECT '{table}' FROM \"{table}\" LIMIT 1)" for (table,) in found)
            self._filled = " UNION ALL ".join(each)
            self._rows = {table: self._read(connection, table) for table in self._tables(connection)}

    def _tables(self, connection: psycopg.Connection) -> list[str]:
        return [table for (table,) in connection.execute(self._filled).fetchall()]

    @staticmethod
    def _read(connection: psycopg.Connection, table: str) -> bytes:
        with connection.cursor().copy(f'COPY "{table}" TO STDOUT') as copy:
            return b"".join(bytes(piece) for piece in copy)

    def put_back(self) -> None:
        """
        Restore the rows and the sequences despite open connections.

        Raises:
            AssertionError: a table, a column or an index was added, changed or removed.
        """
        with psycopg.connect(self._url) as connection:
            # No key is checked meanwhile; the rows also survive a crash right afterwards.
            connection.execute("SET session_replication_role = replica; SET synchronous_commit = on")
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert connection.execute(self._FORM).fetchone() == self._form, "a test changed the form of the database"
            for table in self._tables(connection):
                connection.execute(f'DELETE FROM "{table}"')
            for table, rows in self._rows.items():
                with connection.cursor().copy(f'COPY "{table}" FROM STDIN') as copy:
                    copy.write(rows)
            now = connection.execute(self._SEQUENCES).fetchall()
            for sequence in set(self._sequences) - set(now):
                connection.execute("SELECT setval(%s, %s, %s)", sequence)
