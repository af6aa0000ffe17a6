"""Sharing a report: the whole by a link, the score by a badge. Source: assessment-spec/1, report."""

from muniment.assessments.models import Report
from muniment.assessments.operations import get_report
from muniment.kernel.actor import Actor
from muniment.kernel.problems import NotFound
from muniment.kernel.tokens import random_text, token_digest


def share_report(actor: Actor, run_id: str) -> str:
    """Create the secret of a link to the report; an earlier link stops working. Raises like `get_report`."""
    token = random_text(32)
    report = get_report(actor, run_id)
    Report.objects.filter(pk=report.pk).update(share_digest=token_digest(token))
    return token


def unshare_report(actor: Actor, run_id: str) -> None:
    Report.objects.filter(pk=get_report(actor, run_id).pk).update(share_digest="")


def set_badge(actor: Actor, run_id: str, *, shown: bool) -> None:
    Report.objects.filter(pk=get_report(actor, run_id).pk).update(badge=shown)


def shared_report(token: str) -> Report:
    """Return the report of a link; raise NotFound if the link is unknown or was revoked."""
    found = Report.objects.filter(share_digest=token_digest(token)).first() if token else None
    if found is None:
        raise NotFound("This link does not exist or was revoked.", "Ask the owner of the report for a new link.")
    return found


def badge_of(report_id: str) -> Report:
    """Return a report whose owners show its badge, or raise NotFound."""
    found = Report.objects.filter(pk=report_id, badge=True).first()
    if found is None:
        raise NotFound("Badge not found.", "Owners can turn on a badge on the page of its report.")
    return found
