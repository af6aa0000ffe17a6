"""Silent services: a socket that accepts and never answers, and stopped processes."""

import contextlib
import os
import signal
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from services.installed import program


class Silent:
    """A server that accepts every connection, takes what is sent, and never answers."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = int(self._listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it and its connections."""
        self._listener.close()


def _with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(process for child in children for process in _with_children(int(child)))]


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process and its children: the kernel accepts connections and data for them, and they say nothing."""
    os.kill(pid, signal.SIGSTOP)  # first, so that it starts no others
    processes = _with_children(pid)
    for process in processes[1:]:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


class Halting:
    """
    A server that sends *beginning* of an answer to each connection and then says nothing.

    Args:
        every_s: seconds between two bytes of *rest*, which follow the beginning without an end.
    """

    def __init__(self, beginning: bytes, *, every_s: float = 0.0, rest: bytes = b"") -> None:
        self.answered = 0
        self._ended = threading.Event()

        class Connection(socketserver.BaseRequestHandler):
            def handle(handler) -> None:  # noqa: N805 - of the connection
                self.answered += 1
                with contextlib.suppress(OSError):
                    handler.request.sendall(beginning)
                    while rest and not self._ended.wait(every_s):
                        handler.request.sendall(rest)
                    self._ended.wait(120)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Connection)
        self.port = int(self._server.server_address[1])
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


@contextlib.contextmanager
def dropped() -> Iterator[str]:
    """Provide an address whose connections are dropped: its backlog is full, so that the kernel answers no other."""
    listener = socket.socket()
    waiting = []
    with listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        try:
            for _ in range(3):
                client = socket.socket()
                client.setblocking(False)
                client.connect_ex(listener.getsockname())
                waiting.append(client)
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for client in waiting:
                client.close()


@contextlib.contextmanager
def packets_dropped(*ports: int) -> Iterator[None]:
    """Drop all packets of these ports of this machine, as a broken network does. Requires root and nftables."""
    table = f"muniment_{os.getpid()}_{ports[0]}"
    numbers = ", ".join(map(str, ports))
    rules = f"""
        table inet {table} {{
            chain broken {{
                type filter hook input priority 0;
                tcp dport {{ {numbers} }} drop
                tcp sport {{ {numbers} }} drop
            }}
        }}
    """
    subprocess.run([program("nft"), "-f", "-"], input=rules, text=True, check=True, timeout=30)
    try:
        yield
    finally:
        subprocess.run([program("nft"), "delete", "table", "inet", table], check=True, timeout=30)
