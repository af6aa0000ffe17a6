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
from muniment.schema.standard_kinds import country_names as english_names
from muniment.schema.standard_kinds import without_accents

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
        names[each.alpha_2] = spoken if spoken != usual else found.gettext(each.name)
    english = english_names()
    plain = {key: name if name != _plain_name(key) else english[key] for key, name in names.items()}
    return dict(sorted(plain.items(), key=lambda each: without_accents(each[1])))


def _plain_name(code: str) -> str:
    import pycountry

    return str(pycountry.countries.get(alpha_2=code).name)


def month_or_text(value: object) -> str:
    """Return the month of a listing, which the wire has in English, as the language writes it; other text as it is."""
    text = str(value or "")
    if language() == SOURCE:
        return text
    match = _MONTH.fullmatch(text)
    if match is None or match[1].lower() not in _MONTHS:
        return text
    return writing.month(date(int(match[2]), 1 + _MONTHS.index(match[1].lower()), 1))
