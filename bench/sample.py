"""The registry that benchmarks measure, imported into a new instance."""

import os
import subprocess
import sys
from pathlib import Path

LEFT_OUT = 1
"""Exit status of an import that left invalid values out, as that of a real registry does."""


def import_sample(source: Path, data: Path) -> None:
    """Import the registry in *source* into the data folder *data*; raise CalledProcessError if that fails."""
    command = [sys.executable, "-m", "muniment", "import", str(source)]
    done = subprocess.run(command, env={**os.environ, "MUNIMENT_DATA": str(data)}, capture_output=True, check=False)
    if done.returncode != LEFT_OUT:
        done.check_returncode()
    if b"Imported in" not in done.stdout + done.stderr:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
