"""
Two things that Django does for every text of a page, without the cases that the pages do not have.

Django has no settings for them. A new page of a company costs 13 % less CPU (the same pages in turns in one process,
28 November 2026): 9 % by the first, 4 % by the second.
"""

import html
import threading
from typing import Any

from django.template import base
from django.template.context import Context
from django.utils.safestring import SafeString
from django.utils.translation import trans_real

_render_any = base.render_value_in_context


def take() -> None:
    """Take the shortcuts in this process."""
    # Each text asks for the active language. Django's storage serves coroutines too and takes 4 microseconds; here,
    # texts are made in threads alone.
    trans_real._active = threading.local()  # type: ignore[attr-defined]  # noqa: SLF001 - it has no public name
    base.render_value_in_context = _render_value


def _render_value(value: Any, context: Context) -> Any:
    """Return the value of a variable for a page: text is escaped at once, everything else is for Django."""
    kind = type(value)
    if kind is str:
        return html.escape(value) if context.autoescape else value
    if kind is SafeString:
        return value
    return _render_any(value, context)
