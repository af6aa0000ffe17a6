"""One page of what is looked at rarely, and the few actions on it that a page can take."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts.keys import keyring
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.phrases.storing import packed
from muniment.registry.logos import stored as logos
from muniment.registry.logos.stored import are_wanted
from muniment.registry.models import FetchedLogo, Suppression
from muniment.registry.people import suppression
from muniment.registry.publishing import publisher, signed_log, witnesses
from muniment.web.requests.access import actor_of, confirmed, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/maintenance"


class Chore(NamedTuple):
    """An action of an operator after a question; *act* returns the result that the audit log keeps."""

    command: str
    act: Callable[[], object]
    question: Question
    done: Words


CHORES: Final = {
    "renew-feed": Chore(
        "feed renew",
        publisher.renew_identity,
        Question(
            gettext_lazy("Renew the identity of the change feed?"),
            (
                gettext_lazy("Do this after the database was restored by other means than muniment restore."),
                gettext_lazy("Nodes rebuild their files. Clients that follow the feed start again from an export."),
            ),
            gettext_lazy("Renew the identity"),
        ),
        gettext_lazy("The change feed has a new identity."),
    ),
    "retry-logos": Chore(
        "logos fetch --again",
        logos.retry_failed,
        Question(
            gettext_lazy("Try the logos again that could not be fetched?"),
            (gettext_lazy("Each address is asked once more within the next minutes."),),
            gettext_lazy("Try again"),
            "main",
        ),
        gettext_lazy("The logos will be tried again."),
    ),
    "remove-logos": Chore(
        "logos remove",
        logos.remove_all,
        Question(
            gettext_lazy("Remove every fetched logo?"),
            (
                gettext_lazy("Listings show monograms instead. Uploaded logos stay."),
                gettext_lazy("While fetching is on, they are fetched again."),
            ),
            gettext_lazy("Remove fetched logos"),
        ),
        gettext_lazy("The fetched logos are removed."),
    ),
}


_SEALED: Final = {
    "sessions": gettext_lazy("Sign-ins"),
    "second factors": gettext_lazy("Second factors"),
    "kept secrets": gettext_lazy("Stored secrets"),
    "keys of the public log": gettext_lazy("Keys of the public log"),
    "waiting messages": gettext_lazy("Messages that wait to be sent"),
    "addresses of share links": gettext_lazy("Share links"),
}
"""Descriptions of the data that keys protect, by the words of :mod:`muniment.accounts.keys`."""


@operator("GET", "HEAD")
def maintenance(request: HttpRequest) -> HttpResponse:
    """Show the keys, the change feed, fetched logos and suppressions."""
    edition, epoch, *_ = publisher.head()
    fetched = FetchedLogo.objects.exclude(digest="").count()
    newest = Suppression.objects.order_by("-at").first()
    keys = keyring.status()
    context = {
        "keys": [(each, _counted(each.needed_by)) for each in keys.keys],
        "unopened": _counted(keys.unopened),
        "log": signed_log.current_state(),
        "witnesses": witnesses.statuses(),
        "feed_id": epoch.rpartition(":")[2],
        "edition": edition,
        "fetches": are_wanted(),
        "fetched": fetched,
        "failed": FetchedLogo.objects.filter(digest="").count(),
        "suppressed": Suppression.objects.count(),
        "newest": newest,
        "warnings": suppression.warnings(),
    }
    return operate_page(request, "maintenance", "operate/maintenance.html", context)


def _counted(needed: Mapping[str, int]) -> list[tuple[Words, int]]:
    return [(_SEALED.get(words, words), count) for words, count in needed.items() if count]


@operator()
@confirmed(when=lambda _: True)
@once
def act(request: HttpRequest, action: str) -> HttpResponse:
    """Ask before an action, and take it."""
    chore = CHORES[action]
    if request.method != "POST":
        crumbs = [(gettext("Maintenance"), HOME), (str(chore.question.button), "")]
        return ask(request, chore.question, back=HOME, crumbs=crumbs)
    _take(actor_of(request), chore)
    messages.success(request, str(chore.done))
    return HttpResponseRedirect(HOME)


def _take(actor: Actor, chore: Chore) -> None:
    result = chore.act()
    kept = packed(result) if isinstance(result, str) else str(result)
    record(Event.COMMAND_RUN, actor=actor, detail={"command": chore.command, "result": kept})
