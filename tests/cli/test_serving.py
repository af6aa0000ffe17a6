"""What the command that serves says at its start."""

import errno
import os
import socket

import pytest
from click.testing import CliRunner

from muniment import config
from muniment.cli import main, serving
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


def started(*arguments):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 1
    return done.stderr


def test_a_port_that_another_process_has_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = f"Cannot listen on 127.0.0.1:{port}: Address already in use. Another process does: choose another port"
        assert said in started("serve", "--port", str(port))


@pytest.mark.parametrize(
    ("raised", "way_out"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Ports below 1024 are for privileged users"),
        (OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"), "does not have that address: check --host"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known. Check --host."),
    ],
    ids=["a port of the system", "an address of another machine", "no address"],
)
def test_an_address_that_cannot_be_used_is_refused_with_the_way_out(monkeypatch, raised, way_out):
    def refuse(*_):
        raise raised

    monkeypatch.setattr(serving, "bind", refuse)
    assert way_out in started("serve", "--port", "80")


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path):
    link = tmp_path / "data"
    link.symlink_to(tmp_path / "on a disk that is not there")
    said = started("--data", str(link), "serve", "--port", str(free_port()))
    assert f"The data folder {link} cannot be used: File exists. Name a folder that this user may write" in said
