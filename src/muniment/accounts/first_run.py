"""
The link that sets up an instance without an operator, and the account that it creates.

The start of ``muniment serve`` prints it. The first browser that opens it gets a secret of its own, and from then on
only that browser can create the operator's account: a link in a history or in a proxy's log is worth nothing.
"""

import os
import secrets
import socket
from datetime import timedelta
from typing import Final

from django.core.cache import cache
from django.db import transaction
from django.utils.translation import gettext

from muniment import config
from muniment.accounts.models import Account, SetupLink, SetupStep
from muniment.accounts.operations import create_account, require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, NotFound, TooMany
from muniment.kernel.tokens import MAX_TOKEN_CHARACTERS, token_digest
from muniment.store.database.migrations import migration_lock

VALID_FOR: Final = timedelta(hours=24)
TOGETHER: Final = timedelta(minutes=10)
"""Nodes that start within this time print one link between them."""
_ADDRESS: Final = "setup-address"
MAX_TRIES: Final = 30
"""Attempts to create the account with one link, each of which may hash a password."""


def has_operator() -> bool:
    return Account.objects.filter(role=Account.Role.OPERATOR, deleted_at=None).exists()


def offer_link() -> str:
    """
    Return the path of a new link at the start of a process; empty if no link is needed.

    None is needed if there is an operator, if people sign in only at identity providers, or if another node that
    starts at the same time has printed one: it works on every node.
    """
    if has_operator() or config.current().sign_in == "providers":
        return ""
    with migration_lock():
        mine = _node()
        others = SetupLink.objects.filter(made_at__gt=now() - TOGETHER, opened_by="").exclude(node=mine)
        if config.current().on_postgresql and others.exists():
            return ""
        return _made(mine, SYSTEM)


def remember_address(address: str) -> None:
    """Let the command that prints another link know the address at which the instance is served."""
    cache.set(_ADDRESS, address, timeout=int(timedelta(days=30).total_seconds()))


def serving_address() -> str:
    """Return the address of the server that offered the last link; empty if none did."""
    return str(cache.get(_ADDRESS) or "")


def make_link(actor: Actor) -> str:
    """
    Return the path of a new link; the former one no longer works.

    Raises:
        Conflict: there is an operator, or people sign in only at identity providers.
    """
    require_operator(actor)
    if has_operator():
        raise Conflict(
            gettext("This registry already has an operator."),
            gettext(
                "Create another with: muniment user create EMAIL --role operator. To get back into an account, use:"
                " muniment user sign-in-link EMAIL."
            ),
        )
    if config.current().sign_in == "providers":
        raise Conflict(
            gettext("People sign in only at identity providers here, so the link could not create an account."),
            gettext("Set MUNIMENT_SIGN_IN=all until there is an operator."),
        )
    with migration_lock():
        return _made(_node(), actor)


def _made(node: str, actor: Actor) -> str:
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        SetupLink.objects.all().delete()
        SetupLink.objects.create(digest=token_digest(token), node=node, expires_at=now() + VALID_FOR)
        record(Event.SETUP_LINK_CREATED, actor=actor)
    return f"/setup/{token}"


def _node() -> str:
    return f"{socket.gethostname()}:{os.path.realpath(config.current().data)}"[:300]


def open_link(token: str, browser: str = "") -> str:
    """
    Bind the link to the browser that opens it first, and return that browser's secret.

    Args:
        browser: the secret that it already has.

    Raises:
        NotFound: the link is unknown, has expired, or another browser has opened it.
    """
    if len(token) > MAX_TOKEN_CHARACTERS or has_operator():
        raise _used()
    links = SetupLink.objects.filter(digest=token_digest(token), expires_at__gt=now())
    if _of_browser(browser) and links.filter(opened_by=token_digest(browser)).exists():
        return browser
    secret = secrets.token_urlsafe(32)
    if not links.filter(opened_by="").update(opened_by=token_digest(secret)):
        raise _used()
    return secret


def may_set_up(browser: str) -> bool:
    """Return whether the browser with this secret may create the operator's account."""
    if not _of_browser(browser) or has_operator():
        return False
    return SetupLink.objects.filter(opened_by=token_digest(browser), expires_at__gt=now()).exists()


def create_operator(browser: str, email: str, password: str) -> Account:
    """
    Create the first operator's account, whose address counts as verified: who has the link has the machine.

    Raises:
        NotFound: the browser has not opened a link that is valid, or there is an operator by now.
        TooMany: it has tried too often.
        BadRequest: the address is invalid, or the password is weak.
        Conflict: the address has an account.
    """
    if not may_set_up(browser):
        raise _used()
    digest = token_digest(browser)
    _count_try(digest)
    with transaction.atomic():
        # The request that deletes the link creates the account; a second form of the same browser finds none.
        if not SetupLink.objects.filter(opened_by=digest, expires_at__gt=now()).delete()[0] or has_operator():
            raise _used()
        try:
            account = create_account(SYSTEM, email, password, role="operator")
        except Conflict as refusal:
            way_out = gettext("Use another address, or run on the machine: muniment user role EMAIL operator.")
            raise Conflict(refusal.message, way_out) from None
        mark_step("account")
    return account


def mark_step(name: str, *, is_skipped: bool = False) -> None:
    """Remember that a step was taken or left out; a step that was taken stays so."""
    step, is_new = SetupStep.objects.get_or_create(name=name, defaults={"is_skipped": is_skipped})
    if not is_new and step.is_skipped and not is_skipped:
        step.is_skipped, step.at = False, now()
        step.save()


def steps_taken() -> dict[str, bool]:
    """Return the steps that were taken or left out, by name, and whether each was left out."""
    return dict(SetupStep.objects.values_list("name", "is_skipped"))


def is_unfinished() -> bool:
    """Return whether the set-up was begun in the browser and not finished."""
    taken = steps_taken()
    return "account" in taken and "done" not in taken


def _of_browser(browser: str) -> bool:
    return 0 < len(browser) <= MAX_TOKEN_CHARACTERS


def _count_try(digest: str) -> None:
    key = f"setup-tries:{digest[:16]}"
    cache.add(key, 0, timeout=3_600)
    if cache.incr(key) > MAX_TRIES:
        said = gettext("You have tried %(number)d times within an hour.") % {"number": MAX_TRIES}
        raise TooMany(said, gettext("Try again in an hour."), retry_after_s=3_600)


def _used() -> NotFound:
    return NotFound(
        gettext("This set-up link is unknown, was used in another browser, or has expired."),
        gettext("To get a new one, run on the machine: muniment setup-link."),
    )
