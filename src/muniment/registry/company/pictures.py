"""
Logos and portraits: decode uploads and re-encode them; only re-encoded images are served.

Source: service document, things done only in the web app.
"""

import hashlib
import io
import re
import warnings
from typing import TYPE_CHECKING

from muniment.kernel.problems import BadRequest
from muniment.registry.models import Picture

if TYPE_CHECKING:
    from PIL import Image

MAX_BYTES = 2 << 20
MAX_PIXELS = 16_000_000
FORMATS = ("PNG", "JPEG", "WEBP")
SMALL, LARGE = 144, 512
_ADDRESS = re.compile(r"(?:https?://[^/]+)?/pictures/(?P<digest>[0-9a-f]{32})-(?P<size>144|512)\.webp")
_HINT = "Send a PNG, JPEG or WebP of at most 2 MB and 16 megapixels."


def store_picture(content: bytes) -> str:
    """
    Resize an uploaded image to two sizes and store them.

    Returns:
        The path of the large one.

    Raises:
        BadRequest: not an accepted image, animated, or too large.
    """
    small, large = resize(content)
    digest = hashlib.blake2b(large, digest_size=16).hexdigest()
    Picture.objects.get_or_create(digest=digest, defaults={"small": small, "large": large})
    return f"/pictures/{digest}-{LARGE}.webp"


def resize(content: bytes) -> tuple[bytes, bytes]:
    """
    Decode and re-encode an image, small and large, without its metadata.

    Raises:
        BadRequest: as :func:`store_picture`.
    """
    from PIL import Image, ImageOps  # 8 MB: imported on first use

    if len(content) > MAX_BYTES:
        raise BadRequest(f"The image is too large: {len(content) / (1 << 20):.1f} MB.", _HINT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below, before decoding
            picture = Image.open(io.BytesIO(content), formats=FORMATS)
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise BadRequest(f"The image has {width * height / 1e6:.0f} megapixels.", _HINT)
            if getattr(picture, "n_frames", 1) > 1:
                raise BadRequest("Animated images are not accepted.", "Send a still image.")
            picture.load()
    except Image.DecompressionBombError:
        raise BadRequest("The image has far more than 16 megapixels.", _HINT) from None
    except (OSError, ValueError, SyntaxError):
        raise BadRequest("The file is not a readable image.", _HINT) from None
    upright = ImageOps.exif_transpose(picture)
    mode = "RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB"
    return _webp(upright.convert(mode), SMALL), _webp(upright.convert(mode), LARGE)


def _webp(picture: "Image.Image", side: int) -> bytes:
    from PIL import Image

    picture.thumbnail((side, side), Image.Resampling.LANCZOS)
    canvas = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    canvas.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2))
    out = io.BytesIO()
    canvas.save(out, "WEBP", quality=86, method=4)
    return out.getvalue()


def picture_bytes(digest: str, size: int) -> bytes | None:
    """Return a stored image, or None."""
    column = "small" if size == SMALL else "large"
    found = Picture.objects.filter(digest=digest).values_list(column, flat=True).first()
    return bytes(found) if found is not None else None


def sized(address: str, size: int) -> str:
    """Return the path of a stored image in *size*; empty if the address is not one of ours."""
    match = _ADDRESS.fullmatch(address)
    return f"/pictures/{match['digest']}-{size}.webp" if match else ""
