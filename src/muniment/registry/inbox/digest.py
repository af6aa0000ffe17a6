"""
Mail reviewers when items wait: counts by kind and the oldest item, at most once in so many hours each.

Nothing is sent while nothing waits, or while all that waits came a few minutes ago.
"""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext, ngettext

from muniment import config
from muniment.accounts.models import Account
from muniment.kernel.actor import SYSTEM
from muniment.kernel.ids import now
from muniment.languages.writing import number
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry.inbox import items
from muniment.registry.inbox.items import QueueItem
from muniment.registry.models import ReviewerSettings

GRACE: Final = timedelta(minutes=15)
"""How long the oldest item waits before anyone is mailed: a reviewer may be at work."""


def send_digests() -> int:
    """Mail the reviewers whose last digest is long enough ago; return how many."""
    hours = config.current().review_digest_hours
    oldest = next(iter(items.list_queue(SYSTEM, page_size=1).items), None)
    if not hours or oldest is None or oldest.since > now() - GRACE:
        return 0
    counts = items.count_kinds(SYSTEM)
    roles = [Account.Role.REVIEWER, Account.Role.OPERATOR]
    reviewers = Account.objects.filter(role__in=roles, is_active=True, delete_at=None).order_by("pk")
    return sum(_send(account, oldest, counts, timedelta(hours=hours)) for account in reviewers)


def _send(account: Account, oldest: QueueItem, counts: dict[str, int], pause: timedelta) -> bool:
    with transaction.atomic():
        ReviewerSettings.objects.get_or_create(account=account)
        own = ReviewerSettings.objects.select_for_update(of=("self",)).get(account=account)
        if not own.digest or (own.digest_at is not None and own.digest_at > now() - pause):
            return False
        own.digest_at = now()
        own.save(update_fields=["digest_at"])
        total = sum(counts.values())
        with in_language_of(account):
            subject = ngettext("%(total)s item waits for review", "%(total)s items wait for review", total)
            outgoing.send(account.email, subject % {"total": number(total)}, _text(oldest, counts))
        return True


def _text(oldest: QueueItem, counts: dict[str, int]) -> str:
    words = {
        "listing": gettext("New listings"),
        "change": gettext("Changes"),
        "claim": gettext("Listing claims"),
        "profile": gettext("Profile claims"),
        "suggestion": gettext("Suggested edits"),
    }
    lines = "\n".join(f"{words[kind]}: {number(count)}" for kind, count in counts.items())
    days = (now() - oldest.since).days
    waited = ngettext("%(days)s day", "%(days)s days", days) % {"days": days} if days else gettext("less than a day")
    values = {"name": outgoing.without_links(oldest.name), "waited": waited}
    return (
        f"{lines}\n\n{gettext('The oldest is %(name)s, waiting for %(waited)s.') % values}\n\n"
        f"{places.link(gettext('Open the review queue'), '/review')}\n\n"
        f"{places.link(gettext('Stop these emails'), '/review/settings')}\n"
    )
