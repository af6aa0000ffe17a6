"""Load the skills of each server. OpenAI's importer takes at most five a server."""

from pathlib import Path
from typing import Final

from muniment.mcp.extensions import Skill

_FOLDER: Final = Path(__file__).parent
PUBLIC: Final = ("research-an-organization", "due-diligence")
OWNER: Final = ("keep-my-listing-current", "prepare-for-a-program")


def skills(names: tuple[str, ...]) -> tuple[Skill, ...]:
    """Return the skills with *names*, in order."""
    return tuple(Skill(text=(_FOLDER / name / "SKILL.md").read_text(encoding="utf-8")) for name in names)
