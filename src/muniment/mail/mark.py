"""The picture of the registry in mail: part of each message, because a message loads nothing from elsewhere."""

from collections.abc import Callable
from email.mime.image import MIMEImage
from typing import Final, NamedTuple

from django.core.mail import EmailMultiAlternatives

CONTENT_ID: Final = "registry@muniment"
HEIGHT: Final = 32
"""At which it is shown; the picture has three times as many pixels."""


class Mark(NamedTuple):
    """
    A PNG picture.

    Args:
        width: at which it is shown.
        has_name: it is the logo, which stands for the name.
    """

    content: bytes
    width: int
    has_name: bool


source: Callable[[], Mark | None] | None = None
"""Returns the picture that the registry declares; the registry sets it when Django loads."""


def attach(message: EmailMultiAlternatives, mark: Mark) -> None:
    """Add the picture to a message whose HTML part shows it by its Content-ID."""
    image = MIMEImage(mark.content, "png")
    image.add_header("Content-ID", f"<{CONTENT_ID}>")
    image.add_header("Content-Disposition", "inline", filename="registry.png")
    message.mixed_subtype = "related"  # type: ignore[attr-defined]  # Django's, missing in the stubs
    message.attach(image)
