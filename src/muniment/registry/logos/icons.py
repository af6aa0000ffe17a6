"""
Take the largest picture out of an icon file, which holds several.

Pillow decodes it while it opens the icon, before its true size can be checked: the size in the icon's own header is at
most 256 pixels, whatever the picture inside says.
"""

import io
import struct
from typing import Final

from muniment.registry.company.redrawing import MAX_PIXELS

_ICON: Final = b"\0\0\1\0"
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class TooManyPixels(ValueError):  # noqa: N818 - a verdict
    """The bitmap in an icon is too large; the message is the reason."""


def is_icon(content: bytes) -> bool:
    """Return whether *content* looks like an icon file."""
    return content.startswith(_ICON)


def unwrapped(content: bytes) -> bytes:
    """
    Return the PNG in an icon; an icon with a bitmap, or a damaged one, as it is.

    Raises:
        TooManyPixels: the bitmap would be too large.
    """
    from PIL.BmpImagePlugin import DibImageFile
    from PIL.IcoImagePlugin import IcoFile

    try:
        inside = content[IcoFile(io.BytesIO(content)).entry[0].offset :]
        if inside.startswith(_PNG):
            return inside
        width, height = DibImageFile(io.BytesIO(inside)).size
    except (OSError, SyntaxError, ValueError, IndexError, TypeError, struct.error):
        return content  # opening it tells what is wrong
    if width * height > 2 * MAX_PIXELS:  # its mask is a second half
        raise TooManyPixels("The icon has far more than 16 megapixels.")
    return content
