"""The settings of a registry, as values. Each default is what a registry without ``registry.toml`` has."""

from typing import Any, Final

from msgspec import Struct

FILE: Final = "registry.toml"
"""The file in a data folder."""


class Registry(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """
    The name, the contact, the licence of the data, and the languages of the interface.

    Args:
        languages: those that visitors can choose, the default first; empty for all complete ones.
        fetch_logos: whether logos that listings name by URL are fetched; MUNIMENT_FETCH_LOGOS overrides it.
    """

    name: str = ""
    contact: str = ""
    licence: str = ""
    licence_url: str = ""
    languages: tuple[str, ...] = ()
    fetch_logos: bool = False


class Words(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The words that people use for a company."""

    company: str = ""
    companies: str = ""


class Sections(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Parts of a listing that pages and forms show."""

    token: bool = True
    proposals: bool = True
    cap_table: bool = True


class Vocabulary(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The values that forms and tools suggest; empty for the built-in ones."""

    types: tuple[str, ...] = ()
    industries: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()


class Brand(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """
    Pictures and colors.

    Args:
        logo: the path of a stored picture, or of a file beside ``registry.toml``.
        mark: the same; it is the icon of the site too.
        logo_ratio: width by height of the logo in percent; set when it is stored.
        accent: ``#rrggbb`` of links and buttons on light paper.
        accent_dark: the same on dark paper.
        typeface: ``system`` for the fonts of the visitor's system; empty for the bundled ones.
        font_text: the path of a stored WOFF2 font of texts, or of a file beside ``registry.toml``.
        font_headings: the same for headings.
    """

    logo: str = ""
    mark: str = ""
    logo_ratio: int = 0
    accent: str = ""
    accent_dark: str = ""
    typeface: str = ""
    font_text: str = ""
    font_headings: str = ""


class Texts(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Texts of the front page and the footer."""

    heading: str = ""
    lead: str = ""
    tagline: str = ""
    footer: str = ""


class Legal(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Markdown of the legal pages; a page without text does not exist."""

    imprint: str = ""
    privacy: str = ""
    terms: str = ""


class Backups(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """
    The schedule of backups.

    Args:
        interval_min: minutes between backups; 0 for the default.
        keep: pairs such as recent=4,daily=7; empty for the default.
        paused: whether none are made by themselves.
    """

    interval_min: int = 0
    keep: str = ""
    paused: bool = False


class Query(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """
    A saved query.

    Args:
        text: a sentence about its answer.
        chart: one of :data:`CHARTS`; empty for the one that suits the answer.
    """

    slug: str
    title: str
    text: str = ""
    sql: str = ""
    chart: str = ""


CHARTS: Final = ("", "none", "bar", "line", "scatter")


class RegistrySettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """
    All that ``registry.toml`` declares, and what only the operator's console adds.

    Args:
        console_queries: the saved queries of the console, which the file neither declares nor removes.
    """

    registry: Registry = Registry()
    words: Words = Words()
    sections: Sections = Sections()
    vocabulary: Vocabulary = Vocabulary()
    brand: Brand = Brand()
    texts: Texts = Texts()
    legal: Legal = Legal()
    backups: Backups = Backups()
    fields: tuple[dict[str, Any], ...] = ()
    queries: tuple[Query, ...] = ()
    console_queries: tuple[Query, ...] = ()

    def __hash__(self) -> int:
        # Without the fields: their tables have no hash.
        return hash(
            (
                *(self.registry, self.words, self.sections, self.vocabulary),
                *(self.brand, self.texts, self.legal, self.backups, self.queries, self.console_queries),
            )
        )


DEFAULT: Final = RegistrySettings()
SECTIONS: Final[dict[str, type[Struct]]] = {
    "registry": Registry,
    "words": Words,
    "sections": Sections,
    "vocabulary": Vocabulary,
    "brand": Brand,
    "texts": Texts,
    "legal": Legal,
    "backups": Backups,
}
"""The tables of the file; ``[[fields]]`` and ``[[queries]]`` are lists of tables."""
