"""A wall clock that tests set, for processes of the product."""

import struct
import subprocess
from pathlib import Path

from services.installed import program

SOURCE = Path(__file__).with_name("shifted_clock.c")


class Clock:
    """The wall clock of processes with :attr:`environment`; the time that they measure is the real one."""

    def __init__(self, folder: Path) -> None:
        self._file, built = folder / "shift", folder / "shifted_clock.so"
        self.set(0)
        subprocess.run([program("cc"), "-shared", "-fPIC", "-O1", "-o", built, SOURCE], check=True, timeout=60)
        self.environment = {"LD_PRELOAD": str(built), "SHIFTED_CLOCK": str(self._file)}

    def set(self, shift_s: int) -> None:
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("q", shift_s))
