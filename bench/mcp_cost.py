"""
Measure the cost of a request to the public tool server.

    python bench/mcp_cost.py [--requests 20000]

Each row is the CPU time of one server process (the product's application on uvicorn, httptools and uvloop, without a
rate limit) divided by the requests it answered, over four kept connections on loopback. A request is sent in one piece,
or in two where the row says so; a body that arrives after its head keeps a request off the fast path. Exits with 1 if
tools/call get_company costs more than 120 us in either era.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import uvloop

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from make.published import Publisher, company
from services.mcp import legacy, modern
from services.ports import free_port

CEILING_US = 120
CONNECTIONS = 4
COMPANIES = 1_000
ROWS = {
    "get_company, modern": modern("tools/call", {"name": "get_company", "arguments": {"slug": "company-500"}}),
    "get_company, 2025-11-25": legacy("tools/call", {"name": "get_company", "arguments": {"slug": "company-500"}}),
    "list_companies, modern": modern("tools/call", {"name": "list_companies", "arguments": {}}),
    "list_companies, 2025-11-25": legacy("tools/call", {"name": "list_companies", "arguments": {}}),
    "tools/list, modern": modern("tools/list"),
    "tools/list, 2025-11-25": legacy("tools/list"),
}


def serve(file: Path, port: int) -> None:
    """Run one server; a child process does nothing else."""
    import uvicorn

    from muniment.config import Config
    from muniment.mcp.protocol.http import OriginPolicy
    from muniment.mcp.protocol.transport import ToolServer
    from muniment.mcp.tools.public import public_declarations
    from muniment.schema.objects import registry_schema
    from muniment.server.app.app import App
    from muniment.server.fastpath.protocol import FastPathProtocol
    from muniment.server.fastpath.tools import PublicToolAnswers
    from muniment.store.reader import Reader

    offer = public_declarations(
        Reader(file), base_url="http://127.0.0.1", registry_name="Bench", schema=registry_schema("USD")
    )
    front = App(Config({}, rate_limit=0))
    server = ToolServer(offer, gate=OriginPolicy(""), limiter=front.limiter)
    front.mounts["/api/mcp"] = server
    front.fast_path.tools[b"/api/mcp"] = PublicToolAnswers(server)

    async def main():
        config = uvicorn.Config(
            front,
            host="127.0.0.1",
            port=port,
            http=FastPathProtocol,
            loop="uvloop",
            lifespan="off",
            log_level="error",
            access_log=False,
        )
        await uvicorn.Server(config).serve()

    uvloop.run(main())


def ask(connection: socket.socket, pieces: list[bytes], times: int) -> None:
    """Send a request repeatedly over one connection, each after the answer to the previous one."""
    for _ in range(times):
        for piece in pieces:
            connection.sendall(piece)
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, rest = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), data[:300]
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        missing = length - len(rest)
        while missing:
            missing -= len(connection.recv(min(missing, 65536)))


def cost_us(process: psutil.Process, port: int, pieces: list[bytes], times: int) -> float:
    """Return the process's CPU microseconds per request over *times* requests."""

    def work(count: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(connection, pieces, count)

    work(50)
    before = sum(process.cpu_times()[:2])
    threads = [threading.Thread(target=work, args=(times // CONNECTIONS,)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (sum(process.cpu_times()[:2]) - before) / (times // CONNECTIONS * CONNECTIONS) * 1e6


def start(file: Path, port: int) -> subprocess.Popen[bytes]:
    """Start a server and wait until it listens."""
    child = subprocess.Popen([sys.executable, __file__, "--serve", "--file", str(file), "--port", str(port)])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        time.sleep(0.05)
    child.kill()
    raise TimeoutError(port)


def measure(requests: int) -> int:
    """Measure and print every row; return the exit code."""
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "published.sqlite3"
        publisher = Publisher(file)
        publisher.publish(*(company(n, body="A paragraph of forty characters, or so. " * 50) for n in range(COMPANIES)))
        publisher.close()
        port = free_port()
        child = start(file, port)
        try:
            print(f"{'':44}{'us':>9}")
            for name, (headers, body) in ROWS.items():
                lines = "".join(f"{key}: {value}\r\n" for key, value in headers)
                head = f"POST /api/mcp HTTP/1.1\r\n{lines}content-length: {len(body)}\r\n\r\n".encode()
                for sent, pieces in (("", [head + body]), (", in two pieces", [head, body])):
                    # The least is the one least disturbed by a neighbour's load.
                    cost = min(cost_us(psutil.Process(child.pid), port, pieces, requests) for _ in range(2))
                    print(f"{name + sent:44}{cost:9.0f}")
                    if name.startswith("get_company") and not sent:
                        failed = failed or cost > CEILING_US
        finally:
            child.terminate()
            child.wait(10)
    return int(failed)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.file, given.port)
        return 0
    return measure(given.requests)


if __name__ == "__main__":
    os._exit(main())
