"""The HTML part of a message, made from its text: paragraphs, codes in large type, and links to this registry."""

import re
from typing import Final

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import mark_safe

from muniment import config

_REST: Final = r"(?:/[^\s<>\"']*(?<![.,;:!?)])|(?=[\s)]|[.,;:!?](?:\s|$)|$))"
"""What follows a base URL: a path without the punctuation after it, or the end of the address."""
_CODE: Final = re.compile(r"\s*[A-Z0-9]{3,}(?:-[A-Z0-9]+)*\s*")


def as_html(subject: str, text: str) -> str:
    """Return *text* as an HTML document. Only addresses of this registry become links: others were typed by people."""
    blocks = [
        {"text": mark_safe(_linked(block)), "is_code": bool(_CODE.fullmatch(block))}  # noqa: S308 - escaped there
        for block in re.split(r"\n\s*\n", text.strip())
    ]
    name = config.current().registry_name
    return render_to_string("mail/message.html", {"subject": subject, "blocks": blocks, "registry": name})


def _linked(block: str) -> str:
    link = re.compile(re.escape(settings.BASE_URL) + _REST)
    parts, end = [], 0
    for found in link.finditer(block) if settings.BASE_URL else ():
        target = escape(found[0])
        parts += [escape(block[end : found.start()]), f'<a href="{target}">{target}</a>']
        end = found.end()
    return "".join([*parts, escape(block[end:])]).replace("\n", "<br>\n")
