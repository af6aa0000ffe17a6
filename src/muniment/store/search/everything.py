"""One search over companies, people and frameworks: each kind as its list finds it, and all in one order."""

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.texts import without_controls
from muniment.store.published_document import KINDS
from muniment.store.queries import ListQuery
from muniment.store.reader import ListPage, Reader
from muniment.store.search import matched
from muniment.store.search.closest import MAX_CLOSEST, Closest
from muniment.store.search.matched import has_words
from muniment.store.search.ranking import Tier
from muniment.store.search.values import MAX_SHOWN
from muniment.store.search_text import pieces

COLLECTIONS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
MAX_QUERY_CHARACTERS: Final = 200
MAX_SUMMARY_CHARACTERS: Final = 160
MAX_EXPLAINED: Final = 10
"""Results of which the whole document is read to tell why they are found."""
_PUNCTUATION: Final = "?!.,:;\"'()"
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
        classes = [self.item.get(name) for name in ("type", "industry")] if self.kind == "company" else []
        return ". ".join(filter(None, (", ".join(filter(None, classes)), self.summary)))


class Everything(NamedTuple):
    """
    The result of a search.

    Args:
        results: the matches of all kinds, the best first; those of one kind are in the order of its list.
        totals: the number of matches by kind.
        closest: similar documents, each with its kind, if no name has the words; otherwise those that had the name.
        hint: what to do if nothing is found.
        not_understood: if nothing is found, the words of the query that no name in *closest* has.
        version: the version of the file; the lowest one if it changed during the search.
    """

    results: Sequence[Result]
    totals: dict[str, int]
    closest: tuple[tuple[str, Closest], ...]
    hint: str
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


def search(reader: Reader, q: str, *, limit: int, kinds: Collection[str] = KINDS) -> Everything:
    """Search *kinds* for *q*, which has at least one character that is not blank; at most *limit* results of each."""
    pages = {kind: reader.page(kind, ListQuery(q=q, page_size=limit)) for kind in kinds}
    words = pieces(q)
    ranked: list[tuple[tuple[int, int, int], Result]] = []
    for number, (kind, page) in enumerate(pages.items()):
        worst, since = int(Tier.EXACT), 0
        for rank, (item, mark) in enumerate(zip(page.items, page.provenance, strict=True)):
            result = _result(kind, item, mark)
            tier = Tier(page.tiers[rank]) if rank < len(page.tiers) else Tier.TEXT
            if tier == Tier.TEXT and has_words(result.name, words):
                tier = Tier.BEGUN
            if tier > worst:  # a kind keeps its own order
                worst, since = int(tier), rank
            ranked.append(((worst, rank - since, number), result))
    ranked.sort(key=lambda pair: pair[0])
    is_named = bool(ranked) and ranked[0][0][0] <= Tier.BEGUN
    results = [result for _, result in ranked]
    closest = _closest(pages, results, words, only_former=is_named)
    versions = {page.version for page in pages.values()}
    modified_at = next(iter(pages.values())).modified_at if len(versions) == 1 else ""
    return Everything(
        results=results,
        totals={kind: page.total for kind, page in pages.items()},
        closest=closest,
        hint="" if results else _hint(q, pages, has_closest=bool(closest)),
        not_understood=() if results else _not_understood(q, closest),
        version=min(versions),
        modified_at=modified_at,
    )


def why(reader: Reader, q: str, found: Everything) -> list[str]:
    """Return by what each result was found, in a few words; empty where nothing tells."""
    said = [matched.by_item(q, each.item) for each in found.results]
    silent = [place for place, each in enumerate(said) if not each][:MAX_EXPLAINED]
    names = [(found.results[place].kind, found.results[place].key) for place in silent]
    known = reader.documents(names)
    for place, name in zip(silent, names, strict=True):
        if name in known:
            said[place] = matched.by_document(q, msgspec.json.decode(known[name].body)["data"])
    return said


def trimmed(text: str) -> str:
    """Return *text* as a query: without line breaks and repeated spaces, cut after a whole word."""
    words = " ".join(text.replace("\0", " ").split())
    if len(words) <= MAX_QUERY_CHARACTERS:
        return words
    cut = words[: MAX_QUERY_CHARACTERS + 1]
    return cut.rpartition(" ")[0] or cut[:MAX_QUERY_CHARACTERS]


def _closest(
    pages: dict[str, ListPage], results: Sequence[Result], words: list[str], *, only_former: bool
) -> tuple[tuple[str, Closest], ...]:
    """Return similar documents in the order of the results, then all others, names within the query first."""
    places = {(result.kind, result.key): place for place, result in enumerate(results)}
    words_of_query = set(words)
    ordered: list[tuple[tuple[int, int, float, int], str, Closest]] = []
    for kind, page in pages.items():
        for rank, document in enumerate(page.closest):
            # A word that a document shares with the query by chance is no reason to name it among all kinds.
            is_close = document.is_former or (not only_former and (document.is_named or document.similarity > 0))
            if not is_close:
                continue
            words_of_name = set(pieces(document.name))
            words_within = len(words_of_name) if words_of_name <= words_of_query else 0
            place = places.get((kind, document.id), len(places))
            ordered.append(((place, -words_within, -document.similarity, rank), kind, document))
    ordered.sort(key=lambda entry: entry[0])
    return tuple((kind, document) for _, kind, document in ordered[:MAX_CLOSEST])


def _not_understood(q: str, closest: Sequence[tuple[str, Closest]]) -> tuple[str, ...]:
    """Return the words of an unsuccessful query that no name explains; none if a name is similar to the whole query."""
    explained: set[str] = set()
    for _, document in closest:
        if document.similarity or document.is_former:
            return ()
        explained.update(pieces(document.name))
    words = (word.strip(_PUNCTUATION) for word in q.split())
    return tuple(dict.fromkeys(word for word in words if word and not explained.issuperset(pieces(word))))


def _hint(q: str, pages: dict[str, ListPage], *, has_closest: bool) -> str:
    """Return the hint of the only kind; of several, what is common to them."""
    if len(pages) == 1:
        return next(iter(pages.values())).hint
    *first, last = pages
    shown = without_controls(q)[:MAX_SHOWN]
    other = "You may mean one of the closest results." if has_closest else "Use fewer or other words."
    return f'No {", ".join(first)} or {last} matches "{shown}". {other}'


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
