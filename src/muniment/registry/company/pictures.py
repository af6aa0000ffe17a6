"""
Logos and portraits: decode uploads and re-encode them; only re-encoded images are served.

Source: service document, things done only in the web app.
"""

import hashlib
import io
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.durable_files import sync
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.registry.models import Picture
from muniment.scrub.checks import RESTORE, Check, Damage, Slice

if TYPE_CHECKING:
    from PIL import Image

MAX_BYTES = 2 << 20
MAX_PIXELS = 16_000_000
FORMATS = ("PNG", "JPEG", "WEBP")
SMALL, LARGE = 144, 512
_ADDRESS = re.compile(r"(?:https?://[^/]+)?/pictures/(?P<digest>[0-9a-f]{32})-(?P<size>144|512)\.webp")
_CHUNK = 50
log = logging.getLogger(__name__)
_HINT = "Send a PNG, JPEG or WebP of at most 2 MB and 16 megapixels."


def store_picture(content: bytes) -> str:
    """
    Resize an uploaded image to two sizes and store them.

    Returns:
        The path of the large one.

    Raises:
        BadRequest: not an accepted image, animated, or too large.
    """
    digest = keep(*resize(content))
    return f"/pictures/{digest}-{LARGE}.webp"


def keep(small: bytes, large: bytes, *, is_fetched: bool = False) -> str:
    """
    Store a resized picture and return its digest.

    Args:
        is_fetched: it is removed with the last listing that shows it; an uploaded one stays.
    """
    digest = _digest(large)
    values = {"small": small, "large": large, "is_fetched": is_fetched}
    _, is_new = Picture.objects.get_or_create(digest=digest, defaults=values)
    if not is_new and not is_fetched:
        Picture.objects.filter(digest=digest, is_fetched=True).update(is_fetched=False)
    return digest


def resize(
    content: bytes,
    *,
    formats: tuple[str, ...] = FORMATS,
    first_frame: bool = False,
    arrange: "Callable[[Image.Image], Image.Image]" = lambda picture: picture,
) -> tuple[bytes, bytes]:
    """
    Decode and re-encode an image, small and large, without its metadata.

    Args:
        formats: those that are accepted.
        first_frame: of a moving picture, take the first frame instead of refusing it.
        arrange: changes the decoded picture before it is resized.

    Raises:
        BadRequest: as :func:`store_picture`.
    """
    from PIL import Image, ImageOps  # 8 MB: imported on first use

    if len(content) > MAX_BYTES:
        raise BadRequest(
            Phrase("The image is too large: {megabytes:.1f} MB.", megabytes=len(content) / (1 << 20)), _HINT
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below, before decoding
            picture = Image.open(io.BytesIO(content), formats=formats)
            width, height = picture.size
            if width * height > MAX_PIXELS:
                raise BadRequest(
                    Phrase("The image has {megapixels:.0f} megapixels.", megapixels=width * height / 1e6), _HINT
                )
            if not first_frame and getattr(picture, "n_frames", 1) > 1:
                raise BadRequest("Animated images are not accepted.", "Send a still image.")
            picture.load()
    except Image.DecompressionBombError:
        raise BadRequest("The image has far more than 16 megapixels.", _HINT) from None
    except (OSError, ValueError, SyntaxError):
        raise BadRequest("The file is not a readable image.", _HINT) from None
    upright = ImageOps.exif_transpose(picture)
    mode = "RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB"
    arranged = arrange(upright.convert(mode))
    return _webp(arranged, SMALL), _webp(arranged, LARGE)


def _webp(picture: "Image.Image", side: int) -> bytes:
    from PIL import Image, ImageOps

    fitted = ImageOps.contain(picture, (side, side), Image.Resampling.LANCZOS)  # a small one is enlarged
    canvas = Image.new("RGBA", (side, side), (0, 0, 0, 0))
    canvas.paste(fitted, ((side - fitted.width) // 2, (side - fitted.height) // 2))
    out = io.BytesIO()
    canvas.save(out, "WEBP", quality=86, method=4)
    return out.getvalue()


def picture_bytes(digest: str, size: int) -> bytes | None:
    """
    Return a stored image, or None.

    Raises:
        Unavailable: it is damaged: a large one does not have its digest.
    """
    column = "small" if size == SMALL else "large"
    found = Picture.objects.filter(digest=digest).values_list(column, flat=True).first()
    if found is None:
        return None
    content = bytes(found)
    if size == LARGE and _digest(content) != digest:
        log.error("a picture is damaged and not shown", extra={"digest": digest})
        message = "The picture is damaged."
        raise Unavailable(message, "Tell the operator of this registry, or upload it again.")
    return content


def stored_path(address: str) -> str:
    """Return the path of a stored picture, from its path or its URL on any host; empty if it is not one of ours."""
    match = _ADDRESS.fullmatch(address)
    return f"/pictures/{match['digest']}-{match['size']}.webp" if match else ""


def digests_of(addresses: Iterable[str]) -> set[str]:
    """Return the digests of the pictures at *addresses* that have the form of ours."""
    return {match["digest"] for address in addresses if (match := _ADDRESS.fullmatch(address))}


def stored_digests(digests: Iterable[str]) -> set[str]:
    """Return those of *digests* whose pictures are stored here."""
    return set(Picture.objects.filter(digest__in=list(digests)).values_list("digest", flat=True))


def write_files(folder: Path, digests: Iterable[str]) -> int:
    """
    Write the pictures of *digests* into *folder*, each in two sizes; return their number.

    Raises:
        OSError: the folder cannot be written.
    """
    pending, written = sorted(digests), 0
    while pending:
        chunk, pending = pending[:_CHUNK], pending[_CHUNK:]
        folder.mkdir(parents=True, exist_ok=True)
        for digest, *sizes in Picture.objects.filter(digest__in=chunk).values_list("digest", "small", "large"):
            for side, content in zip((SMALL, LARGE), sizes, strict=True):
                draft = folder / f".{digest}-{side}.{os.getpid()}"
                draft.write_bytes(bytes(content))
                sync(draft)
                draft.replace(folder / f"{digest}-{side}.webp")
            written += 1
    if written:
        sync(folder)
        sync(folder.parent)
    return written


def read_files(folder: Path, digest: str) -> Picture | None:
    """Return the unsaved picture of *digest* from the files of an export; None if they are missing or invalid."""
    try:
        small, large = ((folder / f"{digest}-{side}.webp").read_bytes() for side in (SMALL, LARGE))
    except OSError:
        return None
    is_valid = _digest(large) == digest and _is_picture(small, SMALL) and _is_picture(large, LARGE)
    return Picture(digest=digest, small=small, large=large) if is_valid else None


def _is_picture(content: bytes, side: int) -> bool:
    from PIL import Image

    try:
        picture = Image.open(io.BytesIO(content), formats=("WEBP",))
        if picture.size != (side, side) or len(content) > MAX_BYTES:
            return False
        picture.load()
    except (OSError, ValueError, SyntaxError):
        return False
    return True


def _digest(large: bytes) -> str:
    return hashlib.blake2b(large, digest_size=16).hexdigest()


def _look(after: str, limit: int, mend: bool) -> Slice:  # noqa: ARG001, FBT001 - the signature of a check
    found = Picture.objects.filter(pk__gt=int(after or 0)).order_by("pk").only("digest", "large")
    pictures = list(found[: min(limit, _CHUNK)])
    damages = [
        Damage(
            check=CHECK.name,
            subject=f"picture {each.digest}",
            says="does not have its digest",
            remedy=f"upload the picture again, or {RESTORE}",
        )
        for each in pictures
        if _digest(bytes(each.large)) != each.digest
    ]
    return Slice(len(pictures), damages, str(pictures[-1].pk) if pictures else None)


CHECK = Check(name="pictures", fine="each has its digest", count=Picture.objects.count, look=_look)
"""Logos and portraits: a large picture has the digest that its address names."""
