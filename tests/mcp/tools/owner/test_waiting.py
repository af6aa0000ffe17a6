"""Calls that wait for a run: they end with it, report progress, and hold nothing while they wait."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from make.accounts import account
from make.reports import company, do_jobs, framework
from muniment.accounts import tokens
from muniment.assessments import operations
from muniment.jobs.models import Job
from muniment.kernel.actor import SCOPES
from muniment.mcp.protocol import transport
from muniment.mcp.tools.owner import reports
from services.manage import manage, straight
from services.mcp import ask, legacy, modern

pytestmark = pytest.mark.django_db
PROGRESS = {"progressToken": "p-1"}


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(reports, "EACH_S", 0.01)


@pytest.fixture
def server(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    with manage() as made:
        yield made


class Agent:
    """An agent with a run that is queued."""

    def __init__(self, server):
        self.server = server
        self.actor = account("owner@harbour.example").actor("web")
        self.token = tokens.create_token(self.actor, "laptop", permitted=SCOPES).text
        self.looks, self._look, self._waiting._look = 0, self._waiting._look, self._looked
        self.run_id = operations.start_run(self.actor, company(self.actor), framework()).run.row.pk

    @property
    def _waiting(self):
        return self.server.asker.server.offer.drain.__self__

    @property
    def waits(self):
        return self._waiting._waits

    def _looked(self, run_ids):
        self.looks += 1
        return self._look(run_ids)

    def request(self, name="get_report_run_status", *, era=modern, meta=None, accept=None, seconds=50):
        params = {"name": name, "arguments": {"runId": self.run_id, "waitSeconds": seconds}}
        headers, body = era("tools/call", {**params, **({"_meta": meta} if meta else {})})
        headers = [(key, accept if accept and key == "accept" else value) for key, value in headers]
        return [*headers, ("authorization", f"Bearer {self.token}")], body

    async def call(self, *request, **how):
        return await ask(self.server.asker.server, *(request or self.request(**how)), path="/api/manage/mcp")

    def together(self, *works):
        async def all_of_them():
            return await asyncio.gather(*works)

        return self.server.asker.loop.run_until_complete(all_of_them())

    async def after(self, do, *, waits=1):
        """Do something once so many calls wait, and give what they are told then time to arrive."""
        while len(self.waits) < waits:  # noqa: ASYNC110 - no event tells that a wait has begun
            await asyncio.sleep(0.01)
        before = self.looks
        while self.looks < before + 2:  # noqa: ASYNC110 - what the look before this one has found is told
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        await straight(do)


@pytest.fixture
def agent(server):
    return Agent(server)


def events(answer):
    assert answer.headers["content-type"] == "text/event-stream"
    lines = [line for line in answer.body.decode().split("\r\n") if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


@pytest.mark.parametrize("era", [modern, legacy])
def test_a_call_ends_with_its_run(agent, era):
    answer, _ = agent.together(agent.call(name="execute_report_run", era=era), agent.after(do_jobs))
    found = answer.result["structuredContent"]["data"]
    assert (found["state"], found["shouldPoll"]) == ("succeeded", False)
    assert not agent.waits


@pytest.mark.parametrize("era", [modern, legacy])
def test_progress_comes_before_the_result_in_one_stream(agent, era):
    operations.execute_run(agent.actor, agent.run_id)

    def half():
        Job.objects.filter(pk=agent.run_id).update(progress={"done": 1, "step": "evaluating"})

    async def in_steps():
        await agent.after(half)
        await agent.after(do_jobs)

    answer, _ = agent.together(agent.call(era=era, meta=PROGRESS), in_steps())
    *notes, last = events(answer)
    assert [note["method"] for note in notes] == ["notifications/progress"] * len(notes)
    assert [note["params"]["progress"] for note in notes] == [0, 1]
    assert {note["params"]["progressToken"] for note in notes} == {"p-1"}
    assert {note["params"]["total"] for note in notes} == {3}
    assert last["result"]["structuredContent"]["data"]["state"] == "succeeded"
    assert answer.headers["access-control-allow-origin"] == "*"


def test_a_client_that_takes_no_events_or_wants_no_progress_gets_json(agent):
    operations.execute_run(agent.actor, agent.run_id)
    answers = agent.together(
        agent.call(meta=PROGRESS, accept="application/json"), agent.call(), agent.after(do_jobs, waits=2)
    )[:2]
    for answer in answers:
        assert answer.headers["content-type"] == "application/json"
        assert answer.result["structuredContent"]["data"]["state"] == "succeeded"


def test_a_long_silence_is_filled_with_pings(agent, monkeypatch):
    monkeypatch.setattr(transport, "PING_S", 0.02)
    operations.execute_run(agent.actor, agent.run_id)
    answer, _ = agent.together(agent.call(), agent.after(do_jobs))
    assert answer.body.startswith(b": ping\r\n\r\n")
    assert len(events(answer)) == 1


def test_a_wait_ends_after_its_time(agent, monkeypatch):
    monkeypatch.setattr(reports, "MAX_S", 0.05)
    operations.execute_run(agent.actor, agent.run_id)
    (answer,) = agent.together(agent.call())
    assert answer.result["structuredContent"]["data"]["shouldPoll"] is True
    assert not agent.waits


def test_what_needs_its_owner_is_not_waited_for(agent):
    (answer,) = agent.together(agent.call())
    assert answer.result["structuredContent"]["data"]["state"] == "created"
    (refused,) = agent.together(agent.call(seconds=56))
    assert "from 0 to 55" in refused.result["structuredContent"]["error"]["message"]


def test_a_server_that_stops_answers_at_once_and_waits_no_more(agent):
    operations.execute_run(agent.actor, agent.run_id)
    drain = agent.server.asker.server.offer.drain
    answer, _ = agent.together(agent.call(), agent.after(drain))
    assert answer.result["structuredContent"]["data"]["state"] == "queued"
    agent.together(agent.call())
    assert not agent.waits


def test_a_call_beyond_the_waits_of_an_account_is_answered_at_once(agent, monkeypatch):
    monkeypatch.setattr(reports, "WAITS_OF_AN_ACCOUNT", 1)
    operations.execute_run(agent.actor, agent.run_id)

    async def second():
        await agent.after(lambda: None)
        answer = await agent.call()
        await straight(do_jobs)
        return answer.result["structuredContent"]["data"]["state"]

    answer, state = agent.together(agent.call(), second())
    assert (state, answer.result["structuredContent"]["data"]["state"]) == ("queued", "succeeded")


@pytest.mark.parametrize("writing", ["waitSeconds", "wait_seconds", "waitseconds"])
@pytest.mark.parametrize("meta", [None, PROGRESS])
def test_a_client_that_goes_away_waits_no_more(agent, meta, writing):
    operations.execute_run(agent.actor, agent.run_id)
    headers, body = agent.request(meta=meta)
    body = body.replace(b"waitSeconds", writing.encode())
    sent = [{"type": "http.request", "body": body}]

    async def receive():
        if sent:
            return sent.pop()
        while not agent.waits:  # noqa: ASYNC110 - no event tells that a wait has begun
            await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    async def send(message):
        assert not message.get("body", b"").startswith(b"{")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/manage/mcp",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "state": {"client": "127.0.0.1", "request_id": "r-1"},
    }
    agent.together(agent.server.asker.server(scope, receive, send))
    assert not agent.waits


def test_progress_never_goes_back_though_a_run_begins_again():
    steps = iter([1, 0, 1, 2, 1, 3])

    def look(run_ids):
        done = next(steps, None)
        standing = operations.Standing(is_active=done is not None, done=done or 0, total=3, step="")
        return dict.fromkeys(run_ids, standing)

    async def call(function, *arguments):
        return function(*arguments)

    async def report(done, _total, _step):
        told.append(done)

    told = []
    caller = SimpleNamespace(actor=SimpleNamespace(account_id=1), report=report)
    asyncio.run(reports.Waiting(call, look).until_over("run", caller, 50, told=0))
    assert told == [1, 2, 3]
