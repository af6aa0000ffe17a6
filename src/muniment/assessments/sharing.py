"""Sharing a whole report by links. Source: assessment-spec/1, report; decision 63."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography.fernet import InvalidToken
from django.db import transaction
from django.db.models import Q

from muniment.assessments.models import Report, ShareLink
from muniment.assessments.operations import get_report
from muniment.encryption import seal, unseal
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, LimitReached, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.tokens import random_text, token_digest

PURPOSE: Final = "share link"
MAX_LINKS: Final = 20
MAX_NAME: Final = 80
_NOTED_EVERY: Final = timedelta(minutes=1)
"""Minimum time between updates of a link's last opening: a reader writes to the row no more often."""


class Link(NamedTuple):
    """
    A link to a report, as its owners see it.

    Args:
        token: its secret; empty if the key that sealed it is lost.
        opened_at: when it was last opened, to the minute.
    """

    link_id: str
    name: str
    token: str
    created_at: datetime
    opened_at: datetime | None


def share_report(actor: Actor, run_id: str, *, name: str = "") -> str:
    """
    Create a link to the report beside those that there are, and return its secret.

    Args:
        name: what its owners know it by.

    Raises:
        NotFound: the run is unknown, or not the actor's.
        Conflict: there is no report.
        LimitReached: it has too many links.
        BadRequest: the name is too long or has invalid characters.
    """
    token = random_text(32)
    known_by = " ".join(name.split())
    if len(known_by) > MAX_NAME or text_fault(known_by):
        raise BadRequest(
            Phrase("The name must be text of at most {limit} characters.", limit=MAX_NAME), "Choose a shorter name."
        )
    with transaction.atomic():
        report = Report.objects.select_for_update().get(pk=get_report(actor, run_id).pk)
        if report.links.count() >= MAX_LINKS:
            raise LimitReached(
                Phrase("This report has {limit} links, the most allowed.", limit=MAX_LINKS),
                "Revoke one that is not used.",
            )
        ShareLink.objects.create(
            report=report,
            account_id=actor.account_id,
            name=known_by,
            digest=token_digest(token),
            sealed=seal(token.encode(), PURPOSE),
        )
    return token


def list_links(actor: Actor, run_id: str) -> list[Link]:
    """List the links to a report, the newest first. Raises like `get_report`."""
    rows = get_report(actor, run_id).links.order_by("-created_at", "-pk")
    return [Link(row.pk, row.name, _token(row), row.created_at, row.opened_at) for row in rows]


def revoke_link(actor: Actor, run_id: str, link_id: str) -> None:
    """Revoke one link to a report. Raises like `get_report`, and NotFound for a link that is not one of it."""
    report = get_report(actor, run_id)
    deleted, _ = report.links.filter(pk=link_id).delete()
    if not deleted:
        raise NotFound("This link does not exist or was revoked.", "Reload the page to see the links that there are.")


def unshare_report(actor: Actor, run_id: str) -> None:
    """Revoke all links to a report. Raises like `get_report`."""
    get_report(actor, run_id).links.all().delete()


def shared_report(token: str) -> Report:
    """Return the report of a link and note that it was opened; raise NotFound if it is unknown or was revoked."""
    link = ShareLink.objects.filter(digest=token_digest(token)).first() if token else None
    if link is None:
        raise NotFound("This link does not exist or was revoked.", "Ask the owner of the report for a new link.")
    unnoted = Q(opened_at=None) | Q(opened_at__lt=now() - _NOTED_EVERY)
    ShareLink.objects.filter(unnoted, pk=link.pk).update(opened_at=now())
    return Report.objects.select_related("run__company", "run__framework").get(pk=link.report_id)


def _token(link: ShareLink) -> str:
    try:
        return unseal(link.sealed, PURPOSE).decode()
    except InvalidToken:  # the key was lost; the link itself still works
        return ""
