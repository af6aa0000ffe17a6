"""
What is new since a receiver was last told: the changes of a listing, or the new and changed results of a search.

The change feed says what was published since, and the list of the search which of that it finds. Nothing else is
stored about a search, and a change that was told is not told again, whenever a listing says that it was updated.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.searches.models import Subscription
from muniment.store.published import ChangeRow
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader

KINDS: Final = {"companies": "company", "people": "person", "frameworks": "framework"}
"""What each list lists."""
PATHS: Final = {kind: f"/{name}" for name, kind in KINDS.items()}
LISTINGS: Final = ("company", "person")
"""The topics that are a listing; all others are searches."""
SHOWN: Final = 20
"""Results, or changes of a listing, that a message shows."""
FIELDS_SHOWN: Final = 6


class WantedSearch(NamedTuple):
    """
    A search as its page reads it.

    Args:
        query: the query string of the page in the canonical order.
        title: what it is for, in a line, in the language of the moment.
        listed: the query of its list.
    """

    query: str
    title: str
    listed: ListQuery


class Registry(NamedTuple):
    """
    What the pages know of the registry, and tell this feature.

    Args:
        reader: returns the reader of published documents.
        search_of: reads the query string of a list; raises BadRequest if it is invalid.
        label_of: returns what pages call a changed member of a kind.
    """

    reader: Callable[[], Reader]
    search_of: Callable[[str, str], WantedSearch]
    label_of: Callable[[str, str], str]


registry: Registry
"""Set by the pages when they are loaded."""


def use(given: Registry) -> None:
    global registry  # noqa: PLW0603 - one registry
    registry = given


class Item(NamedTuple):
    """
    A line of a digest.

    Args:
        name: what changed; empty if that is the listing itself.
        path: its page; empty for the listing itself.
        change: ``published``, ``updated`` or ``unlisted``.
        fields: the names of the changed members, where they are known.
        at: when, as a timestamp; empty for a result of a search.
    """

    name: str
    path: str
    change: str
    fields: tuple[str, ...]
    at: str = ""


class News(NamedTuple):
    """
    What is new for a subscription.

    Args:
        name: the name of the listing, or what the search is for.
        path: the page of the listing or search.
        items: the first of them.
        more: how many more there are.
        is_over: there is no such listing or search any more.
        place: the change and the feed up to which this is what is new.
    """

    name: str
    path: str
    items: Sequence[Item]
    more: int
    is_over: bool
    place: tuple[int, str]


def news_of(subscription: Subscription) -> News:
    """Return what is new since the subscription was last told; raise DamagedDocument if it cannot be read."""
    reader = registry.reader()
    reader.refresh()
    # Before anything is read: what is published meanwhile may be told twice, and is never left out.
    place = reader.place
    after = subscription.sequence
    if place[1] != subscription.epoch or place[0] < after:
        # After a restore or a renewal of the feed, its numbers mean other changes: begin at its end.
        after = place[0]
    if subscription.topic in LISTINGS:
        return _of_listing(reader, subscription, after, place)
    return _of_search(reader, subscription, after, place)


def path_of(topic: str, key: str) -> str:
    """Return the page of a listing or search, with its query."""
    if topic in LISTINGS:
        return f"{PATHS[topic]}/{quote(key)}"
    return f"/{topic}?{key}" if key else f"/{topic}"


def name_of_listing(topic: str, key: str) -> str | None:
    """Return the name of a listing; None if it is not public."""
    document = registry.reader().document(topic, key)
    if document is None:
        return None
    data = msgspec.json.decode(document.body)["data"]
    return str(data["company"]["name"] if topic == "company" else data["name"])


def name_of(subscription: Subscription) -> str | None:
    """Return the name of a listing, None if it is not public, or what a search is for in the current language."""
    if subscription.topic in LISTINGS:
        return name_of_listing(subscription.topic, subscription.key)
    try:
        return registry.search_of(subscription.topic, subscription.key).title
    except BadRequest:
        return str(subscription.title)


def _of_listing(reader: Reader, subscription: Subscription, after: int, place: tuple[int, str]) -> News:
    topic, key = subscription.topic, subscription.key
    name = name_of_listing(topic, key)
    path = path_of(topic, key)
    if name is None:
        return News(subscription.title, path, (), 0, is_over=True, place=place)
    rows = [row for row in reader.changes_of(topic, key, SHOWN + 1) if row.sequence > after]
    items = [Item("", "", row.change, row.fields or (), row.at) for row in rows[:SHOWN]]
    return News(name, path, items, len(rows) - len(items), is_over=False, place=place)


def _of_search(reader: Reader, subscription: Subscription, after: int, place: tuple[int, str]) -> News:
    topic, kind = subscription.topic, KINDS[subscription.topic]
    title, path = subscription.title, path_of(topic, subscription.key)
    try:
        wanted = registry.search_of(topic, subscription.key)
    except BadRequest:  # a field that it filters by is not declared any more
        return News(title, path, (), 0, is_over=True, place=place)
    title = wanted.title  # in the language of the receiver
    query = wanted.listed
    if query.q and kind != "framework":
        # In the order of relevance, a search of very many results leaves the least relevant ones out.
        query = msgspec.structs.replace(query, sort="updated")
    changed = reader.changed_matches(kind, query, after)
    keys = tuple(changed)[:SHOWN]
    if not keys:
        return News(title, path, (), 0, is_over=False, place=place)
    shown = reader.page(kind, ListQuery(ids=keys, page_size=SHOWN))
    items = [_result(reader, kind, msgspec.json.decode(item), changed, after) for item in shown.items]
    return News(title, path, items, len(changed) - len(items), is_over=False, place=place)


def _result(reader: Reader, kind: str, item: JSONObject, changed: dict[str, bool], after: int) -> Item:
    key = item.get("frameworkId") or item.get("slug") or item["id"]
    name = str(item.get("name") or item["frameworkName"])
    path = f"{PATHS[kind]}/{quote(key)}"
    if changed.get(key, False):
        return Item(name, path, "published", ())
    rows = [row for row in reader.changes_of(kind, key, SHOWN) if row.sequence > after]
    return Item(name, path, "updated", _fields_of(rows))


def _fields_of(rows: Sequence[ChangeRow]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for row in rows for name in row.fields or ()))


def labels_of(fields: Sequence[str], kind: str) -> list[str]:
    """Return what pages call changed members, without the same twice."""
    return list(dict.fromkeys(registry.label_of(name, kind) for name in fields))
