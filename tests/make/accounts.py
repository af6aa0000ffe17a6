"""Accounts and the mail they receive."""

import re
from email import message_from_bytes, policy
from pathlib import Path

from allauth.account.authentication import AUTHENTICATION_METHODS_SESSION_KEY
from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest
from django.test import Client

from muniment.accounts.models import Account
from muniment.accounts.operations import create_account
from muniment.accounts.sessions import Key, SessionStore
from muniment.jobs import queue
from muniment.jobs.handlers import Abandoned
from muniment.kernel.actor import COMMAND
from muniment.mail import delivery

PASSWORD = "four harbours, one tide"
BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


def account(email: str = "owner@harbour.example", role: str = "owner", password: str | None = None) -> Account:
    """Create a verified account; faster without a password."""
    return create_account(COMMAND, email, password, role=role)


def signed_in(who: Account, **options: object) -> Client:
    """Return a browser in which *who* is signed in."""
    client = Client(**options)
    sign_in(client, who)
    return client


def sign_in(client: Client, who: Account) -> None:
    """Sign *who* in to the session of *client*; Django's force_login would set the stored key as cookie."""
    cookie = client.cookies.get(settings.SESSION_COOKIE_NAME)
    request = HttpRequest()
    request.session = SessionStore(Key.of(cookie.value) if cookie else None)
    login(request, who, backend=BACKEND)
    request.session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = request.session.session_key.secret


def age(client: Client, minutes: float = 16) -> None:
    """Let time pass for the session of *client*: it signed in and confirmed its identity that much earlier."""
    session = SessionStore(Key.of(client.cookies[settings.SESSION_COOKIE_NAME].value))
    records = session.get(AUTHENTICATION_METHODS_SESSION_KEY, [])
    for record in records:
        for name in {"at", "stated_at"} & set(record):
            record[name] -= minutes * 60
    session[AUTHENTICATION_METHODS_SESSION_KEY] = records
    session.save()


def deliver_mail() -> None:
    """Deliver the mail that is waiting, as the worker does."""
    while run := queue.claim("tests", delivery.HANDLER.lane):
        try:
            run.handler.work(run)
        except Abandoned as end:
            run.failed(end.reason, for_good=True)


class Letters:
    """Messages written to the data folder since its creation."""

    def __init__(self) -> None:
        deliver_mail()
        self._before = set(self._files())

    @staticmethod
    def _files() -> list[Path]:
        return sorted(delivery.folder().glob("*.eml"))

    def to(self, address: str) -> list[tuple[str, str]]:
        """Return subject and text of the messages to *address*, oldest first, after delivering what is waiting."""
        deliver_mail()
        messages = [
            message_from_bytes(file.read_bytes(), policy=policy.default)
            for file in self._files()
            if file not in self._before
        ]
        return [(str(m["Subject"]), m.get_body(("plain",)).get_content()) for m in messages if address in str(m["To"])]

    def code(self, address: str) -> str:
        """Return the code in the latest message to *address*."""
        return re.search(r"^\s*([A-Z0-9]{3,}(?:-[A-Z0-9]+)*)\s*$", self.to(address)[-1][1], re.MULTILINE)[1]
