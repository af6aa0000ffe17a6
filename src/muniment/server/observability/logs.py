"""Logs: JSON or text, with request ids and without secrets."""

import json
import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

from muniment.masking import masked

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the current request."""

_SECRET_NAMES: Final = re.compile(
    r"(?i)(?:^|[_-])(?:authorization|cookie|passwd|password|secret|token|api_?key|secret_?key|private_?key)(?:$|[_-])"
)
"""A value under such a name is always a secret."""
_SEAMS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Word boundaries in camelCase names."""
_DEEPEST: Final = 6
MAX_CHARACTERS: Final = 2_000
"""The limit of a text in a line: visitors cause lines with the addresses that they ask for."""
_IN_MESSAGE: Final = frozenset({"method", "path", "status"})
"""Fields of a request's line that its message contains, too; repeated for machines only."""
_ACCOUNTED: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "color_message"}


def masked_value(value: object, name: str = "", depth: int = 0) -> object:
    """Replace every secret nested in *value*, which has the name *name*."""
    if _SECRET_NAMES.search(_SEAMS.sub("_", name)) and value not in (None, "", True, False):
        return "***"
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= _DEEPEST and isinstance(value, Mapping | list | tuple | set | frozenset):
        return "…"
    if isinstance(value, Mapping):
        return {masked(str(key)): masked_value(each, str(key), depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [masked_value(each, name, depth + 1) for each in value]
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    # Attached objects, such as Django's request, contain an address in their text.
    return _short(masked(text))


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"


class Json(logging.Formatter):
    """Formats one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _short(masked(record.getMessage())),
        }
        current = request_id.get()
        if current:
            line["requestId"] = current
        for name, value in record.__dict__.items():
            if name not in _ACCOUNTED:
                line[name] = masked_value(value, name)
        if record.exc_info:
            line["trace"] = masked(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Formats lines for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        line = masked(super().format(record))
        if not record.exc_info:
            line = _short(line)
        for name, value in record.__dict__.items():
            if name not in _ACCOUNTED and name not in _IN_MESSAGE:
                line += f" {name}={masked_value(value, name)}"
        current = request_id.get()
        if current:
            line += f" request={current}"
        return line


def set_up(log_format: str, level: str = "info") -> None:
    handler = logging.StreamHandler(sys.stderr)
    formatter = Json() if log_format == "json" else TextFormatter()
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    logging.getLogger("muniment").setLevel(level.upper())
    logging.captureWarnings(capture=True)
    # These loggers duplicate what is logged here.
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "mcp", "openai", "httpx2", "stripe"):
        logging.getLogger(name).setLevel(logging.WARNING)
