"""A worker process that sends webhooks to receivers on loopback, for tests that kill it. Run: PORT CERTIFICATE."""

import ssl
import sys
import time


def main() -> None:
    import django

    django.setup()
    from muniment.jobs.worker import Worker
    from muniment.webhooks import delivering

    port, certificate = int(sys.argv[1]), sys.argv[2]
    delivering.CONNECTION.update(
        deadline_s=1.0,
        resolve=lambda *_: ["127.0.0.1"],
        is_allowed=lambda address: address == "127.0.0.1",
        port=port,
        tls=ssl.create_default_context(cafile=certificate),
    )
    delivering.PAUSES_S = (0.2,) * 200
    Worker(threads=1, name="sender").start()
    print("started", flush=True)  # noqa: T201 - the test waits for this line
    time.sleep(600)


if __name__ == "__main__":
    main()
