"""
The settings of reviewers: digest mail, keyboard shortcuts, and saved replies, which all reviewers share.

A digest has the number of waiting items of each kind and the oldest item. It is sent at most once in so many hours to
each reviewer, and not while nothing waits, or while every item came a few minutes ago.
"""

from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext, ngettext

from muniment import config
from muniment.accounts.models import Account
from muniment.jobs.handlers import Handler, register
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import LimitReached, NotFound
from muniment.kernel.texts import text_fault
from muniment.languages.writing import number
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.registry.company.access import require_account, require_reviewer
from muniment.registry.company.changes import BadFields
from muniment.registry.inbox import items
from muniment.registry.inbox.items import QueueItem
from muniment.registry.models import ReviewerSettings, SavedReply
from muniment.schema.validation import Fault

_SAVED_REPLIES: Final = "use saved replies"
MAX_TITLE: Final = 80
MAX_TEXT: Final = 5_000
MAX_REPLIES: Final = 100
GRACE: Final = timedelta(minutes=15)
"""The time that the oldest item waits before anyone is mailed: a reviewer may be at work."""


_TASK: Final = "have these settings"


def get_settings(actor: Actor) -> ReviewerSettings:
    """
    Return the settings of the actor.

    Raises:
        Forbidden: the actor is not a reviewer, or has no account.
    """
    require_reviewer(actor, _TASK)
    account_id = require_account(actor, "Settings belong to an account.")
    found = ReviewerSettings.objects.filter(account=account_id).first()
    return found or ReviewerSettings(account_id=account_id)


def change_settings(actor: Actor, *, digest: bool, shortcuts: bool) -> ReviewerSettings:
    """Change the settings of the actor; raise Forbidden as `get_settings` does."""
    account_id = get_settings(actor).account_id
    values = {"digest": digest, "shortcuts": shortcuts}
    return ReviewerSettings.objects.update_or_create(account_id=account_id, defaults=values)[0]


def list_replies(actor: Actor) -> list[SavedReply]:
    """Return the saved replies by title; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, _SAVED_REPLIES)
    return list(SavedReply.objects.select_related("account").order_by("title", "pk"))


def get_reply(actor: Actor, number: int) -> SavedReply:
    """
    Return a saved reply.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such reply.
    """
    require_reviewer(actor, _SAVED_REPLIES)
    found = SavedReply.objects.filter(pk=number).first()
    if found is None:
        raise NotFound("This saved reply doesn't exist.", "All saved replies are at /review/replies.")
    return found


def save_reply(actor: Actor, title: str, text: str, *, number: int | None = None) -> SavedReply:
    """
    Create a saved reply, or change one.

    Args:
        number: the number of the reply to change.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: there is no such reply.
        BadFields: title or text is empty or too long, or the title is taken.
        LimitReached: there are too many.
    """
    require_reviewer(actor, _SAVED_REPLIES)
    values = {"title": title.strip(), "text": text.strip()}
    faults = [*_faults("title", values["title"], MAX_TITLE), *_faults("text", values["text"], MAX_TEXT)]
    if faults:
        raise BadFields(faults, "A saved reply has a title and a text.")
    reply = get_reply(actor, number) if number is not None else SavedReply()
    if number is None and SavedReply.objects.count() >= MAX_REPLIES:
        raise LimitReached(Phrase("There are {limit} saved replies already.", limit=MAX_REPLIES), "Delete one first.")
    reply.title, reply.text = values["title"], values["text"]
    reply.account_id, reply.updated_at = actor.account_id, now()
    try:
        with transaction.atomic():
            reply.save()
    except IntegrityError:
        raise BadFields([Fault("title", "is taken")], "Choose another title.") from None
    return reply


def delete_reply(actor: Actor, number: int) -> None:
    """Delete a saved reply; raise Forbidden or NotFound as `get_reply` does."""
    get_reply(actor, number).delete()


def with_reply(actor: Actor, note: str, number: int | None) -> str:
    """Return a note that begins with a saved reply; the note alone without a number."""
    if number is None:
        return note
    text = get_reply(actor, number).text
    return f"{text}\n\n{note.strip()}" if note.strip() else text


def _faults(name: str, value: str, limit: int) -> list[Fault]:
    if not value:
        return [Fault(name, "is empty")]
    if len(value) > limit:
        return [Fault(name, Phrase("has {count:,} characters; the limit is {limit:,}", count=len(value), limit=limit))]
    fault = text_fault(value)
    return [Fault(name, fault)] if fault else []


def send_digests() -> int:
    """Mail the reviewers whose last digest is long enough ago; return how many."""
    hours = config.current().review_digest_hours
    oldest = next(iter(items.list_queue(SYSTEM, page_size=1).items), None)
    if not hours or oldest is None or oldest.since > now() - GRACE:
        return 0
    counts = items.count_kinds(SYSTEM)
    roles = [Account.Role.REVIEWER, Account.Role.OPERATOR]
    reviewers = Account.objects.filter(role__in=roles, is_active=True, delete_at=None).order_by("pk")
    pause = timedelta(hours=hours)
    return sum(_send(account, oldest, counts, pause) for account in reviewers)


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
    if days:
        waited = ngettext("%(days)s day", "%(days)s days", days) % {"days": days}
    else:
        waited = gettext("less than a day")
    values = {"name": outgoing.without_links(oldest.name), "waited": waited}
    return (
        f"{lines}\n\n{gettext('The oldest is %(name)s, waiting for %(waited)s.') % values}\n\n"
        f"{places.link(gettext('Open the review queue'), '/review')}\n\n"
        f"{places.link(gettext('Stop these emails'), '/review/settings')}\n"
    )


register(Handler(kind="registry.digests_due", work=lambda _: send_digests(), lease_s=60), every_s=900)
