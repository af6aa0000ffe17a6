"""
Enqueue mail: the feature's own messages, and those of Django and django-allauth through :class:`Backend`.

A message is stored encrypted, because it may carry a code or a link, and is deleted with the end of its job.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from email.utils import formataddr, make_msgid
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import TextField
from django.db.models.functions import Cast

from muniment.encryption import seal
from muniment.jobs.models import Job
from muniment.jobs.queue import enqueue
from muniment.kernel.ids import now
from muniment.kernel.texts import printable
from muniment.kernel.wire import timestamp
from muniment.mail import html, places
from muniment.registry_toml import applied

KIND: Final = "mail.requested"
PURPOSE: Final = "mail"
NOTICE: Final = "notice"
FAREWELL: Final = "farewell"
"""The last message to a deleted account: its recipient is deleted with its text."""
NO_MAIL: Final = "@accounts.invalid"
"""The domain of the addresses of deleted accounts."""
_ADDRESS_SIGNS: Final = re.compile(r"(?<=\S)(?:://|[.@/:\\\u2024\u3002\uff0e\uff61])(?=\w)")
"""Signs inside of an address, with the full stops that IDNA takes as dots."""
LASTS: Final = timedelta(hours=24)
"""The time that delivery is tried; less for a message with a code or link that expires earlier."""


def send(
    to: str,
    subject: str,
    text: str,
    *,
    kind: str = NOTICE,
    expires_at: datetime | None = None,
    headers: Mapping[str, str] | None = None,
    priority: int = 0,
) -> None:
    """
    Send a message, in the caller's transaction if there is one: it is sent if and only if that commits.

    Args:
        kind: what it is about, for metrics and the back office.
        expires_at: when its code or link expires; it is not delivered later.
        headers: further headers of the message.
        priority: messages with a lower one are delivered first.
    """
    line = " ".join(subject.split())  # it contains names that users chose, and a header is one line
    message = EmailMultiAlternatives(
        f"[{applied.registry_name()}] {line}", text, None, [to], headers=dict(headers or {})
    )
    send_message(message, kind=kind, expires_at=expires_at, priority=priority)


def send_message(
    message: EmailMessage, *, kind: str = NOTICE, expires_at: datetime | None = None, priority: int = 0
) -> None:
    """Send *message* like :func:`send`, as text and HTML."""
    message.to = [address for address in message.to if not address.endswith(NO_MAIL)]
    if not message.to:
        return
    if isinstance(message, EmailMultiAlternatives) and not message.alternatives:
        shown = html.declared_mark() if html.declared_mark is not None else None
        message.attach_alternative(html.as_html(str(message.subject), str(message.body), shown), "text/html")
        if shown is not None:
            html.attach(message, shown)
    if message.from_email == settings.DEFAULT_FROM_EMAIL:
        message.from_email = formataddr((applied.registry_name(), settings.SERVER_EMAIL))
    message.extra_headers.setdefault("Message-ID", make_msgid(domain=_host()))
    latest = now() + LASTS
    payload = {
        "to": message.to,
        "kind": kind,
        "expiresAt": timestamp(min(expires_at or latest, latest)),
        "sealed": seal(message.message().as_bytes(), PURPOSE),
    }
    enqueue(KIND, payload, group=KIND, priority=priority)


def forget(address: str) -> None:
    """Delete the waiting and the delivered messages to *address*, in the caller's transaction."""
    jobs = Job.objects.filter(kind=KIND).annotate(text=Cast("payload", TextField()))
    for job in jobs.filter(text__icontains=address):
        if address.casefold() in (each.casefold() for each in job.payload["to"]):
            job.delete()


def without_links(text: str, limit: int = 80) -> str:
    """
    Return words that a user chose for a mail to other people: one line, cut, and without anything that becomes a link.

    Mail programs turn URLs, domains and addresses in plain text into links, also without a scheme.
    """
    line = " ".join(printable(text).split())
    apart = _ADDRESS_SIGNS.sub(lambda sign: " " if sign[0] == "://" else f" {sign[0]} ", line)
    short = apart[: limit - 1].rstrip() + "…" if len(apart) > limit else apart
    return " ".join(short.split())


def one_block(text: str) -> str:
    """Return a note of several paragraphs as lines without blank ones: a paragraph of its own could be a button."""
    return re.sub(r"\n\s*\n", "\n", text.replace("\r\n", "\n").strip())


def _host() -> str:
    return urlsplit(places.base_url()).hostname or "localhost"


class Backend(BaseEmailBackend):
    """Enqueues the messages of Django and of libraries."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            send_message(message)
        return len(email_messages)
