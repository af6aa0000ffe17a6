"""`muniment doctor` on replication: what protects acknowledged changes, and what does not."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from muniment.server.replication import Replication, judge, patroni_settings
from services.ports import free_port
from services.product import run

ALONE = Replication("on", "", 0, is_standby=False, fsync="on")
SYNC = ALONE._replace(names="n1", standbys=2)
PATRONI = "http://127.0.0.1:8008"


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
def test_the_database_alone_tells(found, says, warns):
    verdict = judge(found)
    assert (verdict.says.startswith(says), verdict.warns) == (True, warns), verdict


@pytest.mark.parametrize(
    ("found", "patroni", "says", "warns"),
    [
        (SYNC, {"synchronous_mode": True}, "without a standby changes continue, and a failover may lose them", False),
        (SYNC, {"synchronous_mode": "quorum"}, "synchronous_mode: synchronous, 2 standbys", False),
        (SYNC, {"synchronous_mode": True, "synchronous_mode_strict": True}, "without a standby changes stop", False),
        (ALONE, {"synchronous_mode": True}, "no standby is synchronous now", True),
        (ALONE._replace(standbys=1), {"synchronous_mode": False}, "asynchronous, 1 standby connected", False),
        (SYNC._replace(commit="off"), {"synchronous_mode": True}, "synchronous_commit=off", True),
        (SYNC, None, "Patroni does not answer at http://127.0.0.1:8008", True),
    ],
)
def test_patroni_tells_what_happens_without_a_standby(found, patroni, says, warns):
    verdict = judge(found, PATRONI, patroni)
    assert (says in verdict.says, verdict.warns) == (True, warns), verdict


class _Patroni(BaseHTTPRequestHandler):
    said: bytes = b""

    def do_GET(self):
        self.send_response(200 if self.path == "/config" else 404)
        self.end_headers()
        self.wfile.write(self.said)

    def log_message(self, *_):
        """Write no log line."""


@pytest.mark.parametrize(
    ("said", "found"),
    [(json.dumps({"synchronous_mode": True}).encode(), {"synchronous_mode": True}), (b"[]", None), (b"<", None)],
)
def test_the_settings_of_patroni_are_read(said, found, monkeypatch):
    monkeypatch.setattr(_Patroni, "said", said)
    with HTTPServer(("127.0.0.1", 0), _Patroni) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        assert patroni_settings(f"http://127.0.0.1:{server.server_port}/") == found
        thread.join(5)


def test_a_patroni_that_is_away_is_no_answer():
    assert patroni_settings(f"http://127.0.0.1:{free_port()}") is None


@pytest.mark.postgresql
def test_doctor_warns_of_a_database_that_loses_acknowledged_changes(postgres, tmp_path):
    url = postgres.create("careless")
    postgres.execute("ALTER DATABASE careless SET synchronous_commit = off")
    told = run("doctor", data=tmp_path / "data", database_url=url, check=False).stdout
    assert "WARN  replication: synchronous_commit=off: a crash loses acknowledged changes" in told
