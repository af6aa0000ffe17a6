"""A session of an agent with one server, counted; and the two ways to drive it: a script, and a model."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
from agent_jobs.jobs import Job, filled
from mcp.shared.exceptions import MCPError

MOST_TURNS = 25
CONFIRMATION = "confirmation_required"
"""The reason of a refusal that is no wrong turn: the next call confirms it."""


@dataclass
class Session:
    """Calls tools and counts what enters the model's context."""

    client: object
    calls: int = 0
    answer_bytes: int = 0
    wrong_turns: list = field(default_factory=list)

    async def call(self, name: str, arguments: Mapping) -> dict:
        """Return the structured content of an answer, or what the protocol refused."""
        self.calls += 1
        try:
            result = await self.client.call_tool(name, dict(arguments))
        except MCPError as error:
            content = {"error": {"code": str(error.error.code), "message": error.error.message}}
            failed = True
        else:
            content, failed = result.structured_content, bool(result.is_error)
        self.answer_bytes += len(text_of(content).encode())
        if failed and content["error"].get("reason") != CONFIRMATION:
            self.wrong_turns.append(f"{name}: {content['error']['message']}")
        return content


def text_of(content) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


async def by_script(job: Job, session: Session, known: dict) -> str:
    """Do what the job's script says, and confirm what is asked; return its answer."""
    number = 0
    for step in job.script:
        if "say" in step:
            return filled(f"{step['say']} ", known)
        if "put" in step:
            content = b"%PDF-1.4\n" if step.get("pdf") else b""
            content += b"The tide is kept. " * (step["bytes"] // 18 + 1)
            async with httpx.AsyncClient() as shell:
                sent = await shell.put(
                    filled(step["put"], known),
                    content=content[: step["bytes"]],
                    headers=filled(step.get("headers", {}), known),
                )
            sent.raise_for_status()
            continue
        number += 1
        arguments = filled(step.get("args", {}), known)
        found = await session.call(step["call"], arguments)
        if found.get("error", {}).get("reason") == CONFIRMATION:
            found = await session.call(step["call"], {**arguments, "confirm": found["error"]["confirm"]})
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
        async with httpx.AsyncClient(headers=headers, timeout=self.timeout_s) as endpoint:
            for _ in range(MOST_TURNS):
                body = {"model": self.name, "messages": messages, "tools": tools, "temperature": 0}
                message = await self._ask(endpoint, body)
                messages.append(message)
                asked = message.get("tool_calls") or []
                if not asked:
                    return re.sub(r"<think>.*?</think>", "", message.get("content") or "", flags=re.DOTALL)
                for each in asked:
                    content = await self._call(session, each["function"])
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
    async def _call(session: Session, function: dict) -> dict:
        try:
            arguments = json.loads(function.get("arguments") or "{}")
            assert isinstance(arguments, dict)
        except (ValueError, AssertionError):
            session.calls += 1
            session.wrong_turns.append(f"{function['name']}: its arguments are not a JSON object")
            return {"error": {"code": "bad_request", "message": "The arguments are not a JSON object."}}
        return await session.call(function["name"], arguments)


_TASK = (
    "Do what the user asks with these tools. Do not ask back: the user has agreed to what the request names. "
    "End with a short answer in plain words that names the facts asked for."
)
