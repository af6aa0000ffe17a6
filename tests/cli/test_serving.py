"""What the command that serves says at its start."""

import os

import pytest
from click.testing import CliRunner

from muniment import config
from muniment.cli import serving
from services.ports import free_port


@pytest.fixture(autouse=True)
def _settings_of_the_test_process():
    """Put the settings back, which the command replaces in its process."""
    before = config.current()
    yield
    config.use(before)


@pytest.mark.parametrize(("user", "warnings"), [(0, 1), (1000, 0)])
def test_a_server_that_runs_as_root_warns_in_one_line(monkeypatch, user, warnings):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(serving, "run", lambda _, listener, **__: listener.close())
    done = CliRunner().invoke(serving.serve, ["--port", str(free_port())])
    assert done.exit_code == 0, done.output
    lines = [line for line in done.output.splitlines() if "root" in line]
    assert len(lines) == warnings, done.output
    assert all(line.startswith("Warning: this runs as root.") for line in lines)
