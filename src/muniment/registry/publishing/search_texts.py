"""What public documents are found by, besides their names and texts: domains, handles, identifiers, places, people."""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from muniment.kernel.json import JSONMapping
from muniment.registry.names import former
from muniment.schema.record import Record
from muniment.schema.standard_kinds import Country, country_names
from muniment.store.search.keys import SITE, SYMBOL, handle_of, host_of, marked
from muniment.store.search.text_index import SearchTexts

MAX_PEOPLE: Final = 300
"""Names and titles of one company, the first ones; each person is found under people."""
MAX_IDENTIFIERS: Final = 50
MAX_ON_CHAIN: Final = 200
_IDENTIFIER: Final = re.compile(r"(?=[^\s]*\d)[\w.:/#-]{5,100}")
"""One word with a digit: an LEI, a registration number, an on-chain address."""
_ON_CHAIN: Final = re.compile(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{40}(?![0-9A-Za-z])")
"""An on-chain address, also in a link or a table of a text."""
_PROFILES: Final = ("twitter", "facebook", "instagram", "tiktok", "linkedin", "youtube")
_BARE: Final = Record("", ())
_PLACE: Final = ("city", "state", "zip", "country")


def label_of(row: JSONMapping) -> str:
    """Return a company's symbol, slug, domains and handles as words."""
    return " ".join(dict.fromkeys(filter(None, (row["symbol"], row["slug"], *_hosts(row), *_handles(row)))))


def of_company(row: JSONMapping, people: Iterable[tuple[str, str, str | None]], record: Record = _BARE) -> SearchTexts:
    """
    Return a company's search texts.

    Args:
        people: of each position, the person's slug, name and title. Only listed people are found by their names.
    """
    extra = {name: value for name, value in (row["extra"] or {}).items() if name not in record.retired(row)}
    identifiers = [*islice(_identifiers(extra), MAX_IDENTIFIERS), *islice(_on_chain(row), MAX_ON_CHAIN)]
    known = dict.fromkeys(text for slug, name, title in people for text in (name if slug else "", title) if text)
    return SearchTexts(
        keys=(*marked(SYMBOL, [row["symbol"]]), *marked(SITE, [*_hosts(row), *_handles(row), *identifiers])),
        themes="\n".join(
            filter(None, (*(row["themes"] or ()), row["type"], row["industry"], *_declared(extra, record)))
        ),
        place="\n".join(dict.fromkeys(_places(row["address"]))),
        people="\n".join(list(known)[:MAX_PEOPLE]),
        former=tuple(each["name"] for each in former.shown(row["former_names"]) or ()),
    )


def of_person(extra: JSONMapping, record: Record) -> SearchTexts:
    """Return a person's search texts: the declared fields; identifiers are also found without their spaces."""
    found = list(_declared(extra, record))
    return SearchTexts(keys=tuple(marked(SITE, filter(_IDENTIFIER.fullmatch, found))), themes="\n".join(found))


def _declared(extra: JSONMapping, record: Record) -> Iterator[str]:
    """Yield the texts of the declared fields that are shown, and the names of countries."""
    for name, field in record.by_name.items() if extra else ():
        value = extra.get(name)
        if not (field.is_additional and field.shown and isinstance(value, str)):
            continue
        yield value
        if isinstance(field.kind, Country):
            yield str(country_names().get(value, ""))


def _hosts(row: JSONMapping) -> list[str]:
    return [host for host in (host_of(row["website"]), host_of(row["dao_website"])) if host]


def _handles(row: JSONMapping) -> list[str]:
    socials = row["socials"] or {}
    return [handle_of(socials[name]) for name in _PROFILES if socials.get(name)]


def _identifiers(value: Any) -> Iterator[str]:
    return (text for text in _texts(value) if _IDENTIFIER.fullmatch(text))


def _on_chain(row: JSONMapping) -> Iterator[str]:
    """Yield the on-chain addresses in the text and the additional members of a company, each once."""
    texts = (row["body"] or "", *_texts(row["extra"]))
    return iter(dict.fromkeys(address.lower() for text in texts for address in _ON_CHAIN.findall(text)))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _places(addresses: list[JSONMapping] | None) -> Iterator[str]:
    for address in addresses or ():
        for name in _PLACE:
            text = address.get(name)
            if text:
                yield str(text)
                if name == "country":
                    yield str(country_names().get(text, ""))
