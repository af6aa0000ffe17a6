"""The logo of a company as published documents and queries show it: always a picture that this registry serves."""

from typing import Final

from django.db.models import Case, F, When

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import PICTURE_PATH

SIDE: Final = 512


def shown_logo(icon: str, fetched_digest: str | None) -> JSONObject | None:
    """
    Return the wire form of a company's logo; None if no picture of it is stored here.

    Args:
        icon: the path of an uploaded logo, or the URL that the source gave.
        fetched_digest: the digest of the picture that was fetched from *icon*.
    """
    uploaded = PICTURE_PATH.fullmatch(icon)
    digest = uploaded["digest"] if uploaded else fetched_digest
    return {"url": f"/pictures/{digest}-{SIDE}.webp", "width": SIDE, "height": SIDE} if digest else None


def fetched_logo(to_company: str = "") -> Case:
    """
    Return the digest of the logo that was fetched from the URL which a company names now; else NULL.

    Args:
        to_company: the path from the table of the query, such as ``company__``.
    """
    is_current = {f"{to_company}fetched_logo__source": F(f"{to_company}icon")}
    return Case(When(**is_current, then=F(f"{to_company}fetched_logo__digest")), default=None)
