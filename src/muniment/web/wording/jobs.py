"""Words for the kinds of background jobs and of messages."""

from typing import Final

from django.utils.translation import gettext_lazy

KINDS: Final = {
    "accounts.counts_ended": gettext_lazy("Delete expired counts"),
    "accounts.deletions_due": gettext_lazy("Delete accounts that are due for deletion"),
    "accounts.security_events_ended": gettext_lazy("Delete old entries of the security log"),
    "accounts.sessions_ended": gettext_lazy("Delete expired sessions"),
    "accounts.sign_ups_ended": gettext_lazy("Delete sign-ups that were not confirmed"),
    "accounts.tokens_ended": gettext_lazy("Delete expired access tokens"),
    "accounts.tokens_near_end": gettext_lazy("Warn about access tokens that expire soon"),
    "assessments.executed": gettext_lazy("Assess a listing"),
    "demo.examples": gettext_lazy("Make the demo's examples"),
    "assessments.grown_old": gettext_lazy("End report runs that were never started"),
    "backup.interval_ended": gettext_lazy("Make a backup"),
    "credits.left_open": gettext_lazy("Check open purchases"),
    "documents.archives_ended": gettext_lazy("Delete old downloads of account data"),
    "documents.completed": gettext_lazy("Check an uploaded document"),
    "documents.grown_old": gettext_lazy("Delete expired uploads and documents"),
    "instance.health_asked": gettext_lazy("Check the health of this instance"),
    "jobs.grown_old": gettext_lazy("Delete old jobs"),
    "mail.messages_old": gettext_lazy("Delete old messages"),
    "mail.requested": gettext_lazy("Send a message"),
    "oauth.clients_unused": gettext_lazy("Delete unused apps"),
    "oauth.grants_ended": gettext_lazy("Delete ended app connections"),
    "registry.digests_due": gettext_lazy("Send digests to reviewers"),
    "registry.fields_declared": gettext_lazy("Publish listings with new fields"),
    "registry.file_sparse": gettext_lazy("Give free space back to the disk"),
    "registry.import_requested": gettext_lazy("Import a table"),
    "registry.import_uploads_old": gettext_lazy("Delete old import files"),
    "registry.invitations_ended": gettext_lazy("Delete expired invitations"),
    "registry.item_waits": gettext_lazy("Check an item of the review queue"),
    "registry.items_wait": gettext_lazy("Check the review queue"),
    "registry.log_grew": gettext_lazy("Have the public log cosigned"),
    "registry.logos_due": gettext_lazy("Fetch logos"),
    "registry.people_waiting": gettext_lazy("Publish the people of a long import"),
    "registry.person_erased": gettext_lazy("Remove traces of an erased person"),
    "registry.proofs_aged": gettext_lazy("Check verified domains again"),
    "registry.published": gettext_lazy("Tell plugins about a publication"),
    "registry.rounds_due": gettext_lazy("Open and close funding rounds"),
    "registry.tombstones_due": gettext_lazy("Replace old marks of erased people"),
    "registry.upgraded": gettext_lazy("Publish again after an upgrade"),
    "scrub.due": gettext_lazy("Look for damaged data"),
    "searches.requests_ended": gettext_lazy("Delete requests for updates that were not confirmed"),
    "searches.updates_due": gettext_lazy("Send updates of listings and searches"),
    "webhooks.due": gettext_lazy("Send events to webhooks"),
    "webhooks.grown_old": gettext_lazy("Delete old events of webhooks"),
}
MESSAGES: Final = {
    "account_already_exists": gettext_lazy("Account exists already"),
    "code": gettext_lazy("Code"),
    "email_confirmation": gettext_lazy("Confirmation of an email address"),
    "farewell": gettext_lazy("Account deleted"),
    "invitation": gettext_lazy("Invitation"),
    "login_code": gettext_lazy("Sign-in code"),
    "notice": gettext_lazy("Notification"),
    "password_reset_code": gettext_lazy("Code for a new password"),
    "security_event": gettext_lazy("Security notice"),
    "step_up_code": gettext_lazy("Code to confirm an identity"),
    "test": gettext_lazy("Test message"),
    "updates": gettext_lazy("Updates of a listing or search"),
    "updates_request": gettext_lazy("Confirmation of updates"),
    "unknown_account": gettext_lazy("No account with this address"),
}


def message_kind(name: str) -> str:
    """Return the words for what a message is about; another one is shown as it is stored."""
    return str(MESSAGES.get(name, name))


def job_kind(name: str) -> str:
    """Return the words for a kind of job; that of a plugin is shown as the plugin names it."""
    return str(KINDS.get(name, name))
