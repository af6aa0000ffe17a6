"""A worker process with a slow kind of job, for tests that kill it. Run as a script: NAME LEASE_S PAUSE_S."""

import sys
import time


def main() -> None:
    import django

    django.setup()
    from muniment.jobs import handlers, queue
    from muniment.jobs.worker import Worker
    from muniment.kernel.ids import new_id

    name, lease_s, pause_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])

    def work(run: queue.JobRun) -> str:
        for number in range(5):
            run.step(f"part {number}", lambda: time.sleep(pause_s) or [name, new_id()], done=number + 1, total=5)
        return name

    handlers.register(handlers.Handler(kind="tests.slow", work=work, lease_s=lease_s, max_attempts=50))
    Worker(threads=1, name=name).start()
    print("started", flush=True)  # noqa: T201 - the test waits for this line
    time.sleep(600)


if __name__ == "__main__":
    main()
