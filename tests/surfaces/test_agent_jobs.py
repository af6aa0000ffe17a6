"""The jobs for agents (bench/agent_jobs): they are complete, some are done here, and all of them in the proofs."""

import json
import os
import re
import shlex
import sys
from types import SimpleNamespace

import pytest
from agent_jobs import real_facts, run, stand
from agent_jobs.clients import Command
from agent_jobs.jobs import Job, at, filled, missing, read_jobs
from agent_jobs.sessions import Model

from services.model import Model as Endpoint
from services.model import Reply
from services.prepared import demo_registry

JOBS = {job.id: job for job in read_jobs()}
SAMPLE = ("P10", "P25", "P33")


def test_the_jobs_are_complete():
    assert len(JOBS) >= 60
    assert {f"P{n:02}" for n in range(1, 21)} | {f"O{n:02}" for n in range(1, 22)} <= JOBS.keys()
    for job in JOBS.values():
        assert job.server in {"public", "manage"}, job.id
        assert 1 <= job.max_calls <= 5, job.id
        assert job.max_bytes, job.id
        assert job.says, job.id
        assert "say" in job.script[-1], job.id
        assert job.writes or not (job.state or {"edited", "memo"} & {*job.setup}), job.id
        assert all(hasattr(stand, name) for name in job.setup), job.id
        assert not job.facts or hasattr(real_facts.Facts, job.facts), job.id
        for pattern in (*job.says, *job.never_says):
            re.compile(re.sub(r"\{[a-z]+\.[^{}]+\}", "x", pattern))


def test_values_are_filled_from_what_is_known():
    known = {"1": {"data": [{"id": "a", "n": 1}, {"id": "b", "n": 2}]}, "setup": {"name": "A+"}}
    assert filled({"slug": "{1.data.1.id}", "ids": ["{1.data.*.id}"]}, known) == {"slug": "b", "ids": [["a", "b"]]}
    assert filled("{1.data.0.n}", known) == 1
    assert filled("{setup.name}: {1.data.*.id} of {1.data.#}", known) == "A+: a, b of 2"
    assert filled("^{setup.name}$", known, quoted=True) == r"^A\+$"
    with pytest.raises(LookupError):
        at("data.0.missing", known["1"])


def test_an_answer_is_judged_by_what_it_says():
    job = Job(id="X", server="public", prompt="", says=[r"\$1\.2M", "it's"], never_says=["none"])
    assert missing(job, "It\u2019s **$1.2M**.", {}) == []
    assert missing(job, "None", {}) == [r"does not say '\\$1\\.2M'", 'does not say "it\'s"', "says 'none'"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Yield a stand whose shared instance has the demo registry alone, which is quicker to make."""
    folder = tmp_path_factory.mktemp("jobs")
    with stand.Stand(folder) as made:
        made._source = stand.Site(demo_registry(folder / "source"), "")
        yield made


async def attempt(served, job, model=None):
    return await run.attempt(job, served, model, {})


@pytest.mark.anyio
@pytest.mark.parametrize("name", SAMPLE)
async def test_a_script_does_a_job_cleanly(served, name):
    done = await attempt(served, JOBS[name])
    assert (done.faults, done.wrong_turns) == ([], [])
    outcome = run.Outcome(JOBS[name], [done])
    assert (outcome.word, outcome.is_heavy) == ("clean", False)


@pytest.mark.anyio
async def test_a_job_whose_answer_is_wrong_fails(served):
    job = Job(id="X", server="public", prompt="", says=["none"], script=[{"call": "get_registry_stats"}, {"say": "5"}])
    done = await attempt(served, job)
    assert run.Outcome(job, [done]).word == "failed"
    broken = Job(id="X", server="public", prompt="", says=[], script=[{"call": "tell_fortune"}, {"say": "{1.data}"}])
    done = await attempt(served, broken)
    assert (len(done.wrong_turns), done.faults) == (1, ["KeyError: 'data'"])


def completion(content=None, *calls):
    asked = [
        {"id": f"call-{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, **({"tool_calls": asked} if asked else {})}
    return Reply(raw=json.dumps({"choices": [{"index": 0, "message": message}]}).encode())


@pytest.mark.anyio
@pytest.mark.parametrize("key", ["", "sk-harbour"])
async def test_a_model_does_a_job_and_its_wrong_turns_are_counted(served, key):
    replies = [
        Reply(status=503),
        completion(None, ("list_companies", '{"kind": "accelerator"}'), ("list_companies", "[")),
        completion(None, ("list_companies", '{"type": "accelerator"}')),
        completion("<think>Let me see.</think>It is **Harrow Bay Works**."),
    ]
    with Endpoint(lambda _: replies[len(endpoint.asked) - 1]) as endpoint:
        done = await attempt(served, JOBS["P10"], Model(endpoint.url, "tide-1", key))
    assert done.faults == []
    assert done.answer == "It is **Harrow Bay Works**."
    assert (done.calls, len(done.wrong_turns)) == (3, 2)
    assert run.Outcome(JOBS["P10"], [done]).word == "wasteful"
    last = endpoint.asked[-1]
    assert last.path == "/v1/chat/completions"
    assert last.headers.get("authorization") == (f"Bearer {key}" if key else None)
    assert {tool["function"]["name"] for tool in last.body["tools"]} >= {"list_companies", "get_company"}
    roles = [message["role"] for message in last.body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "tool"]
    assert "Harrow Bay Works" in last.body["messages"][-1]["content"]
    assert done.answer_bytes == sum(
        len(message["content"].encode()) for message in last.body["messages"] if message["role"] == "tool"
    ) - len('{"error":{"code":"bad_request","message":"The arguments are not a JSON object."}}')


UPLOADING = Job(id="X", server="public", prompt="", says=["done"], files={"tide.pdf": 40})


class Offering:
    """A session whose only answer offers a command."""

    def __init__(self, command):
        self.calls, self.wrong_turns, self._command = 0, [], command
        self.client = SimpleNamespace(instructions="", list_tools=self._none)

    async def _none(self):
        return SimpleNamespace(tools=[])

    async def call(self, _name, _arguments):
        return {"data": {"command": self._command}}


@pytest.mark.anyio
async def test_a_model_has_the_user_run_an_offered_command_and_no_other():
    offered = "wc -c < tide.pdf"
    replies = [
        completion(None, ("user_runs_command", json.dumps({"command": offered}))),
        completion(None, ("create_document_upload", "{}")),
        completion(None, ("user_runs_command", json.dumps({"command": offered + "; id"}))),
        completion(None, ("user_runs_command", json.dumps({"command": offered}))),
        completion("done"),
    ]
    session = Offering(offered)
    with Endpoint(lambda _: replies[len(endpoint.asked) - 1]) as endpoint:
        assert await Model(endpoint.url, "tide-1").drive(UPLOADING, session, {}) == "done"
    said = [json.loads(each["content"]) for each in endpoint.asked[-1].body["messages"] if each["role"] == "tool"]
    assert [("error" in each) for each in said] == [True, False, True, False]
    assert (said[3]["exitCode"], said[3]["output"].strip()) == (0, "40")
    assert session.wrong_turns == []


CLIENT = """
import json, os, sys, urllib.request
asked, names = sys.stdin.read(), sorted(os.listdir())
def call(name, arguments):
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    request = urllib.request.Request(os.environ["AGENT_JOBS_SERVER"], json.dumps(body).encode(), {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25"})
    return json.load(urllib.request.urlopen(request))["result"]["structuredContent"]
call("list_companies", {"kind": "accelerator"})
found = call("list_companies", {"type": "accelerator"})["data"]
print(asked, [each["name"] for each in found], names, repr(os.environ["AGENT_JOBS_TOKEN"]))
"""


@pytest.mark.anyio
async def test_any_client_does_a_job_by_a_command_and_its_calls_are_counted(served, tmp_path):
    (tmp_path / "client.py").write_text(CLIENT)
    done = await attempt(served, JOBS["P10"], Command(shlex.join([sys.executable, str(tmp_path / "client.py")])))
    assert done.faults == []
    assert done.answer.startswith(JOBS["P10"].prompt)
    assert "['Harrow Bay Works'] [] ''" in done.answer
    assert (done.calls, len(done.wrong_turns)) == (2, 1)
    assert 100 < done.answer_bytes < 3_000


@pytest.mark.anyio
async def test_a_client_that_fails_or_does_not_end_fails_its_job(served):
    assert "ended with 3" in (await attempt(served, JOBS["P10"], Command("sh -c 'exit 3'"))).faults[0]
    assert "TimeoutExpired" in (await attempt(served, JOBS["P10"], Command("sleep 60", timeout_s=0.1))).faults[0]


@pytest.mark.anyio
async def test_a_model_that_cannot_be_reached_fails_its_job_alone(served):
    with Endpoint(lambda _: Reply(status=401)) as endpoint:
        done = await attempt(served, JOBS["P10"], Model(endpoint.url, "tide-1"))
    assert "401" in done.faults[0]


def test_the_median_of_the_attempts_counts():
    job = SimpleNamespace(max_calls=2, max_bytes=100, old="")
    attempts = [run.Attempt(calls=1), run.Attempt(calls=9, faults=["wrong"]), run.Attempt(calls=2, answer_bytes=100)]
    outcome = run.Outcome(job, attempts)
    assert (outcome.calls, outcome.succeeded, outcome.word) == (2, 2, "clean")
    assert run.Outcome(job, attempts[1:]).word == "failed"
    assert run.Outcome(job, [run.Attempt(answer_bytes=121)]).is_heavy


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_script_does_every_job_cleanly(capsys):
    """Without MUNIMENT_SAMPLE_DATA, the jobs on a real registry are left out."""
    failed = run.main([])
    told = capsys.readouterr().out
    assert not failed, told
    assert ("R01" in told) == bool(os.environ.get("MUNIMENT_SAMPLE_DATA"))
