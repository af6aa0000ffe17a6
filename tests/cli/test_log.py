"""`muniment log`: what the public log is, and another key for it."""

import pytest

from muniment.config import Config, ConfigError
from muniment.kernel.signed_notes import WitnessKey
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


def test_witnesses_are_shown_with_what_they_have_cosigned(tmp_path):
    data = new_instance(tmp_path / "data")
    (data / "settings.toml").write_text(f'witnesses = ["{WITNESS.text()}", "http://127.0.0.1:9/w"]\n')
    lines = run("log", "show", data=data).stdout.splitlines()[-2:]
    assert lines == ["witness: w.example http://127.0.0.1:9/w", "  cosigned: 0 leaves, 0 behind, at never"]


WITNESS = WitnessKey("w.example", bytes(range(32)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (WITNESS.text(), "the verifier key and the URL of each witness, separated by spaces"),
        (f"{WITNESS.text()} ftp://w.example", "must be a URL"),
        (f"{WITNESS.text()} https://", "must be a URL"),
        ("w.example+00000000+BAAA https://w.example", "not one of a witness"),
        (f"{WITNESS.text()} https://w.example " * 2, "must have a different key for each witness"),
        ("a b " * 17, "for at most 16 witnesses"),
    ],
)
def test_a_malformed_list_of_witnesses_is_refused(value, reason, tmp_path):
    with pytest.raises(ConfigError, match="MUNIMENT_WITNESSES") as refused:
        Config({"MUNIMENT_WITNESSES": value}, data=tmp_path)
    assert reason in str(refused.value)


def test_witnesses_are_read_by_key_and_url(tmp_path):
    config = Config({"MUNIMENT_WITNESSES": f" {WITNESS.text()}\n https://w.example/a/ "}, data=tmp_path)
    assert config.witnesses == ((WITNESS.text(), "https://w.example/a"),)
    assert str(config.witnesses[0]) == f"{WITNESS.text()} https://w.example/a"
    assert Config({}, data=tmp_path).witnesses == ()
