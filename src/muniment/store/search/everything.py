"""One search over companies, people and frameworks: in one order, and by which value each result was found."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.texts import without_controls
from muniment.schema.filters import Listing
from muniment.store import search_text
from muniment.store.published_document import KINDS
from muniment.store.queries import ListQuery
from muniment.store.reader import ListPage, Reader
from muniment.store.search.closest import MAX_CLOSEST, Closest
from muniment.store.search.forgiving import ALIKE
from muniment.store.search.named_values import PUNCTUATION, NamedValue, words_of
from muniment.store.search.ranking import Tier
from muniment.store.search.values import MAX_SHOWN
from muniment.store.search_text import pieces

COLLECTIONS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
MAX_QUERY_CHARACTERS: Final = 200
MAX_SUMMARY_CHARACTERS: Final = 160
MAX_EXPLAINED: Final = 10
"""Results of which the whole document is read to tell why they are found."""
_MARKUP: Final = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)|[*`#>|~]+|(?<!\w)_+|_+(?!\w)")
"""Links of Markdown, of which the words stay, and its signs."""


class Result(NamedTuple):
    """
    One result.

    Args:
        item: the object as in the list of its kind.
        provenance: its key and its mark, as a member of a JSON object.
    """

    kind: str
    key: str
    name: str
    summary: str
    item: JSONObject
    provenance: str

    @property
    def path(self) -> tuple[str, str]:
        """Return the two parts of the address of its page: the collection and the key."""
        return COLLECTIONS[self.kind], self.key

    @property
    def title(self) -> str:
        return title_of(self.item)

    @property
    def about(self) -> str:
        """Return its type and industry, if it is a company, and its summary."""
        # An import keeps members that it does not know, so a person may have a type of any form.
        if self.kind != "company":
            return self.summary
        classes = ", ".join(filter(None, (self.item.get("type"), self.item.get("industry"))))
        return ". ".join(filter(None, (classes, self.summary)))


class Everything(NamedTuple):
    """
    The result of a search.

    Args:
        results: the matches of all kinds, the best first; those of one kind are in the order of its list.
        totals: the number of matches by kind.
        closest: similar documents, each with its kind, if no name has the words; otherwise those that had the name.
        hint: what to do if nothing is found.
        named: if nothing is found, the values of filters that words of the query name, all of the same list.
        not_understood: if nothing is found, the words of the query that neither a name in *closest* nor a value has.
        version: the version of the file; the lowest one if it changed during the search.
    """

    results: Sequence[Result]
    totals: dict[str, int]
    closest: tuple[tuple[str, Closest], ...]
    hint: str
    named: tuple[NamedValue, ...]
    not_understood: tuple[str, ...]
    version: int
    modified_at: str

    def guidance(self) -> JSONObject:
        """Return the members of an answer that name similar documents, as lists do, with the kind of each."""
        members: JSONObject = {}
        if self.closest or self.hint:
            members["closest"] = [{"kind": kind, **document.to_wire()} for kind, document in self.closest]
        if self.not_understood:
            members["notUnderstood"] = list(self.not_understood)
        if self.hint:
            members["hint"] = self.hint
        return members


def search(
    reader: Reader, q: str, *, limit: int, listings: Mapping[str, Listing], kinds: Collection[str] = KINDS
) -> Everything:
    """
    Search *kinds* for *q*, which has at least one character that is not blank; at most *limit* results of each.

    Args:
        listings: the lists with their filters, by kind.
    """
    pages = {kind: reader.page(kind, ListQuery(q=q, page_size=limit)) for kind in kinds}
    words = pieces(q)
    results, best_tier = _merged(pages, words)
    closest = _closest(pages, results, words, only_former=best_tier <= Tier.BEGUN)
    named_kind = ""
    named: list[NamedValue] = []
    if not results:
        named_kind, named = _named(reader, q, listings, kinds)
    words_of_values = words_of(named)
    if named:
        closest = tuple((kind, document) for kind, document in closest if is_meant(document))
    # Pages of several editions have no time in common.
    versions = {page.version for page in pages.values()}
    modified_at = next(iter(pages.values())).modified_at if len(versions) == 1 else ""
    return Everything(
        results=results,
        totals={kind: page.total for kind, page in pages.items()},
        closest=closest,
        hint="" if results else _hint(q, pages, named_kind, named, has_closest=bool(closest)),
        named=tuple(named),
        not_understood=() if results else not_understood(q, closest, words_of_values),
        version=min(versions),
        modified_at=modified_at,
    )


def trimmed(text: str) -> str:
    """Return *text* as a query: without line breaks and repeated spaces, cut after a whole word."""
    words = " ".join(text.replace("\0", " ").split())
    if len(words) <= MAX_QUERY_CHARACTERS:
        return words
    cut = words[: MAX_QUERY_CHARACTERS + 1]
    return cut.rpartition(" ")[0] or cut[:MAX_QUERY_CHARACTERS]


def _merged(pages: dict[str, ListPage], words: list[str]) -> tuple[list[Result], int]:
    """Return the results of all kinds, the best tier first, and that tier; in a tier, the kinds alternate."""
    ranked: list[tuple[tuple[int, int, int], Result]] = []
    best_tier = int(Tier.TEXT)
    for number, (kind, page) in enumerate(pages.items()):
        worst, since = int(Tier.EXACT), 0
        for rank, (item, mark) in enumerate(zip(page.items, page.provenance, strict=True)):
            result = _result(kind, item, mark)
            tier = Tier(page.tiers[rank]) if rank < len(page.tiers) else Tier.TEXT
            if tier == Tier.TEXT and has_words(result.name, words):
                tier = Tier.BEGUN
            if tier > worst:  # a kind keeps its own order
                worst, since = int(tier), rank
            best_tier = min(best_tier, worst)
            ranked.append(((worst, rank - since, number), result))
    ranked.sort(key=lambda pair: pair[0])
    return [result for _, result in ranked], best_tier


def _closest(
    pages: dict[str, ListPage], results: Sequence[Result], words: list[str], *, only_former: bool
) -> tuple[tuple[str, Closest], ...]:
    """Return similar documents in the order of the results, then all others, names within the query first."""
    places = {(result.kind, result.key): place for place, result in enumerate(results)}
    words_of_query = set(words)
    ordered: list[tuple[tuple[int, int, float, int], str, Closest]] = []
    for kind, page in pages.items():
        for rank, document in enumerate(page.closest):
            if only_former and not document.is_former:
                continue
            # A word that a document shares with the query by chance is no reason to name it among all kinds.
            is_close = document.is_former or document.is_named or document.similarity > 0
            if not is_close:
                continue
            words_of_name = set(pieces(document.name))
            words_within = len(words_of_name) if words_of_name <= words_of_query else 0
            place = places.get((kind, document.id), len(places))
            ordered.append(((place, -words_within, -document.similarity, rank), kind, document))
    ordered.sort(key=lambda entry: entry[0])
    return tuple((kind, document) for _, kind, document in ordered[:MAX_CLOSEST])


def _named(
    reader: Reader, q: str, listings: Mapping[str, Listing], kinds: Collection[str]
) -> tuple[str, list[NamedValue]]:
    """Return the first kind of which words of a query name values, and these values."""
    for kind in kinds:
        values = reader.named_values(listings[kind], q)
        if values:
            return kind, values
    return "", []


def with_values_named(q: str, found: Everything, words_of_values: Collection[str]) -> Everything:
    """Return what an unsuccessful query finds if it also names values of filters with these words."""
    closest = tuple((kind, document) for kind, document in found.closest if is_meant(document))
    explained = {*words_of_values, *words_of(found.named)}
    return found._replace(closest=closest, not_understood=not_understood(q, closest, explained))


def is_meant(document: Closest) -> bool:
    """
    Return whether a query may mean a document that is close to it although words of it name values of filters.

    "Largest DAOs" means the type, and no person whose name has similar letters.
    """
    return document.is_former or document.is_named or document.similarity >= ALIKE


def not_understood(q: str, closest: Sequence[tuple[str, Closest]], words_of_values: Collection[str]) -> tuple[str, ...]:
    """
    Return the words of an unsuccessful query that neither a name nor a value of a filter explains.

    There are none if a name is similar to the whole query.
    """
    explained = set(words_of_values)
    for _, document in closest:
        if document.similarity or document.is_former:
            return ()
        explained.update(pieces(document.name))
    words = (word.strip(PUNCTUATION) for word in q.split())
    return tuple(dict.fromkeys(word for word in words if word and not explained.issuperset(pieces(word))))


def _hint(
    q: str, pages: dict[str, ListPage], named_kind: str, named: Sequence[NamedValue], *, has_closest: bool
) -> str:
    """Return which filters the query names; else the hint of the only kind, or of several, what is common to them."""
    if len(pages) == 1 and not named:
        return next(iter(pages.values())).hint
    *first, last = pages
    kinds = f"{', '.join(first)} or {last}" if first else last
    shown = without_controls(q)[:MAX_SHOWN]
    advice = []
    if has_closest:
        advice.append("You may mean one of the closest results.")
    if named:
        filters = " and ".join(f"{value.name}={without_controls(value.value)[:MAX_SHOWN]}" for value in named)
        advice.append(f"Some words are values of filters: list {COLLECTIONS[named_kind]} with {filters}.")
    if not advice:
        advice.append("Use fewer or other words.")
    return " ".join((f'No {kinds} matches "{shown}".', *advice))


class _Names(msgspec.Struct, rename="camel"):
    id: str = ""
    slug: str = ""
    framework_id: str = ""
    name: str = ""
    framework_name: str = ""


def _result(kind: str, raw: bytes, mark: str) -> Result:
    item: JSONObject = msgspec.json.decode(raw)
    names = msgspec.convert(item, _Names)
    about = item.get("description") or item.get("bio") or ""
    return Result(
        kind,
        names.framework_id or names.id or names.slug,
        names.name or names.framework_name,
        summary_of(about if isinstance(about, str) else ""),
        item,
        mark,
    )


def title_of(item: JSONObject) -> str:
    """Return the name of a published object, with the symbol of its token."""
    name = str(item.get("name") or item.get("frameworkName"))
    return f"{name} ({item['symbol']})" if item.get("symbol") else name


def summary_of(text: str, limit: int = MAX_SUMMARY_CHARACTERS) -> str:
    """Return the beginning of a Markdown text, on one line and without its commonest signs."""
    words = " ".join(_MARKUP.sub(r"\1", text[: 3 * limit]).split())
    return words if len(words) <= limit else f"{words[: limit - 1].rstrip()}…"


MAX_VALUE_CHARACTERS: Final = 80
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


class Reason(NamedTuple):
    """By what a result is found: the word for it, and what it says; both are empty where nothing tells."""

    of: str = ""
    value: str = ""

    def __str__(self) -> str:
        if self.of in {"name", *_TEXTS} or not self.value:
            return self.of
        return f"{self.of}: {self.value}" if self.of == "text" else f"{self.of} {self.value}"


def why(reader: Reader, q: str, found: Everything) -> list[str]:
    """Return by what each result was found, in a few words; empty where nothing tells."""
    return list(map(str, reasons(reader, q, found)))


def reasons(reader: Reader, q: str, found: Everything) -> list[Reason]:
    """Return by what each result was found; the whole documents of the first ones are read where lists do not tell."""
    explained = [by_item(q, result.item) for result in found.results]
    unexplained = [place for place, reason in enumerate(explained) if not reason.of][:MAX_EXPLAINED]
    names = [(found.results[place].kind, found.results[place].key) for place in unexplained]
    documents = reader.documents(names)
    for place, name in zip(unexplained, names, strict=True):
        if name in documents:
            explained[place] = by_document(q, msgspec.json.decode(documents[name].body)["data"])
    return explained


def by_item(q: str, item: JSONObject) -> Reason:
    """Return by what *q* names or describes the *item* of a list, if its list item says so."""
    key, words = search_text.key_of_query(q), pieces(q)
    if key:
        for name, value in _identifying(item):
            if search_text.squeeze(value) == key:
                return _reason(name, value)
    for name, value in _described(item):
        if has_words(value, words):
            return _reason(name, value)
    return Reason()


def by_document(q: str, data: JSONObject) -> Reason:
    """Return by what *q* describes a whole document: a row of its parts, a company of a person, or its texts."""
    words, key = pieces(q), search_text.key_of_query(q)
    if key:
        for name, value in _numbered(data):
            if search_text.squeeze(value) == key:
                return _reason(name, value)
    for name, value in _named_in(data):
        if has_words(value, words):
            return _reason(name, value)
    # With positions, it is a company, whose texts are an object of their own, or a person, whose item has them all.
    texts = _strings((data.get("company") or {}) if "positions" in data else data)
    for text in texts:
        if has_words(text, words) or (key and key in search_text.squeeze(text)):
            return Reason("text", _line_of(text, words, key))
    return Reason()


def _line_of(text: str, words: list[str], key: str) -> str:
    """Return the line of a text that says what was searched for, cut around it; nothing if no line does."""
    if len(text) > _SEARCHED:
        return ""
    for line in text.splitlines():
        if has_words(line, words) or (key and key in search_text.squeeze(line)):
            return _cut_around(" ".join(without_controls(line).split()), words)
    return ""


def _cut_around(line: str, words: list[str]) -> str:
    """Return the part of a line around the first of *words*, which has a third of the room before it."""
    start = 0
    if words:
        start = line.casefold().find(words[0]) - MAX_LINE // 3
    start = max(0, min(len(line) - MAX_LINE, start))
    end = start + MAX_LINE
    before = "…" if start else ""
    after = "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def has_words(text: str, words: list[str]) -> bool:
    """Return whether *text* has all *words*, the last one also as a beginning."""
    if not words:
        return False
    *whole_words, last = words
    words_of_text = set(pieces(text))
    if not words_of_text.issuperset(whole_words):
        return False
    return any(word.startswith(last) for word in words_of_text)


def _identifying(item: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield the values of an item that identify it, each with the word for it."""
    for member, word in _NAMING.items():
        yield word, item.get(member) or ""
    for member in _SITES:
        yield "domain", search_text.host_of(item.get(member) or "")
    for network, profile in (item.get("socials") or {}).items():
        if profile:
            yield network, search_text.handle_of(profile)
    for former_name in item.get("formerNames") or ():
        yield "former name", former_name["name"]
    # Additional members can be identifiers, such as an LEI.
    for member, value in item.items():
        if member not in _KNOWN:
            for text in _strings(value):
                yield member, text


def _described(item: JSONObject) -> Iterator[tuple[str, str]]:
    for name in ("name", "frameworkName"):
        yield "name", item.get(name) or ""
    for former_name in item.get("formerNames") or ():
        yield "former name", former_name["name"]
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
    for row in data.get("proposals") or ():
        yield "proposal", str(row.get("title") or "")


def _numbered(data: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield what names a single row of a part."""
    for row in data.get("proposals") or ():
        yield "proposal", str(row.get("id") or "")
    for row in data.get("capTable") or ():
        yield "holder", str(row.get("address") or "")


def _reason(name: str, value: str) -> Reason:
    is_plain = name in {"name", *_TEXTS}
    return Reason(name, "" if is_plain else without_controls(value)[:MAX_VALUE_CHARACTERS])


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
