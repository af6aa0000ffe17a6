"""Connections leave open files for the rest of the process, so that accepting one does not fail."""

import resource

import pytest

from muniment.config import Config
from muniment.server.doctor import _connections
from muniment.server.process.sockets import (
    BACKLOG,
    RESERVED_FILES,
    backlog_within,
    connections_within,
    raise_file_limit,
    reachable_file_limit,
)


@pytest.fixture
def limits(monkeypatch):
    """Have limits of open files that can be set like those of the system."""
    held = {"soft": 1024, "hard": 1024}

    def lower_or_raise(_, wanted):
        if wanted[0] > held["hard"] != resource.RLIM_INFINITY:
            message = "not allowed to raise the maximum limit"
            raise ValueError(message)
        held["soft"] = wanted[0]

    monkeypatch.setattr(resource, "getrlimit", lambda _: (held["soft"], held["hard"]))
    monkeypatch.setattr(resource, "setrlimit", lower_or_raise)
    return held


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, 1024, 1024),
        (1024, 4096, 4096),
        (1024, 524_288, 8000 + RESERVED_FILES + BACKLOG),
        (1024, resource.RLIM_INFINITY, 8000 + RESERVED_FILES + BACKLOG),
        (100_000, 100_000, 100_000),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows(limits, soft, hard, raised):
    limits.update(soft=soft, hard=hard)
    assert reachable_file_limit() == raised
    assert raise_file_limit() == connections_within(8000, raised)
    assert limits["soft"] == raised


def test_a_limit_that_cannot_be_raised_allows_fewer_connections(limits, monkeypatch, caplog):
    limits.update(soft=1024, hard=8192)

    def refuse(*_):
        raise OSError("not permitted")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_file_limit() == 512
    assert "fewer connections" in caplog.text


def test_doctor_says_how_many_connections_the_system_allows(limits):
    assert _connections(Config({})).mark == "WARN"
    limits.update(hard=100_000)
    assert _connections(Config({})).says == "8,000 in a process"


@pytest.mark.parametrize(
    ("files", "allowed"), [(8000, 4000), (4512, 4000), (4096, 3584), (1024, 512), (300, 150), (64, 8), (20, 8)]
)
def test_connections_leave_files_for_the_rest(files, allowed):
    assert connections_within(4000, files) == allowed
    assert connections_within(6, files) == 6


def test_few_clients_wait_to_be_accepted_where_few_files_are_left():
    few = [(4000, 4512), (512, 1024), (200, 400), (8, 64)]
    assert [backlog_within(*each) for each in few] == [BACKLOG, BACKLOG, 12, 4]
    assert backlog_within(60, 100_000) == BACKLOG, "an operator who allows few connections has files for those who wait"
