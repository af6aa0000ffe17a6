"""What goes wrong: one class for each reaction of a program."""

from typing import ClassVar


class MunimentError(Exception):
    """A request that failed."""


class ConnectionFailedError(MunimentError):
    """The registry could not be reached, or the connection broke."""


class TimedOutError(ConnectionFailedError):
    """The registry did not answer in time, or answered too slowly."""


class MalformedResponseError(MunimentError):
    """The response is not what the contract describes: another server, a proxy's page, or a version beyond v1."""


class HistoryChangedError(MunimentError):
    """
    The change feed does not continue what was read before.

    The registry was restored from a backup, has lost changes in a failover, no longer keeps changes that old, or its
    history was rewritten. Begin again from an export; the reason is for its operator to explain.
    """


class APIError(MunimentError):
    """
    The registry refused a request.

    Args:
        status: the HTTP status; that of the code for a tool of owners.
        code: ``bad_request``, ``not_found``, ``method_not_allowed`` or ``internal_error``.
        message: what is wrong, for people.
        hint: how to resolve it.
        retry_after_s: how long to wait before the next attempt; None if the registry does not say.
        request_id: name it to the operator.
    """

    expected: ClassVar[int] = 0

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        hint: str = "",
        retry_after_s: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(f"{message} {hint}".strip())
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.retry_after_s = retry_after_s
        self.request_id = request_id


class BadRequestError(APIError):
    """An argument has an invalid value; the message names it."""

    expected = 400


class AuthenticationError(APIError):
    """The token is missing, unknown, expired or revoked."""

    expected = 401


class ForbiddenError(APIError):
    """The token lacks a scope."""

    expected = 403


class NotFoundError(APIError):
    """There is no such thing, or it is not yours."""

    expected = 404


class ConflictError(APIError):
    """It was changed meanwhile: read it again."""

    expected = 409


class TooLargeError(APIError):
    """The registry does not accept this much."""

    expected = 413


class RateLimitError(APIError):
    """Too many requests, also after the attempts that the client may make."""

    expected = 429


class ServerError(APIError):
    """The registry failed; `request_id` helps its operator."""

    expected = 500


class UnavailableError(ServerError):
    """Not available now: it starts, is busy, or is being maintained."""

    expected = 503


BY_STATUS: dict[int, type[APIError]] = {
    one.expected: one
    for one in (
        BadRequestError,
        AuthenticationError,
        ForbiddenError,
        NotFoundError,
        ConflictError,
        TooLargeError,
        RateLimitError,
        ServerError,
        UnavailableError,
    )
}
STATUS_OF_CODE = {"not_found": 404, "internal_error": 500}


def refusal(status: int, code: str, message: str, **rest: object) -> APIError:
    """Return the error of a status."""
    kind = BY_STATUS.get(status, ServerError if status >= 500 else APIError)
    return kind(status, code, message, **rest)  # type: ignore[arg-type]  # the members of a problem, by name
