"""What a new password does not end: personal access tokens and connected apps, each by its name."""

from collections.abc import Callable
from typing import Final

from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext

from muniment.mail import outgoing, places

SHOWN: Final = 20
sources: Final[list[Callable[[int], list[str]]]] = []
"""Each returns the names of an account's credentials of one kind; registered by the features that have them."""


def names_of(account_id: int) -> list[str]:
    return [name for source in sources for name in source(account_id)]


def lines_of(account_id: int) -> list[str]:
    """Return the lines about them for a mail; none if there are none. Apps choose their names themselves."""
    names = names_of(account_id)
    if not names:
        return []
    shown = [f"- {outgoing.without_links(name)}" for name in names[:SHOWN]]
    if len(names) > SHOWN:
        shown.append(gettext("- and %(count)d more") % {"count": len(names) - SHOWN})
    said = gettext("These still work, because a new password doesn't end them:")
    return ["", said, "", *shown, "", places.link(gettext("Review your tokens and apps"), "/manage/tokens")]


def tell(request: HttpRequest | None, account_id: int) -> None:
    """Show on the next page how many there are, and where they are revoked."""
    count = len(names_of(account_id))
    if request is None or not count:
        return
    said = ngettext(
        "%(count)d token or app still works with your account: a new password doesn't end it.",
        "%(count)d tokens and apps still work with your account: a new password doesn't end them.",
        count,
    )
    link = format_html('<a href="/manage/tokens">{}</a>', gettext("Review your tokens and apps"))
    messages.warning(request, format_html("{} {}", said % {"count": count}, link))
