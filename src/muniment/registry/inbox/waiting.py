"""Announce an item that waits for reviewers, so that a job checks it."""

from typing import Final

from muniment.jobs.queue import enqueue

CHECK: Final = "registry.item_waits"


def announce(subject: str) -> None:
    """Enqueue the checks of an item, in the caller's transaction: ``company:slug``, ``change:7``, ``petition:7``."""
    enqueue(CHECK, {"subject": subject}, group=CHECK, priority=1)
