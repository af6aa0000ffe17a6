"""
The handlers of `search` and `fetch`: documents of every kind by words, and one as a text.

They have exactly the arguments and results that ChatGPT expects of a server that it searches.

Source: tools, Public server; decisions, section 3.
"""

from collections import Counter
from collections.abc import Awaitable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp import provenance, whole_texts
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools import truncation
from muniment.mcp.tools.public_answers import PublicAnswers
from muniment.store.published_document import KINDS
from muniment.store.reader import Found
from muniment.store.search import everything
from muniment.store.search.closest import Closest
from muniment.store.search.everything import COLLECTIONS, Everything

MAX_RESULTS: Final = 10


class SearchTools(PublicAnswers):
    """The handlers."""

    def search(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return the best matches of all kinds; of a question that matches nothing, what is close.

        Raises:
            BadRequest: the query is blank.
        """
        query = everything.trimmed(arguments["query"])
        if not query:
            raise BadRequest("The query is blank.", "Call again with words of a name, a symbol, a domain or a topic.")

        def make() -> Marked:
            found = everything.search(self.reader, query, limit=MAX_RESULTS, listings=self._listings)
            results = found.results[:MAX_RESULTS]
            named = [pair for pair in found.closest if pair[1].is_named]
            taken = {(kind, each.id) for kind, each in named}
            results = [each for each in results if (each.kind, each.key) not in taken][: MAX_RESULTS - len(named)]
            known = {*taken, *((each.kind, each.key) for each in results)}
            close = [pair for pair in found.closest if (pair[0], pair[1].id) not in known]
            close = close[: MAX_RESULTS - len(results) - len(named)]
            near = self.reader.documents([(kind, each.id) for kind, each in (*named, *close)])

            def in_words(pairs: Sequence[tuple[str, Closest]]) -> Iterator[JSONMapping]:
                for kind, each in pairs:
                    if (kind, each.id) in near:
                        yield self._result(kind, each.id, *_near_in_words(kind, each.id, each.why, near[kind, each.id]))

            former = {(kind, each.id): f"{each.why} " for kind, each in found.closest if each.is_former}
            why = everything.why(self.reader, query, found._replace(results=results))
            titles = Counter(each.title for each in results)
            listed = [
                *in_words(named),
                *(
                    self._result(
                        *(each.kind, each.key, each.title),
                        former.get((each.kind, each.key), "") + _told_apart(each, titles),
                        matched,
                    )
                    for each, matched in zip(results, why, strict=False)
                ),
                *in_words(close),
            ]
            said = {"hint": found.hint} if found.hint else {}
            answer = {"results": listed, **said, **_reading_of(found, len(listed))}
            marks = [(each.kind, each.provenance) for each in results]
            marks += [(kind, document.provenance[0]) for (kind, _), document in near.items()]
            return provenance.of_several(msgspec.json.encode(answer), marks)

        # The same question may mean other days tomorrow.
        return self._cached(("mcp", "search", query, datetime.now(UTC).date()), KINDS, make, quick=False)

    def _result(self, kind: str, key: str, title: str, text: str, matched: str = "") -> JSONMapping:
        said = {"matched": matched} if matched else {}
        return {"id": f"{kind}:{key}", "title": title, "url": self._page_url(kind, key), **said, "text": text}

    def fetch(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return a document as a text.

        Raises:
            NotFound: there is no such document; the hint names the nearest ids.
        """
        kind, key = self._asked(arguments["id"])

        def make() -> Marked:
            slug, found = key, self.reader.document(kind, key)
            if found is None and (meant := self._named(kind, key)):
                slug, found = meant, self.reader.document(kind, meant)
            if found is None:
                raise self._unknown_id(kind, key)
            data = msgspec.json.decode(found.body)["data"]
            text = whole_texts.text_of(kind, data, self._schema)
            facts = data["company"] if kind == "company" else data
            answer = {
                "id": f"{kind}:{slug}",
                "title": everything.title_of(facts),
                "text": text,
                "url": self._page_url(kind, slug),
                "metadata": {"kind": kind, "updatedAt": facts["updatedAt"], "json": self._url(kind, slug)},
            }
            content = msgspec.json.encode(answer)
            while len(content) > truncation.BUDGET_BYTES:
                text = whole_texts.cut(text, len(text) * 3 // 4)
                content = msgspec.json.encode({**answer, "text": text})
            return provenance.of_published(content, kind, found.provenance)

        return self._cached(("mcp", "fetch", kind, key), (kind,), make, quick=False)

    def _asked(self, text: str) -> tuple[str, str]:
        """Return the kind and the key that *text* names: as an id, the address of a page, or a slug alone."""
        text = text.strip()
        kind, mark, key = text.partition(":")
        if mark and kind in COLLECTIONS:
            return kind, key
        *_, collection, last = ("", *text.partition("?")[0].split("/"))
        for kind, name in COLLECTIONS.items():
            if collection == name:
                return kind, unquote(last)
        is_known = next((kind for kind in KINDS if self.reader.document(kind, text)), None)
        return is_known or next((kind for kind in KINDS if self._named(kind, text)), KINDS[0]), text

    def _unknown_id(self, kind: str, key: str) -> NotFound:
        kinds = dict.fromkeys((kind, *KINDS))
        near = [f"{each}:{found}" for each in kinds for found in self._near(each, key)][:3]
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        shown = f"{kind}:{key[:MAX_SLUG_CHARACTERS]}"
        return NotFound(f"There is no document {shown!r}.", f"{meant}Call search for valid ids.")


def _told_apart(result: everything.Result, titles: Counter[str]) -> str:
    """Return what a result is about; of companies with the same title also the size of the team."""
    if result.kind != "company" or titles[result.title] == 1:
        return result.about
    size = result.item.get("teamSize")
    return f"Team of {size:,}; {result.about}" if size else f"No team listed; {result.about}"


def _near_in_words(kind: str, key: str, why: str, found: Found) -> tuple[str, str]:
    """Return the title of a document that is close to a query, and a text: why it is, and what it is about."""
    data = msgspec.json.decode(found.body)["data"]
    item = data["company"] if kind == "company" else data
    summary = everything.summary_of(item.get("description") or item.get("bio") or "")
    shown = everything.Result(kind, key, "", summary, item, "")
    return shown.title, " ".join(filter(None, (why, shown.about)))


def _reading_of(found: Everything, shown: int) -> JSONObject:
    """
    Return the members that say as which filters a question was read, and which tool lists the rest.

    Only if every word was understood does the hint say that these are all.

    Args:
        shown: the number of results in the answer.
    """
    if found.asked is None:
        return {}
    reading, total = found.asked
    arguments = ", ".join(f"{name} {value!r}" for name, value in reading.parameters())
    call = f"list_{COLLECTIONS[reading.kind]} with {arguments}"
    unclear = ", ".join(reading.not_understood)
    if not total:
        instead = "These results have its words." if found.results else "What is close may be meant."
        hint = f"Read as {call}, the question has no match. {instead if shown else ''}".rstrip()
    elif unclear:
        hint = f"Read as {call}. Not understood: {unclear}. So these may not be the answer, and others may be missing."
    elif total > shown:
        hint = f"Read as {call}, which lists all {total:,}."
    else:
        hint = f"Read as {call}: {'this is the only match' if total == 1 else f'these {total} are all'}."
    return {"reading": {**reading.to_wire(), "total": total}, "hint": hint}
