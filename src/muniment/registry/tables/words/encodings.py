"""
Guess the encoding of a text: by its letters, and by the headings that it has in one encoding and not in another. Pure.

Every likely encoding is tried, and words that no language writes count against it. charset-normalizer is asked only
when no likely encoding fits: by the statistics of bytes alone, it reads 5 of 12 short tables of the tests right ("Nińo"
for "Niño"), and this module all of them.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from muniment.registry.tables.words.catalogue import catalogue, key

LIKELY: Final = (
    *("cp1252", "iso8859_15", "mac_roman", "cp850", "cp1250", "iso8859_2", "mac_latin2", "cp1257", "cp1254", "cp1251"),
    *("koi8_r", "iso8859_5", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1255", "cp1256"),
)
"""Common encodings before similar ones: of encodings that fit equally well, the first is used."""
_ALPHABETS: Final = (
    *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü", "àèéìíòóùú", "ãáâàçéêíóõôú", "éëïóöüáèê", "ąćęłńóśźż", "åäöé"),
    *("æøåé", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "çğıöşüâî", "čšžćđ", "āčēģīķļņšūž"),
    *("ąčęėįšųūž", "õäöüšž", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґђјљњћџ", "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ"),
)
_MARKS: Final = frozenset("€£«»„“”‚‘’–—…°§№¿¡ºª®©·•²³½")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SAMPLE_BYTES: Final = 40_000
_MAX_WORDS: Final = 600
_HEADINGS: Final = 200
_HEADING_BONUS: Final = 3.0
_COHERENCE: Final = 0.3
_RARE: Final = {"mac_roman": 0.4, "mac_latin2": 0.4, "cp850": 0.2}
"""The lead that encodings of former systems need over others; a table of today is rarely in one."""


def guess(lines: Sequence[bytes], head: bytes) -> str:
    """
    Return the likely encoding.

    Args:
        lines: those that are not ASCII.
        head: the beginning of the text, with its headings.
    """
    sample = b"\n".join(lines)[:_SAMPLE_BYTES]
    sample = sample[: sample.rfind(b"\n")] if len(sample) == _SAMPLE_BYTES and b"\n" in sample else sample
    scores: dict[str, float] = {}
    for name in LIKELY:
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        known = _known_headings(head.decode(name, "replace"))
        scores[name] = _plausibility(text) + _HEADING_BONUS * known - _RARE.get(name, 0.0)
    if not scores:
        return _proposed(sample)
    most = max(scores.values())
    return next(name for name in LIKELY if scores.get(name, -1e9) >= most - 1e-6)


def _proposed(sample: bytes) -> str:
    """Return what charset-normalizer makes of bytes that no likely encoding can read."""
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "cp1252"


def _known_headings(head: str) -> int:
    """Return how many cells of the first lines are known headings with other letters than those of ASCII."""
    words = catalogue().headings
    cells = [cell.strip().strip('"') for cell in re.split(r"[,;\t|\r\n]", head) if cell and not cell.isascii()]
    # The first cells, in their order: headings are above the rows, and a guess must be the same each time.
    known = [each for each in list(dict.fromkeys(cells))[:_HEADINGS] if "\ufffd" not in each]
    return sum(any(key(each) in kind for kind in words.values()) and _is_written(each) for each in known)


def _is_written(heading: str) -> bool:
    """
    Return whether people write a heading so: the letters of its words are of one language and in the usual case.

    A key lacks accents and signs, and would take "PrÈsentation" and "adh‚sion" for the heading that they were.
    """
    plain = unicodedata.normalize("NFKC", heading)
    if not all(each.isalnum() or each in " .-/_()'’&:#*（）・／€£$%°" for each in plain):
        return False
    words = [(word, [each for each in word if not each.isascii()]) for word in _WORD.findall(plain)]
    return all(_of_word(word, letters) > 0 for word, letters in words if letters)


def _plausibility(text: str) -> float:
    """Return how much the words with other letters look like those of a language, from minus one to one."""
    score, n = 0.0, 0
    for token in dict.fromkeys(text.split()) if len(text) < _SAMPLE_BYTES * 2 else ():
        foreign = [each for each in token if not each.isascii()]
        if not foreign:
            continue
        n += len(foreign)
        score += sum(_of_sign(each) for each in foreign if not each.isalpha() or each in _MARKS)
        for word in _WORD.findall(token.replace("º", " ").replace("ª", " ")):
            letters = [each for each in word if not each.isascii()]
            if letters:
                score += len(letters) * _of_word(word, letters)
        if n > _MAX_WORDS * 10:
            break
    return score / n + _COHERENCE * _share_of_one_language(text) if n else 0.0


def _share_of_one_language(text: str) -> float:
    """Return the largest share of the other letters that one language has."""
    letters = {each for each in text.casefold() if each.isalpha() and not each.isascii()} - {"º", "ª"}
    return max((len(letters & {*alphabet}) / len(letters) for alphabet in _ALPHABETS), default=0) if letters else 0


def _of_sign(sign: str) -> float:
    category = unicodedata.category(sign)
    if sign in _MARKS or sign in "\u00a0\u202f\u3000、。・（）「」ー〒～：；，！？％＆－／　":
        return 0.3
    if category in {"Cc", "Co", "Cn", "So", "Sk"} or "\u2500" <= sign <= "\u25ff":
        return -2.0
    return -0.6


def _of_word(word: str, letters: Sequence[str]) -> float:
    """Return how plausible a word is: of one script, usual case, and letters of one language."""
    scripts = {_script(each) for each in word if each.isalpha()}
    if scripts & {"CJK", "KANA", "HANGUL"}:
        return _of_east_asian(word, letters)
    if len(scripts) > 1 or scripts & {"OTHER"}:
        return -1.0
    rest = word[1:]
    if not (rest.islower() or word.isupper() or len(word) == 1) and not _is_camel(word):
        return -0.9
    lower = {each for each in word.casefold() if not each.isascii()} | ({"ß"} if "ß" in word else set())
    lower -= {"s"}
    share = max(sum(each in alphabet for each in lower) / len(lower) for alphabet in _ALPHABETS) if lower else 0.0
    return 1.0 if share == 1 else -0.4


def _is_camel(word: str) -> bool:
    """Return whether a capital follows a plain small letter: "McDonald", "GmbH"."""
    return any(one.islower() and other.isupper() and other.isascii() for one, other in pairwise(word))


def _of_east_asian(word: str, letters: Sequence[str]) -> float:
    if any("\uff61" <= each <= "\uff9f" for each in letters):
        return -0.8  # half-width, which other encodings turn into
    scripts = {_script(each) for each in word}
    if "HANGUL" in scripts:
        return 1.0 if len(scripts - {"LATIN"}) == 1 else -0.5
    usual = 0
    for each in letters:
        if _script(each) == "KANA":
            usual += 1
            continue
        for name in ("gb2312", "big5", "shift_jis"):
            try:
                code = each.encode(name)
            except UnicodeEncodeError:
                continue
            # The first levels of the standards hold the usual characters.
            first = {"gb2312": b"\xd7\xff", "big5": b"\xc6\x7f", "shift_jis": b"\x98\x73"}[name]
            if code <= first:
                usual += 1
                break
    kana = "KANA" in scripts
    return 1.0 * usual / len(letters) - (0.6 * (1 - usual / len(letters))) + (0.05 if kana else 0)


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "OTHER")
    for script in ("LATIN", "CYRILLIC", "GREEK", "CJK", "HANGUL", "HEBREW", "ARABIC"):
        if name.startswith(script):
            return script
    return "KANA" if name.startswith(("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA")) else "OTHER"
