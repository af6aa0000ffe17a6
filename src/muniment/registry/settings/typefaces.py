"""Fonts of the registry: WOFF2 files for texts and headings, which pages load from here alone."""

import hashlib
import struct
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.settings.tables import BrandFont
from muniment.registry_toml.document import Brand

NAMES: Final = ("font_text", "font_headings")
MAX_BYTES: Final = 300_000
"""Maximum size of one file: a font for Latin, Greek and Cyrillic with all weights is smaller."""
MAX_UNPACKED_BYTES: Final = 8 << 20
_HEADER: Final = struct.Struct(">4s4sIHHI")
_FLAVORS: Final = (b"\x00\x01\x00\x00", b"OTTO", b"true")
"""The signatures of single fonts; a collection is not accepted."""


class NotAFont(ValueError):  # noqa: N818 - its message is for the operator
    """A file cannot be used as a font."""


def store_fonts(brand: Brand, files: Mapping[str, bytes], faults: dict[str, str]) -> Brand:
    """Store the fonts among *files*, and return *brand* with their paths; add what cannot be used to *faults*."""
    for name in NAMES:
        place = f"brand.{name}"
        if name in files:
            try:
                brand = replace(brand, **{name: store_font(files[name])})
            except NotAFont as error:
                faults[place] = Phrase("{place} cannot be used: {error}.", place=place, error=error)
            continue
        path = getattr(brand, name)
        digest = path.removeprefix("/fonts/").partition(".")[0]
        if path and font_bytes(digest) is None:
            faults[place] = Phrase("{place}: there is no font at {path}. Upload it again.", place=place, path=path)
    return brand


def store_font(content: bytes) -> str:
    """
    Store a WOFF2 file and return its path.

    Browsers check fonts before they use them (OTS), so this only keeps out what is none, or too large.

    Raises:
        NotAFont: it is no WOFF2 file, or too large.
    """
    if len(content) > MAX_BYTES:
        raise NotAFont(
            Phrase(
                "the font has {size:,} bytes; at most {limit:,} are accepted. Leave out scripts",
                size=len(content),
                limit=MAX_BYTES,
            )
        )
    if len(content) < _HEADER.size:
        raise NotAFont("the file is not a WOFF2 font")
    signature, flavor, length, tables, _, unpacked = _HEADER.unpack_from(content)
    if signature != b"wOF2" or flavor not in _FLAVORS or length != len(content) or not tables:
        raise NotAFont("the file is not a WOFF2 font, or is cut off")
    if unpacked > MAX_UNPACKED_BYTES:
        raise NotAFont("the font is larger than 8 MB when it is unpacked")
    digest = hashlib.sha256(content).hexdigest()[:32]
    BrandFont.objects.get_or_create(digest=digest, defaults={"content": content})
    return f"/fonts/{digest}.woff2"


def font_bytes(digest: str) -> bytes | None:
    """Return a stored font, or None."""
    found = BrandFont.objects.filter(digest=digest).values_list("content", flat=True).first()
    return None if found is None else bytes(found)
