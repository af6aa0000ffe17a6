"""
Take the address of a page, or of the REST API, where a tool asks for a slug: users paste what their browser shows.

Source: decisions, section 3.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.mcp.declarations import Arguments, Caller, Tool
from muniment.store.search.everything import COLLECTIONS

MAX_CHARACTERS: Final = 2_000
"""Maximum characters of a slug or an address in a call."""
_KINDS: Final = {collection: kind for kind, collection in COLLECTIONS.items()}
_MAX_SHOWN: Final = 100
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_READERS: Final = {
    "company": ("get_company", "get_my_company"),
    "person": ("get_person",),
    "framework": ("get_framework",),
}
_ARGUMENTS: Final = {"company": "slug", "person": "slug", "framework": "frameworkId"}
"""The argument of the tools that read each kind."""
_LISTS: Final = {
    "company": ("list_companies", "list_my_companies"),
    "person": ("list_people",),
    "framework": ("list_frameworks",),
}


def taking_addresses(tools: Iterable[Tool], base_url: str) -> Iterator[Tool]:
    """Yield the *tools* of one server, so that each takes addresses of this registry for slugs."""
    tools = tuple(tools)
    addresses = Addresses(base_url, frozenset(tool.name for tool in tools))
    for tool in tools:
        yield dataclasses.replace(tool, handler=addresses.resolved(tool)) if tool.keys else tool


class Addresses:
    """
    Finds the slug in an address.

    Args:
        base_url: the base URL of the registry, without a slash at its end.
        tools: the names of the server's tools, for hints.
    """

    def __init__(self, base_url: str, tools: frozenset[str]) -> None:
        own = urlsplit(base_url)
        self._base_url = base_url
        self._place = _place(own)
        self._prefix = _segments(own.path)
        self._starts = ("/", f"{own.netloc.lower()}/")
        self._tools = tools

    def resolved(self, tool: Tool) -> Callable[[Arguments, Caller], Any]:
        """Return the handler of *tool* for arguments that may have addresses."""
        keys, handle = tuple(tool.keys.items()), tool.handler

        def handler(arguments: Arguments, caller: Caller) -> Any:
            for name, kind in keys:
                value = arguments.get(name)
                if type(value) is list:
                    arguments = {**arguments, name: [self.slug(name, kind, each) for each in value]}
                elif value is not None and "/" in value:
                    arguments = {**arguments, name: self.slug(name, kind, value)}
            return handle(arguments, caller)

        return handler

    def slug(self, name: str, kind: str, text: str) -> str:
        """
        Return the slug that *text*, the argument *name*, leads to; the text itself if it is no address.

        Raises:
            BadRequest: the address of another site, of another kind, or of no document.
        """
        plain, shown = text.strip(), text[:_MAX_SHOWN]
        if "://" not in plain and not plain.lower().startswith(self._starts):
            return text
        segments = self._own_segments(plain)
        if segments is None:
            raise BadRequest(f"{shown!r} is not an address of {self._base_url}.", self._way_out(kind, plain))
        place = next((number for number, segment in enumerate(segments[:-1]) if segment in _KINDS), None)
        if place is None:
            raise BadRequest(f"{shown!r} is not the address of a {kind}.", self._way_out(kind))
        kind_there, slug = _KINDS[segments[place]], segments[place + 1]
        if "api" not in segments[:place]:
            slug = slug.removesuffix(".json")  # the same document, under the address of its page
        if kind_there != kind:
            reader = self._call(_READERS[kind_there], f" with {_ARGUMENTS[kind_there]} {slug!r}")
            hint = " ".join(filter(None, (reader, self._way_out(kind))))
            raise BadRequest(f"{shown!r} is the address of a {kind_there}, and {name} takes that of a {kind}.", hint)
        return slug

    def _own_segments(self, address: str) -> list[str] | None:
        """Return the segments of an address below the base URL; None for an address of another site."""
        has_scheme = "://" in address or address.startswith("/")
        try:
            parts = urlsplit(address if has_scheme else f"//{address}")
            is_own = not parts.netloc or parts.scheme == "registry" or _place(parts) == self._place
        except ValueError:  # a bracket or a port that is none
            return None
        if not is_own:
            return None
        segments = _segments(parts.path)
        if parts.scheme == "registry":
            segments.insert(0, parts.netloc)
        elif segments[: len(self._prefix)] == self._prefix:
            del segments[: len(self._prefix)]
        return segments

    def in_positions(self, changes: JSONObject) -> JSONObject:
        """Return *changes*, not yet validated, with the slugs of people for their addresses in positions."""
        given = changes.get("positions")
        if type(given) is list:
            return {**changes, "positions": self._rows(given)}
        if type(given) is dict:
            edits = {}
            for operation, rows in given.items():
                edits[operation] = self._rows(rows) if type(rows) is list else rows
            return {**changes, "positions": edits}
        return changes

    def _rows(self, rows: list[Any]) -> list[Any]:
        return [self._row(row) for row in rows]

    def _row(self, row: Any) -> Any:
        person = row.get("person") if type(row) is dict else None
        if type(person) is not dict:
            return row
        slug = person.get("slug")
        if type(slug) is not str or "/" not in slug:
            return row
        return {**row, "person": {**person, "slug": self.slug("person.slug", "person", slug)}}

    def _way_out(self, kind: str, foreign: str = "") -> str:
        """Return what to call for the slugs of a *kind*; of a foreign address, also to search for its domain."""
        host = foreign.partition("://")[2].partition("/")[0][:_MAX_SHOWN]
        found = self._call(("search",), f" with query {host!r}") if host and kind == "company" else ""
        return found or self._call(_LISTS[kind], " for valid ones") or "Give the slug alone."

    def _call(self, names: Iterable[str], rest: str) -> str:
        return next((f"Call {name}{rest}." for name in names if name in self._tools), "")


def _place(parts: SplitResult) -> tuple[str, int | None]:
    """Return host and port, None for that of the scheme. Raise ValueError for a port that is no number."""
    port = parts.port
    return (parts.hostname or "").removeprefix("www."), None if port == _DEFAULT_PORTS.get(parts.scheme) else port


def _segments(path: str) -> list[str]:
    return [unquote(each) for each in path.split("/") if each]
