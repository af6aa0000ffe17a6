"""Bring an instance to this version: database migrations, then the published documents."""

from pathlib import Path
from typing import Final, NamedTuple

from django.db import connection

from muniment.accounts.keys import keyring
from muniment.jobs import queue
from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.registry import currency
from muniment.registry.declared.current import refresh
from muniment.registry.publishing import signed_log
from muniment.registry.publishing.publisher import renew_outdated
from muniment.registry.publishing.republishing import replace_outdated
from muniment.registry.settings.versions import settle
from muniment.store.database.form import require_known
from muniment.store.database.migrations import has_begun, migrate
from muniment.store.sqlite import lost

KIND: Final = "registry.upgraded"
AFTER_S: Final = 600
"""Seconds between an upgrade, or a find, and the next search for documents of nodes of the earlier version."""


class Upgrade(NamedTuple):
    """
    The result of an upgrade.

    Args:
        migrations: the number of migrations applied.
        renewed: whether every document was rendered again, because another version had written them, or with other
            declared fields.
    """

    migrations: int
    renewed: bool


def bring_up_to_date() -> Upgrade:
    """
    Apply pending migrations and a changed registry.toml, and render outdated documents.

    Wait for another process that is doing so.

    Raises:
        UnknownDatabase: a newer version has contracted the database, or a version before 0.1.0 made it.
        WrongKey: the database uses a secret key that this process lacks.
        OtherCurrency: the stored amounts are in another currency than the settings say.
    """
    require_known()
    is_new = not has_begun()
    migrations = migrate()
    keyring.settle(is_new=is_new and migrations > 0)
    if connection.vendor == "sqlite":
        lost.note(Path(connection.settings_dict["NAME"]))
    currency.settle()
    settle()
    refresh()
    renewed = renew_outdated()
    signed_log.prepare()
    if renewed and connection.vendor == "postgresql":
        queue.enqueue(KIND, delay_s=AFTER_S)
    return Upgrade(migrations, renewed)


def _replace_outdated(run: JobRun) -> dict[str, int]:
    """Publish again what nodes of the earlier version have published since, until they publish nothing more."""
    replaced = replace_outdated(lambda _: run.check())
    if replaced:
        queue.enqueue(KIND, delay_s=AFTER_S)
    return {"replaced": replaced}


HANDLER: Final = Handler(kind=KIND, work=_replace_outdated, lease_s=120, max_kills=5)
