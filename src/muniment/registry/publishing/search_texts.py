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
_WEBSITES: Final = ("website", "dao_website")
_PROFILES: Final = ("twitter", "facebook", "instagram", "tiktok", "linkedin", "youtube")
_BARE: Final = Record("", ())
_PLACE: Final = ("city", "state", "zip", "country")


def sites_of(row: JSONMapping) -> list[str]:
    """Return a company's domains and handles."""
    hosts = [host_of(row[name]) for name in _WEBSITES if row[name]]
    socials = row["socials"] or {}
    return [*filter(None, hosts), *(handle_of(socials[name]) for name in _PROFILES if socials.get(name))]


def label_of(row: JSONMapping, sites: Iterable[str]) -> str:
    """Return a company's symbol, slug, domains and handles as words."""
    return " ".join(dict.fromkeys(filter(None, (row["symbol"], row["slug"], *sites))))


def of_company(
    row: JSONMapping,
    sites: Iterable[str],
    people: Iterable[tuple[str, str, str | None]],
    record: Record = _BARE,
) -> SearchTexts:
    """
    Return a company's search texts.

    Args:
        sites: its domains and handles.
        people: of each position, the person's slug, name and title. Only listed people are found by their names.
    """
    retired = record.retired(row)
    extra = {name: value for name, value in (row["extra"] or {}).items() if name not in retired}
    texts = _texts(extra)
    identifiers = [
        *islice(filter(_IDENTIFIER.fullmatch, texts), MAX_IDENTIFIERS),
        *islice(_on_chain([row["body"] or "", *texts]), MAX_ON_CHAIN),
    ]
    known = dict.fromkeys(text for slug, name, title in people for text in (name if slug else "", title) if text)
    return SearchTexts(
        keys=(*marked(SYMBOL, [row["symbol"]]), *marked(SITE, [*sites, *identifiers])),
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
    for field in record.declared:
        value = extra.get(field.name)
        if isinstance(value, str):
            yield value
            if isinstance(field.kind, Country):
                yield str(country_names().get(value, ""))


def _on_chain(texts: Iterable[str]) -> Iterable[str]:
    """Return the on-chain addresses in *texts*, each once."""
    found = (address for text in texts if "0x" in text for address in _ON_CHAIN.findall(text))
    return dict.fromkeys(address.lower() for address in found)


def _texts(value: Any) -> list[str]:
    """Return the texts in *value* (JSON)."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, dict | list):
        return []
    return [text for each in (value.values() if isinstance(value, dict) else value) for text in _texts(each)]


def _places(addresses: list[JSONMapping] | None) -> Iterator[str]:
    for address in addresses or ():
        for name in _PLACE:
            text = address.get(name)
            if text:
                yield str(text)
                if name == "country":
                    yield str(country_names().get(text, ""))
