"""What the synchronous and the asynchronous client share: requests, responses, errors and pauses, without I/O."""

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urljoin

import httpx
import msgspec

from muniment_client.errors import (
    STATUS_OF_CODE,
    APIError,
    ConnectionFailedError,
    MalformedResponseError,
    MunimentError,
    TimedOutError,
    refusal,
)
from muniment_client.models import QueryResultTruncated

V1: Final = "/api/v1"
OWNER_TOOLS: Final = "/api/manage/mcp"
MAX_BODY_BYTES: Final = 128 << 20
"""A CSV has at most 64 MB, everything else less; what is longer comes from no registry."""
FIRST_PAUSE_S: Final = 0.5
RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
REFUSED_UNDONE: Final = frozenset({429, 503})
"""Of these, those by which the registry itself says that it did nothing."""

T = TypeVar("T")
Value = str | int | float | bool | Sequence[str] | Sequence[int] | Sequence[float] | None
Parameters = Mapping[str, Any]


class Place(NamedTuple):
    """
    How far a program has read the change feed: store it, and continue from it.

    Args:
        after: the sequence number of the last change.
        chain: the hash over the feed up to it, by which a registry with another history is noticed.
        feed_id: the feed that the number belongs to.
    """

    after: int = 0
    chain: str | None = None
    feed_id: str | None = None


class Csv(NamedTuple):
    """A CSV file, and what cut it; None if it is whole."""

    content: bytes
    truncated: str | None

    def save(self, file: str | Path) -> None:
        Path(file).write_bytes(self.content)


class Rows(msgspec.Struct, Generic[T], frozen=True):
    """
    The answer to a statement.

    Args:
        truncated: what cut it, and how to get the rest; None if it is whole.
        edition: the edition that the tables show.
    """

    data: list[T]
    columns: list[str]
    edition: int
    truncated: QueryResultTruncated | None = None


class Verification(NamedTuple):
    """
    Whether a document is the one that the registry publishes now, and whether the public log has it.

    Args:
        is_published: the registry has such a document.
        is_current: it is byte for byte this one.
        sha256: of the published document as JSON; empty if there is none.
        edition: the edition of the registry that was asked.
        is_logged: a proof shows that the log has the published document. False also if the registry has no log.
        checkpoint: the signed checkpoint that the proof leads to; keep it, and compare it with those of others.
    """

    is_published: bool
    is_current: bool
    sha256: str
    edition: int
    is_logged: bool = False
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Retries:
    """
    How often and how long a client tries again.

    Args:
        attempts: requests in all, with the first.
        max_wait_s: longer pauses are not waited for: the error says how long the registry wants.
    """

    attempts: int = 4
    max_wait_s: float = 60.0

    def pause(self, attempt: int, failure: MunimentError, request: "Request") -> float | None:
        """Return how long to wait before the next attempt; None if there is none."""
        if attempt + 1 >= self.attempts or not _may_repeat(failure, request):
            return None
        wanted = failure.retry_after_s if isinstance(failure, APIError) else None
        if wanted is not None and wanted > self.max_wait_s:
            return None
        if wanted is not None:
            return wanted
        # Clients that failed together do not come back together.
        pause: float = FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1)  # noqa: S311 - no secret
        return min(pause, self.max_wait_s)


def _may_repeat(failure: MunimentError, request: "Request") -> bool:
    """Return whether *request* can succeed later, and cannot take effect twice."""
    if isinstance(failure, APIError):
        return failure.status in (RETRIED if request.reads else REFUSED_UNDONE)
    if not isinstance(failure, ConnectionFailedError):
        return False
    return request.reads or isinstance(failure.__cause__, httpx.ConnectError | httpx.ConnectTimeout)


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request.

    Args:
        reads: it changes nothing, so it may be repeated.
        waits_s: how long the registry may take before it answers.
        has_deadline: the whole response must come in time, and not only each part of it.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None = None
    reads: bool = True
    waits_s: float = 0.0
    has_deadline: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: httpx.Headers
    body: bytes

    def problem(self) -> APIError:
        """Return the error that the response describes; also that of a proxy, which has another form."""
        wait = retry_after_s(self.headers.get("retry-after", ""))
        rest = {"retry_after_s": wait, "request_id": self.headers.get("x-request-id", "")}
        try:
            error = msgspec.json.decode(self.body, type=_Failure).error
        except msgspec.MsgspecError:
            code = "internal_error" if self.status >= 500 else "bad_request"
            return refusal(self.status, code, f"The server answered with the status {self.status}.", **rest)
        return refusal(self.status, error.code, error.message, hint=error.hint, **rest)


class _Error(msgspec.Struct):
    code: str
    message: str
    hint: str = ""


class _Failure(msgspec.Struct):
    error: _Error


class Data(msgspec.Struct, Generic[T]):
    data: T


class _ProtocolError(msgspec.Struct):
    code: int
    message: str


class _Result(msgspec.Struct, rename="camel"):
    structured_content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool = False


class _ToolAnswer(msgspec.Struct):
    result: _Result | None = None
    error: _ProtocolError | None = None


def retry_after_s(value: str) -> float | None:
    """Read Retry-After, which is seconds or a date (RFC 9110, section 10.2.3)."""
    if value.isascii() and value.isdigit():
        return float(value[:10])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def path(template: str, key: str) -> str:
    """Return a path with its segment filled in."""
    before, _, rest = template.partition("{")
    return before + quote(key, safe="") + rest.partition("}")[2]


def commas(values: str | Sequence[str] | None) -> str | None:
    """Join values by commas; a comma within one is escaped."""
    if values is None or isinstance(values, str):
        return values
    return ",".join(value.replace(",", "\\,") for value in values)


def address(base_url: str, target: str, parameters: Parameters | None = None) -> str:
    """Return the URL of a path, or of an address that the registry has named."""
    url = target if "://" in target else f"{base_url.rstrip('/')}{target}"
    pairs = [(name, _text(one)) for name, value in (parameters or {}).items() for one in _several(value)]
    return f"{url}?{urlencode(pairs)}" if pairs else url


def _several(value: Value) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (value,)
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def resolved(base_url: str, url: str) -> str:
    """Return an address of a response, which is relative if the registry does not know its own."""
    return urljoin(base_url.rstrip("/") + "/", url)


def tool_call(base_url: str, token: str, name: str, arguments: Mapping[str, Any], *, reads: bool) -> Request:
    """Return the call of an owner tool; absent arguments are None, and left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
    return Request(
        "POST",
        address(base_url, OWNER_TOOLS),
        {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
            "MCP-Protocol-Version": "2025-11-25",
        },
        msgspec.json.encode(call),
        reads=reads,
        waits_s=float(given.get("waitSeconds", 0)),
    )


def tool_result(response: Response, type_: type[T]) -> T:
    """
    Return the result of a tool.

    Raises:
        APIError: the tool refused the call.
        MalformedResponseError: it is no result of a tool.
    """
    answer = decoded(response.body, _ToolAnswer)
    if answer.error is not None:
        raise refusal(400, "bad_request", answer.error.message)
    if answer.result is None:
        raise MalformedResponseError("The response has neither a result nor an error.")
    if answer.result.is_error:
        error = decoded(bytes(answer.result.structured_content), _Failure).error
        status = STATUS_OF_CODE.get(error.code, 400)
        request_id = response.headers.get("x-request-id", "")
        raise refusal(status, error.code, error.message, hint=error.hint, request_id=request_id)
    return decoded(bytes(answer.result.structured_content), type_)


def decoded(body: bytes, type_: type[T]) -> T:
    """
    Decode a response.

    Raises:
        MalformedResponseError: it is no JSON, or not of that type.
    """
    try:
        return msgspec.json.decode(body, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedResponseError(f"The response is not what was expected: {error}") from error


def transport_failure(error: httpx.HTTPError) -> MunimentError:
    """Return the error of a request that got no response."""
    failure: MunimentError
    if isinstance(error, httpx.TimeoutException):
        failure = TimedOutError("The registry did not answer in time.")
    elif isinstance(error, httpx.DecodingError | httpx.TooManyRedirects | httpx.UnsupportedProtocol):
        failure = MalformedResponseError(f"The response cannot be read: {error}")
    else:
        failure = ConnectionFailedError(f"The registry cannot be reached: {error or type(error).__name__}")
    failure.__cause__ = error
    return failure


class Deadline:
    """The time by which a response must be complete."""

    def __init__(self, seconds: float | None) -> None:
        self._ends = None if seconds is None else time.monotonic() + seconds

    def check(self) -> None:
        """
        Check the time, after each part of a response.

        Raises:
            TimedOutError: it is over.
        """
        if self._ends is not None and time.monotonic() > self._ends:
            raise TimedOutError("The response came too slowly.")
