"""`muniment log`: what the public log is, and another key for it."""

from services.prepared import new_instance
from services.product import run


def test_the_log_is_shown_and_its_key_rotated(tmp_path):
    data = new_instance(tmp_path / "data")
    shown = [line.partition(": ") for line in run("log", "show", data=data).stdout.splitlines()]
    assert [name for name, _, _ in shown] == ["origin", "size", "root", "begun at", "key"]
    (first,) = [value for name, _, value in shown if name == "key"]
    told = run("log", "rotate-key", data=data).stdout
    keys = [line.removeprefix("key: ") for line in run("log", "show", data=data).stdout.splitlines()][-2:]
    assert keys[0] in told
    assert keys[1] == first
    assert "log rotate-key" in run("audit", data=data).stdout
