"""The stamp of a public page, by which the server may answer the same request without rendering it."""

from typing import Final, NamedTuple

STAMP: Final = "page"
"""The key of a :class:`PageStamp` in a scope's state."""


class PageStamp(NamedTuple):
    """
    A response that is the same bytes for every visitor.

    Args:
        tag: the opaque part of its ETag; each encoding adds its name.
        version: the version of the published file that it shows; None if it shows none.
        depends: the documents and lists of that version that it shows, each by kind and key.
        until: when it ends by itself, in seconds since the epoch; 0 if it does not.
        language: the language that it is in; empty if it is the same in every language.
        languages: those that the visitor's language was chosen from; empty if it is the same in every language.
    """

    tag: bytes
    is_compressible: bool
    version: int | None = None
    depends: tuple[tuple[str, str], ...] = ()
    until: float = 0
    language: str = ""
    languages: tuple[str, ...] = ()
