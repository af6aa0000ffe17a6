"""Plugins for tests: objects of the test, the example of the repository, and packages that are really installed."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from muniment.plugins import loading

EXAMPLE = Path(__file__).parents[2] / "examples" / "muniment-steward"


class Entry:
    """An entry point that loads *plugin*, or raises it."""

    dist = None

    def __init__(self, name: str, plugin: Any) -> None:
        self.name, self.value, self._plugin = name, name, plugin

    def load(self) -> Any:
        if isinstance(self._plugin, BaseException):
            raise self._plugin
        return self._plugin


@contextmanager
def plugged(**plugins: Any) -> Iterator[loading.Installed]:
    """Make *plugins* the installed ones, by name."""
    found = loading.Installed([Entry(name, plugin) for name, plugin in plugins.items()])
    loading.use(found)
    try:
        yield found
    finally:
        loading.use(loading.Installed([]))


@cache
def steward() -> Any:
    """Return the module of the example, not installed."""
    spec = importlib.util.spec_from_file_location("muniment_steward", EXAMPLE / "muniment_steward.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def install(source: Path, folder: Path) -> Path:
    """Build the package at *source* and install it into *folder*, without its requirements; return *folder*."""
    command = ["uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [program, *command[1:], "--python", sys.executable, "--target", folder, source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def write_plugin(folder: Path, name: str, source: str) -> Path:
    """Install a plugin of one module, as an installer would leave it in *folder*; return *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    module = f"plugin_{name}"
    (folder / f"{module}.py").write_text(source)
    about = folder / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[muniment.plugins]\n{name} = {module}\n")
    return folder
