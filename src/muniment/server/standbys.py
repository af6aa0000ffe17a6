"""The replication that protects acknowledged changes: synchronous_commit, and the standbys of the database."""

from typing import Final, NamedTuple

from django.db import connection

from muniment.kernel.phrases.phrase import Phrase, marked

_ASK: Final = (
    "SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),"
    " (SELECT count(*) FROM pg_stat_replication), pg_is_in_recovery(), current_setting('fsync')"
)
_LOSES: Final = marked("a failover may lose the latest acknowledged changes")


class Replication(NamedTuple):
    """The settings that PostgreSQL reports for the connection of the product."""

    commit: str
    names: str
    """The synchronous standbys; Patroni writes them."""
    standbys: int
    """The number of connected standbys. Roles without privileges see no more than that."""
    is_standby: bool
    fsync: str


class Verdict(NamedTuple):
    """The protection of the instance in words, and whether an operator should look."""

    says: str
    warns: bool = False


def read() -> Replication:
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        return Replication(*cursor.fetchone())


def judge(found: Replication) -> Verdict:
    """Return which replication protects the instance: none, asynchronous or synchronous."""
    if found.is_standby:
        return Verdict("this is a standby, which takes no changes; connect to the primary", warns=True)
    if found.commit == "off":
        return Verdict("synchronous_commit=off: a crash loses acknowledged changes; set it to on", warns=True)
    if found.fsync == "off":
        return Verdict("fsync=off: a power cut can destroy the database; set it to on", warns=True)
    return _by_standbys(found)


def _by_standbys(found: Replication) -> Verdict:
    connected = f"{found.standbys} standby{'' if found.standbys == 1 else 's'} connected"
    if not found.names and not found.standbys:
        return Verdict("none: the database has no standby")
    if not found.names:
        return Verdict(Phrase("asynchronous, {connected}: {loses}", connected=connected, loses=_LOSES))
    if found.commit == "local":
        says = Phrase(
            "synchronous_commit=local: changes do not wait for {names}, so {loses}; set it to on",
            names=found.names,
            loses=_LOSES,
        )
        return Verdict(says, warns=True)
    if not found.standbys:
        says = Phrase(
            "synchronous, but {connected}: changes are not confirmed, and are refused until one is", connected=connected
        )
        return Verdict(says, warns=True)
    return Verdict(
        Phrase("synchronous, {connected}: a change waits for {names}", connected=connected, names=found.names)
    )
