"""Log lines: JSON for machines or text for people, with request ids and without secrets."""

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""

_SECRETS: Final = (
    re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic)?\s*)[^\s'\",;]+"),
    re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    # Ours wherever they stand, whole (some have an underscore within), also in a percent-encoded address.
    re.compile(r"(?i)(mun(?:_|%5f)[a-z]+(?:_|%5f))[a-z0-9_%.~-]+"),
    re.compile(r"(?i)([?&](?:token|code|key|secret|state|access_token|refresh_token|code_verifier)=)[^&\s'\"]+"),
    re.compile(r"(?i)((?:cookie|set-cookie)['\"]?\s*[:=]\s*['\"]?)[^\r\n]+"),
    re.compile(r"(://[^/\s:@]+:)[^@\s/]+(?=@)"),
    # One-time links carry their secret in the path.
    re.compile(r"(/(?:uploads|downloads|confirm-email|reset/key|invitations)/)[^/\s?'\"]+"),
)
_ACCOUNTED: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def masked(text: str) -> str:
    """Give *text* with every secret that it may carry replaced."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


class Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": masked(record.getMessage()),
        }
        current = request_id.get()
        if current:
            line["requestId"] = current
        for name, value in record.__dict__.items():
            if name not in _ACCOUNTED:
                line[name] = masked(value) if isinstance(value, str) else value
        if record.exc_info:
            line["trace"] = masked(self.formatException(record.exc_info))
        # What others attach, such as Django its request, shows an address when it is made text.
        return json.dumps(line, ensure_ascii=False, default=lambda value: masked(str(value)))


class Text(logging.Formatter):
    """A line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Give the line."""
        line = masked(super().format(record))
        more = " ".join(
            f"{name}={masked(str(value))}" for name, value in record.__dict__.items() if name not in _ACCOUNTED
        )
        current = request_id.get()
        return " ".join(part for part in (line, more, f"request={current}" if current else "") if part)


def set_up(log_format: str) -> None:
    """Send every logger's lines to standard error, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if log_format == "json" else Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.captureWarnings(capture=True)
    # Their lines about each start, stop and odd request say less than ours.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "mcp"):
        logging.getLogger(name).setLevel(logging.WARNING)
