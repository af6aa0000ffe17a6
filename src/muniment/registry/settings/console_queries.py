"""
Save, change and delete the saved queries of the operator's console.

Each makes a new version of the settings of the registry. ``registry.toml`` neither declares these queries nor removes
them; of two with the same slug, that of the file is shown.
"""

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from muniment.accounts.operations import require_operator
from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import NotFound
from muniment.registry.settings.versions import apply_settings, latest_version
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.document import Query
from muniment.registry_toml.queries import SHIPPED
from muniment.registry_toml.reading import CONSOLE_QUERIES, InvalidSettings, check

FILE, CONSOLE, BUILT_IN = "file", "console", "built-in"


class ListedQuery(NamedTuple):
    """
    A saved query in the console.

    Args:
        origin: one of file, console and built-in.
        is_hidden: another one with its slug is shown instead.
    """

    query: Query
    origin: str
    is_hidden: bool


def list_queries(latest: Applied) -> list[ListedQuery]:
    """Return all saved queries of a version, also those that others hide."""
    origins = ((FILE, latest.settings.queries), (CONSOLE, latest.settings.console_queries), (BUILT_IN, SHIPPED))
    seen: set[str] = set()
    listed = []
    for origin, queries in origins:
        listed += [ListedQuery(query, origin, query.slug in seen) for query in queries]
        seen |= {query.slug for query in queries}
    return listed


def get_query(latest: Applied, slug: str) -> Query:
    """Return a query of the console; raise NotFound if there is none."""
    for query in latest.settings.console_queries:
        if query.slug == slug:
            return query
    raise NotFound(
        Phrase("The console has no saved query {slug}.", slug=slug), "Queries of registry.toml are changed there."
    )


def save_query(actor: Actor, query: Query, *, slug: str = "", expected_number: int | None = None) -> int:
    """
    Add a query, or change the one with *slug*, and return the number of the version.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: the console has no such query.
        InvalidSettings: the query has faults, or its statement cannot be answered; by the members of a query.
        Conflict: there is a later version.
    """
    require_operator(actor)
    latest = latest_version()
    queries = list(latest.settings.console_queries)
    if slug:
        queries[queries.index(get_query(latest, slug))] = query
    else:
        _refuse_taken(latest, query.slug)
        queries.append(query)
    place = f"{CONSOLE_QUERIES}.{query.slug or len(queries)}."
    try:
        checked = check({CONSOLE_QUERIES: msgspec.to_builtins(queries)}).console_queries
        settings = replace(latest.settings, console_queries=checked)
        return apply_settings(actor, settings, note=f"{query.slug} saved", expected_number=expected_number)
    except InvalidSettings as refusal:
        raise InvalidSettings({name.removeprefix(place): fault for name, fault in refusal.faults.items()}) from None


def _refuse_taken(latest: Applied, slug: str) -> None:
    """Refuse the slug of another declared query; one that every registry has may be replaced."""
    if slug in {query.slug for query in (*latest.settings.queries, *latest.settings.console_queries)}:
        raise InvalidSettings({"slug": Phrase("Two queries have the slug {slug}.", slug=slug)})


def delete_query(actor: Actor, slug: str, *, expected_number: int | None = None) -> int:
    """Delete a query of the console; raise NotFound if there is none."""
    require_operator(actor)
    latest = latest_version()
    deleted = get_query(latest, slug)
    kept = tuple(query for query in latest.settings.console_queries if query != deleted)
    settings = replace(latest.settings, console_queries=kept)
    return apply_settings(actor, settings, note=f"{slug} deleted", expected_number=expected_number)
