"""The value by which a search has found a document, in a few words: a domain, a former name, a person."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.texts import without_controls
from muniment.store.search import keys
from muniment.store.search_text import pieces

MAX_CHARACTERS: Final = 80
MAX_LINE: Final = 160
"""Characters of a line of a text."""
_SEARCHED: Final = 200_000
"""Longer texts are not looked through line by line."""
_SITES: Final = ("website", "dao_website")
_LABELS: Final = ("type", "industry", "themes", "orgKind")
_TEXTS: Final = ("description", "bio")
_NAMING: Final = {
    "name": "name",
    "frameworkName": "name",
    "symbol": "symbol",
    "id": "slug",
    "slug": "slug",
    "frameworkId": "slug",
}
"""Members that name an item, with the word for each."""
_OTHERS: Final = {"body", "socials", "address", "formerNames", "icon", "picture", "company", "positions"}
_KNOWN: Final = frozenset({*_NAMING, *_SITES, *_LABELS, *_TEXTS, *_OTHERS})
_TEAM: Final = 300
"""People of a team that are looked at, as many as are indexed."""


def by_item(q: str, item: JSONObject) -> str:
    """Return by what *q* names or describes the *item* of a list; empty if its list item does not say."""
    key, words = keys.asked(q), pieces(q)
    return _of_key(key, item) or next(
        (_said(name, value) for name, value in _described(item) if has_words(value, words)), ""
    )


def by_document(q: str, data: JSONObject) -> str:
    """Return by what *q* describes a whole document: a person of the team, a company of a person, or its texts."""
    words, key = pieces(q), keys.asked(q)
    for name, value in _named_in(data):
        if has_words(value, words):
            return _said(name, value)
    company = data.get("company") or {}
    texts = _strings(company if "positions" in data else data)
    held = next((text for text in texts if has_words(text, words) or (key and key in keys.squeeze(text))), None)
    return "" if held is None else _line_of(held, words, key)


def _line_of(text: str, words: list[str], key: str) -> str:
    """Return the line of a text that says what was searched for, cut around it; the word "text" if no line does."""
    for line in text.splitlines() if len(text) <= _SEARCHED else ():
        if has_words(line, words) or (key and key in keys.squeeze(line)):
            shown = " ".join(without_controls(line).split())
            start = max(0, min(len(shown) - MAX_LINE, shown.casefold().find(words[0]) - MAX_LINE // 3 if words else 0))
            cut = shown[start : start + MAX_LINE]
            return f"text: {'…' if start else ''}{cut}{'…' if start + MAX_LINE < len(shown) else ''}"
    return "text"


def has_words(text: str, words: list[str]) -> bool:
    """Return whether *text* has all *words*, the last one also as a beginning."""
    held = set(pieces(text))
    return bool(words) and held.issuperset(words[:-1]) and any(each.startswith(words[-1]) for each in held)


def _of_key(key: str, item: JSONObject) -> str:
    """Return which of the values that name *item* alone is *key*."""
    if not key:
        return ""
    for name, value in _identifying(item):
        if keys.squeeze(value) == key:
            return _said(name, value) if name != "name" else name
    return ""


def _identifying(item: JSONObject) -> Iterator[tuple[str, str]]:
    yield from ((word, item.get(member) or "") for member, word in _NAMING.items())
    yield from (("domain", keys.host_of(item.get(member) or "")) for member in _SITES)
    profiles = item.get("socials") or {}
    yield from ((network, keys.handle_of(profile)) for network, profile in profiles.items() if profile)
    for each in item.get("formerNames") or ():
        yield "former name", each["name"]
    others = ((member, value) for member, value in item.items() if member not in _KNOWN)
    yield from ((member, text) for member, value in others for text in _strings(value))


def _described(item: JSONObject) -> Iterator[tuple[str, str]]:
    for name in ("name", "frameworkName"):
        yield "name", item.get(name) or ""
    for each in item.get("formerNames") or ():
        yield "former name", each["name"]
    for member in _LABELS:
        for text in _strings(item.get(member)):
            yield member.removesuffix("s"), text
    for place in item.get("address") or ():
        yield "place", ", ".join(_strings([place.get(name) for name in ("city", "state", "zip", "country")]))
    for member in _TEXTS:
        yield member, item.get(member) or ""


def _named_in(data: JSONObject) -> Iterator[tuple[str, str]]:
    for row in (data.get("positions") or ())[:_TEAM]:
        who: JSONMapping = row.get("person") or row.get("company") or {}
        named = ", ".join(filter(None, (who.get("name"), row.get("title"))))
        yield "person" if "person" in row else "position", named


def _said(name: str, value: str) -> str:
    if name in {"name", *_TEXTS}:
        return name
    return f"{name} {without_controls(value)[:MAX_CHARACTERS]}"


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)
