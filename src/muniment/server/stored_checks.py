"""Checks of what is stored, which `muniment doctor` makes when it is asked for them."""

from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim
from muniment.server.findings import Finding, bad, good, warning
from muniment.store.database.migrations import has_begun


def examine_storage() -> list[Finding]:
    """Verify documents against their blobs. Requires that all migrations are applied."""
    from muniment.documents.cleanup import examine as examine_documents

    if not has_begun():
        return [good("documents", "none yet")]
    found = examine_documents()
    kept = Phrase("{blobs:,} blobs of {blob_bytes:,} bytes", blobs=found.blobs, blob_bytes=found.blob_bytes)
    missing = Phrase(
        "{count:,} have no blob: {first}; restore the store from a backup",
        count=len(found.missing),
        first=_first(found.missing),
    )
    orphans = Phrase(
        "{count:,} belong to no document: {first}; the next cleanup deletes them",
        count=len(found.orphans),
        first=_first(found.orphans),
    )
    return [
        bad("documents", missing)
        if found.missing
        else good("documents", Phrase("each has its blob; {kept}", kept=kept)),
        bad("blobs", orphans) if found.orphans else good("blobs", "each belongs to a document"),
    ]


def _first(names: list[str]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def examine_ledger() -> list[Finding]:
    from muniment.credits.operations import check_ledger

    if not has_begun():
        return [good("ledger", "none yet")]
    faults = check_ledger()
    if faults:
        return [bad("ledger", "; ".join(faults[:10]))]
    return [good("ledger", "every balance equals its transfers, and the total is zero")]


def examine_values() -> list[Finding]:
    """List the stored values that break a rule. They are served and stay, so none fails the check."""
    from muniment.registry.review.values import all_broken_values

    if not has_begun():
        return [good("values", "none yet")]
    found = [
        warning("value", Joined("", (Verbatim(f"{of}: {fault.field} "), fault.reason)))
        for of, fault in all_broken_values()
    ]
    if not found:
        return [good("values", "every stored value follows the rules")]
    return [
        warning("values", Phrase("{count:,} break a rule; an edit that touches one must correct it", count=len(found))),
        *found,
    ]
