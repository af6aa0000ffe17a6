"""
Let an agent do realistic jobs with the tool servers, and count success, calls, bytes and wrong turns.

    python bench/agent_jobs/run.py                                  # by script, as `make bench-agents`
    python bench/agent_jobs/run.py --model-url http://127.0.0.1:11434/v1 --model NAME --times 3
    python bench/agent_jobs/run.py --client-command 'my-agent --headless'

Exits with 1 if a job fails, or (by script) takes a wrong turn, more calls or more bytes than its goal. See README.md.
"""

import argparse
import asyncio
import fnmatch
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent_jobs import real_facts
from agent_jobs import stand as stands
from agent_jobs.clients import Command
from agent_jobs.jobs import Job, missing, read_jobs
from agent_jobs.sessions import Model, Session, by_script

TOLERANCE = 1.2
"""Bytes may pass a goal by this factor."""


@dataclass
class Attempt:
    """What came of one attempt."""

    calls: int = 0
    answer_bytes: int = 0
    wrong_turns: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    answer: str = ""


@dataclass
class Outcome:
    """What came of the attempts at one job; numbers are medians."""

    job: Job
    attempts: list

    def __post_init__(self) -> None:
        self.calls = int(statistics.median(each.calls for each in self.attempts))
        self.answer_bytes = int(statistics.median(each.answer_bytes for each in self.attempts))
        self.wrong_turns = int(statistics.median(len(each.wrong_turns) for each in self.attempts))
        self.succeeded = sum(not each.faults for each in self.attempts)

    @property
    def word(self) -> str:
        """Return clean, wasteful or failed, for the median attempt."""
        if 2 * self.succeeded <= len(self.attempts):
            return "failed"
        return "wasteful" if self.wrong_turns or self.calls > self.job.max_calls else "clean"

    @property
    def is_heavy(self) -> bool:
        return bool(self.job.max_bytes) and self.answer_bytes > TOLERANCE * self.job.max_bytes

    def row(self) -> str:
        goal = f"{self.job.max_bytes:,}" if self.job.max_bytes else "–"
        tried = f" {self.succeeded}/{len(self.attempts)}" if len(self.attempts) > 1 else ""
        heavy = ", heavy" if self.is_heavy else ""
        return (
            f"{self.job.id:5} {self.calls:5} {self.answer_bytes:9,} {goal:>9} {self.wrong_turns:6}  "
            f"{self.word + tried + heavy:16} {self.job.old}"
        )


async def attempt(job: Job, stand: stands.Stand, model: Model | Command | None, facts: dict) -> Attempt:
    """Do *job* once."""
    done = Attempt()
    with stand.site(job) as site:
        known: dict = {"facts": facts, "setup": {}}
        try:
            for name in job.setup:
                known["setup"] |= await getattr(stands, name)(site)
            async with site.client(job.server) as client:
                session = Session(client, *site.address(job.server))
                try:
                    done.answer = await (model.drive if model else by_script)(job, session, known)
                except Exception as error:  # noqa: BLE001 - here, because the client would put it into a group
                    done.faults.append(f"{type(error).__name__}: {error}")
                done.calls, done.answer_bytes = session.calls, session.answer_bytes
                done.wrong_turns = session.wrong_turns[job.refusals :]
            done.faults = done.faults or [*missing(job, done.answer, known), *await site.breaches(job, known)]
        except Exception as error:  # noqa: BLE001 - one job must not end the others
            done.faults.append(f"{type(error).__name__}: {error}")
    return done


def chosen(jobs: list[Job], given: argparse.Namespace, *, has_data: bool) -> list[Job]:
    patterns = [each.strip() for each in given.jobs.split(",")]
    return [
        job
        for job in jobs
        if any(fnmatch.fnmatch(job.id, pattern) for pattern in patterns) and (has_data or not job.is_real)
    ]


def run(jobs: list[Job], data: Path | None, model: Model | Command | None = None, times: int = 1) -> list[Outcome]:
    """Do every job *times* times, and print a row for each."""
    print(f"{'job':5} {'calls':>5} {'bytes':>9} {'goal':>9} {'wrong':>6}  {'outcome':16} when first measured")
    facts = real_facts.Facts(data) if data else None
    outcomes = []
    with stands.temporary() as folder, stands.Stand(Path(folder), data) as stand:
        for job in jobs:
            held = getattr(facts, job.facts)() if job.facts else {}
            attempts = [asyncio.run(attempt(job, stand, model, held)) for _ in range(times)]
            outcomes.append(outcome := Outcome(job, attempts))
            print(outcome.row(), flush=True)
            for number, each in enumerate(attempts, 1):
                for fault in (*each.faults, *(f"wrong turn: {turn}" for turn in each.wrong_turns)):
                    print(f"      {f'{number}: ' if times > 1 else ''}{fault[:400]}")
    return outcomes


def report(outcomes: list[Outcome]) -> str:
    words = [outcome.word for outcome in outcomes]
    first = [outcome.word for outcome in outcomes if outcome.job.old]
    return (
        f"{len(outcomes)} jobs: {words.count('clean')} clean, {words.count('wasteful')} wasteful, "
        f"{words.count('failed')} failed; of the {len(first)} first measured, {first.count('clean')} clean. "
        f"At most {max(outcome.calls for outcome in outcomes)} calls, "
        f"{sum(outcome.answer_bytes for outcome in outcomes):,} bytes in all, "
        f"{sum(outcome.is_heavy for outcome in outcomes)} beyond their goal."
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark."""
    environment = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="*", help="ids, or patterns such as P*, with commas")
    parser.add_argument("--data", type=Path, default=environment("MUNIMENT_SAMPLE_DATA") or None)
    parser.add_argument("--times", type=int, default=1, help="attempts at each job; the median counts")
    parser.add_argument("--model-url", default=environment("AGENT_JOBS_URL", ""), help="an OpenAI-compatible endpoint")
    parser.add_argument("--model", default=environment("AGENT_JOBS_MODEL", ""), help="the model's name there")
    parser.add_argument("--model-key", default=environment("AGENT_JOBS_KEY", ""), help="its key, if it has one")
    parser.add_argument(
        "--client-command",
        default=environment("AGENT_JOBS_COMMAND", ""),
        help="any client; see README.md",
    )
    parser.add_argument("--json", type=Path, help="write everything, with the answers, to this file")
    given = parser.parse_args(arguments)
    if given.model_url and given.client_command:
        parser.error("give --model-url or --client-command, not both")
    model = Model(given.model_url, given.model, given.model_key) if given.model_url else None
    model = Command(given.client_command) if given.client_command else model
    jobs = chosen(read_jobs(), given, has_data=given.data is not None)
    if not jobs:
        parser.error(f"no job is called {given.jobs}")
    outcomes = run(jobs, given.data, model, given.times)
    print(report(outcomes))
    if given.json:
        rows = [{**asdict(outcome), "outcome": outcome.word} for outcome in outcomes]
        given.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1))
    if model:
        return int(any(outcome.word == "failed" for outcome in outcomes))
    return int(any(outcome.word != "clean" or outcome.is_heavy for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
