"""
Run `muniment` with an API that answers 503 until everything is imported: `python bench/warmed.py serve --port N`.

For measurements that begin with the first 200, so that startup is not counted as the cost of a request. Exports are
disabled.
"""

import asyncio

from muniment import cli
from muniment.server.app import app, startup, tool_servers
from muniment.server.process import server_process

HELD = []
MOUNTED = []


class Held(app.App):
    """An application that enables its API when startup is complete."""

    is_over = False
    _api = None

    @property
    def api(self):
        return self._api if Held.is_over else None

    @api.setter
    def api(self, api):
        self._api = api

    def open_api(self, api):
        super().open_api(api)
        self.fast_path.rest, self._rest = None, self.fast_path.rest
        HELD.append(self)


class HeldTools(tool_servers.ToolServers):
    """Tool servers that are mounted again when startup is complete: before, they find no API."""

    def begin(self):
        super().begin()
        MOUNTED.append((asyncio.get_running_loop(), self))


def over():
    release_free_memory()
    Held.is_over = True
    for front in HELD:
        front.fast_path.rest = front._rest
    for loop, tools in MOUNTED:
        loop.call_soon_threadsafe(tools.mount)


release_free_memory = startup.release_free_memory
startup.release_free_memory = over
server_process.App = Held
server_process.ToolServers = HeldTools

if __name__ == "__main__":
    cli.main()
