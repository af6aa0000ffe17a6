"""
Read the arguments of a tool call by the tool's inputSchema: generously, and by the same rule for every tool.

Clients fill in arguments that they do not need, and send values as text. A value whose meaning is certain is read:

- an optional argument that is null, blank or an empty list counts as absent;
- numbers, booleans, lists and objects may come as text, and a number where text is expected;
- a single value serves as a list, and text with commas as a list of words;
- white space around a text goes, and a well-known other name of an argument is taken for its own.

Inside an object that an operation validates (`later`), only types are read: there, null and blank text clear a value.
Everything else is refused by an error that names the argument and what it accepts, so that a model can correct it.

Where a tool asks for a slug, the address of a page or of the REST API is taken for it (`Addresses`): users paste what
their browser shows.

Source: decisions, section 3.
"""

import dataclasses
import difflib
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

from muniment.kernel.json import JSONError, JSONMapping, JSONObject, read_json
from muniment.kernel.problems import BadRequest
from muniment.mcp.declarations import Arguments, Caller, Tool
from muniment.mcp.web_pages import LISTINGS, PICTURES
from muniment.store.search.everything import COLLECTIONS

Check = Callable[[JSONObject], JSONObject]
"""Takes arguments; returns them for the handler, or raises BadRequest."""

MAX_SHOWN_CHARACTERS: Final = 60
"""Maximum characters of a name or value in an error; names are cut before they are compared, to bound the cost."""
_TYPES: Final[dict[str, tuple[str, type]]] = {
    "string": ("a string", str),
    "integer": ("a whole number", int),
    "number": ("a number", float),
    "boolean": ("true or false", bool),
    "object": ("an object", dict),
    "array": ("a list", list),
}
_SUPPORTED_KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "minimum", "maximum", "minLength", "maxLength", "items", "maxItems"),
        *("description", "default"),
    }
)
UNSHOWN: Final = "unshownProperties"
"""A keyword: members of an object that need no description here; they are read, but not published."""
MAX_ENTRIES: Final = 1_000
"""Maximum entries of a list that is read: no tool takes more than a hundred, except in a change."""
MAX_ROWS: Final = 20_000
"""Maximum entries of a list in a change that is read, above every limit of rows."""
_VERBATIM: Final = frozenset({"text"})
"""The content of a file: its white space stays, and none at all is a file too."""
_OF_WORDS: Final = frozenset({"fields", "ids", "documentIds"})
"""Lists of free text that commas may separate; elsewhere a comma can belong to a value, such as "Washington, D.C."."""
_WORD: Final = re.compile(r"[^\s,.]+")
"""An entry of text with commas: a name such as "Acme, Inc." is one value."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,15}(?:\.0{1,15})?")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_MAX_INTEGER: Final = 10**15
"""Above it a number with a decimal point may be another one than the client meant."""
_OTHER_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "query": ("q", "search"),
    "q": ("query", "search", "name"),
    "pageSize": ("limit", "perPage"),
    "company": ("companySlug", "companyId", "companyName"),
    "companySlug": ("company", "companyId", "companyName"),
    "frameworkId": ("framework", "frameworkSlug", "frameworkName"),
    "documentId": ("document",),
    "runId": ("run",),
    "uploadId": ("upload",),
}
"""Names that clients use for an argument, if the tool has no argument of that name."""
_OF_THE_ONLY_KEY: Final = ("id", "slug", "name")
"""Names for the argument that says which document a call is about, if nothing else is required."""
_KEYS: Final = frozenset({"slug", "companySlug", "frameworkId", "documentId", "runId", "uploadId"})


class _Value:
    """
    A value of the arguments: its type and its checks.

    Args:
        is_later: it belongs to an object that an operation validates, so that nothing is checked here.
    """

    def __init__(self, name: str, schema: JSONMapping, *, is_later: bool = False) -> None:
        if not is_later:
            _refuse_unsupported(schema)
        self.kinds: set[str] = set()
        self.is_later = is_later
        self.most_read = MAX_ROWS if is_later else MAX_ENTRIES
        self.is_verbatim = is_later or name in _VERBATIM
        self.enum = schema.get("enum")
        self.items: _Value | None = None
        self.members: dict[str, _Value] = {}
        self.others: _Value | None = None
        for alternative in schema.get("anyOf") or [schema]:
            self.kinds.update(_kinds_of(alternative))
            self._take_inner(name, alternative)
        if {"add", "set"} <= self.members.keys():
            # A list of rows, or changes of it: all three forms have the same rows, described once.
            self.items = self.members["set"].items = self.members["add"].items
        has_words = name in _OF_WORDS or (self.items is not None and self.items.enum is not None)
        self.has_words = has_words and not is_later
        if not is_later:
            self._take_bounds(schema)

    def _take_inner(self, name: str, alternative: JSONMapping) -> None:
        """Compile the values inside: the items of a list, the members of an object."""
        if "items" in alternative:
            self.items = _Value(name, alternative["items"], is_later=self.is_later)
        members = {**alternative.get("properties", {}), **alternative.get(UNSHOWN, {})}
        for member, member_schema in members.items():
            self.members[member] = _Value(member, member_schema, is_later=self.is_later)
        other_members = alternative.get("additionalProperties")
        if isinstance(other_members, dict):
            self.others = _Value(name, other_members, is_later=self.is_later)

    def _take_bounds(self, schema: JSONMapping) -> None:
        """Keep what `checked` holds a value against: its type, and the least and the greatest number or length."""
        (kind,) = self.kinds
        self.type = _TYPES[kind][1]
        self.accepted = _accepted(schema, kind)
        self.low = schema.get("minimum", schema.get("minLength", 0))
        most = MAX_ENTRIES if kind == "array" else float("inf")
        self.high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems", most)))

    # ------------------------------------------------------------------ reading

    def read(self, value: Any) -> Any:
        """Return *value* in the type that is taken, if its meaning is certain; otherwise unchanged."""
        if type(value) is str:
            value = self._of_text(value)
        elif type(value) in {int, float}:
            value = self._of_number(value)
        elif type(value) is dict and self._takes_rows_alone():
            value = [value]
        if type(value) is list:
            return self._of_list(value)
        if type(value) is dict and "object" in self.kinds:
            return {name: self._member(name, member) for name, member in value.items()}
        return value

    def _takes_rows_alone(self) -> bool:
        """Return whether an object can only be one row of a list."""
        return "object" not in self.kinds and self.items is not None and "object" in self.items.kinds

    def _of_list(self, values: list[Any]) -> list[Any]:
        if self.items is None or "array" not in self.kinds:
            return values
        if len(values) > self.most_read:
            return values  # too long for any list, and not worth the time
        entries = []
        for value in values:
            entry = self.items.read(value)
            # An operation judges empty entries itself.
            if self.is_later or not _is_empty(entry):
                entries.append(entry)
        return entries

    def _member(self, name: str, value: Any) -> Any:
        reader = self.members.get(name, self.others)
        return value if reader is None else reader.read(value)

    def _of_text(self, value: str) -> Any:
        kinds, text = self.kinds, value.strip()
        if "string" in kinds:
            return value if self.is_verbatim else text
        if text == "null" and not self.is_later:
            return None
        if text[:1] in {"[", "{"}:
            decoded = _decoded(text)
            is_list = type(decoded) is list and "array" in kinds
            is_object = type(decoded) is dict and "object" in kinds
            if is_list or is_object:
                return decoded
        if "array" in kinds and text:
            return self._as_list(text)
        return self._as_number_or_boolean(text, value)

    def _as_number_or_boolean(self, text: str, value: str) -> Any:
        """Return what *text* stands for; *value*, as the client sent it, if it is neither."""
        if "integer" in self.kinds and _INTEGER.fullmatch(text):
            return int(text.partition(".")[0])
        if "number" in self.kinds and _NUMBER.fullmatch(text):
            return float(text)
        if "boolean" in self.kinds and text.lower() in {"true", "false"}:
            return text.lower() == "true"
        return value

    def _as_list(self, text: str) -> Any:
        """Return the entries that a text stands for; the text itself if a comma leaves that open."""
        if text.count(",") >= self.most_read:
            return text
        if self.has_words:
            words = [piece.strip() for piece in text.split(",") if piece.strip()]
            if all(_WORD.fullmatch(word) for word in words):
                return words
        # An operation may take a text with a comma as it is; only it knows.
        return text if self.is_later and "," in text else [text]

    def _of_number(self, value: float) -> Any:
        kinds = self.kinds
        if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_INTEGER:
            value = int(value)
        if "number" in kinds:
            # What an operation checks it quotes as the client wrote it: a long whole number stays one.
            return value if self.is_later else float(value)
        if "string" in kinds and self.enum is None:
            return _number_text(value)
        if "array" in kinds and self.items is not None:
            return [value]
        return value

    # ------------------------------------------------------------------ checking

    def checked(self, value: Any, name: str) -> Any:
        """Return a value that was read. Raise BadRequest for one that the schema does not take."""
        kind = type(value)
        size: float = 0
        if kind in {int, float}:
            size = value
        elif kind in {str, list}:
            size = len(value)
        is_known = not self.enum or value in self.enum
        if kind is not self.type or not is_known or not self.low <= size <= self.high:
            raise BadRequest(
                f"The argument {name} takes {self.accepted}, not {_quoted(value)}.",
                f"Call again with {name} as {self.accepted}.",
            )
        if kind is str and value.encode(errors="ignore").decode() != value:
            raise BadRequest(
                f"The argument {name} contains an unpaired surrogate, which is not valid text.",
                f"Call again with {name} as valid Unicode text.",
            )
        if kind is list and self.items is not None:
            return [self.items.checked(entry, f"{name}[{place}]") for place, entry in enumerate(value)]
        return value


def _refuse_unsupported(schema: JSONMapping) -> None:
    unsupported = set(schema) - _SUPPORTED_KEYWORDS
    if unsupported:
        message = f"unsupported keywords in an inputSchema: {sorted(unsupported)}"
        raise ValueError(message)


class _Arguments:
    """The check of a tool's arguments; see `compile_arguments`."""

    def __init__(self, schema: JSONMapping, later: Collection[str], keys: Mapping[str, str]) -> None:
        properties = schema["properties"]
        self._required = tuple(schema.get("required", ()))
        self._values = {}
        for name, value_schema in properties.items():
            self._values[name] = _Value(name, {"type": "object"} if name in later else value_schema)
        self._later = {name: _Value(name, properties[name], is_later=True) for name in later if name in properties}
        self._names = _names_of(properties, self._required, keys)

    def __call__(self, arguments: JSONObject) -> JSONObject:
        found: JSONObject = {}
        writings: dict[str, str] = {}
        for given, value in arguments.items():
            name = given if given in self._values else self._name_of(given, arguments)
            if name in writings:
                raise _given_twice(name, writings[name], given)
            writings[name] = given
            read = self._values[name].read(value)
            if name in self._later:
                read = self._later[name].read(read)
            if name in self._required or not _is_empty(read, name):
                found[name] = self._values[name].checked(read, name)
        for name in self._required:
            if name not in found:
                hint = f"Call again with {name}: {self._values[name].accepted}."
                raise BadRequest(f"The argument {name} is missing.", hint)
        return found

    def _name_of(self, given: str, arguments: JSONObject) -> str:
        """Return the argument that another name means. Raise BadRequest if there is none, or if it is there too."""
        name = self._names.get(_plain(given), "")
        if name and name not in arguments:
            return name
        shown = given[:MAX_SHOWN_CHARACTERS]
        close = difflib.get_close_matches(shown, self._values, n=1, cutoff=0.6)
        outer = self._outer(given)
        meant = ""
        if given in PICTURES:
            meant = f"Pictures are changed in the web app, at {LISTINGS}. "
        elif outer:
            meant = f"It is a member of {outer}. "
        elif close:
            meant = f"Did you mean {close[0]}? "
        known = ", ".join(self._values) or "none"
        raise BadRequest(f"There is no argument {shown!r}.", f"{meant}The arguments are: {known}.")

    def _outer(self, given: str) -> str:
        """Return the object that has a member *given*, or the object within it; "" if none has."""
        for name, value in self._later.items():
            if given in value.members:
                return name
            for member, inner in value.members.items():
                if given in inner.members and inner.items is None:
                    return f"{name}.{member}"
        return ""


def compile_arguments(
    schema: JSONMapping, *, later: Collection[str] = (), keys: Mapping[str, str] = MappingProxyType({})
) -> Check:
    """
    Return the check of a tool's arguments: each of them, the required ones, and no others.

    Args:
        schema: the tool's inputSchema, with all limits.
        later: objects among them that the tool's operation validates; only the types of their members are read here.
        keys: arguments that name documents, by their kind.

    Raises:
        ValueError: the schema uses a keyword that would be published but not enforced.
    """
    return _Arguments(schema, later, keys)


def _number_text(value: float) -> Any:
    """Return a number as text; unchanged if it is 1e+30, inf or nan, because the client wrote another text."""
    text = str(value)
    is_plain = "e" not in text and text.lstrip("-")[:1].isdigit()
    return text if is_plain else value


def _is_empty(value: Any, name: str = "") -> bool:
    """Return whether a value says nothing; an empty object is for its operation to judge."""
    if type(value) is str:
        return name not in _VERBATIM and not value.strip()
    return value is None or value == []


def _names_of(properties: Iterable[str], required: tuple[str, ...], keys: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments by the other names that clients use for them, as `_plain` writes these."""
    names: dict[str, str] = {}
    for name in properties:
        other_names = list(_OTHER_NAMES.get(name, ()))
        if required == (name,) and name in _KEYS:
            kind = keys.get(name, "")
            other_names += [*_OF_THE_ONLY_KEY, kind]
            other_names += [f"{kind}{suffix}" for suffix in _OF_THE_ONLY_KEY]
        for other in other_names:
            names.setdefault(_plain(other), name)
    # The name itself in another writing, such as page_size, comes before any other name.
    return names | {_plain(name): name for name in properties}


def _plain(name: str) -> str:
    return name[:MAX_SHOWN_CHARACTERS].replace("_", "").replace("-", "").lower()


def _kinds_of(schema: JSONMapping) -> tuple[str, ...]:
    """Return the JSON types that a schema without alternatives takes."""
    kind = schema.get("type", "string")
    return tuple(kind) if isinstance(kind, list) else (kind,)


def _given_twice(name: str, *writings: str) -> BadRequest:
    """Return the error for an argument under two names: which of them counts would be a guess."""
    one, other = [repr(writing[:MAX_SHOWN_CHARACTERS]) for writing in writings]
    return BadRequest(f"The arguments {one} and {other} are the same one.", f"Call again with {name} once.")


def _decoded(text: str) -> Any:
    """Return the value of a JSON text; None for what the strict reader refuses."""
    try:
        return read_json(text.encode())
    except (JSONError, UnicodeEncodeError):
        return None


class _Beginning(reprlib.Repr):
    """Writes the beginning of a value, in time that does not grow with it."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxdict = self.maxlist = MAX_SHOWN_CHARACTERS // 2
        self.maxlong = self.maxstring = self.maxother = MAX_SHOWN_CHARACTERS


_BEGINNING: Final = _Beginning()


def _quoted(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        text = repr(value[: MAX_SHOWN_CHARACTERS + 1])
    else:
        text = _BEGINNING.repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 3]}…"


def _accepted(schema: JSONMapping, kind: str) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(_quoted(choice) for choice in schema["enum"])
    words, low, high = _TYPES[kind][0], schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f" from {low} to {high}"
    elif low is not None:
        words += f" of at least {low}"
    if "maxLength" in schema:
        words += f" of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    if "maxItems" in schema:
        words += f" of at most {schema['maxItems']} entries"
    return words


# ---------------------------------------------------------------- addresses in place of slugs

MAX_ADDRESS_CHARACTERS: Final = 2_000
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
        search_call = ""
        if host and kind == "company":
            search_call = self._call(("search",), f" with query {host!r}")
        return search_call or self._call(_LISTS[kind], " for valid ones") or "Give the slug alone."

    def _call(self, names: Iterable[str], rest: str) -> str:
        """Return the sentence that names the first tool of *names* that this server has; "" without one."""
        for name in names:
            if name in self._tools:
                return f"Call {name}{rest}."
        return ""


def _place(parts: SplitResult) -> tuple[str, int | None]:
    """Return host and port, None for that of the scheme. Raise ValueError for a port that is no number."""
    port = parts.port
    return (parts.hostname or "").removeprefix("www."), None if port == _DEFAULT_PORTS.get(parts.scheme) else port


def _segments(path: str) -> list[str]:
    return [unquote(each) for each in path.split("/") if each]
