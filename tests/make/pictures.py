"""Pictures, and files that pose as pictures."""

import io
import struct
import zlib

from PIL import Image


def picture(kind: str = "PNG", side: int = 300, **options) -> bytes:
    out = io.BytesIO()
    colour = (138, 43, 43 + (300 - side) % 97)  # pictures of several sides stay different when they are resized
    Image.new("RGB", (side, side // 2), colour).save(out, kind, **options)
    return out.getvalue()


def moving(kind: str = "WEBP") -> bytes:
    frames = [Image.new("RGB", (40, 40), (shade, 0, 0)) for shade in (0, 90, 180)]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], duration=50)
    return out.getvalue()


def bomb(side: int = 30_000) -> bytes:
    """Make a small PNG whose header claims *side* pixels in width and height."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * 1_000_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def icon(inside: bytes) -> bytes:
    """Make an icon file whose header claims 256 pixels, around a PNG or a bitmap."""
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 0, 0, 0, 0, 1, 32, len(inside), 22) + inside


def bitmap(side: int) -> bytes:
    """Make the header of a bitmap as icons have it, with its mask below."""
    return struct.pack("<IiiHHIIiiII", 40, side, 2 * side, 1, 32, 0, 0, 0, 0, 0, 0)
