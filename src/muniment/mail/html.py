"""The HTML part of a message, made from its text: paragraphs, codes in large type, and links to this registry."""

import re
from typing import Final

from django.conf import settings
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import mark_safe
from django.utils.translation import gettext

from muniment.languages.offered import base_direction
from muniment.languages.speaking import language
from muniment.mail.mark import CONTENT_ID, HEIGHT, Mark
from muniment.registry_toml import applied, contrast

_REST: Final = r"(?:/[^\s<>\"']*(?<![.,;:!?)])|(?=[\s)]|[.,;:!?](?:\s|$)|$))"
"""What follows a base URL: a path without the punctuation after it, or the end of the address."""
_ACCENT: Final = "#8a2b2b"
_ACCENT_DARK: Final = "#e08a80"
"""The built-in colors of links and buttons."""
_CODE: Final = re.compile(r"\s*[A-Z0-9]{3,}(?:-[A-Z0-9]+)*\s*")


def as_html(subject: str, text: str, mark: Mark | None = None) -> str:
    """
    Return *text* as an HTML document. Only addresses of this registry become links: others were typed by people.

    Args:
        mark: the picture of the registry, which the message contains.
    """
    name = applied.registry_name()
    blocks = [_block(each) for each in re.split(r"\n\s*\n", _without_signature(text.strip(), name))]
    brand = applied.current().brand
    light, dark = contrast.pair(brand.accent, brand.accent_dark)
    light, dark = light or _ACCENT, dark or _ACCENT_DARK
    context = {
        "accent": light,
        "accent_dark": dark,
        "ink": contrast.ink_on(light),
        "ink_dark": contrast.ink_on(dark),
        "subject": subject,
        "language": language(),
        "direction": base_direction(language()),
        "heading": subject.removeprefix(f"[{name}] "),
        "blocks": blocks,
        "registry": name,
        "mark": mark,
        "mark_address": f"cid:{CONTENT_ID}",
        "mark_height": HEIGHT,
        "initial": next((each for each in name if each.isalnum()), "·").upper(),
        "address": settings.BASE_URL,
        "open_label": gettext("Open in %(registry)s") % {"registry": name},
    }
    return render_to_string("mail/message.html", context)


def _block(text: str) -> dict[str, object]:
    """Return a paragraph; one that is only an address of this registry becomes a button."""
    address = re.fullmatch(re.escape(settings.BASE_URL) + _REST, text.strip()) if settings.BASE_URL else None
    lines = text.strip().split("\n")
    is_list = all(each.startswith("- ") for each in lines)
    return {
        "text": mark_safe(_linked(text)),  # noqa: S308 - escaped there
        "items": [mark_safe(_linked(each[2:])) for each in lines] if is_list else (),  # noqa: S308 - escaped there
        "is_code": bool(_CODE.fullmatch(text)),
        "address": address[0] if address else "",
    }


def _without_signature(text: str, name: str) -> str:
    """Return *text* without the lines with the registry's name and host at its end, which the page has around it."""
    host = settings.BASE_URL.partition("://")[2]
    return re.sub(rf"\n\s*\n{re.escape(name)}\n{re.escape(host)}\s*\Z", "", text) if host else text


def _linked(block: str) -> str:
    link = re.compile(re.escape(settings.BASE_URL) + _REST)
    parts, end = [], 0
    for found in link.finditer(block) if settings.BASE_URL else ():
        target = escape(found[0])
        parts += [escape(block[end : found.start()]), f'<a href="{target}">{target}</a>']
        end = found.end()
    return "".join([*parts, escape(block[end:])]).replace("\n", "<br>\n")
