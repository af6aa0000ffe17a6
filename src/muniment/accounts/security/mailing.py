"""Mail about security events, each kind of event at most five times a day to an account."""

from collections.abc import Iterable
from typing import Final

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext

from muniment.accounts.security import words
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now
from muniment.languages.speaking import known, speaking
from muniment.languages.writing import moment
from muniment.mail import outgoing

SENT_A_DAY: Final = 5
"""Mails about one kind of event that an account gets in a day; the log has all events."""


def send_mail(event: SecurityEvent, *, to: Iterable[str]) -> None:
    """Mail the addresses about *event*, in the transaction that records it."""
    addresses = sorted({address for address in to if not address.endswith(outgoing.NO_MAIL)})
    if not addresses:
        return
    key = f"security-mail:{event.account_id}:{event.event}:{now():%Y%m%d}"
    cache.add(key, 0, timeout=90_000)
    sent = cache.incr(key)
    if sent > SENT_A_DAY:
        return
    with speaking(known(event.account.language if event.account else "")):
        text = text_of(event)
        if sent == SENT_A_DAY:
            text += "\n" + gettext("We don't email you about further events of this kind today.") + "\n"
        for address in addresses:
            outgoing.send(address, words.title_of(event), text, kind="security_event")


def text_of(event: SecurityEvent) -> str:
    """Return the text of the mail: what happened, when, from where, by what, and how to react."""
    lines = [gettext("This happened in your account: %(event)s.") % {"event": words.title_of(event)}, ""]
    lines += [f"{label}: {value}" for label, value in words.details_of(event)]
    lines.append(gettext("Time: %(time)s UTC") % {"time": moment(event.at)})
    if event.address and not event.is_by_other:
        lines.append(gettext("IP address: %(address)s") % {"address": event.address})
    lines.append(gettext("By: %(means)s") % {"means": words.means_of(event)})
    pages = {"base": settings.BASE_URL}
    if event.actor_id == event.account_id:
        reaction = gettext(
            "If this was you, you don't need to do anything. If it wasn't:\n\n"
            "1. Change your password: %(base)s/accounts/password/change/\n"
            "2. Sign out everywhere else: %(base)s/accounts/sessions/\n"
            "3. Revoke tokens and apps that you don't know: %(base)s/manage/tokens\n\n"
            "If you can't sign in, contact the operator of this registry."
        )
    else:
        reaction = gettext("If you didn't expect this, contact the operator of this registry.")
    log = gettext("Your security log: %(base)s/manage/security") % pages
    return "\n".join([*lines, "", reaction % pages, "", log, ""])
