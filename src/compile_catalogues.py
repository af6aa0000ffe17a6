"""Compile the message catalogues when the package is built, so that it runs without a compiler. Used by hatchling."""

import os
from pathlib import Path
from typing import Any

import polib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own configuration
    """Writes the compiled form of each catalogue beside it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        for source in sorted(Path(self.root, "src", "muniment", "locale").glob("*/LC_MESSAGES/django.po")):
            modified = source.stat().st_mtime_ns
            compiled = source.with_suffix(".mo")
            compiled.write_bytes(polib.pofile(str(source)).to_binary())
            os.utime(compiled, ns=(modified, modified))
