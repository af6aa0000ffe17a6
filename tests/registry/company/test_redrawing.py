"""What the process that decodes pictures refuses, called without the process."""

import io
import struct

import pytest
from PIL import Image

from make.pictures import bomb, moving, picture
from muniment.registry.company.redrawing import SMALLEST, NotAPicture, redraw
from muniment.registry.logos.icons import MAX_PIXELS

FORMATS = ("PNG", "JPEG", "WEBP", "ICO")


def clear() -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", (64, 64), (0, 0, 0, 0)).save(out, "PNG")
    return out.getvalue()


def icon(width: int, height: int) -> bytes:
    """Return an ICO whose bitmap claims this size."""
    bitmap = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 32, 0, 0, 0, 0, 0, 0)
    entry = struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, len(bitmap), 22)
    return struct.pack("<HHH", 0, 1, 1) + entry + bitmap


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("content", "is_logo", "reason"),
    [
        (bomb(4_001), False, "The image has 16 megapixels"),
        (bomb(30_000), False, "The image has far more than 16 megapixels"),
        (icon(8_000, 2 * MAX_PIXELS // 8_000 + 1), True, "The icon has far more than 16 megapixels"),
        (picture()[:60], False, "not a readable image"),
        (moving("WEBP"), False, "Animated images are not accepted"),
        (picture(side=2 * SMALLEST - 2), True, "smaller than 16 pixels"),
        (clear(), True, "the picture is empty"),
    ],
    ids=["megapixels", "bomb", "icon", "cut off", "animated", "small", "empty"],
)
def test_a_picture_is_refused_with_the_reason(content, is_logo, reason):
    with pytest.raises(NotAPicture, match=reason):
        redraw(content, FORMATS, is_logo=is_logo)


@pytest.mark.parametrize("content", [picture(side=2 * SMALLEST), moving("WEBP")], ids=["small", "moving"])
def test_a_logo_may_be_as_small_as_16_pixels_and_its_first_picture_is_taken(content):
    small, large = redraw(content, FORMATS, is_logo=True)
    assert {Image.open(io.BytesIO(each)).format for each in (small, large)} == {"WEBP"}
