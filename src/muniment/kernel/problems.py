"""Problems: the errors that clients see, each with a code, a message and a hint."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Literal

from muniment.kernel.phrases.phrase import Phrase

Code = Literal["bad_request", "not_found", "method_not_allowed", "internal_error"]


class Problem(Exception):  # noqa: N818 - part of the contract, not a program fault
    """
    An error that a client sees.

    Args:
        message: what is wrong, naming the value; safe to show to anyone. One with values is a Phrase.
        hint: how to resolve it, for example the endpoint that lists the valid values.
        headers: additional HTTP headers, such as ``Allow`` or ``Retry-After``.

    Source: service document, Errors; decisions, section 2, errors.
    """

    code: ClassVar[Code] = "bad_request"
    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(self, message: str, hint: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.headers: dict[str, str] = dict(headers or {})

    def to_wire(self) -> dict[str, dict[str, str]]:
        # JSON is written of plain text.
        return {"error": {"code": self.code, "message": str(self.message), "hint": str(self.hint)}}


class BadRequest(Problem):
    """A parameter or field has an invalid value."""

    status = HTTPStatus.BAD_REQUEST


class NotFound(Problem):
    """Not found, or not the actor's; the response does not reveal which."""

    code = "not_found"
    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(Problem):
    """The path does not support this method. Carries ``Allow``."""

    code = "method_not_allowed"
    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(
            Phrase("{method} is not allowed here.", method=method),
            Phrase("Use one of: {allow}.", allow=allow),
            headers={"Allow": allow},
        )


class Unauthorized(Problem):
    """The request has no valid credential. Carries ``WWW-Authenticate``."""

    status = HTTPStatus.UNAUTHORIZED


class Forbidden(Problem):
    """The credential is valid but lacks the permission."""

    status = HTTPStatus.FORBIDDEN


class AtOrigin(Forbidden):
    """This is a mirror, which shows what is public; everything else is done at its origin."""

    def __init__(self, origin: str, path: str) -> None:
        message = Phrase("This is a mirror of {origin}, and read-only.", origin=origin)
        address = origin + path
        super().__init__(message, Phrase("Sign in and make changes at {address}", address=address))
        self.address = address


class Conflict(Problem):
    """The resource has changed since it was read, or another actor holds it."""

    status = HTTPStatus.CONFLICT


class LimitReached(Conflict):
    """An account or a listing has as many of these as it may have. Another is possible once one of them is gone."""


class TooLarge(Problem):
    """The content exceeds its size limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooMany(Problem):
    """The rate limit is exceeded. Carries an integer ``Retry-After`` in seconds."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(
        self, message: str, hint: str, *, retry_after_s: int, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint, headers={**(headers or {}), "Retry-After": str(retry_after_s)})
        self.retry_after_s = retry_after_s


class Unavailable(Problem):
    """A required service is unavailable. Carries an integer ``Retry-After`` in seconds."""

    code = "internal_error"
    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, message: str, hint: str, *, retry_after_s: int = 2) -> None:
        super().__init__(message, hint, headers={"Retry-After": str(retry_after_s)})


class Internal(Problem):
    """An unexpected error. Shows only the request id (decisions, section 2, request id)."""

    code = "internal_error"

    def __init__(self, request_id: str) -> None:
        super().__init__(
            Phrase("Something went wrong on our side (request {request_id}).", request_id=request_id),
            "Try again; if the error persists, send the operator the request id.",
        )
