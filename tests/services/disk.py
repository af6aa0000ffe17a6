"""A disk that loses power, is full or fails: ext4 on a loop device. Needs root."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

_SHUTDOWN = 0x8004587D
_WITHOUT_LOG_FLUSH = struct.pack("I", 2)


class Disk:
    """
    A file system in a file, mounted in a context.

    Writes that nothing syncs stay in memory: the journal commits only every five minutes, and a rename does not flush
    the file.
    """

    def __init__(self, folder: Path, *, size_mb: int = 256) -> None:
        self.path = folder / "mounted"
        self._image = folder / "disk.img"
        self.path.mkdir()
        with self._image.open("wb") as image:
            image.truncate(size_mb << 20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))

    def mount(self) -> None:
        _run("mount", "-o", "loop,commit=300,noauto_da_alloc", str(self._image), str(self.path))

    def cut(self) -> None:
        """Stop the disk: everything that is not on it is gone, and every later write fails."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_LOG_FLUSH)
        finally:
            os.close(descriptor)

    def fill(self) -> None:
        """Leave no byte free."""
        with (self.path / "filler").open("ab", buffering=0) as filler:
            size = 1 << 20
            while size:
                try:
                    filler.write(bytes(size))
                except OSError:
                    size //= 2

    def empty(self) -> None:
        """Free what :meth:`fill` took."""
        (self.path / "filler").unlink()

    def remount(self, how: str) -> None:
        """Make the disk read-only ("ro") or writable ("rw"); no file may be open for writing."""
        _run("mount", "-o", f"remount,{how}", str(self.path))

    def is_idle(self) -> bool:
        """Return whether no process has a file open."""
        asked = subprocess.run(["fuser", "-m", str(self.path)], capture_output=True, timeout=60, check=False)
        return asked.returncode != 0

    def fail(self) -> None:
        """Have the file system find an error: it turns read-only, also for files that are open."""
        _run("mount", "-o", "remount,errors=remount-ro", str(self.path))
        device = Path(_run("findmnt", "-n", "-o", "SOURCE", str(self.path)).strip()).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("1")

    def unmount(self) -> None:
        _run("umount", str(self.path))

    def __enter__(self) -> Self:
        self.mount()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.path.ismount(self.path):
            # Lazily, for after a failure a process may still be there: what stays mounted breaks later tests.
            _run("umount", "--lazy", str(self.path))


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    return done.stdout
