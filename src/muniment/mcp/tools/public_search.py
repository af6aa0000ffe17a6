"""
The handlers of `search` and `fetch`: documents of every kind by words, and one as a text.

They have exactly the arguments and results that ChatGPT expects of a server that it searches.

Source: tools, Public server; decisions, section 3.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools import answers
from muniment.mcp.tools.near_statements import is_only_common, near_statement
from muniment.mcp.tools.public_lookups import MAX_SHOWN, PublicAnswers
from muniment.schema.company_parts import CAP_TABLE_ENTRY, DISTRIBUTION, PROPOSAL
from muniment.schema.objects import Schema
from muniment.schema.record import Record
from muniment.store.published_document import KINDS
from muniment.store.reader import Found
from muniment.store.search import everything
from muniment.store.search.everything import COLLECTIONS, Everything
from muniment.store.search.forgiving import SIMILAR
from muniment.store.search.named_values import words_of
from muniment.store.search_text import pieces

MAX_RESULTS: Final = 10
_FILTERS: Final = (
    "Search has no conditions: use the filters of list_companies (type, theme, city, country, raising, treasuryMin) "
    "and list_people (company, title), or query, which answers SELECT statements."
)
WORDS_OF_A_NAME: Final = 2
"""Up to so many words, a name that is similar in some of them may be meant; a longer query is a question."""


class SearchTools(PublicAnswers):
    """The handlers."""

    def search(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return the best matches of all kinds; if nothing has all words, what a part of them names.

        Raises:
            BadRequest: the query is blank.
        """
        query = everything.trimmed(arguments["query"])
        if not query:
            raise BadRequest("The query is blank.", "Call again with words of a name, a symbol, a domain or a topic.")
        return self._cached(("mcp", "search", query), KINDS, lambda: self._search(query), quick=False)

    def _search(self, query: str) -> Marked:
        searched = everything.search(self.reader, query, limit=MAX_RESULTS, listings=self._schema.listings)
        found = _without_chance(query, searched)
        found = found._replace(results=found.results[:MAX_RESULTS])
        listed = self._matches(query, found)
        close, published = self._close_documents(found)
        for kind, document in close:
            if (kind, document.id) in published:
                title, text = _near_in_words(kind, document.id, document.why, published[kind, document.id])
                listed.append(self._result(kind, document.id, title, text))
        answer: JSONObject = {"results": listed}
        if found.not_understood:
            answer["notUnderstood"] = list(found.not_understood)
        if found.hint:
            answer["hint"] = _hint_of(query, found)
        marks = [(result.kind, result.provenance) for result in found.results]
        marks += [(kind, document.provenance[0]) for (kind, _), document in published.items()]
        return answers.marked_several(msgspec.json.encode(answer), marks)

    def _matches(self, query: str, found: Everything) -> list[JSONMapping]:
        former_names = {(kind, document.id): document.why for kind, document in found.closest if document.is_former}
        titles = Counter(result.title for result in found.results)
        matches = []
        for result, matched in zip(found.results, everything.why(self.reader, query, found), strict=True):
            text = _told_apart(result, titles)
            former_name = former_names.get((result.kind, result.key))
            if former_name is not None:
                text = f"{former_name} {text}"
            matches.append(self._result(result.kind, result.key, result.title, text, matched))
        return matches

    def _close_documents(self, found: Everything) -> tuple[list[tuple[str, Any]], dict[tuple[str, str], Found]]:
        """Return what the query nearly names, as far as the matches leave places, and the published documents of it."""
        matched = {(result.kind, result.key) for result in found.results}
        close = [(kind, document) for kind, document in found.closest if (kind, document.id) not in matched]
        close = close[: MAX_RESULTS - len(found.results)]
        return close, self.reader.documents([(kind, document.id) for kind, document in close])

    def _result(self, kind: str, key: str, title: str, text: str, matched: str = "") -> JSONMapping:
        result = {"id": f"{kind}:{key}", "title": title, "url": self._page_url(kind, key)}
        if matched:
            result["matched"] = matched
        result["text"] = text
        return result

    def fetch(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return a document as a text.

        Raises:
            NotFound: there is no such document; the hint names the nearest ids.
        """
        kind, key = self._asked(arguments["id"])

        def make() -> Marked:
            slug, found = key, self.reader.document(kind, key)
            if found is None:
                slug = self._named(kind, key) or ""  # the key may be a name
                found = self.reader.document(kind, slug) if slug else None
            if found is None:
                raise self._unknown_id(kind, key)
            data = msgspec.json.decode(found.body)["data"]
            text = text_of(kind, data, self._schema)
            facts = data["company"] if kind == "company" else data
            answer = {
                "id": f"{kind}:{slug}",
                "title": everything.title_of(facts),
                "text": text,
                "url": self._page_url(kind, slug),
                "metadata": {"kind": kind, "updatedAt": facts["updatedAt"], "json": self._url(kind, slug)},
            }
            content = msgspec.json.encode(answer)
            while len(content) > answers.BUDGET_BYTES:
                text = cut(text, len(text) * 3 // 4)
                content = msgspec.json.encode({**answer, "text": text})
            return answers.marked_published(content, kind, found.provenance)

        return self._cached(("mcp", "fetch", kind, key), (kind,), make, quick=False)

    def _asked(self, text: str) -> tuple[str, str]:
        """Return the kind and the key that *text* names: as an id, the address of a page, or a slug alone."""
        text = text.strip()
        kind, mark, key = text.partition(":")
        if mark and kind in COLLECTIONS:
            return kind, key
        segments = text.partition("?")[0].split("/")
        collection = segments[-2] if len(segments) > 1 else ""
        for kind, name in COLLECTIONS.items():
            if collection == name:
                return kind, unquote(segments[-1])
        for kind in KINDS:
            if self.reader.document(kind, text):
                return kind, text
        for kind in KINDS:
            if self._named(kind, text):
                return kind, text
        return KINDS[0], text  # the error names similar documents of every kind

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


def _without_chance(query: str, found: Everything) -> Everything:
    """
    Return what a query finds without what has only its common words, or words like some of them.

    A text that has "companies", "by" and "type" does not answer "companies by type".
    """
    is_named = any(everything.has_words(result.name, pieces(query)) for result in found.results)
    hint = f'Nothing is named "{query[:MAX_SHOWN]}".'
    if is_only_common(query) and not is_named:
        if not found.named:
            return found._replace(results=(), closest=(), not_understood=tuple(query.split()), hint=hint)
        # "Largest DAOs": its hint names the filter that has the value.
        not_understood = everything.not_understood(query, (), words_of(found.named))
        return found._replace(results=(), closest=(), not_understood=not_understood)
    if found.results or len(pieces(query)) <= WORDS_OF_A_NAME:
        return found
    closest = tuple((kind, each) for kind, each in found.closest if not 0 < each.similarity < SIMILAR)
    if found.closest and not (closest or found.named):
        found = found._replace(hint=hint)
    not_understood = everything.not_understood(query, closest, words_of(found.named))
    return found._replace(closest=closest, not_understood=not_understood)


def _hint_of(query: str, found: Everything) -> str:
    """Return the hint of an unsuccessful search: a statement that is near, or the tools that take conditions."""
    if len(found.not_understood) + len(found.named) < WORDS_OF_A_NAME:
        return found.hint
    named = "The results are only names that the query contains. " if found.closest else ""
    statement = near_statement(query, [each.id for kind, each in found.closest if kind == "company"])
    other = f"Call query with sql: {statement}" if statement else _FILTERS
    return f"{found.hint} {named}{other}"


MAX_CHARACTERS: Final = 20_000
MAX_BODY_CHARACTERS: Final = 8_000
"""Maximum characters of the long description, so that facts and lists still fit."""
MAX_ROWS: Final = 100
_HIDDEN: Final = frozenset(
    {"id", "slug", "documentId", "frameworkId", "name", "frameworkName", "icon", "logo", "picture"}
)
_APART: Final = frozenset(
    {"description", "body", "bio", "companyDescription", "positions", "treasuryAmount", "createdAt"}
)
"""Fields that are shown as paragraphs or lists, or repeat a fact in a second form."""


def text_of(kind: str, data: JSONObject, schema: Schema) -> str:
    """Return the text of a published document's ``data``, at most `MAX_CHARACTERS` long."""
    parts = {"company": _company, "person": _person, "framework": _framework}[kind](data, schema)
    return cut("\n\n".join(filter(None, parts)), MAX_CHARACTERS)


def cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"


def _company(data: JSONObject, schema: Schema) -> Iterator[str]:
    company = data["company"]
    description, body = company.get("description") or "", company.get("body") or ""
    yield cut(description, MAX_BODY_CHARACTERS)
    yield "\n".join(_facts(schema.company, company))
    yield _rows("Team", data.get("positions") or (), _position)
    yield cut(body.removeprefix(description).strip(), MAX_BODY_CHARACTERS)
    yield _rows("Funding rounds", data.get("fundingRounds") or (), _labelled(schema.funding_round))
    distribution = data.get("distribution")
    if distribution:
        yield "\n".join(("Token distribution:", *_facts(DISTRIBUTION, distribution)))
    yield _rows("Proposals", data.get("proposals") or (), _labelled(PROPOSAL))
    yield _rows("Token holders", data.get("capTable") or (), _labelled(CAP_TABLE_ENTRY))


def _person(data: JSONObject, schema: Schema) -> Iterator[str]:
    yield cut(data.get("bio") or "", MAX_BODY_CHARACTERS)
    yield _rows("Positions", data.get("positions") or (), _position)
    yield "\n".join(_facts(schema.person, data))


def _framework(data: JSONObject, schema: Schema) -> Iterator[str]:
    yield cut(data.get("description") or "", MAX_BODY_CHARACTERS)
    facts = dict(data)
    if facts.get("company"):
        facts["company"] = _linked("company", facts["company"])
    yield "\n".join(_facts(schema.framework, facts))
    about = data.get("companyDescription")
    if about:
        yield cut(f"About the company: {about}", MAX_BODY_CHARACTERS)


def _facts(record: Record, item: JSONObject) -> Iterator[str]:
    """Yield each member with a value as a line with its label; those that no field declares with their name."""
    for name, value in item.items():
        if name in _HIDDEN or name in _APART:
            continue
        said = _said(value)
        if said:
            field = record.by_name.get(name)
            label = field.label.partition(" (")[0] if field else name
            yield f"{label}: {said}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        members = [(name, _said(member)) for name, member in value.items() if name != "id"]
        return ", ".join(f"{name} {text}" for name, text in members if text)
    if isinstance(value, list):
        holds_objects = any(isinstance(each, dict) for each in value)
        mark = "; " if holds_objects else ", "  # the members of an object are separated by commas
        return mark.join(filter(None, map(_said, value[:MAX_ROWS])))
    return "" if value is None else str(value)


def _rows(title: str, rows: Sequence[JSONObject], line: Callable[[JSONObject], str]) -> str:
    if not rows:
        return ""
    lines = [f"{title} ({len(rows):,}):"]
    lines += [f"- {line(row)}" for row in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        lines.append(f"- and {len(rows) - MAX_ROWS:,} more")
    return "\n".join(lines)


def _labelled(record: Record) -> Callable[[JSONObject], str]:
    def line(row: JSONObject) -> str:
        name = row.get("title") or row.get("name") or row.get("address") or ""
        others = {member: value for member, value in row.items() if value != name}
        rest = "; ".join(_facts(record, others))
        return ": ".join(filter(None, (name, rest)))

    return line


def _position(row: JSONObject) -> str:
    """Return a position with the other end's id, which leads on."""
    kind = "person" if "person" in row else "company"
    other = _linked(kind, row[kind])
    return f"{row['title']}: {other}" if row.get("title") else other


def _linked(kind: str, other: JSONObject) -> str:
    slug = other.get("slug")
    return f"{other['name']} ({kind}:{slug})" if slug else str(other["name"])
