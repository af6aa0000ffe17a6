"""Save, list, rename and delete searches; export them with the account's data."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib import parse

from django.db import transaction

from muniment.accounts.models import Account
from muniment.accounts.operations import account_of
from muniment.accounts.personal_data import ArchiveEntry
from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, LimitReached, NotFound
from muniment.kernel.texts import line_fault
from muniment.kernel.wire import timestamp
from muniment.searches.models import SavedSearch

LISTS: Final = ("companies", "people", "frameworks")
MAX_SEARCHES: Final = 50
MAX_NAME_CHARACTERS: Final = 80
MAX_QUERY_CHARACTERS: Final = 1000
_MAX_ID: Final = (1 << 63) - 1


def save_search(actor: Actor, list_name: str, query: str, name: str) -> SavedSearch:
    """
    Save a search of the actor's account.

    Args:
        query: the query string of the list's page, in the canonical order.

    Raises:
        Forbidden: the actor has no account.
        BadRequest: unknown list, invalid name, or the query is too long.
        Conflict: the account has saved this search.
        LimitReached: it has the maximum number of searches.
    """
    account = account_of(actor)
    if list_name not in LISTS:
        raise BadRequest(
            Phrase("Unknown list: {name}.", name=list_name[:40]),
            Phrase("Use one of: {lists}.", lists=", ".join(LISTS)),
        )
    label = _name(name)
    if len(query) > MAX_QUERY_CHARACTERS or not (query.isascii() and query.isprintable()):
        raise BadRequest("The search is too long to be saved.", "Remove some of its filters.")
    with transaction.atomic():
        Account.objects.select_for_update().get(pk=account.pk)  # serializes concurrent counts
        mine = SavedSearch.objects.filter(account=account)
        same = mine.filter(list=list_name, query=query).first()
        if same is not None:
            raise Conflict(
                Phrase("You saved this search as “{name}”.", name=same.name), "Rename it at /manage/searches."
            )
        if mine.count() >= MAX_SEARCHES:
            raise LimitReached(
                Phrase("You have {limit} saved searches.", limit=MAX_SEARCHES), "Delete one that you no longer use."
            )
        return SavedSearch.objects.create(account=account, list=list_name, query=query, name=label)


def list_searches(actor: Actor) -> Sequence[SavedSearch]:
    """Return the searches that the actor's account has saved, newest first; raise Forbidden without an account."""
    return list(SavedSearch.objects.filter(account=account_of(actor)).order_by("-saved_at", "-pk"))


def count_searches_by(list_name: str, parameters: Sequence[str]) -> int:
    """Return how many searches of all accounts filter a list by any of some parameters."""
    queries = SavedSearch.objects.filter(list=list_name).values_list("query", flat=True)
    return sum(not parse.parse_qs(query, keep_blank_values=True).keys().isdisjoint(parameters) for query in queries)


def rename_search(actor: Actor, search_id: int, name: str) -> SavedSearch:
    """Rename a search; raise BadRequest if the name is invalid, NotFound if it is not one of the actor's account."""
    label = _name(name)
    with transaction.atomic():
        row = _own(actor, search_id)
        row.name = label
        row.save(update_fields=["name"])
    return row


def delete_search(actor: Actor, search_id: int) -> SavedSearch:
    """Delete a search, and return it; raise NotFound if it is not one of the actor's account."""
    with transaction.atomic():
        row = _own(actor, search_id)
        SavedSearch.objects.filter(pk=row.pk).delete()
    return row


def _own(actor: Actor, search_id: int) -> SavedSearch:
    mine = SavedSearch.objects.select_for_update().filter(account=account_of(actor))
    row = mine.filter(pk=search_id).first() if 0 < search_id <= _MAX_ID else None
    if row is None:
        raise NotFound("Saved search not found.", "Your saved searches are at /manage/searches.")
    return row


def _name(name: str) -> str:
    label = " ".join(name.split())
    if not label or len(label) > MAX_NAME_CHARACTERS or line_fault(label):
        raise BadRequest(
            Phrase("The name of a search must be one line of 1 to {limit} characters.", limit=MAX_NAME_CHARACTERS),
            "Name it after what it finds, such as DAOs in Spain.",
        )
    return label


def export_searches(account: Account) -> Iterator[ArchiveEntry]:
    """Yield the saved searches of an account."""
    mine = SavedSearch.objects.filter(account=account).order_by("pk")
    searches = [
        {"name": search.name, "list": search.list, "query": search.query, "savedAt": timestamp(search.saved_at)}
        for search in mine
    ]
    yield ArchiveEntry("saved-searches.json", searches)


def delete_searches(account: Account) -> None:
    SavedSearch.objects.filter(account=account).delete()
