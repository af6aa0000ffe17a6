"""How the database protects acknowledged changes: synchronous_commit, its standbys, and what Patroni is set to."""

import http.client
import json
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django.db import connection

from muniment.kernel.phrases.phrase import Phrase, marked

PATIENCE_S: Final = 3.0
_ASK: Final = (
    "SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),"
    " (SELECT count(*) FROM pg_stat_replication), pg_is_in_recovery(), current_setting('fsync')"
)
_LOSES: Final = marked("a failover may lose the latest acknowledged changes")


class Replication(NamedTuple):
    """What PostgreSQL says about the connection of the product."""

    commit: str
    names: str
    """The synchronous standbys; Patroni writes them."""
    standbys: int
    """The number of connected standbys. Roles without privileges see no more than that."""
    is_standby: bool
    fsync: str


class Verdict(NamedTuple):
    """What protects the instance, and whether an operator should look."""

    says: str
    warns: bool = False


def read() -> Replication:
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        return Replication(*cursor.fetchone())


def patroni_settings(url: str) -> dict[str, Any] | None:
    """Return the dynamic settings of Patroni; None if it does not answer."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    asked = kind(parts.hostname or "", parts.port, timeout=PATIENCE_S)
    try:
        asked.request("GET", f"{parts.path.rstrip('/')}/config")
        response = asked.getresponse()
        found = json.loads(response.read()) if response.status == http.client.OK else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        asked.close()
    return found if isinstance(found, dict) else None


def judge(found: Replication, patroni_url: str = "", patroni: dict[str, Any] | None = None) -> Verdict:
    """
    Return which replication protects the instance: none, asynchronous, synchronous or strict.

    Args:
        patroni: its dynamic settings; None if it did not answer, or if *patroni_url* is empty.
    """
    if found.is_standby:
        return Verdict("this is a standby, which takes no changes; connect to the primary", warns=True)
    if found.commit == "off":
        return Verdict("synchronous_commit=off: a crash loses acknowledged changes; set it to on", warns=True)
    if found.fsync == "off":
        return Verdict("fsync=off: a power cut can destroy the database; set it to on", warns=True)
    if patroni_url and patroni is None:
        return Verdict(
            Phrase(
                "{says}; Patroni does not answer at {patroni_url}", says=_by_names(found).says, patroni_url=patroni_url
            ),
            warns=True,
        )
    return _by_names(found) if patroni is None else _by_patroni(found, patroni)


def _by_names(found: Replication) -> Verdict:
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


def _by_patroni(found: Replication, patroni: dict[str, Any]) -> Verdict:
    mode = "synchronous_mode_strict" if patroni.get("synchronous_mode_strict") else "synchronous_mode"
    is_on = patroni.get("synchronous_mode") in {True, "on", "quorum"}
    plain = _by_names(found)
    if not is_on or plain.warns:
        return plain
    if not found.names:
        return Verdict(
            Phrase("{mode} is set, but no standby is synchronous now: {loses}", mode=mode, loses=_LOSES), warns=True
        )
    stops = mode == "synchronous_mode_strict"
    without = Phrase("changes stop") if stops else Phrase("changes continue, and a failover may lose them")
    return Verdict(Phrase("{mode}: {says}; without a standby {without}", mode=mode, says=plain.says, without=without))
