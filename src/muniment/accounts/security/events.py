"""The events of the security log: a closed set of names, each with its words and where it appears."""

from enum import StrEnum
from typing import Final, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy


class Event(StrEnum):
    """What happened."""

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
        subject: of the mail; it can name the listing, and the address that was invited.
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
    Event.SETUP_LINK_CREATED: Meaning(gettext_lazy("Set-up link created"), is_audited=True),
    Event.PERSON_INVITED: Meaning(gettext_lazy("Person invited"), is_audited=True),
    Event.INVITATION_REVOKED: Meaning(gettext_lazy("Invitation revoked"), is_audited=True),
    Event.INVITATION_ACCEPTED: Meaning(gettext_lazy("Invitation accepted"), is_audited=True),
}
