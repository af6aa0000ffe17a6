"""The events of the security log: a closed set of names, each with its words, and how pages and mail say it."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from django.contrib.auth import get_user_model
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from muniment.accounts import scopes
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import ALL_SCOPES
from muniment.kernel.phrases.storing import unpacked
from muniment.languages import writing
from muniment.languages.translated import translated


class Event(StrEnum):
    """The name of an event."""

    SIGNED_IN = "signed_in"
    SIGN_IN_FAILED = "sign_in_failed"
    REAUTHENTICATED = "reauthenticated"
    SESSIONS_ENDED = "sessions_ended"
    ACCOUNT_CREATED = "account_created"
    PASSWORD_CHANGED = "password_changed"  # noqa: S105 - the name of an event
    PASSWORD_RESET = "password_reset"  # noqa: S105 - the name of an event
    EMAIL_CHANGED = "email_changed"
    EMAIL_REMOVED = "email_removed"
    FACTOR_ADDED = "factor_added"
    FACTOR_REMOVED = "factor_removed"
    RECOVERY_CODES_CREATED = "recovery_codes_created"
    RECOVERY_CODE_USED = "recovery_code_used"
    IDENTITY_ADDED = "identity_added"
    IDENTITY_REMOVED = "identity_removed"
    TOKEN_CREATED = "token_created"  # noqa: S105 - the name of an event
    TOKEN_REGENERATED = "token_regenerated"  # noqa: S105 - the name of an event
    TOKEN_REVOKED = "token_revoked"  # noqa: S105 - the name of an event
    APP_PERMITTED = "app_permitted"
    APP_CONNECTED = "app_connected"
    APP_DISCONNECTED = "app_disconnected"
    WEBHOOK_ADDED = "webhook_added"
    WEBHOOK_CHANGED = "webhook_changed"
    WEBHOOK_SECRET_ROTATED = "webhook_secret_rotated"  # noqa: S105 - the name of an event
    WEBHOOK_REMOVED = "webhook_removed"
    OWNER_INVITED = "owner_invited"
    OWNER_ADDED = "owner_added"
    OWNER_LEFT = "owner_left"
    OWNERSHIP_GAINED = "ownership_gained"
    OWNERSHIP_ENDED = "ownership_ended"
    DATA_EXPORTED = "data_exported"
    DELETION_REQUESTED = "deletion_requested"
    DELETION_CANCELED = "deletion_canceled"
    ACCOUNT_DELETED = "account_deleted"
    ACCOUNT_DISABLED = "account_disabled"
    ACCOUNT_ENABLED = "account_enabled"
    ROLE_CHANGED = "role_changed"
    CREDITS_GRANTED = "credits_granted"
    SUBMISSION_DECIDED = "submission_decided"
    CHANGE_DECIDED = "change_decided"
    REQUEST_DECIDED = "request_decided"
    UNLISTED = "unlisted"
    RELISTED = "relisted"
    PERSON_CORRECTED = "person_corrected"
    PEOPLE_MERGED = "people_merged"
    PERSON_ERASED = "person_erased"
    FORMER_NAME_REMOVED = "former_name_removed"
    FRAMEWORK_CHANGED = "framework_changed"
    RECORDS_IMPORTED = "records_imported"
    IMPORT_UNDONE = "import_undone"
    SETTINGS_CHANGED = "settings_changed"
    REGISTRY_CHANGED = "registry_changed"
    KEYS_ROTATED = "keys_rotated"
    COMMAND_RUN = "command_run"
    JOB_RETRIED = "job_retried"
    JOB_DROPPED = "job_dropped"
    TEST_MESSAGE_SENT = "test_message_sent"
    SUBSCRIPTIONS_ENDED = "subscriptions_ended"
    SETUP_LINK_CREATED = "setup_link_created"
    PERSON_INVITED = "person_invited"
    INVITATION_REVOKED = "invitation_revoked"
    INVITATION_ACCEPTED = "invitation_accepted"


class Meaning(NamedTuple):
    """
    The words of an event, and where it appears besides the log of its account.

    Args:
        is_audited: it is always in the audit log; others are if a command or another account's operator did them.
        is_mailed: the account is told by mail here; other operations send their own.
        subject: the subject of the mail; it can name the listing, and the address that was invited.
    """

    words: str | Promise
    is_audited: bool = False
    is_mailed: bool = False
    subject: str | Promise = ""


MEANINGS: Final[dict[Event, Meaning]] = {
    Event.SIGNED_IN: Meaning(gettext_lazy("Signed in"), subject=gettext_lazy("New sign-in to your account")),
    Event.SIGN_IN_FAILED: Meaning(gettext_lazy("Failed sign-in")),
    Event.REAUTHENTICATED: Meaning(gettext_lazy("Confirmed identity")),
    Event.SESSIONS_ENDED: Meaning(gettext_lazy("Sessions signed out")),
    Event.ACCOUNT_CREATED: Meaning(gettext_lazy("Account created")),
    Event.PASSWORD_CHANGED: Meaning(
        gettext_lazy("Password changed"), is_mailed=True, subject=gettext_lazy("Your password was changed")
    ),
    Event.PASSWORD_RESET: Meaning(
        gettext_lazy("Password reset"), is_mailed=True, subject=gettext_lazy("Your password was reset")
    ),
    Event.EMAIL_CHANGED: Meaning(
        gettext_lazy("Email address changed"), is_mailed=True, subject=gettext_lazy("Your email address was changed")
    ),
    Event.EMAIL_REMOVED: Meaning(
        gettext_lazy("Email address removed"),
        is_mailed=True,
        subject=gettext_lazy("An email address was removed from your account"),
    ),
    Event.FACTOR_ADDED: Meaning(
        gettext_lazy("Second factor added"),
        is_mailed=True,
        subject=gettext_lazy("A second factor was added to your account"),
    ),
    Event.FACTOR_REMOVED: Meaning(
        gettext_lazy("Second factor removed"),
        is_mailed=True,
        subject=gettext_lazy("A second factor was removed from your account"),
    ),
    Event.RECOVERY_CODES_CREATED: Meaning(
        gettext_lazy("Recovery codes created"),
        is_mailed=True,
        subject=gettext_lazy("New recovery codes for your account"),
    ),
    Event.RECOVERY_CODE_USED: Meaning(
        gettext_lazy("Recovery code used"),
        is_mailed=True,
        subject=gettext_lazy("A recovery code of your account was used"),
    ),
    Event.IDENTITY_ADDED: Meaning(
        gettext_lazy("Single sign-on connected"),
        is_mailed=True,
        subject=gettext_lazy("Single sign-on was connected to your account"),
    ),
    Event.IDENTITY_REMOVED: Meaning(
        gettext_lazy("Single sign-on disconnected"),
        is_mailed=True,
        subject=gettext_lazy("Single sign-on was disconnected from your account"),
    ),
    Event.TOKEN_CREATED: Meaning(gettext_lazy("Token created")),
    Event.TOKEN_REGENERATED: Meaning(gettext_lazy("Token regenerated")),
    Event.TOKEN_REVOKED: Meaning(gettext_lazy("Token revoked")),
    Event.APP_PERMITTED: Meaning(gettext_lazy("App permitted")),
    Event.APP_CONNECTED: Meaning(gettext_lazy("App connected")),
    Event.APP_DISCONNECTED: Meaning(gettext_lazy("App disconnected")),
    Event.WEBHOOK_ADDED: Meaning(
        gettext_lazy("Webhook added"), is_mailed=True, subject=gettext_lazy("A webhook was added to your account")
    ),
    Event.WEBHOOK_CHANGED: Meaning(gettext_lazy("Webhook changed")),
    Event.WEBHOOK_SECRET_ROTATED: Meaning(gettext_lazy("Secret of a webhook rotated")),
    Event.WEBHOOK_REMOVED: Meaning(gettext_lazy("Webhook deleted")),
    Event.OWNER_INVITED: Meaning(
        gettext_lazy("Owner invited"), is_mailed=True, subject=gettext_lazy("You invited %(email)s to co-own %(name)s")
    ),
    Event.OWNER_ADDED: Meaning(
        gettext_lazy("Listing has another owner"), is_mailed=True, subject=gettext_lazy("%(name)s has a new owner")
    ),
    Event.OWNER_LEFT: Meaning(
        gettext_lazy("Owner left a listing"), is_mailed=True, subject=gettext_lazy("An owner left %(name)s")
    ),
    Event.OWNERSHIP_GAINED: Meaning(
        gettext_lazy("Ownership gained"), is_mailed=True, subject=gettext_lazy("You're now an owner of %(name)s")
    ),
    Event.OWNERSHIP_ENDED: Meaning(
        gettext_lazy("Ownership ended"), is_mailed=True, subject=gettext_lazy("You no longer own %(name)s")
    ),
    Event.DATA_EXPORTED: Meaning(
        gettext_lazy("Data downloaded"), is_mailed=True, subject=gettext_lazy("Your account data was downloaded")
    ),
    Event.DELETION_REQUESTED: Meaning(gettext_lazy("Account deletion requested")),
    Event.DELETION_CANCELED: Meaning(gettext_lazy("Account deletion canceled")),
    Event.ACCOUNT_DELETED: Meaning(gettext_lazy("Account deleted"), is_audited=True),
    Event.ACCOUNT_DISABLED: Meaning(
        gettext_lazy("Account disabled"),
        is_audited=True,
        is_mailed=True,
        subject=gettext_lazy("Your account was disabled"),
    ),
    Event.ACCOUNT_ENABLED: Meaning(
        gettext_lazy("Account enabled"),
        is_audited=True,
        is_mailed=True,
        subject=gettext_lazy("Your account was enabled again"),
    ),
    Event.ROLE_CHANGED: Meaning(
        gettext_lazy("Role changed"), is_audited=True, is_mailed=True, subject=gettext_lazy("Your role was changed")
    ),
    Event.CREDITS_GRANTED: Meaning(gettext_lazy("Credits granted"), is_audited=True),
    Event.SUBMISSION_DECIDED: Meaning(gettext_lazy("Submission reviewed"), is_audited=True),
    Event.CHANGE_DECIDED: Meaning(gettext_lazy("Change reviewed"), is_audited=True),
    Event.REQUEST_DECIDED: Meaning(gettext_lazy("Request reviewed"), is_audited=True),
    Event.UNLISTED: Meaning(gettext_lazy("Unlisted"), is_audited=True),
    Event.RELISTED: Meaning(gettext_lazy("Relisted"), is_audited=True),
    Event.PERSON_CORRECTED: Meaning(gettext_lazy("Person corrected"), is_audited=True),
    Event.PEOPLE_MERGED: Meaning(gettext_lazy("People merged"), is_audited=True),
    Event.PERSON_ERASED: Meaning(gettext_lazy("Person erased"), is_audited=True),
    Event.FORMER_NAME_REMOVED: Meaning(gettext_lazy("Former name removed"), is_audited=True),
    Event.FRAMEWORK_CHANGED: Meaning(gettext_lazy("Framework changed"), is_audited=True),
    Event.RECORDS_IMPORTED: Meaning(gettext_lazy("Records imported"), is_audited=True),
    Event.IMPORT_UNDONE: Meaning(gettext_lazy("Import undone"), is_audited=True),
    Event.SETTINGS_CHANGED: Meaning(gettext_lazy("Settings changed"), is_audited=True),
    Event.REGISTRY_CHANGED: Meaning(gettext_lazy("Registry settings changed"), is_audited=True),
    Event.KEYS_ROTATED: Meaning(gettext_lazy("Keys rotated"), is_audited=True),
    Event.COMMAND_RUN: Meaning(gettext_lazy("Command run"), is_audited=True),
    Event.JOB_RETRIED: Meaning(gettext_lazy("Job retried"), is_audited=True),
    Event.TEST_MESSAGE_SENT: Meaning(gettext_lazy("Test message sent"), is_audited=True),
    Event.JOB_DROPPED: Meaning(gettext_lazy("Job canceled"), is_audited=True),
    Event.SUBSCRIPTIONS_ENDED: Meaning(gettext_lazy("Email subscriptions ended"), is_audited=True),
    Event.SETUP_LINK_CREATED: Meaning(gettext_lazy("Set-up link created"), is_audited=True),
    Event.PERSON_INVITED: Meaning(gettext_lazy("Person invited"), is_audited=True),
    Event.INVITATION_REVOKED: Meaning(gettext_lazy("Invitation revoked"), is_audited=True),
    Event.INVITATION_ACCEPTED: Meaning(gettext_lazy("Invitation accepted"), is_audited=True),
}

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
    "server": gettext_lazy("Server"),
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
    values = value if isinstance(value, list) else [value]
    words = ", ".join(map(_word, values))
    are_known = all(name in _VALUES for name in values)
    return capfirst(words) if are_known else words


def _word(value: Any) -> str:
    return str(_VALUES.get(value, value)) if isinstance(value, str) else str(value)
