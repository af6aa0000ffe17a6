"""
What owners let others see of a report: the whole by a link, the score by a badge.

Source: assessment-spec/1, report.
"""

from muniment.assessments.models import Report
from muniment.assessments.operations import get_report
from muniment.kernel.actor import Actor
from muniment.kernel.problems import NotFound
from muniment.kernel.tokens import random_text, token_digest


def share_report(actor: Actor, run_id: str) -> str:
    """
    Make the unguessable text of a link that shows the report to whoever has it; a former link ends.

    Raises:
        NotFound, Conflict: as :func:`operations.get_report`.
    """
    token = random_text(32)
    report = get_report(actor, run_id)
    Report.objects.filter(pk=report.pk).update(share_digest=token_digest(token))
    return token


def unshare_report(actor: Actor, run_id: str) -> None:
    """End the link that shows the report."""
    Report.objects.filter(pk=get_report(actor, run_id).pk).update(share_digest="")


def set_badge(actor: Actor, run_id: str, *, shown: bool) -> None:
    """Show the badge of a report to everyone, or to nobody."""
    Report.objects.filter(pk=get_report(actor, run_id).pk).update(badge=shown)


def shared_report(token: str) -> Report:
    """
    Give the report of a link.

    Raises:
        NotFound: the link is unknown, or has ended.
    """
    found = Report.objects.filter(share_digest=token_digest(token)).first() if token else None
    if found is None:
        raise NotFound("This link shows nothing: it is unknown, or has ended.", "Ask whoever gave it to you.")
    return found


def badge_of(report_id: str) -> Report:
    """
    Give a report whose badge its owners show.

    Raises:
        NotFound: there is none.
    """
    found = Report.objects.filter(pk=report_id, badge=True).first()
    if found is None:
        raise NotFound("There is no such badge.", "Owners show a badge on the page of its report.")
    return found
