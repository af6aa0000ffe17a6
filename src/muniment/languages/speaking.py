"""The current language of texts: that of a visitor, or of the receiver of a message."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from django.utils import translation

from muniment.languages.catalogues import SOURCE
from muniment.languages.offered import default, offered

_current: Final[ContextVar[str]] = ContextVar("language", default="")


def language() -> str:
    """Return the language of the texts that are made now. Django's own answer takes 5 to 11 microseconds."""
    return _current.get() or SOURCE


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Make texts in the language *code* in this block."""
    if code == language():
        yield
        return
    token = _current.set(code)
    try:
        with translation.override(code):
            yield
    finally:
        _current.reset(token)


def known(code: str) -> str:
    """Return *code* if it is offered, else the default."""
    return code if code in offered() else default()
