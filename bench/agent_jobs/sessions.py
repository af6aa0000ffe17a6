"""A session of an agent with one server, counted; and two ways to drive it: a script, and a model."""

import asyncio
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import httpx
from agent_jobs.jobs import Job, filled
from mcp.shared.exceptions import MCPError

MOST_TURNS = 25


@dataclass
class Session:
    """Calls tools and counts what enters the model's context."""

    client: object
    url: str = ""
    token: str = ""
    calls: int = 0
    answer_bytes: int = 0
    wrong_turns: list = field(default_factory=list)

    async def call(self, name: str, arguments: Mapping) -> dict:
        """Return the structured content of an answer, or what the protocol refused."""
        try:
            result = await self.client.call_tool(name, dict(arguments))
        except MCPError as error:
            content = {"error": {"code": str(error.error.code), "message": error.error.message}}
            failed = True
        else:
            content, failed = result.structured_content, bool(result.is_error)
        self.note(name, content, failed=failed)
        return content

    def note(self, name: str, content: Mapping, *, failed: bool) -> None:
        """Count a call and its answer."""
        self.calls += 1
        self.answer_bytes += len(text_of(content).encode())
        error = content.get("error") or {}
        if failed:
            self.wrong_turns.append(f"{name}: {error.get('message', 'refused')}")


@contextmanager
def at_hand(job: Job) -> Iterator[Path]:
    """Yield a folder of the user with the files that the job speaks of."""
    with tempfile.TemporaryDirectory(prefix="agent-job-") as name:
        for file, size in job.files.items():
            beginning = b"%PDF-1.4\n" if file.endswith(".pdf") else b""
            text = beginning + b"The tide is kept. " * (size // 18 + 1)
            Path(name, file).write_bytes(text[:size])
        yield Path(name)


def confirm_of(answer: dict) -> str:
    """Return the token that confirms a call that asks first; "" if it does not ask."""
    data = answer.get("data")
    return data.get("confirmation", {}).get("confirm", "") if isinstance(data, dict) else ""


def text_of(content) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


async def by_script(job: Job, session: Session, known: dict) -> str:
    """Do what the job's script says, and confirm what is asked; return its answer."""
    number = 0
    for step in job.script:
        if "say" in step:
            return filled(f"{step['say']} ", known)
        if "put" in step:
            with at_hand(job) as folder:
                content = (folder / step["file"]).read_bytes()
            async with httpx.AsyncClient() as shell:
                sent = await shell.put(
                    filled(step["put"], known), content=content, headers=filled(step.get("headers", {}), known)
                )
            sent.raise_for_status()
            continue
        number += 1
        arguments = filled(step.get("args", {}), known)
        found = await session.call(step["call"], arguments)
        if confirm := confirm_of(found):
            found = await session.call(step["call"], {**arguments, "confirm": confirm})
        known[str(number)] = found
    raise AssertionError(f"{job.id} says nothing")


@dataclass(frozen=True)
class Model:
    """
    A model behind an OpenAI-compatible endpoint.

    Args:
        url: up to and without /chat/completions.
        key: sent as a bearer token; none if empty.
    """

    url: str
    name: str
    key: str = ""
    timeout_s: float = 180

    async def drive(self, job: Job, session: Session, known: dict) -> str:
        """Let the model do the job with the server's tools; return its answer."""
        # An empty bearer is an illegal header value.
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.input_schema,
                },
            }
            for tool in (await session.client.list_tools()).tools
        ]
        messages = [
            {"role": "system", "content": f"{session.client.instructions or ''}\n\n{_TASK}"},
            {"role": "user", "content": filled(job.prompt, known)},
        ]
        with at_hand(job) as folder:
            user = _User(folder) if job.files else None
            tools += [_User.TOOL] if user else []
            async with httpx.AsyncClient(headers=headers, timeout=self.timeout_s) as endpoint:
                for _ in range(MOST_TURNS):
                    body = {"model": self.name, "messages": messages, "tools": tools, "temperature": 0}
                    message = await self._ask(endpoint, body)
                    messages.append(message)
                    asked = message.get("tool_calls") or []
                    if not asked:
                        return re.sub(r"<think>.*?</think>", "", message.get("content") or "", flags=re.DOTALL)
                    for each in asked:
                        content = await self._call(session, each["function"], user)
                        messages.append({"role": "tool", "tool_call_id": each["id"], "content": text_of(content)})
        return ""

    async def _ask(self, endpoint: httpx.AsyncClient, body: dict) -> dict:
        for left in (2, 1, 0):
            answer = await endpoint.post(f"{self.url.rstrip('/')}/chat/completions", json=body)
            if answer.status_code not in {408, 429, 500, 502, 503, 504} or not left:
                break
        answer.raise_for_status()
        return answer.json()["choices"][0]["message"]

    @staticmethod
    async def _call(session: Session, function: dict, user: "_User | None") -> dict:
        try:
            arguments = json.loads(function.get("arguments") or "{}")
            assert isinstance(arguments, dict)
        except (ValueError, AssertionError):
            session.calls += 1
            session.wrong_turns.append(f"{function['name']}: its arguments are not a JSON object")
            return {"error": {"code": "bad_request", "message": "The arguments are not a JSON object."}}
        if user and function["name"] == _User.NAME:
            return await asyncio.to_thread(user.run, arguments.get("command", ""))
        found = await session.call(function["name"], arguments)
        if user:
            user.hear(found)
        return found


class _User:
    """
    The user at the computer, who runs a command in the folder of the file.

    Only a command that an answer of the server offered, to the letter: a model gets no shell.
    """

    NAME = "user_runs_command"
    TOOL: ClassVar = {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "Asks the user to run a command of an answer, unchanged, in the folder with their files.",
            "parameters": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"],
            },
        },
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._offered: set[str] = set()

    def hear(self, answer: Mapping) -> None:
        data = answer.get("data")
        if isinstance(data, dict) and isinstance(data.get("command"), str):
            self._offered.add(data["command"])

    def run(self, command: object) -> dict:
        if command not in self._offered:
            return {"error": {"code": "refused", "message": "I only run a command that the server gave, unchanged."}}
        done = subprocess.run(
            ["/bin/sh", "-c", str(command)], cwd=self._folder, capture_output=True, text=True, timeout=60, check=False
        )
        return {"exitCode": done.returncode, "output": (done.stdout + done.stderr)[-2_000:]}


_TASK = (
    "Do what the user asks with these tools. Do not ask back: the user has agreed to what the request names. "
    "End with a short answer in plain words that names the facts asked for."
)
