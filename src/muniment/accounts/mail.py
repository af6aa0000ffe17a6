"""
Send mail over SMTP if configured, otherwise write it to a folder in the data directory.

The folder makes the first run work without set-up: it receives the sign-in code of a new account, and a demo prints it.
"""

import logging
import re
import smtplib
from collections.abc import Callable, Sequence
from email.message import EmailMessage as Message
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend as Smtp

from muniment import config
from muniment.kernel.ids import new_id, now
from muniment.kernel.problems import Unavailable

log = logging.getLogger(__name__)
TIMEOUT_S = 10
NO_MAIL = "@accounts.invalid"
"""The domain of the addresses of deleted accounts."""


echo: Callable[[str], object] | None = None
"""Called with each message written to the folder; a demo prints it."""


def folder() -> Path:
    return config.current().data / "mail"


class Backend(BaseEmailBackend):
    """Sends over SMTP or writes to the folder, depending on the settings; raises Unavailable on failure."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        url = config.current().mail_url
        if not url:
            for message in email_messages:
                _write(message)
            return len(email_messages)
        try:
            return _smtp(url).send_messages(email_messages) or 0
        except (OSError, smtplib.SMTPException) as error:
            log.exception("mail server error")
            raise Unavailable(
                "The mail could not be sent.", "Try again in a minute; if the error persists, tell the operator."
            ) from error


def send(to: str, subject: str, text: str) -> bool:
    """
    Send a plain-text message after the commit of the change it reports; log a failure, do not raise it.

    Returns:
        Whether it was sent.
    """
    if to.endswith(NO_MAIL):
        return False
    line = " ".join(subject.split())  # it contains names that users chose, and a header is one line
    message = EmailMultiAlternatives(f"[{config.current().registry_name}] {line}", text, None, [to])
    try:
        message.send()
    except Unavailable:
        log.warning("mail not sent: %s", subject)
        return False
    return True


def without_links(text: str, limit: int = 80) -> str:
    """
    Return words that a user chose for a mail to other people: one line, cut, and without anything that becomes a link.

    Mail programs turn URLs, domains and addresses in plain text into links, also without a scheme.
    """
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    apart = _ADDRESS_SIGNS.sub(lambda sign: " " if sign[0] == "://" else f" {sign[0]} ", line)
    short = apart[: limit - 1].rstrip() + "…" if len(apart) > limit else apart
    return " ".join(short.split())


_ADDRESS_SIGNS = re.compile(r"(?<=\S)(?:://|[.@/:\\\u2024\u3002\uff0e\uff61])(?=\w)")
"""Signs inside of an address, with the full stops that IDNA takes as dots."""


def _smtp(url: str) -> Smtp:
    parts = urlsplit(url)
    return Smtp(
        host=parts.hostname,
        port=parts.port or (465 if parts.scheme == "smtps" else 587 if parts.scheme == "smtp+tls" else 25),
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        use_tls=parts.scheme == "smtp+tls",
        use_ssl=parts.scheme == "smtps",
        timeout=TIMEOUT_S,
    )


def _write(message: EmailMessage) -> None:
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    made: Message = message.message()
    file = place / f"{now():%Y%m%dT%H%M%S%f}-{new_id()}.eml"
    file.write_bytes(made.as_bytes())
    if echo is not None:
        echo(f"\n--- mail to {', '.join(message.to)}: {message.subject}\n{message.body}\n---\n")
