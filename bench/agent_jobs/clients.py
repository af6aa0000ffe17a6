"""
Any client of the protocol: a command that does a job by itself, counted on its way to the server.

The command gets the address of one tool server in AGENT_JOBS_SERVER, a bearer token in AGENT_JOBS_TOKEN (empty for the
public server), the request on its standard input, and the files of the job in its working folder. It prints the answer.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from agent_jobs.jobs import Job, filled
from agent_jobs.sessions import Session, at_hand

_LOST = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "content-length"}
"""Headers of one connection, which a proxy does not pass on."""
_EVENT = re.compile(rb"^data: ?(.*?)\r?$", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """
    A client that is started for each job.

    Args:
        line: split as a shell does, and run without one.
        timeout_s: after which its process group is ended.
    """

    line: str
    timeout_s: float = 600

    async def drive(self, job: Job, session: Session, known: dict) -> str:
        """Let the command do the job; return what it prints."""
        return await asyncio.to_thread(self._run, job, session, filled(job.prompt, known))

    def _run(self, job: Job, session: Session, request: str) -> str:
        with counted(session) as address, at_hand(job) as folder:
            named = {"AGENT_JOBS_SERVER": address, "AGENT_JOBS_TOKEN": session.token}
            started = subprocess.Popen(
                shlex.split(self.line),
                env={**os.environ, **named},
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            try:
                answer, _ = started.communicate(request, timeout=self.timeout_s)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.communicate()
                raise
        if started.returncode:
            message = f"the command ended with {started.returncode}"
            raise RuntimeError(message)
        return answer


@contextmanager
def counted(session: Session) -> Iterator[str]:
    """Yield the address of a proxy on loopback that counts the tool calls to the session's server."""
    proxy = _Proxy(session)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}{urlsplit(session.url).path}"
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()


class _Proxy(ThreadingHTTPServer):
    """Stands between a client and the server of its session."""

    daemon_threads = True

    def __init__(self, session: Session) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.session, self.lock = session, threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    """Passes a request on, and notes the calls in it."""

    server: "_Proxy"

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._pass_on()

    def do_GET(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _LOST}
        session, target = self.server.session, urlsplit(self.server.session.url)
        upstream = HTTPConnection(target.hostname, target.port, timeout=120)
        try:
            upstream.request(self.command, self.path, body, {**headers, "Host": target.netloc})
            answer = upstream.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _LOST:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            received = b""
            while part := answer.read1(65_536):
                received += part
                self._chunk(part)
            with self.server.lock:  # before the end of the answer, so that a client that has it was counted
                _count(session, body, received)
            self._chunk(b"")
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client went away
        finally:
            upstream.close()

    def _chunk(self, part: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing: the job's row tells."""


def _count(session: Session, sent: bytes, received: bytes) -> None:
    calls = {each["id"]: each for each in _messages(sent) if each.get("method") == "tools/call" and "id" in each}
    answers = _messages(received) or [each for line in _EVENT.findall(received) for each in _messages(line)]
    for each in answers:
        if call := calls.get(each.get("id")):
            result = each.get("result") or {}
            refusal = {"error": {"code": "", **each.get("error", {})}} if "error" in each else None
            content = refusal or result.get("structuredContent") or {}
            if result.get("resultType") != "input_required":
                session.note(call["params"]["name"], content, failed=bool(refusal or result.get("isError")))


def _messages(text: bytes) -> list[dict]:
    try:
        found = json.loads(text)
    except ValueError:
        return []
    return [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]
