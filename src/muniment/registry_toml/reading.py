"""Read and check ``registry.toml``: every fault is named, with the nearest known name or value."""

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from muniment import setting_values
from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim
from muniment.kernel.texts import is_web_address
from muniment.registry_toml import contrast
from muniment.registry_toml.document import CHARTS, SECTIONS, Query, RegistrySettings

MAX_BYTES: Final = 512_000
MAX_PICTURE_BYTES: Final = 2 << 20
MAX_VALUES: Final = 200
MAX_VALUE: Final = 60
MAX_RATIO: Final = 10_000
MAX_FIELDS: Final = 100
MAX_LANGUAGES: Final = 12
MAX_QUERIES: Final = 100
MAX_STATEMENT: Final = 8_000
"""Characters of a statement: its page and its feed carry it in an address, which may have 16 KB."""
_LONG: Final = 100_000
_LENGTHS: Final = {
    "registry.name": 80,
    "registry.contact": 200,
    "registry.licence": 100,
    "registry.licence_url": 500,
    "words.company": 40,
    "words.companies": 40,
    "brand.logo": 200,
    "brand.mark": 200,
    "brand.font_text": 200,
    "brand.font_headings": 200,
    "backups.keep": 200,
    "texts.heading": 200,
    "texts.lead": 500,
    "texts.tagline": 200,
    "texts.footer": 500,
    "legal.imprint": _LONG,
    "legal.privacy": _LONG,
    "legal.terms": _LONG,
}
CONSOLE_QUERIES: Final = "console_queries"
_QUERY_LENGTHS: Final = {"slug": 60, "title": 100, "text": 500, "sql": MAX_STATEMENT}
_QUERY_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
PICTURE: Final = re.compile(r"/pictures/[0-9a-f]{32}-512\.webp")
_FILE_NAME: Final = re.compile(r"[\w][\w. -]*\.(?:svg|png|jpe?g|webp)", re.IGNORECASE)
FONT: Final = re.compile(r"/fonts/[0-9a-f]{32}\.woff2")
_FONT_FILE: Final = re.compile(r"[\w][\w. -]*\.woff2", re.IGNORECASE)
_TEXT_FILE: Final = re.compile(r"[\w][\w. -]*\.md")
_WORD: Final = re.compile(r"\w[\w .-]*")
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,8})?")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\ufeff]")
_MODES: Final = {"accent": contrast.LIGHT, "accent_dark": contrast.DARK}


class InvalidSettings(ValueError):  # noqa: N818 - its faults are for the operator
    """The settings have faults; *faults* are sentences, by the place of each, such as ``brand.accent``."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        super().__init__(Joined(" ", faults.values()))
        self.faults = dict(faults)


def read_file(path: Path) -> RegistrySettings:
    """
    Read a file, with the texts of the Markdown files that it names.

    Raises:
        InvalidSettings: it is not TOML, too large, or has faults.
        OSError: it cannot be read.
    """
    found = parse(_limited(path))
    texts = {
        name: _limited(path.parent / text)
        for name, text in msgspec.structs.asdict(found.legal).items()
        if _TEXT_FILE.fullmatch(text)
    }
    if not texts:
        return found
    return check({**msgspec.to_builtins(found), "legal": {**msgspec.to_builtins(found.legal), **texts}})


def _limited(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InvalidSettings(
            {"": Phrase("{file} is larger than {kilobytes} KB.", file=path.name, kilobytes=MAX_BYTES // 1000)}
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidSettings({"": Phrase("{file} is not UTF-8.", file=path.name)}) from None


def parse(text: str) -> RegistrySettings:
    """
    Read the text of a file.

    Raises:
        InvalidSettings: it is not TOML, or has faults.
    """
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSettings({"": Phrase("This is not TOML: {error}.", error=error)}) from None
    if CONSOLE_QUERIES in found:
        raise InvalidSettings({CONSOLE_QUERIES: _unknown(CONSOLE_QUERIES, f"[[{CONSOLE_QUERIES}]]", ("queries",))})
    return check(found)


def written(settings: RegistrySettings) -> str:
    """
    Return settings as the text of a file, which :func:`parse` reads as the same settings.

    The queries of the console are queries of the file then, so that another registry can have them.
    """
    lines = []
    tables = msgspec.to_builtins(settings)
    console_queries = tables.pop(CONSOLE_QUERIES, ())
    if console_queries:
        own = {query["slug"] for query in tables.get("queries", ())}
        tables["queries"] = [
            *tables.get("queries", ()),
            *[query for query in console_queries if query["slug"] not in own],
        ]
    for section, values in tables.items():
        if isinstance(values, dict):
            lines += ["", f"[{section}]", *_pairs(values)]
    for name in ("fields", "queries"):
        for declared in tables.get(name, ()):
            lines += ["", f"[[{name}]]", *_pairs(declared)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_toml(value)}" for name, value in values.items() if value is not None]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: Any) -> str:
    """Return a value in TOML, whose strings are those of JSON but for one character."""
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def check(values: Mapping[str, Any]) -> RegistrySettings:
    """
    Check settings as they were read.

    Raises:
        InvalidSettings: a name is unknown, or a value has another type or is not accepted; every one is named.
    """
    faults: dict[str, str] = {}
    known: dict[str, Any] = {}
    for name, value in values.items():
        if name == "fields":
            known[name] = _fields(value, faults)
        elif name in {"queries", CONSOLE_QUERIES}:
            known[name] = _queries(name, value, faults)
        elif name not in SECTIONS:
            faults[name] = _unknown(name, f"[{name}]", (*SECTIONS, "fields", "queries"))
        elif not isinstance(value, Mapping):
            faults[name] = Phrase("{name} must be a table: [{name}].", name=name)
        else:
            known[name] = _section(name, value, faults)
    words = known.get("words", {})
    if words.get("companies") and not words.get("company"):
        faults["words.company"] = "words.company is missing: words.companies is its plural."
    if faults:
        raise InvalidSettings(faults)
    return msgspec.convert(known, RegistrySettings)


def known_part(values: Mapping[str, Any]) -> RegistrySettings:
    """Return what this version knows of settings that a later version has stored."""
    known: dict[str, Any] = {"fields": values.get("fields", ())}
    members = {field.name for field in msgspec.structs.fields(Query)}
    for name in ("queries", CONSOLE_QUERIES):
        known[name] = [{key: value for key, value in query.items() if key in members} for query in values.get(name, ())]
    for name, kind in SECTIONS.items():
        table = values.get(name)
        if isinstance(table, Mapping):
            known[name] = {
                field.name: table[field.name] for field in msgspec.structs.fields(kind) if field.name in table
            }
    return msgspec.convert(known, RegistrySettings)


def _unknown(name: str, shown: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = (
        Phrase("Did you mean {name}?", name=close[0]) if close else Phrase("Known are {known}.", known=", ".join(known))
    )
    return Phrase("{shown} is not known. {hint}", shown=shown, hint=hint)


def _section(section: str, values: Mapping[str, Any], faults: dict[str, str]) -> dict[str, Any]:
    kind: type[Struct] = SECTIONS[section]
    types = {each.name: each.default for each in msgspec.structs.fields(kind)}
    found = {}
    for name, value in values.items():
        place = f"{section}.{name}"
        if name not in types:
            faults[place] = _unknown(name, place, tuple(types))
            continue
        try:
            found[name] = _value(place, value, types[name])
        except ValueError as error:
            faults[place] = Joined("", (Verbatim(f"{place} "), error.args[0], "."))
    return found


def _value(place: str, value: Any, default: object) -> Any:
    if isinstance(default, bool):
        _require(isinstance(value, bool), "must be true or false")
        return value
    if isinstance(default, int):
        is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_RATIO
        _require(is_number, "must be a whole number up to 10,000")
        return value
    if place == "registry.languages":
        return _languages(value)
    if isinstance(default, tuple):
        return _values(value)
    return _text(place, value)


def _languages(value: Any) -> list[str]:
    """Read codes as of ``lang`` in HTML; whether there is a catalogue is known only where the registry runs."""
    found = [each.lower().replace("_", "-") for each in _values(value)]
    wrong = next((each for each in found if not _LANGUAGE.fullmatch(each)), "")
    _require(not wrong, Phrase("has {wrong!r}, which is no code of a language such as de or pt-br", wrong=wrong))
    _require(
        len(found) <= MAX_LANGUAGES,
        Phrase("has {count} languages; at most {limit} are accepted", count=len(found), limit=MAX_LANGUAGES),
    )
    return list(dict.fromkeys(found))


def _values(value: Any) -> list[str]:
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    _require(is_list, "must be a list of texts")
    found = list(dict.fromkeys(each.strip() for each in value if each.strip()))
    _require(
        len(found) <= MAX_VALUES,
        Phrase("has {count:,} values; at most {limit} are accepted", count=len(found), limit=MAX_VALUES),
    )
    is_short = all(len(each) <= MAX_VALUE and not _CONTROL.search(each) and "\n" not in each for each in found)
    _require(
        is_short, Phrase("has a value of more than {length} characters or with control characters", length=MAX_VALUE)
    )
    return found


def _text(place: str, value: Any) -> str:
    _require(isinstance(value, str), "must be text in quotation marks")
    section, _, name = place.partition(".")
    found: str = value.replace("\r\n", "\n").strip()
    limit = _LENGTHS.get(place, MAX_VALUE)
    _require(
        len(found) <= limit,
        Phrase("has {count:,} characters; at most {limit:,} are accepted", count=len(found), limit=limit),
    )
    _require(not _CONTROL.search(found), "has control characters")
    _require("\n" not in found or section == "legal", "must be a text of one line")
    if not found:
        return ""
    if name in _MODES:
        return _accent(found.lower(), name)
    _check_text(place, found)
    return found


def _check_text(place: str, text: str) -> None:
    """Check the form that the text at *place* must have; raise ValueError if it has another one."""
    if place in {"brand.logo", "brand.mark"}:
        is_picture = PICTURE.fullmatch(text) or _FILE_NAME.fullmatch(text)
        _require(bool(is_picture), "must be the name of an SVG, PNG, JPEG or WebP file beside registry.toml")
    elif place in {"brand.font_text", "brand.font_headings"}:
        is_font = FONT.fullmatch(text) or _FONT_FILE.fullmatch(text)
        _require(bool(is_font), "must be the name of a WOFF2 file beside registry.toml")
    elif place == "brand.typeface":
        _require(text == "system", "must be system, or left out for the bundled fonts")
    elif place == "backups.keep":
        setting_values.retention(text)
    elif place == "registry.licence_url":
        _require(is_web_address(text), "must be a URL that starts with https://")
    elif place == "registry.contact":
        is_reachable = is_web_address(text) or re.fullmatch(r"[^\s@<>]+@[^\s@<>]+", text)
        _require(bool(is_reachable), "must be an email address or a URL that starts with https://")
    elif place.partition(".")[0] == "words":
        _require(bool(_WORD.fullmatch(text)), "must be letters, digits, spaces, dots and hyphens")


def _require(is_true: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition
    if not is_true:
        raise ValueError(otherwise)


def _accent(color: str, name: str) -> str:
    _require(contrast.is_color(color), "must be a color such as #0b5d3b")
    mode = _MODES[name]
    ratio = contrast.least_contrast(color, mode)
    if ratio >= contrast.LEAST:
        return color
    paper = Phrase("light") if mode is contrast.LIGHT else Phrase("dark")
    shown, nearest = int(ratio * 100) / 100, contrast.nearest(color, mode)
    raise ValueError(
        Phrase(
            "has a contrast of {shown:.2f}:1 on {paper} paper; 4.5:1 is needed. Use {nearest}",
            shown=shown,
            paper=paper,
            nearest=nearest,
        )
    )


def _fields(value: Any, faults: dict[str, str]) -> list[dict[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        faults["fields"] = "fields must be tables: [[fields]]."
        return []
    if len(value) > MAX_FIELDS:
        faults["fields"] = Phrase(
            "There are {count:,} fields; at most {limit} are accepted.", count=len(value), limit=MAX_FIELDS
        )
        return []
    return [dict(each) for each in value]


def _queries(of: str, value: Any, faults: dict[str, str]) -> list[dict[str, Any]]:
    """Check saved queries; whether a statement can be answered is known only where the tables are."""
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        faults[of] = "queries must be tables: [[queries]]."
        return []
    if len(value) > MAX_QUERIES:
        faults[of] = Phrase(
            "There are {count:,} queries; at most {limit} are accepted.", count=len(value), limit=MAX_QUERIES
        )
        return []
    known: dict[str, dict[str, Any]] = {}
    for number, declared in enumerate(value, 1):
        slug = declared.get("slug")
        has_slug = isinstance(slug, str) and bool(slug)
        place = f"{of}.{slug if has_slug else number}"
        query = _query(declared, place, faults)
        if slug in known:
            faults[place] = Phrase("Two queries have the slug {slug}.", slug=slug)
        known[str(slug)] = query
    return list(known.values())


def _query(declared: Mapping[str, Any], place: str, faults: dict[str, str]) -> dict[str, Any]:
    """Return the valid members of a saved query; add the faults of the others, and those of missing ones."""
    query = {}
    for name, member in declared.items():
        try:
            query[name] = _query_member(name, member)
        except ValueError as error:
            faults[f"{place}.{name}"] = Joined("", (Verbatim(f"{place}.{name} "), error.args[0], "."))
    for name in ("slug", "title", "sql"):
        if not query.get(name) and f"{place}.{name}" not in faults:
            faults[f"{place}.{name}"] = Phrase("{place} is missing.", place=f"{place}.{name}")
    return query


def _query_member(name: str, value: Any) -> str:
    names = tuple(field.name for field in msgspec.structs.fields(Query))
    _require(name in names, Phrase("is not known. Known are {known}", known=", ".join(names)))
    _require(isinstance(value, str), "must be text in quotation marks")
    text: str = value.replace("\r\n", "\n").strip()
    limit = _QUERY_LENGTHS.get(name, MAX_VALUE)
    _require(
        len(text) <= limit,
        Phrase("has {count:,} characters; at most {limit:,} are accepted", count=len(text), limit=limit),
    )
    _require(not _CONTROL.search(text), "has control characters")
    _require(name == "sql" or "\n" not in text, "must be a text of one line")
    if name == "slug":
        _require(bool(_QUERY_SLUG.fullmatch(text)), "must be lower-case letters, digits and hyphens")
    if name == "chart":
        _require(text in CHARTS, Phrase("must be one of {known}", known=", ".join(CHARTS[1:])))
    return text
