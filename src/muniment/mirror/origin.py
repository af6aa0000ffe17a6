"""
Requests to the registry that is copied, which may be slow, silent, restarted or hostile.

The operator names its address, which may also be a private one. Nothing that the origin says leads to another: no
redirect is followed, and files are fetched from the same address whatever URL the list gives. Each answer has a limit
in bytes and a deadline as a whole, because an origin that sends a byte now and then would never end otherwise.
"""

import contextlib
import hashlib
import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.outbound.addresses import addresses_of

CONNECT_S: Final = 10.0
SILENT_S: Final = 30.0
"""Seconds without a byte after which the origin counts as silent."""
ANSWER_S: Final = 60.0
"""Seconds for an answer as a whole, beside those that the origin is told to wait."""
SLOWEST_BYTES_A_SECOND: Final = 64 << 10
"""Of files: a slower origin is given up, and its file continued from where it ended."""
MAX_ANSWER_BYTES: Final = 64 << 20
"""A page of changes has documents of 1 MB together; a document that has an answer of its own may have more."""
MAX_FILE_BYTES: Final = 8 << 30
PIECE_BYTES: Final = 256 << 10
TRIES: Final = 6
"""Attempts in a row that fail before a command that does not follow gives up: about two minutes."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
LONGEST_ASKED_PAUSE_S: Final = 600.0
"""A pause that the origin asks for is kept up to this, so that a wrong one does not stop the copy for days."""
_TEMPORARY: Final = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
        HTTPStatus.INTERNAL_SERVER_ERROR,
    }
)
T = TypeVar("T")


class Answer(NamedTuple):
    """A status that is 200 or one that the caller expects, the body, and the edition that the origin says it shows."""

    status: int
    body: bytes
    edition: int


class File(NamedTuple):
    """A file of the origin, with what its list says of it."""

    path: str
    size_bytes: int
    sha256: str


def origin_address(text: str) -> str:
    """
    Return the address of a registry without a path.

    Raises:
        BadRequest: it is not the address of a website.
    """
    url = urlsplit(text.strip())
    try:
        port = url.port
    except ValueError:
        port = -1
    host = url.hostname or ""
    is_of_website = host and url.scheme in {"http", "https"} and port != -1
    has_more = url.username or url.password or url.query or url.fragment or url.path.strip("/")
    if not is_of_website or has_more:
        raise BadRequest(
            Phrase("{address} is not the address of a registry.", address=text[:200]),
            "Give it without a path, such as https://registry.example",
        )
    if ":" in host:
        host = f"[{host}]"
    address = f"{url.scheme}://{host}"
    return f"{address}:{port}" if port else address


class Origin:
    """
    The registry at *address*, over one connection that is kept.

    Args:
        keeps_trying: whether it is asked until it answers; otherwise :data:`TRIES` times in a row.
        wait: waits for seconds, and returns whether to stop.
        tells: receives a sentence when the origin does not answer, and when it does again.
    """

    def __init__(
        self,
        address: str,
        *,
        keeps_trying: bool = False,
        wait: Callable[[float], bool],
        tells: Callable[[str], None] = lambda _: None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = origin_address(address)
        self._parts = urlsplit(self.address)
        self._keeps_trying, self._wait, self._tells = keeps_trying, wait, tells
        self._tls = tls
        self._line: http.client.HTTPConnection | None = None
        self._is_interrupted = False

    def interrupt(self) -> None:
        """End the request that is waited for, because the command is to end; a signal may call this at any moment."""
        self._is_interrupted = True
        if self._line is not None and self._line.sock is not None:
            with contextlib.suppress(OSError):
                self._line.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def pause(self, seconds: float) -> None:
        """Wait before the next question; raise Stopped if the command is to end."""
        if self._wait(seconds):
            raise Stopped

    def get(
        self,
        path: str,
        *,
        expected: frozenset[int] = frozenset(),
        waits_s: float = 0,
        most_bytes: int = 0,
    ) -> Answer:
        """
        Return the answer to a GET request, once the origin gives one.

        Args:
            expected: statuses beside 200 that are answers too.
            waits_s: seconds for which the origin is asked to wait.
            most_bytes: the limit of the answer, if it is not :data:`MAX_ANSWER_BYTES`.

        Raises:
            BadRequest: the answer is not one of a registry.
            Unavailable: there is none after several attempts.
        """
        return self._until_answered(lambda: self._get(path, expected, waits_s, most_bytes))

    def read(self, path: str, form: type[T], *, waits_s: float = 0) -> T:
        """Return what an answer holds; raise BadRequest if it has another form."""
        return self.decoded(self.get(path, waits_s=waits_s).body, form)

    def decoded(self, body: bytes, form: type[T]) -> T:
        """Return what the body of an answer holds; raise BadRequest if it has another form."""
        try:
            return msgspec.json.decode(body, type=form)
        except msgspec.MsgspecError as error:
            raise self._foreign(str(error)) from None

    def download(self, file: File, to: Path) -> None:
        """
        Fetch a file into *to*, and continue one that is there in part. It then has the size and digest that were told.

        Raises:
            BadRequest: it has others, also when it is fetched from its beginning.
            Unavailable: the origin does not send it, after several attempts.
        """
        if file.size_bytes > MAX_FILE_BYTES:
            raise self._foreign(f"{file.path} has {file.size_bytes} bytes, more than a copy may have")
        self._until_answered(lambda: self._continue(file, to))
        if _sha256(to) != file.sha256:
            to.unlink()  # what is there in part may be of another attempt
            self._until_answered(lambda: self._continue(file, to))
            if _sha256(to) != file.sha256:
                to.unlink()
                raise self._foreign(f"{file.path} has another digest than its list says")

    def _until_answered(self, ask: Callable[[], T]) -> T:
        pause_s, failures = FIRST_PAUSE_S, 0
        while True:
            try:
                answer = ask()
            except _Later as later:
                failures += 1
                self.close()
                if self._is_interrupted:
                    raise Stopped from None
                if failures == 1:
                    self._tells(f"{self.address} {later}; trying again")
                if failures >= TRIES and not self._keeps_trying:
                    raise Unavailable(
                        Phrase("{address} {reason}.", address=self.address, reason=str(later)),
                        "Run the command again later; it continues where it was.",
                    ) from None
                asked_s = min(later.after_s, LONGEST_ASKED_PAUSE_S)
                if self._wait(max(pause_s, asked_s)):
                    raise Stopped from None
                # What is continued from where it ended makes progress, however often it ends.
                if later.has_progress:
                    failures, pause_s = 0, FIRST_PAUSE_S
                else:
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            else:
                if failures:
                    self._tells(f"{self.address} answers again")
                return answer

    def _get(self, path: str, expected: frozenset[int], waits_s: float, most_bytes: int) -> Answer:
        with self._asked(path, {"Accept": "application/json"}, ANSWER_S + waits_s, waits_s) as response:
            if response.status != HTTPStatus.OK and response.status not in expected:
                raise self._unexpected(path, response)
            limit = most_bytes or MAX_ANSWER_BYTES
            body = response.read(limit + 1)
            if len(body) > limit:
                self.close()
                raise self._foreign(f"the answer to {path} is larger than {limit >> 10:,} KB")
            edition = response.getheader("X-Muniment-Edition") or ""
        number = int(edition) if re.fullmatch(r"\d{1,15}", edition) else -1
        return Answer(response.status, body, number)

    def _continue(self, file: File, to: Path) -> None:
        """Fetch what a file lacks."""
        at_first = to.stat().st_size if to.exists() else 0
        if at_first > file.size_bytes:
            to.unlink()
            at_first = 0
        if at_first == file.size_bytes:
            return
        headers = {"Accept": "application/gzip"}
        if at_first:
            headers["Range"] = f"bytes={at_first}-"
        seconds = ANSWER_S + (file.size_bytes - at_first) / SLOWEST_BYTES_A_SECOND
        try:
            with self._asked(file.path, headers, seconds) as response:
                start = at_first
                if response.status == HTTPStatus.OK:
                    start = 0  # the origin sends all of it
                elif response.status != HTTPStatus.PARTIAL_CONTENT or not at_first:
                    raise self._unexpected(file.path, response)
                present = _write_from(start, response, file, to)
        except _Later as later:
            later.has_progress = to.exists() and to.stat().st_size > at_first
            raise
        finally:
            self.close()  # what follows the file is not read
        if present < file.size_bytes:
            raise _Later(f"ended {file.path} before its end", has_progress=present > at_first)

    @contextmanager
    def _asked(
        self, path: str, headers: dict[str, str], seconds: float, waits_s: float = 0
    ) -> Iterator[http.client.HTTPResponse]:
        """Provide the response to a request; what keeps it from being read in time is a reason to ask later."""
        end = time.monotonic() + seconds
        try:
            line = self._connected()
            if self._is_interrupted:  # while it connected, when there was nothing to shut down
                raise Stopped
            if line.sock is not None:
                line.sock.settimeout(SILENT_S + waits_s)
            with _ended_after(line.sock, end - time.monotonic()):
                line.request("GET", path, headers={**headers, "User-Agent": "muniment", "Accept-Encoding": "identity"})
                response = line.getresponse()
                if response.status in _TEMPORARY:
                    raise _Later(f"answers {response.status}", _retry_after(response))
                yield response
                if not response.isclosed():
                    self.close()  # a connection with an answer that was not read is not used again
        except TimeoutError:
            raise _Later("does not answer in time") from None
        except ssl.SSLCertVerificationError as error:
            self.close()
            message = Phrase("{address} has no certificate that this machine trusts.", address=self.address)
            raise BadRequest(message, error.verify_message) from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            raise _Later(f"does not answer ({reason})") from None

    def _connected(self) -> http.client.HTTPConnection:
        if self._line is not None and self._line.sock is not None:
            return self._line
        host, port = self._parts.hostname or "", self._parts.port
        is_https = self._parts.scheme == "https"
        if is_https:
            tls = self._tls or ssl.create_default_context()
            line: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=SILENT_S, context=tls)
        else:
            line = http.client.HTTPConnection(host, port, timeout=SILENT_S)
        line._create_connection = _connect  # type: ignore[attr-defined]  # noqa: SLF001 - resolves with a deadline
        line.connect()
        self._line = line
        return line

    def _unexpected(self, path: str, response: http.client.HTTPResponse) -> BadRequest:
        """Return the problem of an answer that is neither the expected one nor a temporary one."""
        self.close()
        there = response.getheader("Location") or ""
        if 300 <= response.status < 400:
            message = Phrase("{address} redirects to {there}.", address=self.address, there=there[:200])
            return BadRequest(message, "Redirects are not followed. If that is the registry, give its address.")
        return self._foreign(f"{path} answers {response.status}")

    def _foreign(self, reason: str) -> BadRequest:
        message = Phrase("{address} does not answer as a registry: {reason}.", address=self.address, reason=reason)
        return BadRequest(message, "Check the address. Nothing of the answer was used.")


class Stopped(Exception):  # noqa: N818 - a signal, not an error
    """The command is to end."""


class _Later(Exception):  # noqa: N818 - a state of the origin
    """The origin does not answer now."""

    def __init__(self, reason: str, after_s: float = 0, *, has_progress: bool = False) -> None:
        super().__init__(reason)
        self.after_s, self.has_progress = after_s, has_progress


def _write_from(start: int, response: http.client.HTTPResponse, file: File, to: Path) -> int:
    """Write what a response sends of a file, from *start* on, and return how many bytes of it are there then."""
    present = start
    with to.open("r+b" if start else "wb") as out:
        out.seek(start)
        while present < file.size_bytes:
            piece = response.read1(min(PIECE_BYTES, file.size_bytes - present))
            if not piece:
                break
            out.write(piece)
            present += len(piece)
        out.truncate()
    return present


def _connect(address: tuple[str, int], timeout: float, *_: object) -> socket.socket:
    """Connect to the first address of a host that answers."""
    fault: OSError = TimeoutError()
    for each in addresses_of(*address, within_s=CONNECT_S):
        try:
            line = socket.create_connection((each, address[1]), timeout=CONNECT_S)
        except OSError as error:
            fault = error
        else:
            line.settimeout(timeout)
            return line
    raise fault


@contextmanager
def _ended_after(line: socket.socket | None, seconds: float) -> Iterator[None]:
    """Shut a connection down after *seconds*: a limit of each read does not end an answer that comes byte by byte."""
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            if line is not None:
                line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, seconds), end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if is_late.is_set():
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise TimeoutError


def _retry_after(response: http.client.HTTPResponse) -> float:
    """Return the seconds that a response asks to wait; 0 if it does not say so."""
    value = (response.getheader("Retry-After") or "").strip()
    if re.fullmatch(r"\d{1,9}", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
