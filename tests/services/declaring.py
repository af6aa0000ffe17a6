"""Apply settings of the registry as the operator's page does, without a server. Run as a script: the text of a file."""

import subprocess
import sys
from pathlib import Path

from services.product import environment


def declare(data: Path, toml: str, **settings: str) -> None:
    """Apply *toml* to the instance in *data*, whose servers then publish the documents again."""
    variables = {**environment(data, **settings), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    variables["PYTHONPATH"] = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-m", "services.declaring", toml], env=variables, check=True, timeout=110)


def main() -> None:
    import django

    django.setup()
    from muniment.kernel.actor import COMMAND
    from muniment.registry.settings.versions import apply_settings
    from muniment.registry_toml.reading import parse

    apply_settings(COMMAND, parse(sys.argv[1]))


if __name__ == "__main__":
    main()
