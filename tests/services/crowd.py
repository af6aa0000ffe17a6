"""Run operations concurrently."""

import threading

from django.db import connection


def at_once(works):
    """Run all *works* at the same moment, and return what each raised or returned."""
    outcomes, barrier = [], threading.Barrier(len(works))

    def run(work):
        try:
            barrier.wait(30)
            outcomes.append(work())
        except Exception as error:  # noqa: BLE001 - what was raised is what is looked at
            outcomes.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(outcomes) == len(works)
    return outcomes
