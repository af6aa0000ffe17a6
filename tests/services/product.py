"""The product: commands run to their end, and the server on a free loopback port."""

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from services.ports import free_port, wait_until
from services.warm import Process, interpreter

if TYPE_CHECKING:
    from services.postgres import Postgres

COMMAND = (sys.executable, "-m", "muniment")
DEMO = Path(__file__).parents[2] / "src" / "muniment" / "demo"


Constants = Mapping[str, Any]
WITHOUT_FAST_PATH: Constants = {
    "muniment.server.process.server_process.FastPathProtocol": {
        "is": "muniment.server.http.http_limits:LimitedProtocol"
    }
}
"""Every request takes the ordinary path, whose answers those of the fast path are compared with."""


class Served:
    """How products are served in this run of the suite; set by its options."""

    cluster: "Postgres | None" = None
    """Where the database of each data folder is created; None leaves it in the folder."""
    workers = 1
    forks = True
    """Whether a process is a fork of an interpreter that has imported the libraries; a new interpreter otherwise."""
    cheap_hashes = True
    """Whether a fork hashes passwords at the least cost: what a hash costs is the business of few tests."""
    _made: ClassVar[set[str]] = set()

    @classmethod
    def database_url(cls, data: Path) -> str:
        """Return the database of a data folder, created on first use; "" is the file in the folder."""
        if cls.cluster is None:
            return ""
        name = cls._name(data)
        if name not in cls._made:
            cls._made.add(name)
            return cls.cluster.create(name)
        return cls.cluster.url(name)

    @classmethod
    @contextmanager
    def hashing_at_full_cost(cls) -> Iterator[None]:
        """Let processes that are started meanwhile hash passwords as those of an operator do."""
        cls.cheap_hashes, before = False, cls.cheap_hashes
        try:
            yield
        finally:
            cls.cheap_hashes = before

    @classmethod
    def copy(cls, source: Path, data: Path) -> None:
        """Copy the database of *source* to *data*; *source* must have no connections."""
        if cls.cluster is not None:
            cls.cluster.create(cls._name(data), template=cls._name(source))
            cls._made.add(cls._name(data))

    @staticmethod
    def _name(data: Path) -> str:
        return "product_" + hashlib.blake2b(str(data.absolute()).encode(), digest_size=8).hexdigest()


def environment(data: Path, **settings: str) -> dict[str, str]:
    """
    Return the environment of a child: this one without its settings, plus *settings* by name.

    Args:
        data: the child's data folder.
        settings: for example ``rate_limit="off"``.
    """
    if "database_url" not in settings:
        settings["database_url"] = Served.database_url(data)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "DJANGO_"))}
    return {
        **kept,
        "MUNIMENT_DATA": str(data),
        "PYTHONWARNINGS": "default",
        "MUNIMENT_LINK_CHECKS": "off",  # no test depends on the network
        **{f"MUNIMENT_{name.upper()}": value for name, value in settings.items()},
    }


def run(
    *arguments: str,
    data: Path,
    stdin: str = "",
    check: bool = True,
    timeout_s: float = 240,
    constants: Constants | None = None,
    **settings: str,
) -> subprocess.CompletedProcess[str]:
    """
    Run a subcommand of ``muniment`` to its end.

    Args:
        constants: other values of constants; see :func:`services.warm.set_constants`.

    Raises:
        AssertionError: it failed and *check* is true; includes its output.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        files = given.fileno(), out.fileno(), err.fileno()
        process = started(arguments, environment(data, **settings), files, constants)
        try:
            code = process.wait(timeout_s)
        finally:
            process.kill()
        told = [_whole(file) for file in (out, err)]
    done = subprocess.CompletedProcess([*COMMAND, *arguments], code, *told)
    if check:
        assert done.returncode == 0, f"muniment {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def _whole(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def started(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: tuple[int, int, int],
    constants: Constants | None = None,
) -> "subprocess.Popen[bytes] | Process":
    """
    Start ``muniment`` in a process; *files* are its standard input, output and error output.

    With other values of *constants* it is always a fork, which alone can have them.
    """
    fits = interpreter().fits(environment)
    assert fits or not constants, "a fork would not be as a new process in this environment"
    if constants or (Served.forks and fits):
        return interpreter().start(
            list(arguments), environment, files, cheap_hashes=Served.cheap_hashes, constants=constants
        )
    return subprocess.Popen([*COMMAND, *arguments], env=environment, stdin=files[0], stdout=files[1], stderr=files[2])


class Answer(NamedTuple):
    """An HTTP response. Header names are in lower case; repeated headers are joined with commas."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def process(self) -> str:
        """Return which process answered, if the request had no id of its own."""
        return self.headers["x-request-id"][:-8]

    def json(self) -> Any:
        return json.loads(self.body)


class Product:
    """
    ``muniment serve`` as a process, in a context.

    Args:
        data: its data folder; an existing instance is served.
        constants: other values of constants, in one process; see :func:`services.warm.set_constants`.
        settings: its settings by name; the rate limits are off by default.
    """

    def __init__(self, data: Path, *arguments: str, constants: Constants | None = None, **settings: str) -> None:
        self.data = data
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self.log = data.parent / f"{data.name}-{self.port}.log"
        # The processes of a supervisor are new interpreters, with the constants of the product.
        workers = 1 if constants else Served.workers
        self._arguments = arguments if "--workers" in arguments else (*arguments, "--workers", str(workers))
        self._constants = constants
        self._settings = {"rate_limit": "off", "account_writes": "off", "account_cpu_ms": "off", **settings}
        self._process: subprocess.Popen[bytes] | Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self, *, within_s: float = 90) -> Self:
        """Start, and wait until /healthz answers 200."""
        arguments = ["serve", "--host", "127.0.0.1", "--port", str(self.port), *self._arguments]
        with self.log.open("ab") as log, Path(os.devnull).open("rb") as nothing:
            files = nothing.fileno(), log.fileno(), log.fileno()
            self._process = started(arguments, environment(self.data, **self._settings), files, self._constants)
        wait_until(lambda: self._up("/healthz"), within_s=within_s, what="muniment serve answering")
        if Served.cluster is not None and "database_url" not in self._settings:
            wait_until(self._is_built, within_s=within_s, what="the node's copy of the registry")
        return self

    def wait_ready(self, path: str = "/readyz", *, within_s: float = 90) -> None:
        """Wait until *path* answers 200 in each process: pages and tools start after the first responses."""
        wait_until(lambda: self._up(path), within_s=within_s, what=f"200 at {path} by each process")

    def _up(self, path: str) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"muniment serve ended with {self._process.returncode}:\n{self.output()}")
        try:
            return all(answer.status == 200 for answer in self.get_of_each(path))
        except OSError:
            return False

    def _is_built(self) -> bool:
        """Return whether reads are served; not charged to the client's rate."""
        told = b"".join(answer.body for answer in self.get_of_each("/readyz"))
        return b"being built" not in told and b"do not exist yet" not in told

    def output(self) -> str:
        """Return the server's output so far."""
        return self.log.read_text(errors="replace")

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        """Send one request on a new connection and return the raw response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            given = dict(headers or {})
            if body is not None:
                given.setdefault("Content-Length", str(len(body)))
            for name, value in given.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            folded: dict[str, str] = {}
            for name, value in response.getheaders():
                key = name.lower()
                folded[key] = f"{folded[key]}, {value}" if key in folded else value
            return Answer(response.status, folded, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """Send a GET; header names use underscores for hyphens."""
        return self.request("GET", path, {name.replace("_", "-"): value for name, value in headers.items()})

    @property
    def workers(self) -> int:
        """Return the number of processes."""
        return int(self._arguments[self._arguments.index("--workers") + 1])

    def get_of_each(self, path: str) -> list[Answer]:
        """Send the same GET until each process has answered once; the kernel chooses the process of a connection."""
        answers: dict[str, Answer] = {}
        while len(answers) < self.workers:
            answer = self.get(path)
            answers.setdefault(answer.process, answer)
        return list(answers.values())

    def metrics(self) -> str:
        """Return the metrics of all processes: each has stored its own when the last one answers."""
        return self.get_of_each("/metrics")[-1].body.decode()

    def data_of(self, path: str) -> Any:
        """Return ``data`` of a 200 response at *path*."""
        answer = self.get(path)
        assert answer.status == 200, answer
        return answer.json()["data"]

    def stop(self, *, within_s: float = 60) -> int:
        """Stop it with SIGTERM and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(within_s)
        finally:
            self._process.kill()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Kill it, as in a power failure."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop()
