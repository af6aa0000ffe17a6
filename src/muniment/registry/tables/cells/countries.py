"""Read countries: by code, or by name in the languages that pycountry has translations for."""

import functools
import gettext
from pathlib import Path
from typing import Final

from muniment.registry.tables.words.catalogue import key
from muniment.schema.kinds import country_code, country_names

_PLATES: Final = {"a": "AT", "b": "BE", "d": "DE", "f": "FR", "i": "IT"}
"""Codes of number plates, which are in tables of addresses."""
_MAX_CHARACTERS: Final = 100
"""Longer texts are no names of countries, and are not kept in memory."""


def code_of_country(text: str) -> str:
    """Return the two letters of a country by its code or name in one of several languages; "" if there is none."""
    bare = text.strip()
    return _code_of(bare) if len(bare) <= _MAX_CHARACTERS else ""


@functools.lru_cache(maxsize=4_096)
def _code_of(bare: str) -> str:
    if len(bare) == 2 and bare.isascii() and bare.upper() in country_names():
        return bare.upper()
    if plate := _PLATES.get(key(bare)):
        return plate
    try:
        found = country_code(bare)
    except ValueError:
        return ""
    return found if found in country_names() else _foreign_names().get(key(bare), "")


@functools.cache
def _foreign_names() -> dict[str, str]:
    """Return countries by their three letters, official names, and names in all languages."""
    import pycountry

    places = Path(pycountry.LOCALES_DIR)
    languages = sorted(each.name for each in places.iterdir() if (each / "LC_MESSAGES" / "iso3166-1.mo").is_file())
    texts = [gettext.translation("iso3166-1", places, languages=[each]) for each in languages]
    found: dict[str, str] = {}
    doubtful: set[str] = set()
    for country in pycountry.countries:
        own = {country.name, getattr(country, "official_name", ""), getattr(country, "common_name", "")} - {""}
        names = {country.alpha_3, *own} | {each.gettext(name) for each in texts for name in own}
        for name in {key(each) for each in names}:
            if found.setdefault(name, country.alpha_2) != country.alpha_2:
                doubtful.add(name)
    return {name: code for name, code in found.items() if name and name not in doubtful}
