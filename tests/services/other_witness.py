"""A witness of transparency logs that is not ours, by c2sp.org/tlog-witness, as a process on loopback."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from services import linters
from services.ports import free_port, wait_until


class OtherWitness:
    """
    The witness, in a context.

    Attributes:
        key: its verifier key.
        url: where it takes checkpoints.
    """

    def __init__(self, folder: Path) -> None:
        # It declares Python 3.12, and uses nothing of it.
        packages = linters.folder("witness", "--python-version", "3.12")
        self._environment = {**os.environ, "PYTHONPATH": str(packages), "AICS_WITNESS_CONFIG": str(folder / "w.json")}
        self._folder = folder
        folder.mkdir()
        self.key = self._run("init", "--name", "other.example/w1").strip()
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def _run(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "aics_witness", *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def know(self, origin: str, *keys: str) -> None:
        """Let it know a log, before it starts."""
        for key in keys:
            self._run("add-log", "--origin", origin, "--vkey", key)

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "aics_witness", "serve", "--listen", f"127.0.0.1:{self._port}"]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        wait_until(self._answers, within_s=30, what="the witness")
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(20)

    def evidence(self) -> Any:
        """Return the requests that it has kept because they contradict what it has cosigned."""
        return json.loads(self._run("evidence"))
