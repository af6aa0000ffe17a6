"""An S3 server on loopback that checks signatures: rclone over a folder."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from services.ports import free_port, wait_until

KEY, SECRET = "harbour-key", "harbour-secret-of-the-tests"
BUCKET = "documents-of-tests"


class S3:
    """
    A server over *folder*.

    Args:
        environment: variables that name its key, as a deployment does; the command line names it without them.
    """

    def __init__(self, folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._environment = environment
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, secret: str = SECRET) -> str:
        """Return the URL for ``MUNIMENT_STORAGE_URL``."""
        return f"s3://{KEY}:{secret}@{BUCKET}/kept/here?region=us-east-1&endpoint=http://127.0.0.1:{self.port}"

    def start(self) -> None:
        (self.folder / BUCKET).mkdir(parents=True, exist_ok=True)
        command = Path(sys.executable).parent / "rclone"
        key = [] if self._environment else ["--auth-key", f"{KEY},{SECRET}"]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    command,
                    "serve",
                    "s3",
                    *key,
                    "--addr",
                    f"127.0.0.1:{self.port}",
                    "--config",
                ]
                + ["", "--vfs-cache-mode", "off", self.folder],
                env={**os.environ, **(self._environment or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        wait_until(self._answers, within_s=30, what="the S3 server answering")

    def _answers(self) -> bool:
        import socket

        assert self._process is not None
        assert self._process.poll() is None, "the S3 server ended at once"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
