"""
Complete what people type into a form: "example.org" means https://example.org.

Only forms do that. Tools and imports say exactly what they mean, and are validated as they say it. Pure.
"""

import re
from typing import Final

from muniment.schema.kinds import Email, Kind, Link, Profile

_HOST: Final = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{0,61}[^\W_]\.?(?::\d{1,5})?", re.UNICODE)
_IN_BRACKETS: Final = re.compile(r"[^<>]*<([^<>\s]+@[^<>\s]+)>")
_SCHEME: Final = re.compile(r"(https?):/{0,2}(?=[^/])", re.IGNORECASE)


def completed(text: str, kind: Kind) -> str:
    """Return what a person means by *text* in a field of *kind*."""
    if isinstance(kind, Link):
        return web_address(text)
    if isinstance(kind, Email):
        return email_address(text)
    if isinstance(kind, Profile):
        return profile(text)
    return text


def web_address(text: str) -> str:
    """Return *text* with https:// if it is a host name with or without a path; any other text as it is."""
    bare = text.strip()
    scheme = _SCHEME.match(bare)
    if scheme:
        return f"{scheme[1].lower()}://{bare[scheme.end() :]}"
    rest = bare.removeprefix("//")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return f"https://{rest}" if _HOST.fullmatch(host) else text


def email_address(text: str) -> str:
    """Return the address of ``Name <name@example.org>`` and of ``mailto:name@example.org``."""
    bare = text.strip()
    in_brackets = _IN_BRACKETS.fullmatch(bare)
    if in_brackets:
        bare = in_brackets[1]
    if bare.lower().startswith("mailto:"):
        return bare[len("mailto:") :].partition("?")[0]  # a link may bring a subject
    return bare


def profile(text: str) -> str:
    """Return the web address of a profile that is given without its scheme; the name of a profile as it is."""
    bare = text.strip()
    host = re.split(r"[/?#]", bare.removeprefix("//"), maxsplit=1)[0]
    has_path = host != bare  # a name of a profile may have a dot too
    if _SCHEME.match(bare) or host.lower().startswith("www.") or (has_path and "." in host):
        return web_address(bare)
    return bare
