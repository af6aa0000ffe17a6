"""Words for states and for the actions of the history."""

from typing import Final

from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

STATES: Final = {
    "accepted": gettext_lazy("Accepted"),
    "active": gettext_lazy("Active"),
    "approved": gettext_lazy("Approved"),
    "canceled": gettext_lazy("Canceled"),
    "captured": gettext_lazy("Captured"),
    "changes_requested": gettext_lazy("Changes requested"),
    "checking": gettext_lazy("Checking"),
    "closed": gettext_lazy("Closed"),
    "confirmed": gettext_lazy("Confirmed"),
    "created": gettext_lazy("Not run yet"),
    "current": gettext_lazy("Current"),
    "declined": gettext_lazy("Declined"),
    "deleted": gettext_lazy("Deleted"),
    "done": gettext_lazy("Done"),
    "draft": gettext_lazy("Draft"),
    "ended": gettext_lazy("Ended"),
    "expired": gettext_lazy("Expired"),
    "failed": pgettext_lazy("job", "Failed"),
    "former": gettext_lazy("Former"),
    "grant": gettext_lazy("Grant"),
    "held": gettext_lazy("Held"),
    "hidden": gettext_lazy("Hidden"),
    "importing": gettext_lazy("Importing"),
    "inactive": gettext_lazy("Inactive"),
    "mapping": gettext_lazy("Mapping"),
    "no specification": gettext_lazy("No specification"),
    "not open": gettext_lazy("Not open"),
    "not verified": gettext_lazy("Not verified"),
    "open": gettext_lazy("Open"),
    "paid": gettext_lazy("Paid"),
    "passed": gettext_lazy("Passed"),
    "pending": gettext_lazy("Pending"),
    "planned": gettext_lazy("Planned"),
    "preview": gettext_lazy("Preview"),
    "private": gettext_lazy("Private"),
    "program": gettext_lazy("Program"),
    "published": gettext_lazy("Published"),
    "queued": gettext_lazy("Queued"),
    "raising": gettext_lazy("Raising"),
    "reading": gettext_lazy("Reading"),
    "ready": gettext_lazy("Ready"),
    "rejected": gettext_lazy("Declined"),
    "released": gettext_lazy("Released"),
    "requested": gettext_lazy("Requested"),
    "running": gettext_lazy("Running"),
    "score": gettext_lazy("Score"),
    "submitted": gettext_lazy("Submitted"),
    "succeeded": gettext_lazy("Succeeded"),
    "unlisted": gettext_lazy("Unlisted"),
    "upcoming": gettext_lazy("Upcoming"),
    "uploaded": gettext_lazy("Uploaded"),
    "verified": gettext_lazy("Verified"),
    "waiting": gettext_lazy("Change pending"),
    "withdrawn": gettext_lazy("Withdrawn"),
}
ACTIONS: Final = {
    "added": gettext_lazy("Added"),
    "application accepted": gettext_lazy("Application accepted"),
    "application declined": gettext_lazy("Application declined"),
    "application submitted": gettext_lazy("Application submitted"),
    "application withdrawn": gettext_lazy("Application withdrawn"),
    "asked": gettext_lazy("Change requested"),
    "authored": gettext_lazy("Specification published"),
    "change approved": gettext_lazy("Change approved"),
    "change refused": gettext_lazy("Change declined"),
    "change reopened": gettext_lazy("Change reopened"),
    "reviewed again": gettext_lazy("Reviewed again"),
    "changes_requested": gettext_lazy("Changes requested"),
    "claimed": gettext_lazy("Claimed"),
    "corrected": gettext_lazy("Corrected"),
    "created": gettext_lazy("Created"),
    "deleted": gettext_lazy("Deleted"),
    "domain verified": gettext_lazy("Domain verified"),
    "former name hidden": gettext_lazy("Former name hidden"),
    "former name removed": gettext_lazy("Former name removed"),
    "former name shown": gettext_lazy("Former name shown again"),
    "import undone": gettext_lazy("Import undone"),
    "imported": gettext_lazy("Imported"),
    "invitation revoked": gettext_lazy("Invitation revoked"),
    "joined": gettext_lazy("Owner linked"),
    "merged": gettext_lazy("Merged"),
    "owner added": gettext_lazy("Owner added"),
    "owner invited": gettext_lazy("Owner invited"),
    "owner joined": gettext_lazy("Owner joined"),
    "owner left": gettext_lazy("Owner left"),
    "owner removed": gettext_lazy("Owner removed"),
    "person erased": gettext_lazy("Person erased"),
    "person merged": gettext_lazy("Person merged"),
    "position answered": gettext_lazy("Position answered"),
    "published": gettext_lazy("Published"),
    "rejected": gettext_lazy("Declined"),
    "relisted": gettext_lazy("Relisted"),
    "request withdrawn": gettext_lazy("Request withdrawn"),
    "reverted": gettext_lazy("Reverted"),
    "score published": gettext_lazy("Score published"),
    "score withdrawn": gettext_lazy("Score withdrawn"),
    "submitted": gettext_lazy("Submitted"),
    "unlisted": gettext_lazy("Unlisted"),
    "unpublished": gettext_lazy("Unpublished"),
    "updated": gettext_lazy("Updated"),
    "withdrawn": gettext_lazy("Withdrawn"),
}

TRANSFERS: Final = {
    "grant": gettext_lazy("Grant"),
    "purchase": gettext_lazy("Purchase"),
    "refund": gettext_lazy("Refund"),
    "run": gettext_lazy("Report run"),
    "start": gettext_lazy("Starting balance"),
}


def state(name: str) -> str:
    """Return the word for a state; an unknown one is shown as it is stored."""
    found = STATES.get(name)
    return str(found) if found is not None else gettext(_shown(name))


def outcome(name: str) -> str:
    """Return the word for the status of a proposal, which does not fail as a job does."""
    return gettext("Failed") if name == "failed" else state(name)


LEDGERS: Final = {
    "issued": gettext_lazy("Issued by the registry"),
    "revenue": gettext_lazy("Spent on reports"),
    "sold": gettext_lazy("Sold by the registry"),
}


def ledger(name: str) -> str:
    """Return the word for a side of the ledger that is no account."""
    return str(LEDGERS.get(name, name))


def transferred(kind: str) -> str:
    """Return the word for a kind of transfer of credits; an unknown one is shown as it is stored."""
    return str(TRANSFERS.get(kind, kind))


def happened(action: str) -> str:
    """Return the words for an action of the history."""
    found = ACTIONS.get(action)
    return str(found) if found is not None else gettext(_shown(action))


def _shown(name: str) -> str:
    text = name.replace("_", " ")
    return text[:1].upper() + text[1:].lower()
