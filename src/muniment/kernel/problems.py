"""The family of refusals: what went wrong, for whom to read, and the way out."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import ClassVar, Literal

Code = Literal["bad_request", "not_found", "method_not_allowed", "internal_error"]


class Problem(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """
    A refusal that a client reads.

    Args:
        message: what is wrong, naming the value; safe to show to anyone.
        hint: how to resolve it, for example which address lists the valid values.
        headers: additional HTTP headers, such as ``Allow`` or ``Retry-After``.

    Source: service document, Errors; decisions, section 2, errors.
    """

    code: ClassVar[Code] = "internal_error"
    status: ClassVar[HTTPStatus] = HTTPStatus.INTERNAL_SERVER_ERROR

    def __init__(self, message: str, hint: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.headers: dict[str, str] = dict(headers or {})

    def to_wire(self) -> dict[str, dict[str, str]]:
        """Give the error envelope, ready to be encoded as JSON."""
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


class BadRequest(Problem):
    """A value is outside what the parameter or field takes."""

    code = "bad_request"
    status = HTTPStatus.BAD_REQUEST


class NotFound(Problem):
    """Nothing has this name, or it is not the actor's; which of the two is not revealed."""

    code = "not_found"
    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(Problem):
    """The address exists and does not take this method. Carries ``Allow``."""

    code = "method_not_allowed"
    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, method: str, allow: str) -> None:
        super().__init__(
            f"{method} is not allowed here.",
            f"Use one of: {allow}.",
            headers={"Allow": allow},
        )


class Unauthorized(Problem):
    """No usable credential came with the request. Carries ``WWW-Authenticate``."""

    code = "bad_request"
    status = HTTPStatus.UNAUTHORIZED


class Forbidden(Problem):
    """The credential is good and does not reach this far."""

    code = "bad_request"
    status = HTTPStatus.FORBIDDEN


class Conflict(Problem):
    """The state has moved on, or another holds what is asked for."""

    code = "bad_request"
    status = HTTPStatus.CONFLICT


class TooLarge(Problem):
    """The content exceeds its limit."""

    code = "bad_request"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class TooMany(Problem):
    """The caller's rate is used up. Carries an integer ``Retry-After`` in seconds."""

    code = "bad_request"
    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(
        self, message: str, hint: str, *, retry_after_s: int, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message, hint, headers={**(headers or {}), "Retry-After": str(retry_after_s)})
        self.retry_after_s = retry_after_s


class Unavailable(Problem):
    """A part that the answer needs is not up. Carries an integer ``Retry-After`` in seconds."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, message: str, hint: str, *, retry_after_s: int = 2) -> None:
        super().__init__(message, hint, headers={"Retry-After": str(retry_after_s)})


class Internal(Problem):
    """
    Something broke that is ours to mend. Tells nothing but the request's id.

    Source: decisions, section 2, request id.
    """

    def __init__(self, request_id: str) -> None:
        super().__init__(
            f"Something went wrong on this side (request {request_id}).",
            "Try again; if it stays, tell the operator the request id.",
        )
