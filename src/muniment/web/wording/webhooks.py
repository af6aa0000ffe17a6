"""Words for the events that webhooks send."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

_OF_OWNERS: Final = {
    "listing.published": gettext_lazy("One of your listings became public."),
    "listing.updated": gettext_lazy("The public page of one of your listings changed."),
    "listing.unlisted": gettext_lazy("One of your listings is no longer public."),
    "position.asked": gettext_lazy("A listing of yours asks a person to confirm a position, or a listing asks you."),
    "position.confirmed": gettext_lazy("A person confirmed positions in one of your listings."),
    "position.declined": gettext_lazy("A person declined positions in one of your listings."),
    "position.ended": gettext_lazy("A person ended positions in one of your listings."),
    "document.ready": gettext_lazy("A document was checked and can be used."),
    "report.succeeded": gettext_lazy("A report is finished."),
    "report.failed": gettext_lazy("A report failed."),
    "credits.changed": gettext_lazy("Your credits changed."),
    "review.asked": gettext_lazy("A listing of yours, or a change to it, was submitted for review."),
    "review.decided": gettext_lazy("A reviewer decided about one of your listings, changes or requests."),
}
_OF_REGISTRY: Final = {
    "listing.published": gettext_lazy("A listing, a profile or a framework became public."),
    "listing.updated": gettext_lazy("The public page of a listing, a profile or a framework changed."),
    "listing.unlisted": gettext_lazy("A listing, a profile or a framework is no longer public."),
    "review.asked": gettext_lazy("Something was submitted for review."),
    "review.decided": gettext_lazy("A reviewer decided about a listing, a change or a request."),
}
TEST: Final = gettext_lazy("A test event.")


def event_kind(name: str, *, of_registry: bool) -> str | Promise:
    """Return a sentence that says when an event comes; another kind is shown as it is named."""
    sentences = _OF_REGISTRY if of_registry else _OF_OWNERS
    return TEST if name == "test" else sentences.get(name, name)
