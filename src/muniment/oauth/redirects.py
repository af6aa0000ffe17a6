"""Redirect addresses: which ones are allowed, and how they are matched."""

import re
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

from muniment.oauth.errors import Refusal, echo

MAX_CHARACTERS: Final = 2_000
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Schemes of apps that connect to tool servers and do not follow RFC 8252, section 7.1, which asks for a dot. Each opens
# its own app, at an address that the app answers to; schemes that hand on to the web or to the system are not here.
APPS: Final = frozenset(
    {
        *("antigravity", "boltai", "chatgpt", "cherrystudio", "claude", "codex", "cursor", "goose", "jan", "jetbrains"),
        *("kiro", "lmstudio", "msty", "positron", "raycast", "trae", "vscode", "vscode-insiders", "vscodium", "warp"),
        *("windsurf", "windsurf-next", "witsy", "zed"),
    }
)
_OWN: Final = re.compile(r"[a-z][a-z0-9-]*(\.[a-z0-9-]+)+")
"""A scheme with the domain of its app, in reverse order."""
# They have a dot, and are of operating systems and browsers.
_OF_SYSTEMS: Final = ("android.", "com.apple.", "microsoft.", "ms.", "vnd.", "windows.", "x-")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]+")


def check(uri: str) -> str:
    """
    Return a redirect address; raise a Refusal, invalid_redirect_uri, with the rule that it violates.

    Source: decisions, section 4, redirects; RFC 6749, section 3.1.2; RFC 8252, section 7; RFC 9700, section 4.1.
    """
    if fault := _fault(uri):
        raise Refusal("invalid_redirect_uri", f"The redirect_uri {echo(uri)} {fault}.")
    return uri


def _fault(uri: str) -> str | None:
    if fault := _form_fault(uri):
        return fault
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return _web_fault(parts)
    is_own = _OWN.fullmatch(parts.scheme) and not parts.scheme.startswith(_OF_SYSTEMS)
    if parts.scheme not in APPS and not is_own:
        return (
            f"has the scheme {parts.scheme}, which is not allowed: use https, http on loopback, or a scheme with the "
            "domain of your app, such as com.example.app"
        )
    return None if parts.netloc or parts.path.strip("/") else "has nothing after its scheme"


def _form_fault(uri: str) -> str | None:
    faults = {
        f"has more than {MAX_CHARACTERS} characters": len(uri) > MAX_CHARACTERS,
        "is not a valid URI: use printable ASCII and percent-encode other characters": (
            not uri or not all("!" <= sign <= "~" for sign in uri) or any(sign in uri for sign in '\\"<>^`{|}')
        ),
        "has a wildcard; register each address": "*" in uri,
        "has a fragment": "#" in uri,
        "has no scheme; it must be absolute": not _SCHEME.match(uri),
    }
    if fault := next((fault for fault, holds in faults.items() if holds), None):
        return fault
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError:
        return "has an invalid host or port"
    return "contains a user name" if "@" in parts.netloc else None


def _web_fault(parts: SplitResult) -> str | None:
    if not parts.hostname or not _HOST.fullmatch(parts.hostname):
        return "has no host"
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        return "uses http outside of loopback; use https"
    return None


def is_loopback(uri: str) -> bool:
    parts = urlsplit(uri)
    return parts.scheme == "http" and parts.hostname in LOOPBACK


def matches(asked: str, registered: str) -> bool:
    """Return whether *asked* is the registered redirect, except for the port on loopback (RFC 8252, section 7.3)."""
    if asked == registered:
        return True
    if _fault(asked) is not None or not (is_loopback(asked) and is_loopback(registered)):
        return False
    one, other = urlsplit(asked), urlsplit(registered)
    # The rest is compared as text, because urlsplit drops an empty query.
    return one.hostname == other.hostname and asked.partition(one.netloc)[2] == registered.partition(other.netloc)[2]


def host(uri: str) -> str:
    """Return where the answer goes, in words: the host of a website, or the scheme and path of an app."""
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return "this computer" if is_loopback(uri) else (parts.hostname or "")
    return f"an app on this device ({uri.partition('?')[0]})"


def is_app(uri: str) -> bool:
    """Return whether a browser sent to the address stays on this device: loopback, or a scheme of an app."""
    return is_loopback(uri) or urlsplit(uri).scheme not in {"http", "https"}


def answer(uri: str, parameters: dict[str, str]) -> str:
    joint = "?"
    if uri.endswith(("?", "&")):
        joint = ""
    elif "?" in uri:
        joint = "&"
    return f"{uri}{joint}{urlencode(parameters)}"
