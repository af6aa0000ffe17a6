"""One search over companies, people and frameworks: each kind as its list finds it, and all in one order."""

import re
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.texts import without_controls
from muniment.schema.filters import Listing
from muniment.store.published_document import KINDS
from muniment.store.queries import ListQuery
from muniment.store.reader import ListPage, Reader
from muniment.store.search import matched
from muniment.store.search.closest import MAX_CLOSEST, Closest
from muniment.store.search.matched import has_words
from muniment.store.search.names import names_of
from muniment.store.search.questions.asking import question
from muniment.store.search.questions.reading import Listings, Reading
from muniment.store.search.ranking import Tier
from muniment.store.search.values import MAX_SHOWN
from muniment.store.search_text import pieces

COLLECTIONS: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
MAX_QUERY_CHARACTERS: Final = 200
MAX_SUMMARY_CHARACTERS: Final = 160
MAX_EXPLAINED: Final = 10
"""Results of which the whole document is read to tell why they are found."""
MAX_FRAMEWORKS: Final = 1_000
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


class Asked(NamedTuple):
    """A query read as a question, and the number of its matches; without any, the results match the words instead."""

    reading: Reading
    total: int


class Everything(NamedTuple):
    """
    What a search finds.

    Args:
        results: of all kinds, the best first; those of one kind are in the order of its list.
        totals: the number of matches by kind.
        closest: what is close, with its kind, if no name has the words of the query; otherwise only what had the name.
        hint: what to do if nothing is found.
        version: of the file, the lowest if it changed meanwhile.
        asked: the question as which the query was read.
    """

    results: Sequence[Result]
    totals: dict[str, int]
    closest: tuple[tuple[str, Closest], ...]
    hint: str
    version: int
    modified_at: str
    asked: Asked | None = None

    def guidance(self) -> JSONObject:
        """Return the members of an answer that say what is close, as those of a list, with the kind of each."""
        close = [{"kind": kind, **each.to_wire()} for kind, each in self.closest]
        return {**({"closest": close} if close or self.hint else {}), **({"hint": self.hint} if self.hint else {})}


def search(
    reader: Reader, q: str, *, limit: int, kinds: Collection[str] = KINDS, listings: Listings | None = None
) -> Everything:
    """
    Search *kinds* for *q*, which has at least one character that is not blank; at most *limit* results of each.

    Args:
        listings: the lists by kind, to read a question in plain words as filters; None to search for the words only.
    """
    reading = question(reader, listings, q) if listings is not None else None
    if listings is None or reading is None or reading.kind not in kinds:
        return _search_words(reader, q, limit, kinds)
    found = _answered(reader, reading, listings[reading.kind], limit)
    if found.results:
        return found
    words = _search_words(reader, q, limit, kinds)
    named = _named_in(reader, reading) if "company" in kinds else {}
    others = ((kind, each) for kind, each in words.closest if (kind, each.id) not in named)
    closest = (*((kind, each) for (kind, _), each in named.items()), *others)
    return words._replace(asked=found.asked, closest=closest[:MAX_CLOSEST])


def _named_in(reader: Reader, reading: Reading) -> dict[tuple[str, str], Closest]:
    """Return the companies that a question names: if its filters find nothing, their pages may have the answer."""
    keys = [("company", chip.value) for chip in reading.chips if chip.name == "company"]
    with reader.snapshot() as (connection, _):
        names = names_of(connection, keys)
    return {key: Closest(key[1], name, "Mentioned in the question.", is_named=True) for key, name in names.items()}


def _answered(reader: Reader, reading: Reading, listing: Listing, limit: int) -> Everything:
    kind = reading.kind
    is_framework = kind == "framework"  # their list is in order of first publication, without pages
    page = reader.page(kind, reading.query(listing, page_size=MAX_FRAMEWORKS if is_framework else limit))
    rows = list(zip(page.items, page.provenance, strict=True))[:: -1 if is_framework else 1]
    return Everything(
        results=[_result(kind, item, mark) for item, mark in rows[:limit]],
        totals={kind: page.total},
        closest=(),
        hint="",
        version=page.version,
        modified_at=page.modified_at,
        asked=Asked(reading, page.total),
    )


def _search_words(reader: Reader, q: str, limit: int, kinds: Collection[str]) -> Everything:
    pages = {kind: reader.page(kind, ListQuery(q=q, page_size=limit)) for kind in kinds}
    words = pieces(q)
    found: list[tuple[tuple[int, int, int], Result]] = []
    for number, (kind, page) in enumerate(pages.items()):
        worst, since = int(Tier.EXACT), 0
        for rank, (item, mark) in enumerate(zip(page.items, page.provenance, strict=True)):
            result = _result(kind, item, mark)
            tier = Tier(page.tiers[rank]) if rank < len(page.tiers) else Tier.TEXT
            if tier == Tier.TEXT and has_words(result.name, words):
                tier = Tier.BEGUN
            if tier > worst:  # a kind keeps its own order
                worst, since = int(tier), rank
            found.append(((worst, rank - since, number), result))
    found.sort(key=lambda each: each[0])
    is_of_one = len({page.version for page in pages.values()}) == 1
    is_named = bool(found) and found[0][0][0] <= Tier.BEGUN
    results = [result for _, result in found]
    closest = _closest(pages, results, words, only_former=is_named)
    return Everything(
        results=results,
        totals={kind: page.total for kind, page in pages.items()},
        closest=closest,
        hint="" if found else _hint(q, pages, has_closest=bool(closest)),
        version=min(page.version for page in pages.values()),
        modified_at=next(iter(pages.values())).modified_at if is_of_one else "",
    )


def why(reader: Reader, q: str, found: Everything) -> list[str]:
    """Return by what each result was found, in a few words; empty where nothing tells, and for a question."""
    if found.asked is not None and found.asked.total:
        return [""] * len(found.results)
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
    """Return what is close in the order of the results; then what is none of them, names within the query first."""
    places = {(each.kind, each.key): place for place, each in enumerate(results)}
    asked = set(words)

    def order(kind: str, rank: int, each: Closest) -> tuple[int, int, float, int]:
        name = set(pieces(each.name))
        within = len(name) if name <= asked else 0
        return places.get((kind, each.id), len(places)), -within, -each.similarity, rank

    close = [
        (order(kind, rank, each), kind, each)
        for kind, page in pages.items()
        for rank, each in enumerate(page.closest)
        if each.is_former or not only_former
    ]
    return tuple((kind, each) for _, kind, each in sorted(close, key=lambda each: each[0])[:MAX_CLOSEST])


def _hint(q: str, pages: dict[str, ListPage], *, has_closest: bool) -> str:
    """Return the hint of the only kind; of several, what is common to them."""
    if len(pages) == 1:
        return next(iter(pages.values())).hint
    *first, last = pages
    shown = without_controls(q)[:MAX_SHOWN]
    other = "What is close may be meant." if has_closest else "Use fewer or other words."
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
