"""
States and regions of addresses, and the countries that they prove.

The address of the contract has a state and a postal code, and no country. A country is derived only where these two
leave no other: the code or name of a state is in use in several countries (CA is also Cádiz and Cagliari), and only a
postal code that belongs to that very state rules the others out. The four countries are those whose postal codes tell
the state. Names and codes of states are those of ISO 3166-2, as pycountry has them.

Sources: USPS Publication 65 (three digits of a ZIP Code by state), Canada Post (the first letter), Australia Post and
Deutsche Post (the first digits).
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONMapping
from muniment.schema.kinds import MAX_COUNTRY_CHARACTERS, squeezed
from muniment.schema.other_names import SAME

_US_ZIPS: Final = (
    "AK 995-999 AL 350-369 AR 716-729 AS 967 AZ 850-865 CA 900-961 CO 800-816 CT 060-069 DC 200-205 DC 569 DE 197-199"
    " FL 320-349 GA 300-319 GA 398-399 GU 969 HI 967-968 IA 500-528 ID 832-838 IL 600-629 IN 460-479 KS 660-679"
    " KY 400-427 LA 700-714 MA 010-027 MA 055 MD 206-219 ME 039-049 MI 480-499 MN 550-567 MO 630-658 MP 969 MS 386-397"
    " MT 590-599 NC 270-289 ND 580-588 NE 680-693 NH 030-038 NJ 070-089 NM 870-884 NV 889-898 NY 005 NY 063 NY 100-149"
    " OH 430-459 OK 730-749 OR 970-979 PA 150-196 PR 006-009 RI 028-029 SC 290-299 SD 570-577 TN 370-385 TX 733"
    " TX 750-799 TX 885 UT 840-847 VA 201 VA 220-246 VI 008 VT 050-059 WA 980-994 WI 530-549 WV 247-268 WY 820-831"
)
_CANADIAN: Final = (
    "AB T BC V MB R NB E NL A NS B NT X NU X ON K ON L ON M ON N ON P PE C QC G QC H QC J SK S YT Y"  # first letters
)
_AUSTRALIAN: Final = (
    "ACT 02 ACT 26 ACT 29 NSW 1 NSW 2 NT 08 NT 09 QLD 4 QLD 9 SA 5 TAS 7 VIC 3 VIC 8 WA 6"  # first digits
)
_GERMAN: Final = (
    "BB 0 BB 1 BE 1 BW 6 BW 7 BW 8 BW 9 BY 6 BY 8 BY 9 HB 2 HE 3 HE 6 HH 2 MV 1 MV 2 NI 2 NI 3 NI 4 NW 3 NW 4 NW 5"
    " RP 5 RP 6 RP 7 SH 2 SL 6 SN 0 ST 0 ST 1 ST 2 ST 3 SH 1 TH 0 TH 3 TH 9"  # first digits
)
_ELSEWHERE_TOO: Final = {
    # The province of Trento is TN too, with these postal codes.
    "US-TN": re.compile(r"380\d\d|38100|3812[123]"),
    # The region of Tasman, New Zealand, is TAS too, with these.
    "AU-TAS": re.compile(r"70(0[5-9]|[1-9]\d)|71\d\d"),
}
"""Postal codes of a state by its code that another country has for a state of the same code."""


_CODE: Final = re.compile(r"[A-Z0-9]{1,3}|[A-Z]{2}-[A-Z0-9]{1,3}")


class State(NamedTuple):
    """A state or region by ISO 3166-2, such as US-CA, California."""

    code: str
    name: str

    @property
    def country(self) -> str:
        return self.code[:2]


def _ranges() -> Mapping[str, frozenset[str]]:
    """Return the first three digits of the ZIP Codes of each state of the US."""
    prefixes: dict[str, set[str]] = {}
    words = _US_ZIPS.split()
    for state, digits in zip(words[::2], words[1::2], strict=True):
        low, _, high = digits.partition("-")
        numbers = range(int(low), int(high or low) + 1)
        prefixes.setdefault(state, set()).update(f"{number:03}" for number in numbers)
    return {state: frozenset(each) for state, each in prefixes.items()}


def _beginnings(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the beginnings of postal codes of each state."""
    beginnings: dict[str, tuple[str, ...]] = {}
    words = text.split()
    for state, beginning in zip(words[::2], words[1::2], strict=True):
        beginnings[state] = (*beginnings.get(state, ()), beginning)
    return beginnings


class Place(NamedTuple):
    """
    Where an address is.

    Args:
        country: the one that it names or proves; "" if none is known.
        derived: the one that it proves, "" otherwise.
        state: the name of its state or region, as far as it is known; otherwise what the address says.
        codes: those of the state, with and without the country's, such as US-CA and CA.
    """

    country: str
    derived: str
    state: str
    codes: tuple[str, ...]


class _PostalCodes(NamedTuple):
    """How a country writes postal codes, and whether one belongs to a state."""

    form: re.Pattern[str]
    belongs: Callable[[str, str], bool]


@functools.cache
def _countries() -> Mapping[str, _PostalCodes]:
    american, canadian = _ranges(), _beginnings(_CANADIAN)
    australian, german = _beginnings(_AUSTRALIAN), _beginnings(_GERMAN)
    return {
        "US": _PostalCodes(
            re.compile(r"\d{5}(-?\d{4})?"), lambda state, code: code[:3] in american.get(state, frozenset())
        ),
        "CA": _PostalCodes(
            re.compile(r"[A-Z]\d[A-Z] ?\d[A-Z]\d"), lambda state, code: code.startswith(canadian.get(state, ()))
        ),
        "AU": _PostalCodes(re.compile(r"\d{4}"), lambda state, code: code.startswith(australian.get(state, ()))),
        "DE": _PostalCodes(re.compile(r"\d{5}"), lambda state, code: code.startswith(german.get(state, ()))),
    }


def derived_country(address: JSONMapping) -> str:
    """Return the country that the state and the postal code of an address prove; "" if it names one, or if not."""
    text, postal_code = address.get("state"), address.get("zip")
    if address.get("country") or not text or not postal_code:
        return ""
    code = str(postal_code).strip().upper()
    proven = []
    for country, postal_codes in _countries().items():
        if not postal_codes.form.fullmatch(code):
            continue
        state = state_in(country, text)
        if state is None or not postal_codes.belongs(state.code[3:], code):
            continue
        shared = _ELSEWHERE_TOO.get(state.code)
        is_name = squeezed(text) == squeezed(state.name)
        if is_name or shared is None or not shared.fullmatch(code):
            proven.append(country)
    return proven[0] if len(proven) == 1 else ""


def places_of(addresses: Iterable[JSONMapping]) -> list[Place]:
    """Return where addresses are."""
    places = []
    for address in addresses:
        derived = derived_country(address)
        country = address.get("country") or derived
        text = (address.get("state") or "").strip()
        state = state_of(address, country) if text else None
        codes: tuple[str, ...] = (as_code(text),) if text else ()
        if state:
            codes = (state.code, state.code[3:])
        places.append(Place(country, derived, state.name if state else text, codes))
    return places


def state_of(address: JSONMapping, country: str) -> State | None:
    """
    Return the state of an address.

    Args:
        country: the one that the address names or proves; without any, a name that only one country has is enough.
    """
    text = address.get("state")
    if not text:
        return None
    if country:
        return state_in(country, text)
    named = _named().get(squeezed(text), ())
    return named[0] if len(named) == 1 else None


def state_in(country: str, text: str) -> State | None:
    """Return the state of a country that a text means by its code, with or without the country's, or by its name."""
    wanted = text.strip().upper()
    of_code = _by_code().get(wanted if wanted.startswith(f"{country}-") else f"{country}-{wanted}")
    if of_code is not None:
        return of_code
    return next((state for state in _named().get(squeezed(text), ()) if state.country == country), None)


def state_key(text: str) -> str:
    """Return a state that a filter asks for: a code in capitals, any other text as it is."""
    if not text.strip() or len(text) > MAX_COUNTRY_CHARACTERS:
        raise ValueError
    return as_code(text)


def as_code(text: str) -> str:
    """Return a text that looks like the code of a state in capitals, any other as it is."""
    wanted = text.strip().upper()
    return wanted if _CODE.fullmatch(wanted) else text


class _Subdivision(msgspec.Struct):
    code: str
    name: str


class _Database(msgspec.Struct):
    rows: list[_Subdivision] = msgspec.field(name="3166-2")


@functools.cache
def _states() -> tuple[State, ...]:
    # The file is read without pycountry's own objects, which take 110 ms and 5 MB for the 5,000 subdivisions.
    import pycountry  # when a state is first read: the package takes 50 ms to load

    content = Path(pycountry.DATABASE_DIR, "iso3166-2.json").read_bytes()
    return tuple(State(row.code, row.name) for row in msgspec.json.decode(content, type=_Database).rows)


@functools.cache
def _by_code() -> Mapping[str, State]:
    return {state.code: state for state in _states()}


@functools.cache
def _named() -> Mapping[str, tuple[State, ...]]:
    """Return the states by their names without case, accents and signs; one name may be of several."""
    other_names = {names[0]: names for names in SAME["state"]}
    named: dict[str, tuple[State, ...]] = {}
    for state in _states():
        for name in {squeezed(each) for each in other_names.get(state.name, (state.name,))}:
            named[name] = (*named.get(name, ()), state)
    return named
