"""
The job of scheduled backups: one process of an instance starts it at each interval.

A process of its own makes the backup, at low priority, so that requests do not wait for the interpreter or the
disk. It ends with the process that runs the job.
"""

import logging
import subprocess
import sys
import tempfile
import time
from typing import IO, Final

import msgspec

from muniment.backup.scheduled.schedule import pace_s
from muniment.backup.scheduled.status import KIND, JobResult, has_run
from muniment.jobs.handlers import Handler, Postponed
from muniment.jobs.queue import JobRun
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase

COMMAND: Final = (sys.executable, "-m", "muniment", "backup", "--scheduled")
LOOK_S: Final = 0.5
"""Seconds between checks of the job for a request to stop."""
LONGEST_S: Final = 6 * 3600.0
ERROR_CHARACTERS: Final = 600
log = logging.getLogger(__name__)


def run_backup(run: JobRun) -> JSONObject:
    """
    Make a backup, unless they are paused, or this is the first run: an instance's first follows one interval later.

    One that an operator asks for is made at once.

    Raises:
        Postponed: it failed, and is tried again.
    """
    if not run.payload.get("asked") and (pace_s() == 0 or not has_run(except_job=run.id)):
        return {}
    out, error, code = _watched(run)
    if code != 0:
        reason = _last_words(error) or Phrase("the process ended with status {code}", code=code)
        log.warning("the scheduled backup failed: %s", reason)
        raise Postponed(reason)
    found = msgspec.json.decode(out, type=JobResult)
    for each in found.damaged:
        log.warning("backups in %s: %s", found.place, each)
    if found.name:
        log.info("backup made", extra={"name_of_backup": found.name, "bytes": found.size_bytes, "place": found.place})
    result: JSONObject = msgspec.to_builtins(found)
    return result


def _watched(run: JobRun) -> tuple[bytes, bytes, int]:
    """Run the command until it ends, and return its output, its errors and its status; end it if the job must stop."""
    deadline = time.monotonic() + LONGEST_S
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=out, stderr=errors) as process,  # noqa: S603 - this program itself
    ):
        try:
            while True:
                try:
                    # The input stays open: the command ends when it is closed, also by the death of this process.
                    process.wait(LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    run.check()
                    if time.monotonic() > deadline:
                        raise Postponed(
                            Phrase("it took longer than {hours:.0f} hours", hours=LONGEST_S / 3600)
                        ) from None
            return _read(out), _read(errors), process.returncode
        except BaseException:
            process.kill()
            raise


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _last_words(error: bytes) -> str:
    text = error.decode("utf-8", "replace").strip()
    return " ".join(text[text.rfind("error: ") :].removeprefix("error: ").split())[:ERROR_CHARACTERS]


HANDLER: Final = Handler(kind=KIND, work=run_backup, max_attempts=4, back_off_s=30.0, lane="backup")
