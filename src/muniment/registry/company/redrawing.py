"""
Decode a picture and draw it again in two sizes, without its metadata.

This module is the program that :func:`muniment.registry.company.pictures.resize` starts: codecs are written in C, and
what a picture makes them do harms only this process. It reads the picture from standard input, and writes the two
sizes, or the reason why there are none.
"""

import io
import json
import struct
import sys
import warnings
from typing import TYPE_CHECKING, Final

from muniment import confinement
from muniment.kernel.phrases.phrase import Phrase

if TYPE_CHECKING:
    from PIL import Image

MAX_PIXELS: Final = 16_000_000
SMALL, LARGE = 144, 512
SMALLEST: Final = 16
"""Pixels; smaller pictures are counters of visits, not logos."""
OK: Final = b"ok\n"
LENGTH: Final = struct.Struct(">I")
"""The size of the small picture, sent before both pictures."""
HINT: Final = "Send a PNG, JPEG or WebP of at most 2 MB and 16 megapixels."
_MARGIN: Final = 0.06
_LIGHT, _DARK = (255, 255, 255), (30, 32, 36)
_BRIGHT: Final = 200
"""The mean brightness, of 255, from which a logo without a ground is drawn on a dark one."""


class NotAPicture(ValueError):  # noqa: N818 - a verdict
    """The content cannot be shown as a picture; ``hint`` says what can, and ``megapixels`` how large it is, or 0."""

    def __init__(self, message: str, hint: str = HINT, *, megapixels: float = 0.0) -> None:
        super().__init__(message)
        self.hint, self.megapixels = hint, megapixels


def too_large(megapixels: float) -> Phrase:
    return Phrase("The image has {megapixels:.0f} megapixels.", megapixels=megapixels)


def redraw(content: bytes, formats: tuple[str, ...], *, is_logo: bool) -> tuple[bytes, bytes]:
    """
    Return a picture in two sizes.

    Args:
        formats: those that are accepted.
        is_logo: take the first frame of an animated picture instead of refusing it, and give it a background.

    Raises:
        NotAPicture: it is damaged, animated or too large.
    """
    from PIL import Image, ImageOps

    from muniment.registry.logos import icons

    try:
        if "ICO" in formats and icons.is_icon(content):
            content = icons.unwrapped(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below, before decoding
            picture = Image.open(io.BytesIO(content), formats=formats)
            _check(picture, is_logo=is_logo)
            picture.load()
    except Image.DecompressionBombError:
        raise NotAPicture("The image has far more than 16 megapixels.") from None
    except icons.TooManyPixels as fault:
        raise NotAPicture(str(fault)) from None
    except NotAPicture:
        raise
    except (OSError, ValueError, SyntaxError):
        raise NotAPicture("The file is not a readable image.") from None
    upright = ImageOps.exif_transpose(picture)
    mode = "RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB"
    shown = upright.convert(mode)
    if is_logo:
        shown = _on_ground(shown)
    return _webp(shown, SMALL), _webp(shown, LARGE)


def _check(picture: "Image.Image", *, is_logo: bool) -> None:
    """Raise NotAPicture if *picture*, which is not decoded yet, is too large or moves."""
    width, height = picture.size
    if width * height > MAX_PIXELS:
        megapixels = width * height / 1e6
        raise NotAPicture(too_large(megapixels), megapixels=megapixels)
    if not is_logo and getattr(picture, "n_frames", 1) > 1:
        raise NotAPicture("Animated images are not accepted.", "Send a still image.")


def _on_ground(picture: "Image.Image") -> "Image.Image":
    """
    Return a logo on a ground with enough contrast, for pages are light or dark; one that has a ground keeps it.

    Raises:
        NotAPicture: it is too small, or nothing is to be seen.
    """
    from PIL import Image, ImageStat

    if min(picture.size) < SMALLEST:
        raise NotAPicture("the picture is smaller than 16 pixels")
    if picture.mode != "RGBA" or picture.getchannel("A").getextrema()[0] == 255:
        return picture
    opacity = picture.getchannel("A")
    box = opacity.point(lambda value: 255 if value > 16 else 0).getbbox()
    if box is None:
        raise NotAPicture("the picture is empty")
    picture, opacity = picture.crop(box), opacity.crop(box)
    opaque_parts = opacity.point(lambda value: 255 if value > 128 else 0)
    brightness = ImageStat.Stat(picture.convert("L"), mask=opaque_parts)
    is_bright = bool(brightness.count[0]) and brightness.mean[0] > _BRIGHT
    side = round(max(picture.size) * (1 + 2 * _MARGIN))
    color = _DARK if is_bright else _LIGHT
    ground = Image.new("RGB", (side, side), color)
    ground.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2), opacity)
    return ground


def _webp(picture: "Image.Image", side: int) -> bytes:
    from PIL import Image, ImageOps

    fitted = ImageOps.contain(picture, (side, side), Image.Resampling.LANCZOS)  # a small one is enlarged
    canvas = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    canvas.paste(fitted, ((side - fitted.width) // 2, (side - fitted.height) // 2))
    out = io.BytesIO()
    canvas.save(out, "WEBP", quality=86, method=4)
    return out.getvalue()


def _main() -> None:
    formats, kind = confinement.begin()
    try:
        small, large = redraw(sys.stdin.buffer.read(), tuple(formats.split(",")), is_logo=kind == "logo")
    except NotAPicture as fault:
        said = json.dumps({"message": str(fault), "hint": fault.hint, "megapixels": fault.megapixels}).encode()
    else:
        said = OK + LENGTH.pack(len(small)) + small + large
    sys.stdout.buffer.write(said)


if __name__ == "__main__":
    _main()
