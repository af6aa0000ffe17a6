"""OAuth errors, with the codes of the RFCs."""

import re
from typing import Literal

Error = Literal[
    "access_denied",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
]


class Refusal(Exception):  # noqa: N818 - part of the protocol, not a program fault
    """
    An error with a code registered for OAuth.

    Args:
        error: the code; clients branch on it.
        description: what is wrong and what to do, for the client's developer. ASCII without quotes and backslashes.

    Source: RFC 6749, sections 4.1.2.1 and 5.2; RFC 7591, section 3.2.2; RFC 8707, section 2.
    """

    def __init__(self, error: Error, description: str) -> None:
        super().__init__(f"{error}: {description}")
        self.error: Error = error
        self.description = description


def echo(text: str, limit: int = 80) -> str:
    """Reduce a client's text to what an error_description may contain (RFC 6749, section 5.2: printable ASCII)."""
    kept = re.sub(r"""[^ -~]|["\\]""", "?", text)
    return kept if len(kept) <= limit else kept[: limit - 3] + "..."
