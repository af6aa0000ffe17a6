"""Documents that are similar to a query or a key, each with the reason, and the values that filters could have."""

import difflib
import sqlite3
from collections.abc import Sequence
from typing import Final

import msgspec
from rapidfuzz.distance import OSA

from muniment.kernel.ids import MAX_SLUG_CHARACTERS, slug_from_name
from muniment.kernel.json import JSONObject
from muniment.kernel.texts import without_controls
from muniment.schema.filters import Bounds, Chosen
from muniment.schema.kinds import country_names
from muniment.store import search_text
from muniment.store.items import ITEM, item_at
from muniment.store.search.forgiving import SIMILAR
from muniment.store.search.ranking import Plan, in_part, of_name
from muniment.store.search.values import MAX_SHOWN, in_use, listed, meant, meant_by
from muniment.store.search_text import single_edits

MAX_CLOSEST: Final = 5
MAX_HINT: Final = 300
"""Characters of a hint."""
MAX_COUNTED: Final = 100_000
"""Facets that are counted one by one, because a document may have several of the values that a filter means."""
PLURALS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
TYPO_MAX_CHARACTERS: Final = 24
"""Longer keys usually share a prefix with the intended one, and have too many single edits."""


class Closest(msgspec.Struct, frozen=True, gc=False):
    """
    A document that is similar to a query or a key, and why.

    Args:
        is_former: the document had the requested name in the past.
        is_named: the query contains the document's name.
        similarity: how similar its name is to the query; 0 if it is listed for another reason.
    """

    id: str
    name: str
    why: str
    is_former: bool = False
    is_named: bool = False
    similarity: float = 0.0

    def to_wire(self) -> JSONObject:
        return {"id": self.id, "name": self.name, "why": self.why}


def guidance_of(closest: Sequence[Closest], hint: str) -> JSONObject:
    if not closest and not hint:
        return {}
    guidance: JSONObject = {"closest": [similar.to_wire() for similar in closest]}
    if hint:
        guidance["hint"] = hint
    return guidance


def closest_of(
    connection: sqlite3.Connection,
    kind: str,
    q: str,
    planned: Plan,
    *,
    found: Sequence[int],
    near: Sequence[int],
) -> tuple[Closest, ...]:
    """
    Return at most five documents close to *q*: what had the name, what is similar, or what the filters have left out.

    Args:
        found: what matches.
        near: what is similar and passes the filters, the likeliest first.
    """
    if not q:
        return ()
    matches = set(found)
    had_name = [position for position in planned.former if position in matches]
    reasons = dict.fromkeys(had_name, f"Formerly {_shown(q)}.")
    reasons |= {position: _similar(q, planned.close[position]) for position in near}
    names_within: Sequence[int] = ()
    if not matches:
        left_out = f"Matches {_shown(q)}, but not the filters."
        reasons |= dict.fromkeys((*planned.first, *planned.hits[:MAX_CLOSEST]), left_out)
        reasons = reasons or _similar_left_out(q, planned)
        if not reasons:
            names_within, sharing_words = in_part(connection, kind, q, MAX_CLOSEST)
            reasons = dict.fromkeys(names_within, f"Its name is in {_shown(q)}.")
            reasons |= dict.fromkeys(sharing_words, f"Has only some of the words {_shown(q)}.")
    of_names = {*planned.former, *planned.close}
    closest = []
    for position in list(reasons)[:MAX_CLOSEST]:
        key, item = _named(connection, kind, position)
        former = _former(q, item) if position in of_names else ""
        why = former or reasons[position]
        is_former = bool(former) or position in had_name
        similarity = planned.close.get(position, 0.0)
        closest.append(Closest(key, item.shown, why, is_former, position in names_within, similarity))
    return tuple(closest)


def _similar_left_out(q: str, planned: Plan) -> dict[int, str]:
    """Return the documents that are similar to a query but do not pass the filters, each with the reason."""
    similar = list(planned.close.items())[:MAX_CLOSEST]
    return {position: f"{_similar(q, similarity)} The filters leave it out." for position, similarity in similar}


def _similar(q: str, similarity: float) -> str:
    if similarity >= SIMILAR:
        return f"The name is similar to {_shown(q)}."
    return f"Has words similar to {_shown(q)}."


def _former(q: str, item: "_Item") -> str:
    """Return which former name a query means, if it is nearer to one than to the present name."""
    asked = search_text.key_of_query(q)
    name = ""
    similarity = OSA.normalized_similarity(asked, search_text.squeeze(item.shown))
    for former_name in item.former_names:
        of_former = OSA.normalized_similarity(asked, search_text.squeeze(former_name.name))
        if of_former > similarity:
            name = former_name.name
            similarity = of_former
    if not name:
        return ""
    if similarity == 1:
        return f"Formerly {_shown(name)}."
    return f"Formerly {_shown(name)}, similar to {_shown(q)}."


def hint_of(
    connection: sqlite3.Connection,
    kind: str,
    q: str,
    filters: Sequence[Chosen],
    ranges: Sequence[Bounds],
    *,
    corrected: str = "",
) -> str:
    """
    Return why nothing is found.

    Values of a filter are named only where the one that was given is unknown: a known value that nothing has, or that
    nothing has together with the rest, is told as such.

    Args:
        corrected: the query with words of the registry.
    """
    unmet = [_unmet(connection, kind, chosen) for chosen in filters]
    if any(unmet):
        return _within([sentence for sentence in unmet if sentence])
    if not (filters or ranges):
        return _hint_of_words(kind, q, corrected) if q else ""
    limits = _parameters(ranges)
    if len(ranges) == 1 and not (q or filters):
        return f"No {kind} matches {' and '.join(limits)}. Leave out {' or '.join(limits)}."
    return _hint_of_all(connection, kind, q, filters, limits)


def _hint_of_all(
    connection: sqlite3.Connection, kind: str, q: str, filters: Sequence[Chosen], limits: Sequence[str]
) -> str:
    """Return that nothing meets all conditions, and how many documents each of the filters matches alone."""
    conditions = [*(chosen.name for chosen in filters), *limits]
    if q:
        conditions.insert(0, "q")
    counts = [f"{_of(chosen)} matches {_matching(connection, kind, chosen)}" for chosen in filters]
    alone = f"Alone, {', '.join(counts)}." if counts else ""
    return _within([f"No {kind} matches all of {', '.join(conditions)}.", alone])


def _hint_of_words(kind: str, q: str, corrected: str) -> str:
    """Return that nothing matches the words of a query, and which words to use instead."""
    advice = f"Did you mean {_shown(corrected)}?" if corrected else "Use fewer or other words."
    return f"No {kind} matches {_shown(q)}. {advice}"


def _parameters(ranges: Sequence[Bounds]) -> list[str]:
    """Return the names of the parameters that set the limits of *ranges*."""
    parameters: list[str] = []
    for bounds in ranges:
        parameters += bounds.parameters or (bounds.name,)
    return parameters


def _within(sentences: Sequence[str]) -> str:
    """Return as many *sentences* as a hint has room for; at least the first."""
    said = sentences[0]
    for each in sentences[1:]:
        if each and len(said) + len(each) < MAX_HINT:
            said = f"{said} {each}"
    return said


def _matching(connection: sqlite3.Connection, kind: str, chosen: Chosen) -> str:
    """Return how many documents have a value that a filter means; of very many, at most how many."""
    values = meant_by(connection, kind, chosen)
    most = sum(count for count, _ in values)
    if len(values) < 2:
        return f"{most:,}"
    if most > MAX_COUNTED:
        return f"up to {most:,}"
    statement = (
        "SELECT count(DISTINCT position) FROM published_facet WHERE value_id IN (SELECT value FROM json_each(?))"
    )
    value_ids = msgspec.json.encode([value_id for _, value_id in values]).decode()
    (exactly,) = connection.execute(statement, (value_ids,)).fetchone()
    return f"{exactly:,}"


def keys_from(connection: sqlite3.Connection, kind: str, prefix: str, limit: int, *, skip: int = 0) -> list[str]:
    """Return at most *limit* keys that start with *prefix*, in order, after the first *skip*."""
    rows = connection.execute(
        "SELECT key FROM published_document WHERE kind = ? AND key >= ? AND key < ? ORDER BY key LIMIT ? OFFSET ?",
        (kind, prefix, prefix + "\U0010ffff", limit, skip),
    )
    return [row[0] for row in rows]


def unknown_keys(connection: sqlite3.Connection, kind: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return those of the keys *wanted* that no public document has, in their order."""
    statement = "SELECT key FROM published_document WHERE kind = ? AND key IN (SELECT value FROM json_each(?))"
    rows = connection.execute(statement, (kind, msgspec.json.encode(wanted).decode()))
    known = {key for (key,) in rows}
    return tuple(key for key in wanted if key not in known)


def dated_keys(connection: sqlite3.Connection, kind: str, limit: int, skip: int) -> list[tuple[str, str]]:
    """Return at most *limit* keys with the time of their last change, in the order of keys, after the first *skip*."""
    rows = connection.execute(
        "SELECT key, updated_at FROM published_document WHERE kind = ? ORDER BY key LIMIT ? OFFSET ?",
        (kind, limit, skip),
    )
    return [(key, updated_at) for key, updated_at in rows]


def nearest_keys(connection: sqlite3.Connection, kind: str, key: str) -> list[str]:
    """Return at most three keys similar to *key*."""
    wanted = slug_from_name(key[:MAX_SLUG_CHARACTERS])
    whole = len(wanted)
    near: list[str] = []
    # By beginnings of several lengths, because the index finds keys by their beginning alone.
    for length in sorted({whole, whole - 1, whole - 2, whole * 3 // 4, whole // 2}, reverse=True):
        if length >= min(3, whole) > 0:
            near += keys_from(connection, kind, wanted[:length], 20)
    if whole <= TYPO_MAX_CHARACTERS:
        rows = connection.execute(
            "SELECT key FROM published_document WHERE kind = ? AND key IN (SELECT value FROM json_each(?)) LIMIT 20",
            (kind, msgspec.json.encode(single_edits(wanted)).decode()),
        )
        near += [row[0] for row in rows]
    return difflib.get_close_matches(wanted, dict.fromkeys(near), 3, 0.6)


def _unmet(connection: sqlite3.Connection, kind: str, chosen: Chosen) -> str:
    """Return that no document has a value of a filter, if none has: why, and which values exist if it is unknown."""
    if any(meant(connection, kind, chosen, value) for value in chosen.values):
        return ""
    name, values = chosen.name, chosen.values[:MAX_CLOSEST]
    if values[0] in {"true", "false"}:
        return f"No {kind} has {name} {values[0]}."
    if name in PLURALS:
        shown = without_controls(values[0])[:MAX_SHOWN]
        if _is_named(connection, name, values[0]):
            return f"The {name} {shown} has no listed {PLURALS[kind]}."
        similar = " or ".join(nearest_keys(connection, name, values[0]))
        meant_one = f"Did you mean {similar}?" if similar else ""
        return _within([f'There is no {name} "{shown}".', meant_one])
    several = "another" if len(chosen.values) > MAX_CLOSEST else ""
    shown = " or ".join(filter(None, (*map(_shown, values), several)))
    nothing = f"No {kind} has the {name} {shown}."
    if name == "country" and all(value in country_names() for value in chosen.values):
        return nothing
    used = in_use(connection, kind, name, values[0])
    return _within([nothing, f"Values in use: {listed(used)}." if used else ""])


def _is_named(connection: sqlite3.Connection, kind: str, text: str) -> bool:
    """Return whether *text* is the key of a document, or its name."""
    statement = "SELECT 1 FROM published_document WHERE kind = ? AND key = ?"
    if connection.execute(statement, (kind, text)).fetchone():
        return True
    name = search_text.squeeze(text)
    return len(name) > 1 and bool(of_name(connection, kind, [search_text.NAME + name], 1))


def _of(chosen: Chosen) -> str:
    """Return a filter with its values."""
    return f"{chosen.name} {' or '.join(without_controls(value)[:MAX_SHOWN] for value in chosen.values[:MAX_CLOSEST])}"


def _shown(text: str) -> str:
    return f'"{without_controls(text)[:MAX_SHOWN]}"'


def _named(connection: sqlite3.Connection, kind: str, position: int) -> tuple[str, "_Item"]:
    """Return the key of a document, and its names."""
    (key, item) = connection.execute(
        f"SELECT d.key, {ITEM} FROM published_document d JOIN published_item_{kind} i ON i.position = d.position"
        " WHERE d.kind = ? AND d.position = ?",
        (kind, position),
    ).fetchone()
    return key, msgspec.json.decode(item_at(connection, kind, position, item), type=_Item)


class _FormerName(msgspec.Struct):
    name: str


class _Item(msgspec.Struct, rename="camel"):
    name: str = ""
    framework_name: str = ""
    former_names: list[_FormerName] = []

    @property
    def shown(self) -> str:
        return self.name or self.framework_name
