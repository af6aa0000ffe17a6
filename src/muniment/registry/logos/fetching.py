"""Fetch one logo from the address that a listing names, and draw it in the sizes of uploaded ones."""

import http.client
import ssl
from typing import Final, NamedTuple

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Connection, NotFetched
from muniment.outbound.following import follow
from muniment.registry.company import pictures
from muniment.registry.logos import vector

FORMATS: Final = (*pictures.FORMATS, "GIF", "ICO")
DEADLINE_S: Final = 10.0
_ACCEPT: Final = "image/png, image/webp, image/jpeg, image/svg+xml, image/gif, image/*;q=0.5"
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
        return Drawn(*pictures.resize(content, formats=FORMATS, is_logo=True))
    except vector.NotDrawable as fault:
        raise LogoFault(str(fault), is_lasting=True) from None
    except BadRequest as refusal:
        raise LogoFault(refusal.message, is_lasting=True) from None
