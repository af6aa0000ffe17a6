"""
Logos and portraits: decode uploads and re-encode them; only re-encoded images are served.

Source: service document, things done only in the web app.
"""

import hashlib
import io
import logging
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from muniment import child_process
from muniment.durable_files import sync
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.registry.company import redrawing
from muniment.registry.company.redrawing import HINT, LARGE, SMALL
from muniment.registry.models import Picture
from muniment.scrub.checks import RESTORE, Check, Damage, Slice

MAX_BYTES = 2 << 20
FORMATS = ("PNG", "JPEG", "WEBP")
CPU_S, WALL_S = 20, 40.0
MEMORY_BYTES = 1 << 30
MAX_ANSWER_BYTES = 4 << 20
"""More than the pixels of both sizes take."""
_ADDRESS = re.compile(r"(?:https?://[^/]+)?/pictures/(?P<digest>[0-9a-f]{32})-(?P<size>144|512)\.webp")
_CHUNK = 50
log = logging.getLogger(__name__)


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


def resize(content: bytes, *, formats: tuple[str, ...] = FORMATS, is_logo: bool = False) -> tuple[bytes, bytes]:
    """
    Decode and re-encode an image, small and large, without its metadata, in a process of its own.

    Args:
        formats: those that are accepted.
        is_logo: take the first frame of an animated picture instead of refusing it, and give it a background.

    Raises:
        BadRequest: as :func:`store_picture`.
    """
    if len(content) > MAX_BYTES:
        raise BadRequest(
            Phrase("The image is too large: {megabytes:.1f} MB.", megabytes=len(content) / (1 << 20)), HINT
        )
    kind = "logo" if is_logo else ""
    try:
        ended = child_process.run(
            "muniment.registry.company.redrawing",
            (",".join(formats), kind),
            given=content,
            cpu_s=CPU_S,
            wall_s=WALL_S,
            memory_bytes=child_process.memory_limit(MEMORY_BYTES),
            max_answer_bytes=MAX_ANSWER_BYTES,
        )
    except child_process.SaidTooMuch:
        raise BadRequest("The file is not a readable image.", HINT) from None
    if not ended.answer:
        raise BadRequest("Reading the image takes too much time or memory.", HINT)
    return _drawn(ended.answer)


class _Refusal(msgspec.Struct):
    """The reason why the process rejects a picture, shown to people as it is."""

    message: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    hint: Annotated[str, msgspec.Meta(max_length=300)]
    megapixels: Annotated[float, msgspec.Meta(ge=0, le=1e12)]


def _drawn(said: bytes) -> tuple[bytes, bytes]:
    """
    Return the two sizes that the process has drawn.

    The picture may have taken over the process, so any answer but a refusal or a WebP of each size is rejected.
    """
    if said.startswith(redrawing.OK):
        start = len(redrawing.OK) + redrawing.LENGTH.size
        length = int.from_bytes(said[len(redrawing.OK) : start], "big")
        small, large = said[start : start + length], said[start + length :]
        if _is_webp(small) and _is_webp(large):
            return small, large
        raise BadRequest("The file is not a readable image.", HINT)
    try:
        refusal = msgspec.json.decode(said, type=_Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("The file is not a readable image.", HINT) from None
    if refusal.megapixels > 0:
        raise BadRequest(redrawing.too_large(refusal.megapixels), refusal.hint)
    raise BadRequest(Phrase(refusal.message), refusal.hint)


def _is_webp(content: bytes) -> bool:
    """Return whether *content* is one WebP file by its head, which says how long it is, and nothing else."""
    length = int.from_bytes(content[4:8], "little")
    return content[:4] == b"RIFF" and content[8:12] == b"WEBP" and length == len(content) - 8


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
    matches = map(_ADDRESS.fullmatch, addresses)
    return {match["digest"] for match in matches if match}


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
    following = Picture.objects.filter(pk__gt=int(after or 0)).order_by("pk").only("digest", "large")
    pictures = list(following[: min(limit, _CHUNK)])
    damages = []
    for picture in pictures:
        if _digest(bytes(picture.large)) != picture.digest:
            damages.append(
                Damage(
                    check=CHECK.name,
                    subject=f"picture {picture.digest}",
                    says="does not have its digest",
                    remedy=f"upload the picture again, or {RESTORE}",
                )
            )
    last = str(pictures[-1].pk) if pictures else None
    return Slice(len(pictures), damages, last)


CHECK = Check(name="pictures", fine="each has its digest", count=Picture.objects.count, look=_look)
"""Logos and portraits: a large picture has the digest that its address names."""
