"""
Write the tables of docs/REFERENCE.md: commands and settings, as the code declares them.

``python checks/reference.py`` writes them; ``--check`` exits with 1 when they are out of date.
"""

import re
import sys
from pathlib import Path

from muniment.cli import main as command
from muniment.config import SETTINGS

REFERENCE = Path(__file__).parents[1] / "docs" / "REFERENCE.md"


def commands() -> str:
    """Return the table of commands, with each member of a group on its own line."""
    rows = []
    for name, entry in command.all().items():
        members = getattr(entry, "commands", None)
        for full, one in (
            [(f"{name} {sub}", one) for sub, one in sorted(members.items())] if members else [(name, entry)]
        ):
            rows.append(f"| `{full}` | {one.get_short_help_str(200)} |")
    return "| Command | Description |\n|---|---|\n" + "\n".join(rows)


def settings() -> str:
    """Return the table of settings."""
    rows = [f"| `{one.variable}` | {f'`{one.default}`' if one.default else '–'} | {one.help} |" for one in SETTINGS]
    return "| Variable | Default | Description |\n|---|---|---|\n" + "\n".join(rows)


def written(text: str) -> str:
    """Return *text* with its generated tables up to date."""
    for name, content in (("commands", commands()), ("settings", settings())):
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        text = re.sub(
            f"{opening}.*?{closing}", lambda _, c=content, o=opening, e=closing: f"{o}\n{c}\n{e}", text, flags=re.DOTALL
        )
    return text


def main() -> int:
    """Write docs/REFERENCE.md, or check it."""
    text = REFERENCE.read_text()
    if "--check" in sys.argv:
        return int(written(text) != text)
    REFERENCE.write_text(written(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
