"""
Mail about security events, each kind of event at most five times a day to an account.

After a new password, the account is also told what it does not end: personal access tokens and connected apps.
"""

from collections.abc import Callable, Iterable
from typing import Final

from django.contrib import messages
from django.core.cache import cache
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext

from muniment.accounts.security import events, origin
from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.ids import now
from muniment.languages.speaking import known, speaking
from muniment.languages.writing import moment
from muniment.mail import outgoing, places
from muniment.registry_toml import applied

SENT_A_DAY: Final = 5
"""Mails about one kind of event that an account gets in a day; the log has all events."""
_OF_OWNERS: Final = frozenset({Event.OWNER_INVITED, Event.OWNER_ADDED, Event.OWNER_LEFT, Event.OWNERSHIP_GAINED})
"""Events of a listing that the account owns."""
_OF_PASSWORDS: Final = frozenset({Event.PASSWORD_CHANGED, Event.PASSWORD_RESET})


def send_mail(event: SecurityEvent, *, to: Iterable[str], name: str = "") -> None:
    """
    Mail the addresses about *event*, in the transaction that records it.

    Args:
        name: the name of the listing that it is about.
    """
    addresses = sorted({address for address in to if not address.endswith(outgoing.NO_MAIL)})
    if not addresses:
        return
    key = f"security-mail:{event.account_id}:{event.event}:{now():%Y%m%d}"
    cache.add(key, 0, timeout=90_000)
    sent = cache.incr(key)
    if sent > SENT_A_DAY:
        return
    with speaking(known(event.account.language if event.account else "")):
        text = text_of(event, name)
        if sent == SENT_A_DAY:
            text += "\n" + gettext("We don't email you about further events of this kind today.") + "\n"
        for address in addresses:
            outgoing.send(address, _subject_of(event, name), text, kind="security_event")


def _subject_of(event: SecurityEvent, name: str) -> str:
    """Return what happened, as a sentence; a few words if what it names is unknown."""
    template = str(MEANINGS[Event(event.event)].subject)
    values = {
        "name": outgoing.without_links(name) or event.subject.rpartition("/")[2],
        "email": str(event.detail.get("email", "")),
    }
    is_complete = all(values[each] for each in values if f"%({each})s" in template)
    return template % values if template and is_complete else events.title_of(event)


def text_of(event: SecurityEvent, name: str = "") -> str:
    """Return the text of the mail: for which account it is, when it happened, from where, and how to react."""
    lines = [gettext("Account: %(email)s") % {"email": event.account}] if event.account else []
    if event.subject.startswith("companies/"):
        shown = outgoing.without_links(name) or event.subject.rpartition("/")[2]
        lines.append(gettext("Listing: %(name)s") % {"name": shown})
    elif event.subject:
        lines.append(gettext("About: %(page)s") % {"page": places.place(f"/{event.subject}")})
    lines += [f"{label}: {value}" for label, value in events.facts_of(event)]
    lines += [_time(event), *_place(event)]
    if event.event in _OF_PASSWORDS and event.account_id is not None:
        lines += lines_of_credentials(event.account_id)
    return "\n".join([*lines, "", *_reaction(event), "", _log(), ""])


def _lines_of_request() -> list[str]:
    here = origin.current()
    lines = [gettext("Time: %(time)s UTC") % {"time": moment(now())}]
    if here.address:
        lines.append(gettext("IP address: %(address)s") % {"address": here.address})
    if here.agent:
        lines.append(gettext("Device: %(browser)s") % {"browser": events.browser(here.agent)})
    return lines


def ways_to_review(email: str, label: str, reaction: str) -> list[str]:
    """Return the end of a mail about a new token or app: account, time, client, and how to react."""
    facts = [gettext("Account: %(email)s") % {"email": email}, *_lines_of_request()]
    return [*facts, "", places.link(label, "/manage/tokens"), "", reaction, "", _log()]


def ask_operator() -> str:
    """Return whom to ask: the contact of the registry, if it has one."""
    contact = applied.current().registry.contact
    if contact:
        return gettext("the operator of this registry (%(contact)s)") % {"contact": contact}
    return gettext("the operator of this registry")


def _time(event: SecurityEvent) -> str:
    return gettext("Time: %(time)s UTC") % {"time": moment(event.at)}


def _place(event: SecurityEvent) -> list[str]:
    lines = []
    if event.address and not event.is_by_other:
        lines.append(gettext("IP address: %(address)s") % {"address": event.address})
    means = events.means_of(event)
    if event.via == "web" and event.agent and not event.is_by_other:
        lines.append(gettext("Device: %(browser)s") % {"browser": means})
    elif event.via == "command":
        lines.append(gettext("By: %(means)s") % {"means": gettext("the operator, on the command line")})
    else:
        lines.append(gettext("By: %(means)s") % {"means": means})
    return lines


def _reaction(event: SecurityEvent) -> list[str]:
    listing = f"/manage/{event.subject}" if event.event in _OF_OWNERS and event.subject else ""
    if event.actor_id != event.account_id:
        asked = gettext("If you didn't expect this, contact %(operator)s.") % {"operator": ask_operator()}
        return [places.link(gettext("Open the listing"), listing), "", asked] if listing else [asked]
    steps = [
        places.link(gettext("Change your password"), "/accounts/password/change/"),
        places.link(gettext("Sign out everywhere else"), "/accounts/sessions/"),
        places.link(gettext("Revoke tokens and apps that you don't know"), "/manage/tokens"),
    ]
    if event.event == Event.OWNER_INVITED and listing:
        steps.insert(0, places.link(gettext("See who owns the listing"), listing))
    return [
        gettext("If this was you, you don't need to do anything. If it wasn't:"),
        "",
        *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
        "",
        gettext("If you can't sign in, contact %(operator)s.") % {"operator": ask_operator()},
    ]


def _log() -> str:
    return places.link(gettext("Open your security log"), "/manage/security")


CREDENTIALS_SHOWN: Final = 20
credential_sources: Final[list[Callable[[int], list[str]]]] = []
"""Each returns the names of an account's credentials of one kind; registered by the features that have them."""


def credential_names(account_id: int) -> list[str]:
    return [name for source in credential_sources for name in source(account_id)]


def lines_of_credentials(account_id: int) -> list[str]:
    """Return the lines about them for a mail; none if there are none. Apps choose their names themselves."""
    names = credential_names(account_id)
    if not names:
        return []
    shown = [f"- {outgoing.without_links(name)}" for name in names[:CREDENTIALS_SHOWN]]
    if len(names) > CREDENTIALS_SHOWN:
        shown.append(gettext("- and %(count)d more") % {"count": len(names) - CREDENTIALS_SHOWN})
    said = gettext("These still work, because a new password doesn't end them:")
    return ["", said, "", *shown, "", places.link(gettext("Review your tokens and apps"), "/manage/tokens")]


def show_credentials(request: HttpRequest | None, account_id: int) -> None:
    """Show on the next page how many there are, and where they are revoked."""
    count = len(credential_names(account_id))
    if request is None or not count:
        return
    said = ngettext(
        "%(count)d token or app still works with your account: a new password doesn't end it.",
        "%(count)d tokens and apps still work with your account: a new password doesn't end them.",
        count,
    )
    link = format_html('<a href="/manage/tokens">{}</a>', gettext("Review your tokens and apps"))
    messages.warning(request, format_html("{} {}", said % {"count": count}, link))
