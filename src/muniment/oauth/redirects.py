"""Redirect addresses: which ones are allowed, and how they are matched."""

import re
from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit

from muniment.oauth.errors import Refusal, echo

MAX_CHARACTERS: Final = 2_000
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Schemes that are no app's own: a browser executes or displays them, or the system hands them to another program.
_NO_APP: Final = frozenset(
    {
        *("about", "acap", "afp", "android-app", "app-settings", "blob", "brave", "cid", "content", "dat", "data"),
        *("dav", "devtools", "dict", "dns", "edge", "facetime", "facetime-audio", "fax", "feed", "file", "filesystem"),
        *("finger", "firefox", "fish", "ftp", "ftps", "geo", "git", "googlechrome", "googlechromes", "gopher"),
        *("hcp", "help", "icap", "imap", "intent", "ipfs", "ipns", "ipp", "ipps", "irc", "ircs", "itms", "itms-apps"),
        *("itms-appss", "itms-beta", "itms-services", "itmss", "jar", "javascript", "jnlp", "jnlps", "ldap", "ldaps"),
        *("livescript", "mailto", "maps", "market", "message", "mhtml", "mid", "mk", "mms", "music", "news", "nfs"),
        *("nntp", "onion", "opera", "pop", "prefs", "res", "resource", "rtmp", "rtsp", "rsync", "scp", "search"),
        *("sftp", "shell", "shortcuts", "sip", "sips", "smb", "sms", "smsto", "snmp", "ssh", "stun", "svn", "tel"),
        *("telnet", "tftp", "tg", "turn", "urn", "vbscript", "view-source", "vivaldi", "vnc", "wais"),
        *("webcal", "webcals", "workflow", "ws", "wss", "wyciwyg", "xmpp"),
    }
)
# Families of schemes of browsers and operating systems; several open a web address that follows them.
_NO_APP_STARTS: Final = (
    *("android", "chrome", "duckduckgo", "firefox-", "googlechrome", "google-chrome", "microsoft-", "microsoft."),
    *("moz-", "mozilla", "ms-", "ms.", "msedge", "opera-", "safari", "search-", "shortcuts-", "svn+", "vnd."),
    *("web+", "x-apple", "x-callback", "x-msteams", "x-safari", "x-web-search", "git+", "ext+", "brave-"),
)
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
    if parts.scheme in _NO_APP or parts.scheme.startswith(_NO_APP_STARTS):
        return f"has the scheme {parts.scheme}, which is not allowed"
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
    parts = urlsplit(uri)
    if parts.scheme in {"http", "https"}:
        return "this computer" if is_loopback(uri) else (parts.hostname or "")
    return f"an app on this device ({parts.scheme}:)"


def is_app(uri: str) -> bool:
    """Return whether a browser sent to the address stays on this device: loopback, or a scheme of an app."""
    return is_loopback(uri) or urlsplit(uri).scheme not in {"http", "https"}


def answer(uri: str, parameters: dict[str, str]) -> str:
    joint = "" if uri.endswith(("?", "&")) else "&" if "?" in uri else "?"
    return f"{uri}{joint}{urlencode(parameters)}"
