"""`muniment worker`: a process of its own that works the queue off and stops gracefully."""

import signal
import subprocess

import pytest

from services.product import COMMAND, environment


@pytest.mark.requirement("cli.operate")
def test_the_worker_starts_on_an_empty_folder_and_ends_on_sigterm(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "worker", "--threads", "1"], env=environment(tmp_path / "data"), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr.readline().startswith("Worker ")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
