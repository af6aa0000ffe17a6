"""Read delimited text: its encoding, its delimiter, its cells. Pure."""

import codecs
import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from muniment.registry.tables.catalogue import catalogue, key

LIKELY: Final = (
    *("cp1252", "iso8859_15", "mac_roman", "cp850", "cp1250", "iso8859_2", "mac_latin2", "cp1257", "cp1254", "cp1251"),
    *("koi8_r", "iso8859_5", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1255", "cp1256"),
)
"""Common encodings before similar ones: of encodings that fit equally well, the first is used."""
_LETTERS_OF_LANGUAGES: Final = (
    *("äöüß", "àâæçéèêëîïôœùûüÿ", "áéíñóúü", "àèéìíòóùú", "ãáâàçéêíóõôú", "éëïóöüáèê", "ąćęłńóśźż", "åäöé"),
    *("æøåé", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "ăâîșțşţ", "çğıöşüâî", "čšžćđ", "āčēģīķļņšūž"),
    *("ąčęėįšųūž", "õäöüšž", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґђјљњћџ", "αβγδεζηθικλμνξοπρστυφχψωςάέήίόύώϊϋΐΰ"),
)
_ALPHABETS: Final = tuple(map(frozenset, _LETTERS_OF_LANGUAGES))
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
    if len(sample) == _SAMPLE_BYTES and b"\n" in sample:
        sample = sample[: sample.rfind(b"\n")]  # the last line was cut, perhaps within a letter
    scores: dict[str, float] = {}
    for encoding in LIKELY:
        try:
            text = sample.decode(encoding)
        except UnicodeDecodeError:
            continue
        headings = _known_headings(head.decode(encoding, "replace"))
        scores[encoding] = _plausibility(text) + _HEADING_BONUS * headings - _RARE.get(encoding, 0.0)
    if not scores:
        return _proposed(sample)
    most = max(scores.values())
    # Of encodings that fit equally well, the first is used.
    return next(encoding for encoding, score in scores.items() if score >= most - 1e-6)


def _proposed(sample: bytes) -> str:
    """Return what charset-normalizer makes of bytes that no likely encoding can read."""
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    return best.encoding if best else "cp1252"


def _known_headings(head: str) -> int:
    """Return how many cells of the first lines are known headings with other letters than those of ASCII."""
    headings_of_kinds = catalogue().headings.values()
    cells = [cell.strip().strip('"') for cell in re.split(r"[,;\t|\r\n]", head) if not cell.isascii()]
    # The first cells, in their order: headings are above the rows, and a guess must be the same each time.
    candidates = list(dict.fromkeys(cells))[:_HEADINGS]
    count = 0
    for cell in candidates:
        is_readable = "\ufffd" not in cell
        is_known = any(key(cell) in headings for headings in headings_of_kinds)
        if is_readable and is_known and _is_written(cell):
            count += 1
    return count


def _is_written(heading: str) -> bool:
    """
    Return whether people write a heading so: the letters of its words are of one language and in the usual case.

    A key lacks accents and signs, and would take "PrÈsentation" and "adh‚sion" for the heading that they were.
    """
    plain = unicodedata.normalize("NFKC", heading)
    if not all(sign.isalnum() or sign in " .-/_()'’&:#*（）・／€£$%°" for sign in plain):
        return False
    for word in _WORD.findall(plain):
        letters = _foreign(word)
        if letters and _of_word(word, letters) <= 0:
            return False
    return True


def _plausibility(text: str) -> float:
    """Return how much the words with other letters look like those of a language, from minus one to one."""
    score, count = 0.0, 0
    for token in dict.fromkeys(text.split()):
        if token.isascii():
            continue
        count += len(_foreign(token))
        score += _of_token(token)
        if count > _MAX_WORDS * 10:
            break
    if not count:
        return 0.0
    return score / count + _COHERENCE * _share_of_one_language(text)


def _foreign(text: str) -> list[str]:
    return [sign for sign in text if not sign.isascii()]


def _of_token(token: str) -> float:
    """Return how plausible the words and signs between blanks are, each as often as it has other letters."""
    score = 0.0
    for sign in _foreign(token):
        if not sign.isalpha() or sign in _MARKS:
            score += _of_sign(sign)
    # The signs of ordinals are letters to Unicode, but belong to numbers.
    for word in _WORD.findall(token.replace("º", " ").replace("ª", " ")):
        letters = _foreign(word)
        if letters:
            score += len(letters) * _of_word(word, letters)
    return score


def _share_of_one_language(text: str) -> float:
    """Return the largest share of the other letters that one language has."""
    letters = {sign for sign in _foreign(text.casefold()) if sign.isalpha()} - {"º", "ª"}
    if not letters:
        return 0
    return max(len(letters & alphabet) for alphabet in _ALPHABETS) / len(letters)


def _of_sign(sign: str) -> float:
    category = unicodedata.category(sign)
    if sign in _MARKS or sign in "\u00a0\u202f\u3000、。・（）「」ー〒～：；，！？％＆－／　":
        return 0.3
    if category in {"Cc", "Co", "Cn", "So", "Sk"} or "\u2500" <= sign <= "\u25ff":
        return -2.0
    return -0.6


def _of_word(word: str, letters: Sequence[str]) -> float:
    """Return how plausible a word is: of one script, usual case, and letters of one language."""
    scripts = {_script(sign) for sign in word if sign.isalpha()}
    if scripts & {"CJK", "KANA", "HANGUL"}:
        return _of_east_asian(word, letters)
    if len(scripts) > 1 or "OTHER" in scripts:
        return -1.0
    if not _is_of_usual_case(word):
        return -0.9
    small_letters = set(_foreign(word.casefold()))
    if "ß" in word:
        small_letters.add("ß")  # whose other case is in ASCII
    is_of_one_language = any(small_letters <= alphabet for alphabet in _ALPHABETS)
    return 1.0 if small_letters and is_of_one_language else -0.4


def _is_of_usual_case(word: str) -> bool:
    is_of_one_case = word[1:].islower() or word.isupper() or len(word) == 1
    return is_of_one_case or _is_camel(word)


def _is_camel(word: str) -> bool:
    """Return whether a capital follows a plain small letter: "McDonald", "GmbH"."""
    return any(one.islower() and other.isupper() and other.isascii() for one, other in pairwise(word))


def _of_east_asian(word: str, letters: Sequence[str]) -> float:
    if any("\uff61" <= letter <= "\uff9f" for letter in letters):
        return -0.8  # half-width, which other encodings turn into
    scripts = {_script(sign) for sign in word}
    if "HANGUL" in scripts:
        return 1.0 if len(scripts - {"LATIN"}) == 1 else -0.5
    usual = sum(_script(letter) == "KANA" or _is_usual_character(letter) for letter in letters) / len(letters)
    return usual - (0.6 * (1 - usual)) + (0.05 if "KANA" in scripts else 0)


_FIRST_LEVELS: Final = {"gb2312": b"\xd7\xff", "big5": b"\xc6\x7f", "shift_jis": b"\x98\x73"}
"""Where the first levels of the standards end, which hold the usual characters."""


def _is_usual_character(letter: str) -> bool:
    for encoding, end in _FIRST_LEVELS.items():
        try:
            code = letter.encode(encoding)
        except UnicodeEncodeError:
            continue
        if code <= end:
            return True
    return False


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "OTHER")
    for script in ("LATIN", "CYRILLIC", "GREEK", "CJK", "HANGUL", "HEBREW", "ARABIC"):
        if name.startswith(script):
            return script
    return "KANA" if name.startswith(("HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA")) else "OTHER"


MAX_CELL_CHARACTERS: Final = 1_000_000
SAMPLE_LINES: Final = 200
DELIMITERS: Final = ("\t", ";", "|", ",")
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SEPARATORS_OF_UTF16: Final = (
    ("utf-16-le", (b"\n\0", b",\0", b"\t\0", b";\0")),
    ("utf-16-be", (b"\0\n", b"\0,", b"\0\t", b"\0;")),
)
GUESS_BYTES: Final = 200_000
HEAD_BYTES: Final = 4_000


class Decoded(NamedTuple):
    """A text and its encoding. ``is_guess``: neither a mark nor the form of the bytes says it."""

    text: str
    encoding: str
    is_guess: bool = False


def decode(content: bytes, encoding: str = "") -> Decoded:
    """
    Return the text of *content*: by *encoding* if given, else by its mark, as UTF-8, or by a guess.

    Raises:
        UnicodeDecodeError: it is not in the given encoding.
        LookupError: there is no such encoding.
    """
    if encoding:
        return Decoded(content.decode(encoding), encoding)
    for mark, name in _BOMS:
        if content.startswith(mark):
            return Decoded(content.decode(name, "replace"), name)
    name = _utf16_without_mark(content)
    if name:
        return Decoded(content.decode(name, "replace"), name, is_guess=True)
    try:
        return Decoded(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        name = _guess(content)
    return Decoded(content.decode(name, "replace"), name, is_guess=True)


def _utf16_without_mark(content: bytes) -> str:
    """Return the UTF-16 variant of text that has every other byte zero, or separators and usual signs; "" for none."""
    sample = content[:HEAD_BYTES]
    if len(sample) <= 8 or b"\0" not in sample:
        return ""
    # Of letters of ASCII, one byte of two is zero.
    for encoding, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[::2])):
        if zeros.count(0) > 0.7 * len(zeros):
            return encoding
    for encoding, separators in _SEPARATORS_OF_UTF16:
        try:
            text = content[: HEAD_BYTES // 2 * 2].decode(encoding, "strict" if len(content) <= HEAD_BYTES else "ignore")
        except UnicodeDecodeError:
            continue
        has_separators = any(separator in sample for separator in separators)
        if has_separators and "\n" in text and all(map(_is_usual, text)):
            return encoding
    return ""


def _is_usual(sign: str) -> bool:
    return unicodedata.category(sign) not in {"Cn", "Co", "Cc"} or sign in "\r\n\t"


def _guess(content: bytes) -> str:
    """Return the likely encoding of *content*; lines in ASCII say nothing about it."""
    foreign = [line for line in content[:GUESS_BYTES].split(b"\n") if not line.isascii()]
    if not foreign:
        foreign = [line for line in content.split(b"\n") if not line.isascii()][:1_000]
    if _is_mostly_utf8(foreign):
        return "utf-8"
    return guess(foreign, content[:HEAD_BYTES])


def _is_mostly_utf8(lines: list[bytes]) -> bool:
    """Return whether most lines that are not ASCII are UTF-8: another program has added the rest."""
    good = 0
    for line in lines[:1_000]:
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            continue
        good += 1
    return 2 * good > len(lines[:1_000])


def delimiter_of(text: str, candidates: Iterable[str] = DELIMITERS) -> str:
    """Return the delimiter that splits most lines into the same number of cells, and many; a comma if none does."""
    sample = "\n".join(text.splitlines()[:SAMPLE_LINES])
    best, best_score = ",", 0.0
    for delimiter in candidates:
        widths = Counter(len(line) for line in _parse(sample, delimiter) if len(line) > 1)
        if not widths:
            continue
        width, rows = widths.most_common(1)[0]
        split_rows = widths.total()
        of_one_width = rows / max(1, split_rows)
        score = of_one_width * (1 + min(width, 12) / 12) * min(1, split_rows / 2)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def cells_of(text: str, delimiter: str) -> list[list[str]]:
    """Return the cells of every line, blank ones too, so that rows keep their numbers; quoted cells may have breaks."""
    return [[cell.strip() for cell in line] for line in _parse(text.lstrip("\ufeff"), delimiter)]


def _parse(text: str, delimiter: str) -> list[list[str]]:
    if csv.field_size_limit() < MAX_CELL_CHARACTERS:
        csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True))
    except csv.Error:  # a quotation mark that nothing closes makes a cell too long
        return [line.split(delimiter) for line in text.splitlines()]
