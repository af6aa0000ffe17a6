"""Read countries: by code, or by name in the languages that pycountry has translations for."""

import functools
import gettext
from pathlib import Path
from typing import Final

from muniment.registry.tables.words.catalogue import key
from muniment.schema.standard_kinds import country_code, country_names

_ALIASES: Final = {
    "AT": "a oesterreich rakousko",
    "BA": "bosnia bosnien",
    "BE": "b",
    "BO": "bolivia bolivien",
    "CD": "drcongo drc congokinshasa",
    "CG": "congobrazzaville",
    "CH": "schweiz suisse svizzera svizra swiss confoederatiohelvetica",
    "CI": "ivorycoast elfenbeinkuste cotedivoire",
    "CN": "prc prchina mainlandchina volksrepublikchina 中国 中國 中国大陆 中国大陸 中华人民共和国",
    "CV": "capeverde kapverden",
    "CZ": "czechrepublic tschechien tschechischerepublik ceskarepublika republiquetcheque republicacheca czechy",
    "DE": "d brd bundesrepublikdeutschland federalrepublicofgermany rfa republiquefederaledallemagne 德国 德國",
    "ES": "espana reinodeespana",
    "FR": "f republiquefrancaise 法国 法國",
    "GB": "uk england scotland wales schottland grossbritannien greatbritain britain northernireland england&wales"
    " unitedkingdomofgreatbritainandnorthernireland angleterre inglaterra inghilterra engeland anglia"
    " grandebretagne granbretana granbretagna wielkabrytania storbritannien storbritannia velkabritanie"
    " grootbrittannie ru reinounido royaumeuni regnounito イギリス 英国 英國 영국 wales/england",
    "GR": "greece hellas",
    "HK": "hongkong hongkongsar 香港",
    "IE": "eire republicofireland irland",
    "IR": "iran",
    "IT": "i italia",
    "JP": "日本国",
    "KR": "southkorea korearepublicof republicofkorea sudkorea coreedusud coreadelsur coreadelsud coreiadosul"
    " sydkorea zuidkorea 韓国 韩国 南韓 한국 대한민국 남한",
    "KP": "northkorea nordkorea",
    "LA": "laos",
    "MD": "moldova moldawien",
    "MK": "macedonia northmacedonia mazedonien",
    "NL": "holland thenetherlands holanda hollande olanda nederland paysbas paisesbajos paesibassi nizozemi holandia",
    "PS": "palestine palastina",
    "RU": "russia russland russie rusia russiche rosja rusland ryssland rusko",
    "SY": "syria syrien",
    "SZ": "swaziland",
    "TR": "turkey turkei turquie turquia turchia turcja turkije tyrkiet turkiet turecko",
    "TW": "taiwan taiwanroc 台湾 台灣 대만",
    "TZ": "tanzania tansania",
    "AE": "uae vae eau emiratosarabes",
    "US": "usa u.s.a. u.s. us unitedstatesofamerica vereinigtestaatenvonamerika vereinigtestaaten etatsunis"
    " etatsunisdamerique eeuu estadosunidos statiuniti statiunitidamerica eua verenigdestaten stanyzjednoczone"
    " forentastaterna spojenestaty アメリカ 米国 美国 美國 미국 america",
    "VA": "vatican vatikan vatikanstadt holysee",
    "VE": "venezuela",
    "VN": "vietnam",
    "XK": "kosovo",
}
"""Usual names that the standard does not have, as keys."""
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
    if alias := _aliases().get(key(bare)):
        return alias
    try:
        found = country_code(bare)
    except ValueError:
        return ""
    return found if found in country_names() else _foreign_names().get(key(bare), "")


@functools.cache
def _aliases() -> dict[str, str]:
    return {key(name): code for code, names in _ALIASES.items() for name in names.split() if code in country_names()}


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
