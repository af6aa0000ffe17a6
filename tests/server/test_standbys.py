"""`muniment doctor` on replication: what protects acknowledged changes, and what does not."""

import pytest

from muniment.server.standbys import Replication, judge
from services.product import run

ALONE = Replication("on", "", 0, is_standby=False, fsync="on")
SYNC = ALONE._replace(names="n1", standbys=2)


@pytest.mark.parametrize(
    ("found", "says", "warns"),
    [
        (ALONE, "none: the database has no standby", False),
        (ALONE._replace(standbys=2), "asynchronous, 2 standbys connected: a failover may lose", False),
        (SYNC, "synchronous, 2 standbys connected: a change waits for n1", False),
        (SYNC._replace(names="*", standbys=0), "synchronous, but 0 standbys connected: changes are not confirm", True),
        (SYNC._replace(commit="off"), "synchronous_commit=off: a crash loses acknowledged changes", True),
        (SYNC._replace(commit="local"), "synchronous_commit=local: changes do not wait for n1", True),
        (ALONE._replace(fsync="off"), "fsync=off: a power cut can destroy the database", True),
        (ALONE._replace(is_standby=True), "this is a standby", True),
    ],
)
def test_the_database_tells_what_protects_changes(found, says, warns):
    verdict = judge(found)
    assert (verdict.says.startswith(says), verdict.warns) == (True, warns), verdict


@pytest.mark.postgresql
def test_doctor_warns_of_a_database_that_loses_acknowledged_changes(postgres, tmp_path):
    url = postgres.create("careless")
    postgres.execute("ALTER DATABASE careless SET synchronous_commit = off")
    told = run("doctor", data=tmp_path / "data", database_url=url, check=False).stdout
    assert "WARN  replication: synchronous_commit=off: a crash loses acknowledged changes" in told
