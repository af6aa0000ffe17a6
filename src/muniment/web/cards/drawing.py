"""
Draw cards, laid out on 1,200 by 630 units and drawn in as many pixels.

This module is a program: a line of JSON on standard input, a PNG on standard output.

It is a process of its own because the renderer holds Python's lock while it draws, 40 ms at a time, and so that what a
text or a logo makes the renderer do ends with this process.
"""

import base64
import functools
import io
import json
import select
import struct
import sys
import time
import unicodedata
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from muniment import confinement

if TYPE_CHECKING:
    from PIL import ImageFont

WIDTH, HEIGHT = 1_200, 630
"""The size of the layout, in its own units."""


DRAWN_WIDTH, DRAWN_HEIGHT = 1_200, 630
"""The size of the picture in pixels, as other sites ask for: smaller ones are shown as a thumbnail or refused."""


HEAD: Final = struct.Struct(">If")
"""The head of each picture: its size, and the CPU seconds that it took. A size of 0 is a failure."""


MEMORY_BYTES: Final = 1 << 30


IDLE_S: Final = 120
"""Seconds without a card after which the process ends; the next card starts another one."""


_EDGE: Final = 72


_LINE: Final = WIDTH - 2 * _EDGE


_INK, _QUIET, _PAPER, _RULE, _SEAL = "#1b1b1f", "#5d5f66", "#fbfaf7", "#e3e0d8", "#8a2b2b"


_TONES: Final = ("#8a2b2b", "#2c5674", "#74520f", "#38603f", "#664874", "#4a4e57", "#1f5f5c", "#83375d")
"""The light colours of monograms, as in the stylesheet."""


_LOWER_HALF: Final = "m-5.86 5.86a20 20 0 0 1 5.86 14.14v88a20 20 0 0 1-20 20h-88a20 20 0 0 1-14.14-5.86z"
"""The lower right half of a tile, from its upper right corner; a clip would cost an eighth of the card."""


_NAME_SIZES: Final = (84, 72, 60, 50)


_SUMMARY_ENDS: Final = 432


_MARK: Final = (
    '<g transform="translate({x} {y}) scale({scale:g})"><rect width="32" height="32" rx="7" fill="{colour}"/>'
    '<path d="M8 23V9.5l8 7.5 8-7.5V23" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"'
    ' stroke-linejoin="round"/></g>'
)


FOLDER: Final = Path(__file__).parent / "fonts"


HEADING: Final = "zilla-slab-600.ttf"


TEXT: Final = "source-sans-3-400.ttf"


STRONG: Final = "source-sans-3-600.ttf"


FAMILIES: Final = {
    HEADING: "Zilla Slab",
    STRONG: "Source Sans 3",
    "noto-sans-arabic-600.ttf": "Noto Sans Arabic",
    "noto-sans-hebrew-600.ttf": "Noto Sans Hebrew",
    "noto-sans-devanagari-600.ttf": "Noto Sans Devanagari",
    "noto-sans-thai-600.ttf": "Noto Sans Thai",
}
"""The family of each file that can draw a name, in the order in which they are tried."""


_REORDERED: Final = frozenset({"noto-sans-devanagari-600.ttf", "noto-sans-thai-600.ttf"})
"""Fonts of scripts whose signs are placed by the letters around them."""


_DROPPED: Final = frozenset({"So", "Sk", "Cf", "Cc", "Co", "Cs", "Cn"})
"""Emoji, their modifiers, and what has no form: a text is the same to its reader without them."""


_JOINERS: Final = "\u200c\u200d"
"""Characters that decide the form of letters and are not drawn."""


@functools.cache
def _covered() -> dict[str, frozenset[int]]:
    """Return the characters that each font can draw."""
    ranges_by_file = json.loads((FOLDER / "coverage.json").read_text(encoding="ascii"))
    covered = {}
    for file, ranges in ranges_by_file.items():
        characters: set[int] = set()
        for characters_in_a_row in ranges.split():
            first, _, last = characters_in_a_row.partition("-")
            characters.update(range(int(first, 16), int(last or first, 16) + 1))
        covered[file] = frozenset(characters)
    return covered


def drawable(text: str) -> str:
    """Return *text* in one line, without emoji and characters that have no form."""
    kept = ""
    for character in unicodedata.normalize("NFC", text):
        # Joiners and line breaks are in a dropped category too, and decide how letters look or where a word ends.
        if character in _JOINERS or character in "\n\t" or unicodedata.category(character) not in _DROPPED:
            kept += character
    return " ".join(kept.split())


def font_for(text: str, *, heading: bool = False) -> str:
    """
    Return the file of the one font that can draw all of *text*; "" if none can.

    The renderer misplaces vowel signs when it takes the characters of a line from several fonts, so each font of a
    script has the Latin letters too; and when the first letter is of another script, so such a line is not drawn.

    Args:
        heading: try the typeface of headings first.
    """
    characters = {ord(character) for character in text if character not in _JOINERS}
    first_letter = next(filter(str.isalpha, text), "")
    is_latin_first = bool(first_letter) and first_letter.isascii()
    for file in FAMILIES:
        if file == HEADING and not heading:
            continue
        if characters <= _covered()[file]:
            if file in _REORDERED and is_latin_first:
                return ""
            return file
    return ""


@cache
def _measure(file: str, size: int) -> "ImageFont.FreeTypeFont":
    from PIL import ImageFont

    return ImageFont.truetype(FOLDER / file, size, layout_engine=ImageFont.Layout.BASIC)


def _width(text: str, file: str, size: int) -> float:
    return _measure(file, size).getlength(text)


def wrap(text: str, file: str, size: int, lines: int, width: int = _LINE) -> tuple[list[str], bool]:
    """Return *text* in at most *lines* lines, and whether all of it fits; the last line ends in an ellipsis if not."""
    wrapped: list[str] = []
    words = text.split()
    space = _width(" ", file, size)
    while words and len(wrapped) < lines:
        line = words.pop(0)
        line_width = _width(line, file, size)
        while words:
            wider = line_width + space + _width(words[0], file, size)
            if wider > width:
                break
            line += f" {words.pop(0)}"
            line_width = wider
        if line_width > width:  # one long word
            beginning = _cut(line, file, size, width)
            words.insert(0, line[len(beginning) :])
            line = beginning
        wrapped.append(line)
    if words and wrapped:
        wrapped[-1] = f"{_cut(f'{wrapped[-1]} {words[0]}', file, size, width - size)}…"
    return wrapped, not words


def _cut(text: str, file: str, size: int, width: int) -> str:
    """Return as much of the beginning of *text* as fits, without signs that lead on to the rest; by halving."""
    least, most = 1, len(text)
    while least < most:
        middle = (least + most + 1) // 2
        if _width(text[:middle], file, size) <= width:
            least = middle
        else:
            most = middle - 1
    return text[:least].rstrip(" ,;:–-")


def _text(at: tuple[float, float], words: str, file: str, size: int, colour: str, *, anchor: str = "start") -> str:
    family = FAMILIES.get(file, "Source Sans 3")
    weight = 400 if file == TEXT else 600
    return (
        f'<text x="{at[0]:g}" y="{at[1]:g}" font-family="\'{family}\'" font-weight="{weight}"'
        f' font-size="{size}" fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def layout(card: dict[str, Any], logo: str = "") -> tuple[str, list[str]]:
    """
    Return a card as SVG, and the files of the fonts that it needs.

    Args:
        card: the content of the card, as :mod:`muniment.web.cards.views` returns it.
        logo: a PNG as a data URL.
    """
    files = {STRONG: None, TEXT: None}
    parts = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{_PAPER}"/>',
        f'<rect width="{WIDTH}" height="12" fill="{_accent(card)}"/>',
    ]
    parts.append(_tile(card, logo, files))
    parts += _above(card, files)
    name_parts, y = _name(card, files)
    parts += [*name_parts, *_summary(card, y, files), *_foot(card, files)]
    inside = "".join(parts)
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}">{inside}</svg>'
    return whole, [str(FOLDER / each) for each in files]


def _text_font(text: str, files: dict[str, None]) -> str:
    """Return the font of a text that is not a name, which is drawn in the regular weight; "" if none can draw it."""
    file = font_for(text) if text else ""
    if file == STRONG:
        file = TEXT
    if file:
        files[file] = None
    return file


def _above(card: dict[str, Any], files: dict[str, None]) -> list[str]:
    """Return the line beside the tile."""
    above = drawable(card.get("above") or "")
    file = _text_font(above, files)
    if not file:
        return []
    lines, _ = wrap(above, file, 32, 1, _LINE - 160)
    return [_text((_EDGE + 152, 138), lines[0], file, 32, _QUIET)]


def _name(card: dict[str, Any], files: dict[str, None]) -> tuple[list[str], float]:
    """Return the name in the largest size in which it fits, and where it ends."""
    parts, y = [], 218.0
    name = drawable(card["name"])
    file = font_for(name, heading=True) if name else ""
    if not file:  # no bundled font has its characters: its permanent address instead
        name, file = _slug(card) or card["host"], HEADING
    files[file] = None
    for size in _NAME_SIZES:
        lines, fits = wrap(name, file, size, 2)
        # Two lines of the largest sizes would leave no room for the summary.
        if fits and (len(lines) == 1 or size <= _NAME_SIZES[2]):
            break
    for line in lines:
        y += size
        parts.append(_text((_EDGE, y - size * 0.14), line, file, size, _INK))
        y += size * 0.1
    return parts, y


def _summary(card: dict[str, Any], y: float, files: dict[str, None]) -> list[str]:
    """Return the lines of the summary below *y* for which there is room."""
    summary = drawable(card.get("summary") or "")
    file = _text_font(summary, files)
    if not file:
        return []
    parts = []
    lines, _ = wrap(summary, file, 32, int((_SUMMARY_ENDS - y) // 44))
    for line in lines:
        y += 44
        parts.append(_text((_EDGE, y), line, file, 32, _QUIET))
    return parts


def _accent(card: dict[str, Any]) -> str:
    """Return the color that the registry declares, else the built-in one."""
    return card.get("accent") or _SEAL


def _slug(card: dict[str, Any]) -> str:
    return str(card["address"]).rpartition("/")[2]


def _tile(card: dict[str, Any], logo: str, files: dict[str, None]) -> str:
    """Return the logo, or the monogram, 128 pixels wide."""
    tone = _TONES[card.get("colour", 0) % len(_TONES)]
    x, y, side = _EDGE, 64, 128
    edge = (
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="20" fill="none" stroke="{_RULE}" stroke-width="2"/>'
    )
    if logo:
        clip = f'<clipPath id="tile"><rect x="{x}" y="{y}" width="{side}" height="{side}" rx="20"/></clipPath>'
        image = f'<image x="{x}" y="{y}" width="{side}" height="{side}" href="{logo}" clip-path="url(#tile)"/>'
        return f'{clip}<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="20" fill="#fff"/>{image}{edge}'
    if "letters" not in card:  # of the registry, which has a mark
        return _MARK.format(x=x, y=y, scale=side / 32, colour=_accent(card))
    letters = card["letters"]
    if not font_for(letters, heading=True):
        letters = _slug(card)[:1].upper()
    file = font_for(letters, heading=True) if letters.strip("·") else ""
    shades = (
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="20" fill="{tone}" fill-opacity=".09"/>'
        f'<path d="M{x + side} {y}{_LOWER_HALF}" fill="{tone}" fill-opacity=".1"/>'
        f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="20" fill="none" stroke="{tone}" stroke-opacity=".25"'
        ' stroke-width="2"/>'
    )
    if not file:
        return shades
    files[file] = None
    size = 54 if len(letters) > 1 else 68
    # Where the letters of each typeface look centred.
    below_middle = 0.34 if file == HEADING else 0.28
    baseline = y + side / 2 + size * below_middle
    return shades + _text((x + side / 2, baseline), letters, file, size, tone, anchor="middle")


def _foot(card: dict[str, Any], files: dict[str, None]) -> list[str]:
    """Return the facts, and the registry with its mark."""
    parts = []
    x = _EDGE
    for value, label in card.get("facts") or ():
        figure, words = drawable(value), drawable(label)
        if not figure or font_for(figure) != STRONG or font_for(words) != STRONG:
            continue
        fact_width = max(_width(figure, STRONG, 38), _width(words, TEXT, 24))
        if x + fact_width > _LINE - 20:
            break
        parts.append(_text((x, 486), figure, STRONG, 38, _INK))
        parts.append(_text((x, 520), words, TEXT, 24, _QUIET))
        x += round(fact_width) + 56
    parts.append(f'<path d="M{_EDGE} 546.5h{_LINE}" stroke="{_RULE}" stroke-width="2"/>')
    left = _EDGE
    if not card.get("has_own_mark"):
        parts.append(_MARK.format(x=_EDGE, y=566, scale=1.25, colour=_accent(card)))
        left += 56
    site, host = drawable(card["site"]), drawable(card["host"])
    file = font_for(site, heading=True)
    if file:
        files[file] = None
        lines, _ = wrap(site, file, 28, 1, 560)
        parts.append(_text((left, 595), lines[0], file, 28, _INK))
    if host and font_for(host) == STRONG:
        parts.append(_text((WIDTH - _EDGE, 594), _cut(host, TEXT, 26, 440), TEXT, 26, _QUIET, anchor="end"))
    return parts


def draw(card: dict[str, Any]) -> bytes:
    """Return a card as a PNG."""
    import resvg_py

    svg, files = layout(card, _as_png(card.get("logo") or ""))
    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=svg,
            width=DRAWN_WIDTH,
            font_files=files,
            skip_system_fonts=True,
            font_family="Source Sans 3",
            languages=["en"],
        )
    )


def _as_png(logo: str) -> str:
    """Return a logo, a WebP in base64, as the data URL of a PNG."""
    if not logo:
        return ""
    from PIL import Image

    picture = Image.open(io.BytesIO(base64.b64decode(logo)), formats=("WEBP",)).convert("RGBA")
    out = io.BytesIO()
    picture.save(out, "PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def _main() -> None:
    confinement.begin()
    cards, pictures = sys.stdin.buffer, sys.stdout.buffer
    while select.select([cards], [], [], IDLE_S)[0]:
        line = cards.readline()
        if not line:  # the server closed its end
            return
        began_s = time.process_time()
        try:
            picture = draw(json.loads(line))
        except Exception:  # noqa: BLE001 - one card must not end the process
            picture = b""
        pictures.write(HEAD.pack(len(picture), time.process_time() - began_s) + picture)
        pictures.flush()


if __name__ == "__main__":
    _main()
