"""Read the public log for the API, from the database and with the keys that sign it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from muniment.api.public_log import CosignedCheckpoint
from muniment.kernel.signed_notes import Checkpoint
from muniment.store.public_log import LogState

T = TypeVar("T")


class DatabaseLog:
    """The log of this instance."""

    def read(self, work: Callable[[Any, Any], T]) -> T:
        """
        Call *work* with a connection in one snapshot, and with the log.

        Raises:
            Unavailable: the database cannot be read now.
        """
        from django.db import close_old_connections

        from muniment.store.database.retry import with_retry

        close_old_connections()
        try:
            return with_retry(_read, work)
        finally:
            close_old_connections()

    def sign(self, checkpoint: Checkpoint) -> str:
        from muniment.registry.publishing import signed_log

        return signed_log.sign_checkpoint(checkpoint)

    def cosigned(self, state: LogState) -> Sequence[CosignedCheckpoint]:
        from muniment.registry.publishing import witnesses

        return witnesses.cosigned(state.origin, state.size)


def _read(work: Callable[[Any, Any], T]) -> T:
    from django.db import connection

    from muniment.registry.publishing import signed_log
    from muniment.store.database.snapshots import snapshot

    connection.ensure_connection()
    with connection.wrap_database_errors, snapshot():
        log = signed_log.read_log(connection.connection)
        if log is not None:
            return work(connection.connection, log)
    signed_log.settle()  # the log has begun again
    return _read(work)
