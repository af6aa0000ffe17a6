"""The effect of the declared vocabulary and sections on the fields of the schema."""

from typing import Final

from muniment.registry_toml.applied import current

_LISTS: Final = {"type": "types", "industry": "industries", "orgKind": "kinds", "themes": "themes"}


def suggested(name: str, built_in: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values that forms and tools suggest for the field *name* of a company."""
    declared: tuple[str, ...] = getattr(current().vocabulary, _LISTS.get(name, ""), ())
    return declared or built_in


def hidden_members() -> frozenset[str]:
    """Return the members of a company and of its bundle that pages neither show nor ask for."""
    sections = current().sections
    found = {
        "proposals": not sections.proposals,
        "capTable": not sections.cap_table,
        "symbol": not sections.token,
        "distribution": not sections.token,
    }
    return frozenset(name for name, is_hidden in found.items() if is_hidden)
