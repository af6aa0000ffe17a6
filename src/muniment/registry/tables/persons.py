"""
Names of persons in cells: one or several in a cell, with positions, degrees and suffixes, in either order. Pure.

Whether a column holds persons is decided for the column, by its values: usual given names, words of names of
organizations, and the form of a name.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from muniment.registry.tables.catalogue import catalogue, key, words_in
from muniment.registry.tables.fields import ASK

LAST_FIRST: Final = "LAST_FIRST"
"""The order of names in a column whose cells are "Last, First"."""
_CLOSING: Final = ")]）"
_BRACKET: Final = re.compile(r"[(\[（)\]）]")
_SEPARATORS: Final = (";", "；", "\n", "|", "、", " / ", "，", ",", " + ")
_BETWEEN_NAMES: Final = re.compile(r"\s*&\s*|\s+(?:and|und|et|y|e|i|og|och|en)\s+", re.IGNORECASE)
"""What also parts full names in a cell, whatever the separator of the column is; "Ortega y Gasset" is one name."""
_BRACKETS: Final = re.compile(r"[(\[（][^()\[\]（）]*+[)\]）]")
"""What is in brackets, the inner ones of several: a cell of opening brackets alone is read once, not once for each."""
_IN_BRACKETS: Final = re.compile(r"(.+?)\s*[(\[（［]([^()\[\]（）［］]+)[)\]）］]")
_BEFORE_COLON: Final = re.compile(r"([^:：,]{2,40})[:：]\s*(.+)")
_DASHED: Final = re.compile(r"(.+?)\s+[-–—]\s+(.+)")
_NAME: Final = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_EAST_ASIAN_NAME: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af・\s]{2,12}")
_NO_NAME: Final = re.compile(r"[?!@#%=<>/\\{}*\d]|\bor\b|\boder\b|\bou\b|\(at\)", re.IGNORECASE)
_DEGREES: Final = words_in(
    """jr, sr, ii, iii, iv, phd, md, mba, ma, msc, bsc, ba, bs, ms, llm, llb, jd, esq, cfa, cfp, cpa, caia, frm, obe,
mbe, cbe, kbe, kc, qc, frs, mph, mpa, mfa, dds, dvm, rn, pe, pmp, aicp, aia, faia, cissp, lcsw, dba, edd,
psyd, dphil, dsc, scd, mphil, ret, drhabil, habil, mep, mp, mla, dipling, ing, mag, dr, prof, bcom, beng,
meng, cma, acca, fcca, facs, facp, rd, do, dpt, np, csc, phdc, mbachb"""
)
_BEFORE_NAMES: Final = words_in(
    """mr, mrs, ms, miss, mx, dr, prof, professor, sir, dame, lord, lady, rev, reverend, fr, hon, honorable,
honourable, senator, sen, rep, herr, frau, hr, fr, dring, dipling, mag, ing, m, mme, mlle, monsieur, madame,
sr, sra, srta, councillor, councilor, cllr, governor, gov, minister, ambassador, alderman, mayor, representative,
don, dona, dona, dott, dottssa, avv, sig, sigra, doc, mudr, judr, ir, drs, the"""
)
_PARTICLES: Final = words_in(
    """von, van, de, da, di, del, della, der, den, dem, des, du, le, la, las, los, dos, das, do, y, e, zu, zur, zum,
vom, ter, ten, te, af, av, al, el, bin, ibn, ben, abu, st, san, santa, o, mac, mc"""
)
_COMPANY_FORMS: Final = words_in("gmbh, inc, llc, ltd, limited, ev, ag, corp, srl, sarl, bv, office, team")
_NOBODY: Final = words_in(
    """vacant, vacancy, currently vacant, position vacant, vakant, unbesetzt, derzeit unbesetzt, n.n., nomen nominandum,
poste vacant, à pourvoir, vacante, vago, posto vacante, vacature, wakat, neobsazeno, 空席, 空缺, 공석"""
)
"""What lists write in place of the person whom a position has not."""
_MAX_WORDS: Final = 6
"""Words of the longest names of one person, such as "Maria del Carmen Ortega y Gasset"."""
_LEAST_SHAPED: Final = 0.6
_LEAST_GIVEN: Final = 0.25
"""The shares of a column of persons: of the form of a name, and with a usual given name, of which a list knows few."""
_LEAST_ORGANIZATIONS: Final = 0.3
_NEARLY_ALL: Final = 0.9
_FEW: Final = 10
"""Values of a column that is too short to name both."""


class PersonInCell(NamedTuple):
    """A person in a cell, with the position that the cell or the heading says, and the slug that its row gives."""

    name: str
    title: str
    slug: str = ""


# ---------------------------------------------------------------------- columns


def are_persons(values: Sequence[str]) -> bool:
    """Return whether most values of a column are shaped like names of persons, and many begin with a given name."""
    names = [value for value in values if value.strip()]
    if not names:
        return False
    shaped = sum(map(_is_shaped_like_a_person, names)) / len(names)
    given = sum(map(_begins_with_given_name, names)) / len(names)
    return shaped >= _LEAST_SHAPED and given >= _LEAST_GIVEN


def are_like_persons(values: Sequence[str]) -> bool:
    """Return whether nearly all of many values have the form of names of persons, whatever the given names are."""
    names = [value for value in values if value.strip()]
    shaped = sum(map(_is_shaped_like_a_person, names))
    return len(names) >= _FEW and shaped >= _NEARLY_ALL * len(names)


def are_organizations(values: Sequence[str]) -> bool:
    """Return whether many values of a column have words that names of organizations have."""
    names = [value for value in values if value.strip()]
    return bool(names) and sum(map(_has_organization_word, names)) / len(names) >= _LEAST_ORGANIZATIONS


def are_both(values: Sequence[str]) -> bool:
    """Return whether a column names persons and organizations: at least a tenth of it each."""
    names = [value for value in values if value.strip()]
    if len(names) < _FEW:
        return False
    persons = [name for name in names if _is_shaped_like_a_person(name) and _begins_with_given_name(name)]
    organizations = [name for name in names if _has_organization_word(name)]
    return 10 * min(len(persons), len(organizations)) >= len(names)


def order_of_names(values: Iterable[str]) -> str:
    """Return LAST_FIRST if most names of a column are "Last, First"; "" otherwise."""
    names = [value for value in values if value.strip()]
    last_first = sum(map(_is_last_first, names))
    return LAST_FIRST if last_first and 2 * last_first >= len(names) else ""


def _words_of(text: str) -> list[str]:
    """Return the words of a name, without what is in brackets, titles before it and degrees after it."""
    plain = _BRACKETS.sub(" ", text)
    words = plain.replace(",", " , ").split()
    while words and key(words[0]) in _BEFORE_NAMES:
        words.pop(0)
    while words and (words[-1] == "," or key(words[-1]) in _DEGREES):
        words.pop()
    return words


def _is_shaped_like_a_person(text: str) -> bool:
    words = _words_of(text)
    commas = words.count(",")
    names = [word for word in words if word != ","]
    if not 2 <= len(names) <= _MAX_WORDS or commas > 1 or _NO_NAME.search(text):
        return False
    return all(map(_is_word_of_name, names)) and not _has_organization_word(text)


def _is_word_of_name(word: str) -> bool:
    bare = word.strip(".'’\"“”-")
    is_capital = bare[:1].isupper() or not bare[:1].islower()
    return bool(bare) and (is_capital or key(word) in _PARTICLES) and any(map(str.isalpha, bare))


def _begins_with_given_name(text: str) -> bool:
    words = _words_of(text)
    if "," in words:
        words = words[words.index(",") + 1 :]
    if not words:
        return False
    first = words[0]
    first_of_two = first.split("-")[0]  # "Anne-Marie"
    return not catalogue().given_names.isdisjoint({key(first), key(first_of_two)})


def _has_organization_word(text: str) -> bool:
    words = catalogue().organizations
    # Languages that write no spaces have the word within the name: 株式会社.
    composed = unicodedata.normalize("NFC", text)
    is_within = not text.isascii() and any(word in composed for word in _words_of_east_asia())
    if is_within and _EAST_ASIAN_NAME.search(composed):
        return True
    return any(key(word) in words for word in re.split(r"[\s,/()]+", text))


@functools.cache
def _words_of_east_asia() -> frozenset[str]:
    """Return the words in names of organizations that are written without spaces around them."""
    # Words of the catalogue are decomposed, and a syllable of Korean is one character in the text.
    composed = [unicodedata.normalize("NFC", word) for word in catalogue().organizations if not word.isascii()]
    return frozenset(word for word in composed if len(word) > 1)


# ---------------------------------------------------------------------- cells


def separator_of_people(values: Sequence[str]) -> str:
    """Return the separator of several people in a cell; ``?`` where a comma may also part last and first name."""
    for separator in _SEPARATORS:
        cells = [value for value in values if separator in value]
        if not cells:
            continue
        are_full_names = [_has_full_names(cell, separator) for cell in cells]
        if separator != "," or all(are_full_names):
            return separator
        if any(map(_ends_with_title_or_degree, cells)):
            return ""  # "Jane Doe, Chair" and "Jane Doe, PhD"
        has_several_commas = any(cell.count(",") > 1 for cell in cells)
        if has_several_commas or any(are_full_names):
            return ASK
    return ""


def _has_full_names(cell: str, separator: str) -> bool:
    """Return whether every part of a cell has two words, as names of people have."""
    return all(len(part.split()) > 1 for part in parts_of(cell, separator))


def _ends_with_title_or_degree(cell: str) -> bool:
    parts = parts_of(cell, ",")
    return len(parts) > 1 and all(is_title(part) or _is_degree(part) for part in parts[1:])


def split(text: str, separator: str) -> list[str]:
    """Return the values in a cell; line breaks part them too."""
    if not separator:
        return [" ".join(text.split())] if text.strip() else []
    values: list[str] = []
    for line in text.split("\n"):
        values += parts_of(line, separator)
    return values


def split_names(text: str, separator: str) -> list[str]:
    """Return the names in a cell: parted by the separator of the column, and by "&" or "and" between full names."""
    names: list[str] = []
    for name in split(text, separator):
        names_between = [part.strip() for part in _BETWEEN_NAMES.split(name)]
        if len(names_between) > 1 and all(map(_is_full_name, names_between)):
            names += names_between
        else:
            names.append(name)
    return names


def _is_full_name(text: str) -> bool:
    words = _BRACKETS.sub(" ", text).split()
    return len(words) > 1 and all(map(_is_word_of_name, words))


def parts_of(text: str, separator: str) -> list[str]:
    """Return the parts between separators that are not in brackets."""
    pieces_of_parts: list[list[str]] = [[]]
    is_inside = False
    # From the end, because a separator is in brackets if the next bracket after it is a closing one.
    for piece in reversed(text.split(separator)):
        pieces_of_parts[-1].append(piece)
        bracket = _BRACKET.search(piece)
        if bracket:
            is_inside = bracket[0] in _CLOSING
        if not is_inside:
            pieces_of_parts.append([])
    parts = [separator.join(reversed(pieces)) for pieces in reversed(pieces_of_parts)]
    return [" ".join(part.split()) for part in parts if part.strip()]


def person_in(text: str, title: str, order: str = "") -> PersonInCell | None:
    """
    Return the person that a text names, with the first name first; None if it is no name of one person.

    Args:
        title: the position if the text says none.
        order: the order of names in the column.
    """
    name_and_title = _name_and_title(text, title)
    if name_and_title is None:
        return None
    name, title = name_and_title
    if not is_one_person(name) or (order != LAST_FIRST and _are_several(name)):
        return None
    return PersonInCell(full_name(name, order), title)


def _name_and_title(text: str, title: str) -> tuple[str, str] | None:
    """Return the name in a text and the position, which is that of the heading if the text has none; None if unsure."""
    in_brackets = _IN_BRACKETS.fullmatch(text)
    if in_brackets:
        return _name_before_brackets(in_brackets[1], in_brackets[2], title)
    before_colon = _BEFORE_COLON.fullmatch(text)
    if before_colon:
        return before_colon[2], before_colon[1].strip()
    dashed = _DASHED.fullmatch(text)
    if dashed:
        first, second = dashed[1], dashed[2]
        if is_title(first) == is_title(second):
            return None
        return (first, second) if is_title(second) else (second, first)
    parts = [part.strip() for part in re.split(r"[,，]", text)]
    if len(parts) == 2 and is_title(parts[1]):
        return parts[0], parts[1]
    return text, title


def _name_before_brackets(name: str, text: str, title_of_heading: str) -> tuple[str, str] | None:
    """Return the name before brackets and the position that they, or the words before them, say; None if unsure."""
    if "?" in text:  # "Ida Alder (suggested by Joe?)"
        return None
    before, _, after = name.partition(",")
    if is_title(after.strip()):  # "Ida Alder, Chair (since 2001)"
        return before, f"{after.strip()} ({text.strip()})"
    return name, _title_in_brackets(text.strip(), title_of_heading)


def _are_several(text: str) -> bool:
    """Return whether commas part full names: "Ida Alder, Tom Birch"; positions and degrees after one are no names."""
    parts = [part.strip() for part in re.split(r"[,，]", _BRACKETS.sub(" ", text))]
    names = [part for part in parts if _is_full_name(part) and not is_title(part) and not _is_degree(part)]
    return len(names) > 1


def _title_in_brackets(text: str, title_of_heading: str) -> str:
    """Return the position in brackets; a place or time there is beside that of the heading: "CEO (since 2001)"."""
    is_place_or_time = bool(re.search(r"[\d,]", text)) and not is_title(text)
    return f"{title_of_heading} ({text})" if title_of_heading and is_place_or_time else text


def is_one_person(text: str) -> bool:
    """Return whether a text can be the name of one person, and is no address, question, choice, role or company."""
    count_of_words = len(text.split())
    is_in_brackets = text.startswith(("(", "[", "（"))  # a remark without a name
    if is_in_brackets or not _NAME.search(text) or _NO_NAME.search(text) or count_of_words > _MAX_WORDS + 2:
        return False
    if key(text) in _NOBODY or key(text) in catalogue().organizations:
        return False
    if _joins_names(text) or is_title(text):
        return False
    return count_of_words == 1 or not _has_company_form(text)


def _joins_names(text: str) -> bool:
    """Return whether a text names several people; "Ortega y Gasset" after a first name is one last name."""
    between = _BETWEEN_NAMES.split(text)
    return "&" in text or (len(between) > 1 and " " not in between[0].strip())


def _has_company_form(text: str) -> bool:
    return key(text.rsplit(maxsplit=1)[-1]) in _COMPANY_FORMS


def is_title(text: str) -> bool:
    """Return whether a text is a position, or begins with one: "Chair", "Director of Research"."""
    titles = catalogue().titles
    words = text.split()
    return key(text) in titles or any(key(" ".join(words[:n])) in titles for n in range(1, min(4, len(words))))


def full_name(text: str, order: str = "") -> str:
    """Return a name with the first name first if the column has "Last, First"; other names stay as they are."""
    if order != LAST_FIRST or not _is_last_first(text):
        return " ".join(text.split())
    last, first, *degrees = [part.strip() for part in text.replace("，", ",").split(",")]
    return " ".join(", ".join([f"{first} {last}", *degrees]).split())


def _is_last_first(text: str) -> bool:
    """Return whether a name has a comma between last and first name; degrees after a comma are no first names."""
    parts = [part.strip() for part in _BRACKETS.sub(" ", text).replace("，", ",").split(",")]
    if len(parts) < 2 or not all(parts):
        return False
    first, *further = parts[1:]
    is_first_name = not _is_degree(first) and not is_title(first) and len(first.split()) <= 4
    return is_first_name and all(map(_is_degree, further))


def _is_degree(text: str) -> bool:
    words = [word for word in re.split(r"[\s/]+", text.strip()) if word]
    return bool(key(text)) and all(key(word) in _DEGREES for word in words)
