"""Names of countries, and months of listings, in the language of the page."""

import gettext
import re
from datetime import date
from functools import lru_cache
from typing import Final

from muniment.kernel.json import JSONObject
from muniment.languages import writing
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language
from muniment.schema.kinds import country_names as english_names
from muniment.schema.kinds import without_accents

_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_MONTH: Final = re.compile(r"([A-Za-z]{3,9}) (\d{4})")


def country_names() -> JSONObject:
    """Return the names of all countries by code, sorted by name."""
    code = language()
    return english_names() if code == SOURCE else _names(code)


@lru_cache(maxsize=16)
def _names(code: str) -> JSONObject:
    import pycountry  # when a country is first shown: the package takes 50 ms to load

    code, _, region = code.partition("-")
    wanted = [f"{code}_{region.upper()}", code] if region else [code]
    found = gettext.translation("iso3166-1", pycountry.LOCALES_DIR, languages=wanted, fallback=True)
    names = {}
    for each in pycountry.countries:
        usual = getattr(each, "common_name", each.name)
        spoken = found.gettext(usual)
        if spoken == usual != each.name and found.gettext(each.name) != each.name:
            formal = found.gettext(each.name)  # the catalogue has only the formal name
            spoken = formal.partition(",")[0] if each.name.startswith(usual) else formal
        names[each.alpha_2] = spoken
    return dict(sorted(names.items(), key=lambda each: without_accents(each[1])))


def month_or_text(value: object) -> str:
    """Return the month of a listing, which the wire has in English, as the language writes it; other text as it is."""
    text = str(value or "")
    if language() == SOURCE:
        return text
    match = _MONTH.fullmatch(text)
    if match is None or match[1].lower() not in _MONTHS:
        return text
    return writing.month(date(int(match[2]), 1 + _MONTHS.index(match[1].lower()), 1))
