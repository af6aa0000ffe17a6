"""
Send digests: what is new for each confirmed subscription, at most one message a day or a week.

The message is enqueued in the transaction that moves the subscription on, so a process that is killed in between has
done neither. Nothing is sent while nothing is new.
"""

import logging
import time
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils.translation import gettext, ngettext

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.kernel.wire import parse_timestamp
from muniment.languages import writing
from muniment.languages.writing import number
from muniment.mail import outgoing, places
from muniment.mail.receivers import in_language_of
from muniment.searches.models import Subscription
from muniment.searches.news import FIELDS_SHOWN, KINDS, LISTINGS, Item, News, labels_of, news_of
from muniment.searches.subscriptions import PAUSES, end_path, end_rows, is_offered, mine_path
from muniment.store.database.faults import DamagedDocument

KIND: Final = "searches.updates_due"
MESSAGE: Final = "updates"
"""The kind of the messages."""
PRIORITY: Final = 10
"""Codes for signing in and all other messages come first, however many digests wait."""
EVERY_S: Final = 900
LONGEST_RUN_S: Final = 60.0
"""After that, nothing more is begun: the next job continues."""
BATCH: Final = 100
TRIED_AGAIN: Final = timedelta(hours=1)
log = logging.getLogger(__name__)


def send_due(run: JobRun | None = None) -> dict[str, int]:
    """Send the digests that are due, and return how many subscriptions were looked at and how many were told."""
    looked_at = sent = 0
    end = time.monotonic() + LONGEST_RUN_S
    while is_offered() and time.monotonic() < end:
        due = Subscription.objects.exclude(confirmed_at=None).filter(next_at__lte=now())
        batch = list(due.select_related("subscriber").order_by("next_at", "pk")[:BATCH])
        if not batch:
            break
        for subscription in batch:
            if run is not None:
                run.check()
            sent += _send(subscription)
        looked_at += len(batch)
    return {"subscriptions": looked_at, "messages": sent}


def delay_s() -> float:
    """Return how late the digest is that should have been sent first; 0 if none is due, or digests are off."""
    if not is_offered():
        return 0.0
    due = Subscription.objects.exclude(confirmed_at=None).filter(next_at__lte=now())
    next_at = due.order_by("next_at").values_list("next_at", flat=True).first()
    return 0.0 if next_at is None else (now() - next_at).total_seconds()


def _send(subscription: Subscription) -> bool:
    """Send what is new for a subscription, if anything is; return whether it was."""
    try:
        # Outside the transaction: a search may take long, and others wait to write.
        with in_language_of(subscription.subscriber):
            found = news_of(subscription)
    except DamagedDocument:
        log.warning("updates wait for a damaged document", extra={"subscription": subscription.pk})
        Subscription.objects.filter(pk=subscription.pk).update(next_at=now() + TRIED_AGAIN)
        return False
    with transaction.atomic():
        same_row = Subscription.objects.select_for_update(of=("self",)).filter(
            pk=subscription.pk, next_at=subscription.next_at, sequence=subscription.sequence, key=subscription.key
        )
        if same_row.first() is None:
            return False  # ended, sent by another process, or about a person who was erased
        is_told = found.is_over or bool(found.items)
        if is_told:
            _mail(subscription, found)
        if found.is_over:
            end_rows([subscription])
            return True
        sequence, epoch = found.place
        if epoch == subscription.epoch:
            sequence = max(sequence, subscription.sequence)  # this node may be behind the one that sent the last one
        next_at = _next(subscription)
        Subscription.objects.filter(pk=subscription.pk).update(sequence=sequence, epoch=epoch, next_at=next_at)
    return is_told


def _next(subscription: Subscription) -> datetime:
    """Return when the next digest is due: at the same time of the day, however late this one is."""
    pause = PAUSES[Subscription.Pace(subscription.pace)]
    assert subscription.next_at is not None  # noqa: S101 - it was due
    missed = (now() - subscription.next_at) // pause
    return subscription.next_at + pause * (missed + 1)


def _mail(subscription: Subscription, found: News) -> None:
    subscriber = subscription.subscriber
    with in_language_of(subscriber):
        if found.is_over:
            subject, lines = _of_the_end(subscription, found)
            outgoing.send(subscriber.email, subject, f"{lines}\n", kind=MESSAGE, priority=PRIORITY)
            return
        subject, lines = _text(subscription, found)
        end = end_path(subscription)
        why = _why(subscription)
        links = [places.link(gettext("Stop these emails"), end)]
        links.append(places.link(gettext("See all your subscriptions"), mine_path(subscriber)))
        text = "\n\n".join([lines, why, *links])
        outgoing.send(subscriber.email, subject, f"{text}\n", kind=MESSAGE, headers=_headers(end), priority=PRIORITY)


def _headers(end: str) -> dict[str, str]:
    """Return the headers by which mail programs offer to unsubscribe (RFC 2369, RFC 8058)."""
    base = places.base_url()
    headers = {"Auto-Submitted": "auto-generated"}
    if base:
        headers["List-Unsubscribe"] = f"<{base}{end}>"
    if base.startswith("https://"):
        headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return headers


def _why(subscription: Subscription) -> str:
    if subscription.pace == Subscription.Pace.WEEKLY:
        return gettext("You get this message at most once a week, because you confirmed these updates.")
    return gettext("You get this message at most once a day, because you confirmed these updates.")


def _of_the_end(subscription: Subscription, found: News) -> tuple[str, str]:
    """Return subject and text of the last message: there is no such listing or search any more."""
    name = outgoing.without_links(found.name)
    if subscription.topic == "person":  # without the name: the person may have been erased
        subject = gettext("A profile that you follow is no longer public")
        return subject, gettext(
            "A profile that you follow is no longer public in this registry. This subscription has ended."
        )
    shown = {"name": name}
    if subscription.topic in LISTINGS:
        said = gettext("%(name)s is no longer listed in this registry. This subscription has ended.")
        return gettext("%(name)s is no longer listed") % shown, said % shown
    said = gettext("The search “%(name)s” uses a filter that this registry no longer has. This subscription has ended.")
    return gettext("Your search no longer works: %(name)s") % shown, said % shown


def _text(subscription: Subscription, found: News) -> tuple[str, str]:
    shown = {"name": outgoing.without_links(found.name)}
    items = [_line(item, KINDS.get(subscription.topic, subscription.topic)) for item in found.items]
    if found.more:
        items.append(gettext("- and %(count)s more") % {"count": number(found.more)})
    changes = "\n".join(items)
    if subscription.topic in LISTINGS:
        link = places.link(gettext("Open the listing"), found.path)
        if subscription.topic == "person":
            link = places.link(gettext("Open the profile"), found.path)
        lead = gettext("%(name)s has changed:") % shown
        return gettext("Updates of %(name)s") % shown, f"{lead}\n\n{changes}\n\n{link}"
    total = len(found.items) + found.more
    subject = ngettext("%(count)s update: %(name)s", "%(count)s updates: %(name)s", total)
    lead = gettext("New and changed results of “%(name)s”:") % shown
    link = places.link(gettext("Open the search"), found.path)
    return subject % {**shown, "count": number(total)}, f"{lead}\n\n{changes}\n\n{link}"


def _line(item: Item, kind: str) -> str:
    """Return a line of the list. People wrote the names, so the address is shown and is no link of these words."""
    labels = labels_of(item.fields, kind)
    what = {"published": gettext("new"), "updated": gettext("updated"), "unlisted": gettext("unlisted")}[item.change]
    if labels:
        fields = ", ".join(labels[:FIELDS_SHOWN])
        if len(labels) > FIELDS_SHOWN:
            fields = gettext("%(fields)s and others") % {"fields": fields}
        what = gettext("updated: %(fields)s") % {"fields": fields}
    if item.at:
        return f"- {writing.day(parse_timestamp(item.at))}: {what}"
    return f"- {outgoing.without_links(item.name)} ({what}): {places.place(item.path)}"


HANDLER: Final = Handler(kind=KIND, work=send_due, lease_s=60)
