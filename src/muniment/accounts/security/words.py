"""Security events in words, for pages and mail."""

from datetime import UTC, datetime
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from muniment.accounts import scopes
from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import ALL_SCOPES
from muniment.kernel.phrases.storing import unpacked
from muniment.languages import writing
from muniment.languages.translated import translated

BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
"""Parts of user agents; a browser also contains the parts of those below it."""
SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Macintosh", "Mac"),
    ("Linux", "Linux"),
)
_LABELS: Final[dict[str, str | Promise]] = {
    "method": gettext_lazy("Method"),
    "attempts": gettext_lazy("Attempts this day"),
    "factor": gettext_lazy("Factor"),
    "name": gettext_lazy("Name"),
    "scopes": gettext_lazy("Permissions"),
    "expires": gettext_lazy("Expires"),
    "app": gettext_lazy("App"),
    "provider": gettext_lazy("Identity provider"),
    "email": gettext_lazy("Email address"),
    "from": gettext_lazy("From"),
    "to": pgettext_lazy("new value", "To"),
    "adopted": gettext_lazy("Adopted key"),
    "removed": gettext_lazy("Removed key"),
    "was": gettext_lazy("Former role"),
    "role": gettext_lazy("Role"),
    "reason": gettext_lazy("Reason"),
    "sessions": gettext_lazy("Sessions"),
    "credits": gettext_lazy("Credits"),
    "kind": gettext_lazy("Kind"),
    "decision": gettext_lazy("Decision"),
    "change": gettext_lazy("Change"),
    "request": gettext_lazy("Request"),
    "action": gettext_lazy("Action"),
    "fields": gettext_lazy("Fields"),
    "merged": gettext_lazy("Merged profile"),
    "companies": gettext_lazy("Companies"),
    "slugDigest": gettext_lazy("Digest of the slug"),
    "import": gettext_lazy("Import"),
    "files": gettext_lazy("Files"),
    "options": gettext_lazy("Options"),
    "result": gettext_lazy("Result"),
    "command": gettext_lazy("Command"),
    "owner": gettext_lazy("Owner"),
}
_VALUES: Final[dict[str, str | Promise]] = {
    "password": gettext_lazy("password"),
    "code": gettext_lazy("emailed code"),
    "reset code": gettext_lazy("emailed code for a new password"),
    "passkey": gettext_lazy("passkey"),
    "second factor": gettext_lazy("second factor"),
    "single sign-on": gettext_lazy("single sign-on"),
    "signup": gettext_lazy("new account"),
    "totp": gettext_lazy("authenticator app"),
    "webauthn": gettext_lazy("passkey or security key"),
    "recovery_codes": gettext_lazy("recovery codes"),
    "refused": gettext_lazy("declined"),
    "rejected": gettext_lazy("declined"),
    "approved": gettext_lazy("approved"),
    "owner": gettext_lazy("Owner"),
    "reviewer": gettext_lazy("Reviewer"),
    "operator": gettext_lazy("Operator"),
}


def title_of(event: SecurityEvent) -> str:
    """Return what happened, in a few words."""
    return str(MEANINGS[Event(event.event)].words) if event.event in set(Event) else event.event


def browser(user_agent: str) -> str:
    """Return the browser and the system that *user_agent* names; "Other browser" where it is unknown."""
    name = next((name for sign, name in BROWSERS if sign in user_agent), gettext("Other browser"))
    system = next((name for sign, name in SYSTEMS if sign in user_agent), "")
    return gettext("%(browser)s on %(system)s") % {"browser": name, "system": system} if system else name


def means_of(event: SecurityEvent) -> str:
    """Return by what the event was made, for its account: its browser, a token, an app, or another account."""
    if event.is_by_other:
        return gettext("An operator or reviewer") if event.is_audited else str(event.actor)
    match event.via:
        case "token":
            return gettext("Token %(name)s") % {"name": event.credential}
        case "app":
            return gettext("App %(name)s") % {"name": event.credential}
        case "command":
            return gettext("Command line")
        case "system":
            return gettext("Muniment")
    return browser(event.agent) if event.agent else gettext("Website")


def details_of(event: SecurityEvent, *, but: str = "") -> list[tuple[str, str]]:
    """Return label and value of each detail except *but*."""
    about = [(gettext("About"), f"/{event.subject}")] if event.subject else []
    return about + facts_of(event, but=but)


def facts_of(event: SecurityEvent, *, but: str = "") -> list[tuple[str, str]]:
    """Return label and value of each detail but the page that the event is about."""
    lines: list[tuple[str, str]] = []
    for name, value in event.detail.items():
        if name == but:
            continue
        if name == "changed" and isinstance(value, list):  # places in the registry's own settings
            lines.append((gettext("Changed"), ", ".join(map(str, value))))
        elif name == "changed":
            lines += [(setting, " → ".join(map(_setting, pair))) for setting, pair in value.items()]
        elif value in ("", [], None):
            continue
        elif name in _LABELS:
            lines.append((str(_LABELS[name]), _told(name, value)))
    return lines


def _told(name: str, value: Any) -> str:
    """Return a detail in words."""
    match name:
        case "scopes":
            return _permitted(value)
        case "owner":
            return str(get_user_model().objects.filter(pk=value).first() or gettext("former account"))
        case "expires":
            return _day(str(value))
        case "result":
            return translated(unpacked(value))
    return _shown(value)


def _permitted(value: Any) -> str:
    """Return what scopes permit: in two words if they are all, or all that only read."""
    held = scopes.read(" ".join(value) if isinstance(value, list) else str(value))
    if held == ALL_SCOPES:
        return gettext("Full access")
    return gettext("Read only") if held == scopes.READ_SCOPES else _shown(value)


def _day(stored: str) -> str:
    """Return a day, which is stored in English, as the language writes it; other words translated."""
    try:
        return writing.day(datetime.strptime(stored, "%d %B %Y").replace(tzinfo=UTC))
    except ValueError:
        return gettext(stored)


def _setting(value: str | None) -> str:
    return gettext("default") if value is None else value


def _shown(value: Any) -> str:
    if isinstance(value, list):
        words = ", ".join(map(_word, value))
        return capfirst(words) if all(each in _VALUES for each in value) else words
    return capfirst(_word(value)) if value in _VALUES else _word(value)


def _word(value: Any) -> str:
    return str(_VALUES.get(value, value)) if isinstance(value, str) else str(value)
