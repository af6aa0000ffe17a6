"""Bring an instance to this version: database migrations, then the published documents."""

from typing import NamedTuple

from muniment.accounts.keys import keyring
from muniment.registry.publishing.publisher import renew_outdated
from muniment.store.database.migrations import has_begun, migrate


class Upgrade(NamedTuple):
    """
    The result of an upgrade.

    Args:
        migrations: the number of migrations applied.
        renewed: whether every document was rendered again, because another version had written them.
    """

    migrations: int
    renewed: bool


def bring_up_to_date() -> Upgrade:
    """
    Apply pending migrations and render outdated documents, after waiting for any other process that does.

    Raises:
        WrongKey: the database uses a secret key that this process lacks.
    """
    is_new = not has_begun()
    migrations = migrate()
    keyring.settle(is_new=is_new and migrations > 0)
    return Upgrade(migrations, renew_outdated())
