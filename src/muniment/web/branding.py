"""The brand of the registry in the form that templates show: pictures, colors, texts and legal pages."""

import hashlib
from typing import Final, NamedTuple

from django.utils.translation import gettext

from muniment.languages.speaking import language
from muniment.registry_toml import applied, contrast
from muniment.registry_toml.document import DEFAULT, RegistrySettings

LOGO_HEIGHT: Final = 36
LONGEST_LOGO: Final = 200
SMALL: Final = "-144.webp"


class LegalLink(NamedTuple):
    """A legal page that exists, and its title."""

    address: str
    label: str


class Logo(NamedTuple):
    """The logo in the header. Its picture is square: the space around the drawing is cut off."""

    address: str
    width: int
    height: int


class Branding(NamedTuple):
    """
    The part of the settings that templates show.

    Args:
        css: the address of the style sheet with the declared colors and fonts; empty for the built-in ones.
        is_bundled: whether pages use the bundled fonts.
    """

    settings: RegistrySettings
    css: str
    is_bundled: bool
    logo: Logo | None
    mark: str
    legal: tuple[LegalLink, ...]
    contact: str


_made: tuple[RegistrySettings | None, dict[str, Branding]] = (None, {})
"""The brand of the settings that were seen last, in each language."""


def branding() -> Branding:
    """Return the brand of the applied settings."""
    global _made  # noqa: PLW0603 - of the process
    settings, code = applied.current(), language()
    settings_before, brands = _made
    if settings_before is not settings:
        brands = {}
        _made = settings, brands
    if code not in brands:
        brands[code] = brand_of(settings)
    return brands[code]


def brand_of(settings: RegistrySettings) -> Branding:
    brand, contact = settings.brand, settings.registry.contact
    sheet, css = style_sheet(settings), ""
    if sheet:
        # The address changes with the content, which browsers keep.
        css = f"/brand.{hashlib.sha256(sheet.encode()).hexdigest()[:12]}.css"
    if contact and "://" not in contact:
        contact = f"mailto:{contact}"
    has_own_typeface = bool(brand.typeface or brand.font_text or brand.font_headings)
    logo = _logo(brand.logo, brand.logo_ratio) if brand.logo else None
    return Branding(
        settings,
        css,
        not has_own_typeface,
        logo,
        brand.mark.replace("-512.webp", SMALL),
        legal_links(settings),
        contact,
    )


def legal_links(settings: RegistrySettings) -> tuple[LegalLink, ...]:
    """Return the legal pages that have a text."""
    if settings.legal == DEFAULT.legal:
        return ()
    labels = {
        "imprint": gettext("Imprint"),
        "privacy": gettext("Privacy policy"),
        "terms": gettext("Terms of use"),
    }
    links = []
    for name, label in labels.items():
        if getattr(settings.legal, name):
            links.append(LegalLink(f"/{name}", label))
    return tuple(links)


def style_sheet(settings: RegistrySettings) -> str:
    """Return the declared colors and fonts as a style sheet; empty if there are none."""
    return _colors(settings) + _fonts(settings)


def _colors(settings: RegistrySettings) -> str:
    light, dark = accents(settings)
    if not light:
        return ""
    pairs = {
        "--seal": (light, dark),
        "--seal-ink": (contrast.ink_on(light), contrast.ink_on(dark)),
        "--seal-wash": (contrast.wash(light, contrast.LIGHT), contrast.wash(dark, contrast.DARK)),
        "--tint0": (light, dark),
    }
    lines = "".join(f"  {name}: light-dark({one}, {other});\n" for name, (one, other) in pairs.items())
    return f":root {{\n{lines}}}\n"


def _fonts(settings: RegistrySettings) -> str:
    """Return the rules of the declared fonts: text and headings each are uploaded, the system's, or the bundled one."""
    brand, rules, values = settings.brand, "", []
    for name, family, path, bundled in (
        ("--sans", "Registry text", brand.font_text, ""),
        ("--serif", "Registry headings", brand.font_headings, brand.font_text and "Registry text"),
    ):
        if path:
            rules += (
                f'@font-face {{\n  font-family: "{family}";\n  src: url("{path}") format("woff2");\n'
                "  font-weight: 100 900;\n  font-display: swap;\n}\n"
            )
            values.append(f'  {name}: "{family}", system-ui, sans-serif;\n')
        elif brand.typeface == "system":
            values.append(f"  {name}: system-ui, sans-serif;\n")
        elif bundled:
            values.append(f'  {name}: "{bundled}", system-ui, sans-serif;\n')
    return f"{rules}:root {{\n{''.join(values)}}}\n" if values else ""


def accents(settings: RegistrySettings) -> tuple[str, str]:
    """Return the accent colors for light and dark paper; the one that is not declared is made from the other."""
    return contrast.pair(settings.brand.accent, settings.brand.accent_dark)


def _logo(path: str, ratio: int) -> Logo:
    ratio = ratio or 100
    width = max(1, LOGO_HEIGHT * ratio // 100)
    if width > LONGEST_LOGO:
        return Logo(path, LONGEST_LOGO, max(1, LONGEST_LOGO * 100 // ratio))
    return Logo(path, width, LOGO_HEIGHT)


def scoped_sheet(settings: RegistrySettings, selector: str) -> str:
    """Return colors and fonts of *settings* for the elements that *selector* finds, for a preview."""
    return style_sheet(settings).replace(":root", selector)
