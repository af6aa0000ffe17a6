"""Fetch one logo from the address that a listing names, and draw it in the sizes of uploaded ones."""

import http.client
import ssl
from typing import TYPE_CHECKING, Final, NamedTuple

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Connection, NotFetched
from muniment.outbound.following import follow
from muniment.registry.company import pictures
from muniment.registry.logos import icons, vector

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = (*pictures.FORMATS, "GIF", "ICO")
DEADLINE_S: Final = 10.0
SMALLEST: Final = 16
"""Pixels; smaller pictures are counters of visits, not logos."""
_ACCEPT: Final = "image/png, image/webp, image/jpeg, image/svg+xml, image/gif, image/*;q=0.5"
_MARGIN: Final = 0.06
_LIGHT, _DARK = (255, 255, 255), (30, 32, 36)
_BRIGHT: Final = 200
"""The mean brightness, of 255, from which a logo without a ground is drawn on a dark one."""
_GONE: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 414, 451})

connection: Connection = {}
"""How sites are connected to; empty in production."""


class LogoFault(Exception):  # noqa: N818 - an outcome
    """
    There is no logo at an address.

    Args:
        reason: a sentence for the operator.
        is_lasting: asking again soon would give the same.
    """

    def __init__(self, reason: str, *, is_lasting: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_lasting = reason[:200], is_lasting


class Drawn(NamedTuple):
    """A logo in two sizes, as WebP."""

    small: bytes
    large: bytes


def fetch_logo(address: str) -> Drawn:
    """
    Fetch and draw the logo at *address*.

    Raises:
        LogoFault: there is none that can be shown.
    """
    options: Connection = {"deadline_s": DEADLINE_S, "max_body_bytes": pictures.MAX_BYTES, **connection}
    try:
        body = follow(address, accept=_ACCEPT, **options).body
    except NotFetched as fault:
        raise LogoFault(
            Phrase("the site answered {status}", status=fault.status), is_lasting=fault.status in _GONE
        ) from None
    except TimeoutError:
        raise LogoFault("the site took too long", is_lasting=False) from None
    except ssl.SSLCertVerificationError:
        raise LogoFault("the site's certificate is invalid", is_lasting=True) from None
    except (OSError, http.client.HTTPException):
        raise LogoFault("the site did not answer", is_lasting=False) from None
    except ValueError as fault:
        raise LogoFault(str(fault), is_lasting=True) from None
    return draw(body)


def draw(content: bytes) -> Drawn:
    """
    Draw a logo from the content of its file.

    Raises:
        LogoFault: it is not a picture that can be shown.
    """
    try:
        if vector.is_vector(content):
            content = vector.draw(content)
        elif icons.is_icon(content):
            content = icons.unwrapped(content)
        return Drawn(*pictures.resize(content, formats=FORMATS, first_frame=True, arrange=_on_ground))
    except (vector.NotDrawable, icons.TooManyPixels) as fault:
        raise LogoFault(str(fault), is_lasting=True) from None
    except BadRequest as refusal:
        raise LogoFault(refusal.message, is_lasting=True) from None


def _on_ground(picture: "Image.Image") -> "Image.Image":
    """
    Return a logo on a ground with enough contrast, for pages are light or dark; one that has a ground keeps it.

    Raises:
        LogoFault: it is too small, or nothing is to be seen.
    """
    from PIL import Image, ImageStat

    if min(picture.size) < SMALLEST:
        raise LogoFault("the picture is smaller than 16 pixels", is_lasting=True)
    if picture.mode != "RGBA" or picture.getchannel("A").getextrema()[0] == 255:
        return picture
    opacity = picture.getchannel("A")
    box = opacity.point(lambda each: 255 if each > 16 else 0).getbbox()
    if box is None:
        raise LogoFault("the picture is empty", is_lasting=True)
    picture, opacity = picture.crop(box), opacity.crop(box)
    brightness = ImageStat.Stat(picture.convert("L"), mask=opacity.point(lambda each: 255 if each > 128 else 0))
    is_bright = bool(brightness.count[0]) and brightness.mean[0] > _BRIGHT
    side = round(max(picture.size) * (1 + 2 * _MARGIN))
    ground = Image.new("RGB", (side, side), _DARK if is_bright else _LIGHT)
    ground.paste(picture, ((side - picture.width) // 2, (side - picture.height) // 2), opacity)
    return ground
