"""The two tool servers start independently of each other."""

import asyncio

from muniment.server.app.app import MANAGE_PATH, PUBLIC_PATH
from muniment.server.app.tool_servers import ToolServers


class Front:
    """As much of the application as the tool servers see."""

    def __init__(self):
        self.mounts = {}


def servers(monkeypatch, failing):
    """Return tool servers that only note that they start, the *failing* ones after an error."""
    front = Front()
    made = ToolServers(front, bridge=None, file=lambda: None, startup=lambda: None)

    def starting(path, ready):
        async def mount():
            if path in failing:
                raise RuntimeError(path)
            front.mounts[path] = path
            ready.set()

        return mount

    monkeypatch.setattr(made, "_mount_public", starting(PUBLIC_PATH, made._public))
    monkeypatch.setattr(made, "_mount_owner", starting(MANAGE_PATH, made._owner))
    return front, made


def test_the_owner_server_starts_when_the_public_one_cannot(monkeypatch, caplog):
    async def run():
        front, made = servers(monkeypatch, failing={PUBLIC_PATH})
        made.mount()
        made.mount(has_database=True)
        await made.end()
        return front.mounts

    assert asyncio.run(run()) == {MANAGE_PATH: MANAGE_PATH}
    assert [str(record.exc_info[1]) for record in caplog.records] == [PUBLIC_PATH] * 2


def test_the_public_server_is_tried_again_with_the_database(monkeypatch, caplog):
    failing = {PUBLIC_PATH}

    async def run():
        front, made = servers(monkeypatch, failing)
        made.mount()
        await made._mounting
        failing.clear()
        made.mount(has_database=True)
        await made.end()
        return set(front.mounts)

    assert asyncio.run(run()) == {PUBLIC_PATH, MANAGE_PATH}
    assert len(caplog.records) == 1
