"""Contrast of accent colors on the papers of the pages, as WCAG 2.2 computes it."""

import colorsys
import re
from typing import Final, NamedTuple

LEAST: Final = 4.5
_HEX: Final = re.compile(r"#[0-9a-f]{6}")
_STEPS: Final = 200


class Papers(NamedTuple):
    """The backgrounds of text in an accent color in one mode, and how its wash is mixed."""

    papers: tuple[str, ...]
    base: str
    share: float
    """The share of the accent in its wash, over *base*."""


LIGHT: Final = Papers(("#fbfaf7", "#ffffff", "#f3f1eb"), "#ffffff", 0.08)
DARK: Final = Papers(("#16171a", "#1e2024", "#121315"), "#1e2024", 0.1)
WHITE: Final = "#ffffff"
BLACK: Final = "#0d0d0f"


def is_color(text: str) -> bool:
    return _HEX.fullmatch(text) is not None


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def least_contrast(accent: str, mode: Papers) -> float:
    """Return the lowest contrast of *accent* on the papers of *mode* and on its own wash."""
    return min(contrast(accent, paper) for paper in (*mode.papers, wash(accent, mode)))


def nearest(accent: str, mode: Papers) -> str:
    """Return the color nearest to *accent* in lightness, of the same hue, that has enough contrast."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(part / 255 for part in _parts(accent)))
    end = 0.0 if mode is LIGHT else 1.0
    for step in range(_STEPS + 1):
        tried = lightness + (end - lightness) * step / _STEPS
        red, green, blue = colorsys.hls_to_rgb(hue, tried, saturation)
        found = _hex(red * 255, green * 255, blue * 255)
        if least_contrast(found, mode) >= LEAST:
            return found
    return BLACK if mode is LIGHT else WHITE


def pair(light: str, dark: str) -> tuple[str, str]:
    """Return the accent colors for light and dark paper; the one that is not declared is made from the other."""
    if not light and not dark:
        return "", ""
    return light or nearest(dark, LIGHT), dark or nearest(light, DARK)


def wash(accent: str, mode: Papers) -> str:
    """Return the background that a little of *accent* gives."""
    mixed = (under + (over - under) * mode.share for over, under in zip(_parts(accent), _parts(mode.base), strict=True))
    return _hex(*mixed)


def ink_on(accent: str) -> str:
    """Return white or black, whichever is easier to read on *accent*."""
    return max(WHITE, BLACK, key=lambda ink: contrast(accent, ink))


def _luminance(color: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    """Return the linear light of a color channel, from its sRGB value."""
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def _parts(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _hex(*parts: float) -> str:
    return "#" + "".join(f"{round(min(255.0, max(0.0, part))):02x}" for part in parts)
