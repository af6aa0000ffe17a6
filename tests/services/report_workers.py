"""
`muniment worker` with a slow evaluator that logs each criterion. Run as a script: LOG PAUSE_S.

Each criterion takes PAUSE_S longer. A line of the log holds the time, the process, the run, the attempt and the
criterion; an attempt starts with a line for ``begin``.
"""

import dataclasses
import os
import sys
import threading
import time
from typing import Any


def main() -> None:
    import django

    django.setup()
    from muniment.assessments import operations
    from muniment.assessments.evaluation.rules import Rules
    from muniment.cli import main as command
    from muniment.jobs import handlers
    from muniment.jobs.queue import JobRun

    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    pause_s = float(sys.argv[2])
    under_way = threading.local()

    def tell(what: str) -> None:
        run = under_way.run
        os.write(log, f"{time.time()} {os.getpid()} {run.id} {run.attempt} {what}\n".encode())

    class Slow(Rules):
        def judge_one(self, criterion: Any, scale: Any, inputs: Any) -> Any:
            tell(criterion["id"])
            time.sleep(pause_s)
            return super().judge_one(criterion, scale, inputs)

    def execute(run: JobRun) -> None:
        under_way.run = run
        tell("begin")
        operations.execute(run)

    operations.choose_evaluator = lambda *_: Slow()
    found = handlers.handler(operations.KIND)
    assert found is not None
    handlers.register(dataclasses.replace(found, work=execute))
    command(["worker", "--threads", "4"])


if __name__ == "__main__":
    main()
