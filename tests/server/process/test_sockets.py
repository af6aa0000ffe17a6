"""An address that ending processes of a killed supervisor still hold is waited for; any other is refused at once."""

import socket

import pytest

from muniment.server.process.sockets import bind, bind_beside, share


@pytest.fixture
def taken():
    listener = socket.create_server(("127.0.0.1", 0))
    yield listener
    listener.close()


def test_an_address_of_orphans_is_taken_over_when_they_end(taken):
    share(taken)
    orphan = bind_beside(taken)
    orphan.listen()
    waited = []

    def pause(seconds):
        waited.append(seconds)
        if len(waited) == 3:
            taken.close()
            orphan.close()

    bind("127.0.0.1", orphan.getsockname()[1], pause=pause).close()
    assert len(waited) == 3


def test_processes_that_stay_are_refused_in_the_end(taken):
    share(taken)
    waited = []
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", taken.getsockname()[1], pause=waited.append)
    assert sum(waited) == pytest.approx(5)


def test_another_program_is_refused_at_once(taken):
    waited = []
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", taken.getsockname()[1], pause=waited.append)
    assert waited == []
