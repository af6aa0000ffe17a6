"""The bundle of the query page's editor, made of the pinned packages."""

import subprocess
from pathlib import Path

from services.node import environment, packages

SOURCE = Path(__file__).parents[2] / "checks" / "editor"
BUNDLE = Path(__file__).parents[2] / "src" / "muniment" / "web" / "static" / "web" / "editor.min.js"


def bundled() -> bytes:
    """Return the bundle of the sources."""
    folder = packages(SOURCE)
    options = ["--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none"]
    done = subprocess.run(
        [folder / "node_modules" / ".bin" / "esbuild", "editor.js", *options],
        cwd=folder,
        env=environment(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    return done.stdout


if __name__ == "__main__":
    BUNDLE.write_bytes(bundled())
