"""Words, suggested values and sections that kinds of registries begin with; everything can be changed afterwards."""

from typing import Final, NamedTuple

from django.utils.translation import gettext_lazy

from muniment.web.requests.pages import Words


class Preset(NamedTuple):
    """
    A kind of registry.

    Args:
        sections: those of a listing that it has.
    """

    name: str
    label: Words
    company: str
    companies: str
    types: tuple[str, ...]
    kinds: tuple[str, ...]
    industries: tuple[str, ...] = ()
    themes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()

    def values(self) -> dict[str, object]:
        """Return the values of the form."""
        return {
            "words__company": self.company,
            "words__companies": self.companies,
            **{f"vocabulary__{name}": "\n".join(getattr(self, name)) for name in _LISTS},
            **{f"sections__{name}": name in self.sections for name in ("token", "proposals", "cap_table")},
        }


_LISTS: Final = ("types", "industries", "kinds", "themes")
PRESETS: Final = (
    Preset(
        "association",
        gettext_lazy("Association of members"),
        *("member", "members"),
        types=("full member", "associate member", "supporting member", "honorary member"),
        kinds=("company", "sole trader", "cooperative", "nonprofit", "public body", "institute"),
    ),
    Preset(
        "ecosystem",
        gettext_lazy("Protocol ecosystem"),
        *("project", "projects"),
        types=("protocol", "DAO", "foundation", "company"),
        kinds=("infrastructure", "application", "wallet", "exchange", "tooling", "community"),
        themes=("payments", "identity", "lending", "storage", "privacy", "public goods"),
        sections=("token", "proposals", "cap_table"),
    ),
    Preset(
        "public",
        gettext_lazy("Public body"),
        *("organization", "organizations"),
        types=("company", "association", "foundation", "cooperative", "public institution"),
        kinds=("registered", "licensed", "grantee", "supplier"),
    ),
    Preset(
        "accelerator",
        gettext_lazy("Accelerator or fund"),
        *("startup", "startups"),
        types=("startup", "spin-off", "alumni"),
        kinds=("pre-seed", "seed", "series A", "bootstrapped"),
        sections=("cap_table",),
    ),
)


def find_preset(name: str) -> Preset | None:
    for preset in PRESETS:
        if preset.name == name:
            return preset
    return None
