"""
Write the parts of README.md that the code knows: commands and settings.

``python checks/readme.py`` writes them; ``--check`` ends with 1 when they are stale.
"""

import re
import sys
from pathlib import Path

from muniment.cli import main as command
from muniment.config import SETTINGS

README = Path(__file__).parents[1] / "README.md"


def commands() -> str:
    """Give the table of commands, a group's members each on a line of their own."""
    rows = []
    for name, entry in sorted(command.commands.items()):
        members = getattr(entry, "commands", None)
        for full, one in (
            [(f"{name} {sub}", one) for sub, one in sorted(members.items())] if members else [(name, entry)]
        ):
            rows.append(f"| `{full}` | {one.get_short_help_str(200)} |")
    return "| command | what it does |\n|---|---|\n" + "\n".join(rows)


def settings() -> str:
    """Give the table of settings."""
    rows = [f"| `{one.variable}` | {f'`{one.default}`' if one.default else '–'} | {one.help} |" for one in SETTINGS]
    return "| variable | default | meaning |\n|---|---|---|\n" + "\n".join(rows)


def written(text: str) -> str:
    """Give *text* with its generated parts as the code has them."""
    for name, content in (("commands", commands()), ("settings", settings())):
        opening, closing = f"<!-- {name} -->", f"<!-- /{name} -->"
        text = re.sub(
            f"{opening}.*?{closing}", lambda _, c=content, o=opening, e=closing: f"{o}\n{c}\n{e}", text, flags=re.DOTALL
        )
    return text


def main() -> int:
    """Write README.md, or check it."""
    text = README.read_text()
    if "--check" in sys.argv:
        return int(written(text) != text)
    README.write_text(written(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
