"""The HTML part of a message, made from its text: paragraphs, lists, codes in large type, and links to this registry.

A paragraph such as ``Review your tokens: https://registry.example/manage/tokens``, or such a line of a numbered list,
becomes a link of these words, and the first such paragraph the button of the message. Other lines show the addresses in
them: people wrote some of these lines, and must not choose the words of a link.
"""

import re
from collections.abc import Callable
from email.mime.image import MIMEImage
from typing import Final, NamedTuple

from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import mark_safe
from django.utils.translation import gettext

from muniment.languages.offered import base_direction
from muniment.languages.speaking import language
from muniment.mail import places
from muniment.registry_toml import applied, contrast

CONTENT_ID: Final = "registry@muniment"
HEIGHT: Final = 32
"""At which it is shown; the picture has three times as many pixels."""


class Mark(NamedTuple):
    """
    A PNG picture.

    Args:
        width: the width at which it is shown.
        has_name: it is the logo, which stands for the name.
    """

    content: bytes
    width: int
    has_name: bool


declared_mark: Callable[[], Mark | None] | None = None
"""Returns the picture that the registry declares; the registry sets it when Django loads."""


def attach(message: EmailMultiAlternatives, mark: Mark) -> None:
    """Add the picture to a message whose HTML part shows it by its Content-ID."""
    image = MIMEImage(mark.content, "png")
    image.add_header("Content-ID", f"<{CONTENT_ID}>")
    image.add_header("Content-Disposition", "inline", filename="registry.png")
    message.mixed_subtype = "related"  # type: ignore[attr-defined]  # Django's, missing in the stubs
    message.attach(image)


_REST: Final = r"(?:/[^\s<>\"']*(?<![.,;:!?)])|(?=[\s)]|[.,;:!?](?:\s|$)|$))"
"""The rest of an address after a base URL: a path without the punctuation after it, or the end of the address."""
_ACCENT: Final = "#8a2b2b"
_ACCENT_DARK: Final = "#e08a80"
"""The built-in colors of links and buttons."""
_CODE: Final = re.compile(r"\s*[A-Z0-9]{3,}(?:-[A-Z0-9]+)*\s*")
_LABEL: Final = r"[^\n:.]{1,60}"
_NUMBER: Final = re.compile(r"\d\. ")


def as_html(subject: str, text: str, mark: Mark | None = None) -> str:
    """
    Return *text* as an HTML document. Only addresses of this registry become links: others were typed by people.

    Args:
        mark: the picture of the registry, which the message contains.
    """
    name, base = applied.registry_name(), places.base_url()
    blocks = [_block(each, base) for each in re.split(r"\n\s*\n", _without_signature(text.strip(), name, base))]
    main = next((each for each in blocks if each["address"]), None)
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
        "main": main,
        "registry": name,
        "mark": mark,
        "mark_address": f"cid:{CONTENT_ID}",
        "mark_height": HEIGHT,
        "initial": next((each for each in name if each.isalnum()), "·").upper(),
        "address": base,
        "open_label": gettext("Open in %(registry)s") % {"registry": name},
    }
    return render_to_string("mail/message.html", context)


def _block(text: str, base: str) -> dict[str, object]:
    """Return a paragraph. ``address`` and ``label`` are those of one that is only a link to this registry."""
    lines = text.strip().split("\n")
    is_list = all(line.startswith("- ") for line in lines)
    is_numbered = all(_NUMBER.match(line) for line in lines)
    label, address = ("", "") if is_list else _link_of(text.strip(), base)
    # People wrote the lines of other paragraphs and lists, and must not choose the words of a link.
    shown = _line if is_numbered or label else _linked
    items = []
    if is_list or is_numbered:
        mark_length = len("- ") if is_list else len("1. ")
        items = [mark_safe(shown(line[mark_length:], base)) for line in lines]  # noqa: S308 - escaped there
    return {
        "text": mark_safe("<br>\n".join(shown(line, base) for line in lines)),  # noqa: S308 - escaped there
        "items": items,
        "is_numbered": is_numbered,
        "is_code": bool(_CODE.fullmatch(text)),
        "label": label,
        "address": address,
    }


def _link_of(text: str, base: str) -> tuple[str, str]:
    """Return the label and the address of a paragraph that is only a link to this registry; empty for others."""
    named_link = _named(text, base)
    if named_link:
        return named_link["label"], named_link["address"]
    bare_address = re.fullmatch(re.escape(base) + _REST, text) if base else None
    return "", bare_address[0] if bare_address else ""


def _named(line: str, base: str) -> "re.Match[str] | None":
    """Return the label and the address of a line that is a named link to this registry."""
    return re.fullmatch(f"(?P<label>{_LABEL}): (?P<address>{re.escape(base)}{_REST})", line) if base else None


def _without_signature(text: str, name: str, base: str) -> str:
    """Return *text* without the lines with the registry's name and host at its end, which the page has around it."""
    host = base.partition("://")[2]
    return re.sub(rf"\n\s*\n{re.escape(name)}\n{re.escape(host)}\s*\Z", "", text) if host else text


def _line(line: str, base: str) -> str:
    named = _named(line, base)
    if named:
        return f'<a href="{escape(named["address"])}">{escape(named["label"])}</a>'
    return _linked(line, base)


def _linked(line: str, base: str) -> str:
    link = re.compile(re.escape(base) + _REST)
    parts, end = [], 0
    for found in link.finditer(line) if base else ():
        target = escape(found[0])
        parts += [escape(line[end : found.start()]), f'<a href="{target}">{target}</a>']
        end = found.end()
    return "".join([*parts, escape(line[end:])])
