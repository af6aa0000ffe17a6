"""A real clamd on loopback with one signature of our own; it downloads nothing."""

import socket
import subprocess
from pathlib import Path

from services.installed import program
from services.ports import free_port, wait_until

BAD = b"This harbour is infected, says the suite."
"""What its signature finds."""


class Clamd:
    """The daemon; ``address`` is what MUNIMENT_CLAMD takes."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        signatures = folder / "signatures"
        signatures.mkdir(parents=True)
        (signatures / "own.ndb").write_text(f"Harbour.Infection:0:*:{BAD.hex()}\n")
        (folder / "clamd.conf").write_text(
            f"TCPSocket {self.port}\nTCPAddr 127.0.0.1\nDatabaseDirectory {signatures}\nForeground yes\n"
            f"TemporaryDirectory {folder}\nMaxThreads 4\n"
        )

    def start(self) -> None:
        with (self._folder / "clamd.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program("clamd"), "--config-file", self._folder / "clamd.conf"], stdout=log, stderr=subprocess.STDOUT
            )
        wait_until(self._answers, within_s=30, what="clamd answering")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "clamd.log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
