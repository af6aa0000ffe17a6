"""`muniment feed`: what identifies the change feed, and another identity for it."""

from services.prepared import new_instance
from services.product import run


def test_the_feed_gets_another_identity_and_keeps_everything_else(tmp_path):
    data = new_instance(tmp_path / "data")
    told = run("feed", "renew", data=data).stdout
    shown = dict(line.split(": ") for line in run("feed", "show", data=data).stdout.splitlines())
    assert list(shown) == ["feed id", "edition", "chain", "state digest"]
    assert shown["feed id"] in told
    assert len(bytes.fromhex(shown["chain"])) == len(bytes.fromhex(shown["state digest"])) == 32
    assert "feed renew" in run("audit", data=data).stdout
