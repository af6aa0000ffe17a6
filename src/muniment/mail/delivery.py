"""Deliver mail: the job that sends one message over SMTP, or writes it to a folder in the data directory.

The folder makes the first run work without set-up: it receives the sign-in code of a new account, and a demo prints it.
While the mail server does not answer, one message is tried every few seconds and the others wait.
"""

import logging
import smtplib
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from cryptography.fernet import InvalidToken
from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend as Smtp
from django.core.mail.message import sanitize_address
from django.db import transaction
from django.db.models import Count, Min

from muniment import config
from muniment.encryption import unseal
from muniment.jobs import handlers
from muniment.jobs.handlers import Abandoned, Postponed
from muniment.jobs.models import Job, State
from muniment.jobs.queue import UNFINISHED, JobRun, clock
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.mail.outgoing import FAREWELL, KIND, PURPOSE
from muniment.outbound.deadlines import within

TIMEOUT_S: Final = 10
"""Seconds for each answer of the mail server."""
DELIVERY_S: Final = 60.0
"""Seconds for one message in all, from the look-up of the server's name to its last answer."""
_DELIVERIES: Final = threading.BoundedSemaphore(4)
KEPT: Final = timedelta(days=1)
"""The time that a sent message stays known, and that a message stays in the folder."""
MAX_IN_FOLDER: Final = 2_000
PAUSE_S: Final = 3.0
"""Between two attempts while the mail server does not answer."""
_PORTS: Final = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
_PERMANENT: Final = 500
log = logging.getLogger(__name__)

echo: Callable[[str], object] | None = None
"""Called with each message written to the folder; a demo prints it."""
outcomes: Final[dict[str, Callable[[str, bool], None]]] = {}
"""By kind of message: called with each recipient, and whether the server took the message or refused it for good."""


def folder() -> Path:
    return config.current().data / "mail"


def deliver(run: JobRun) -> None:
    """
    Send the message of a job.

    The person who waits for it is not told of any failure. The operator is: by the figures of /operate/mail, by
    ``muniment doctor``, and, while messages wait for minutes, by an alert.

    Raises:
        Postponed: the mail server does not answer, or refuses for now.
        Abandoned: the server refuses the message for good, its code or link has expired meanwhile, or the secret key
            that opens it is missing.
    """
    if datetime.fromisoformat(run.payload["expiresAt"]) <= now():
        raise Abandoned(Phrase("the message expired before a mail server accepted it"))
    try:
        content = unseal(run.payload["sealed"], PURPOSE)
    except InvalidToken:
        raise Abandoned("the secret key under which the message was stored is missing") from None
    url = config.current().mail_url
    if url:
        _send(url, run.payload, content)
    else:
        _write(content)
    with transaction.atomic():
        run.finish({"state": "sent"})
        _tell(run.payload, is_accepted=True)
        _wipe(run.id, run.payload)


def _send(url: str, payload: JSONObject, content: bytes) -> None:
    recipients = [sanitize_address(each, "utf-8") for each in payload["to"]]
    server = _server(url)
    is_accepted = threading.Event()

    def send() -> None:
        with _opened(server):
            _log_state(is_down=False)
            lines = content.replace(b"\n", b"\r\n")
            server.connection.sendmail(settings.SERVER_EMAIL, recipients, lines)  # type: ignore[union-attr]  # it is open
            is_accepted.set()

    try:
        _in_time(server, send)
    except smtplib.SMTPRecipientsRefused as error:
        refusal = _refused(max(code for code, _ in error.recipients.values()))
        if isinstance(refusal, Abandoned):
            _tell(payload, is_accepted=False)
        raise refusal from None
    except smtplib.SMTPDataError as error:
        raise _refused(error.smtp_code) from None
    except (OSError, smtplib.SMTPException) as error:
        if is_accepted.is_set():  # what fails is the farewell, and the message must not arrive twice
            return
        # A refused sender is here too: the server would refuse every message, and the operator has to mend it.
        _log_state(is_down=True, reason=type(error).__name__)
        _postpone_others()
        # The outage is no fault of the message: attempts that counted would lengthen its pause after a later 451, and
        # a code that waits for an hour has expired.
        raise Postponed(
            Phrase("the mail server does not answer: {error}", error=type(error).__name__),
            pause_s=PAUSE_S,
            is_excused=True,
        ) from None


def probe(url: str) -> None:
    """Connect to a mail server and sign in; raise OSError or SMTPException if that fails."""
    server = _server(url)

    def look() -> None:
        with _opened(server):
            pass

    _in_time(server, look)


def _refused(code: int) -> Exception:
    """Return what a status code of the server means: try later, or never."""
    text = Phrase("the mail server answered {code}", code=code)
    return Abandoned(text) if code >= _PERMANENT else Postponed(text)


def _in_time(server: Smtp, call: Callable[[], None]) -> None:
    """Talk to the server; raise TimeoutError when that takes too long, and end the connection."""
    try:
        within(DELIVERY_S, call, _DELIVERIES, late="it took too long")
    except TimeoutError:
        line = getattr(server.connection, "sock", None)
        if line is not None:
            with suppress(OSError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)  # that of TLS would be used by two threads
        raise


def _opened(server: Smtp) -> Smtp:
    server.open()
    return server


def _server(url: str) -> Smtp:
    parts = urlsplit(url)
    return Smtp(
        host=parts.hostname,
        port=parts.port or _PORTS[parts.scheme],
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        use_tls=parts.scheme == "smtp+tls",
        use_ssl=parts.scheme == "smtps",
        timeout=TIMEOUT_S,
    )


def _postpone_others() -> None:
    """Let the other waiting messages pause too, so that each attempt costs one connection however many wait."""
    waiting = Job.objects.filter(kind=KIND, state=State.QUEUED)
    waiting.filter(run_at__lt=clock() + timedelta(seconds=PAUSE_S)).update(
        run_at=clock() + timedelta(seconds=PAUSE_S * 1.2)
    )


def _write(content: bytes) -> None:
    place = folder()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    (place / f"{now():%Y%m%dT%H%M%S%f}-{new_id()}.eml").write_bytes(content)
    if echo is not None:
        message = message_from_bytes(content, _class=EmailMessage, policy=policy.default)
        body = message.get_body(("plain",))
        echo(f"\n--- mail to {message['To']}: {message['Subject']}\n{body.get_content() if body else ''}\n---\n")


def empty_folder(*, at: datetime | None = None) -> int:
    """Delete the messages in the folder that are older than a day, and all but the newest; return how many."""
    oldest = f"{(at or now()) - KEPT:%Y%m%dT%H%M%S%f}"
    files = sorted(folder().glob("*.eml")) if folder().is_dir() else []
    ended = [file for number, file in enumerate(files) if file.name < oldest or number < len(files) - MAX_IN_FOLDER]
    for file in ended:
        file.unlink(missing_ok=True)
    return len(ended)


def _tell(payload: JSONObject, *, is_accepted: bool) -> None:
    """Report the outcome of a message to the feature that sent it."""
    tell = outcomes.get(payload["kind"])
    if tell is not None:
        for address in payload["to"]:
            tell(address, is_accepted)


def _wipe(job_id: str, payload: JSONObject, *_: Any) -> None:
    """Delete the text of a message, in the transaction that ends its job."""
    kept: JSONObject = {"to": []} if payload["kind"] == FAREWELL else {}
    Job.objects.filter(pk=job_id).update(payload={**payload, "sealed": "", **kept})


_is_down = False


def _log_state(*, is_down: bool, reason: str = "") -> None:
    """Log an outage of the mail server when it begins and when it ends, not for every message."""
    global _is_down  # noqa: PLW0603 - of this process
    if is_down and not _is_down:
        log.warning("the mail server does not answer: %s; messages wait", reason)
    elif _is_down and not is_down:
        log.info("the mail server answers again")
    _is_down = is_down


HANDLER: Final = handlers.Handler(
    kind=KIND,
    work=deliver,
    lane="mail",
    per_group=1,
    lease_s=15,  # the worker renews it while a delivery takes its minute
    max_attempts=100_000,
    max_kills=20,  # it reads no file, and a message that is given up is lost
    back_off_s=4,
    successes_kept=KEPT,
    ended=_wipe,
)


class MailStatus(NamedTuple):
    """Messages that wait, the age of the oldest one, and those that no server took within the last week."""

    waiting: int
    oldest_s: float
    failed: int


def mail_status() -> MailStatus:
    mail = Job.objects.filter(kind=KIND)
    waiting = mail.filter(state__in=UNFINISHED).aggregate(n=Count("id"), first=Min("created_at"))
    failed = mail.filter(state=State.FAILED, finished_at__gt=now() - timedelta(days=7)).count()
    oldest_s = (now() - waiting["first"]).total_seconds() if waiting["first"] else 0.0
    return MailStatus(waiting["n"], max(0.0, oldest_s), failed)
