"""Jobs: what an agent is asked, how it is done by hand, and how success is recognized."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{([0-9]+|facts|setup)\.([^{}]+)\}")


@dataclass(frozen=True, kw_only=True)
class Job:
    """
    A job, as a table of a TOML file.

    Args:
        id: P for the public server, O for the owner server, R for a real registry.
        server: public or manage.
        prompt: what the user asks.
        says: patterns of the answer; each must be found, ignoring case.
        never_says: patterns that must not be found.
        max_calls: more calls are wasteful.
        max_bytes: the goal for the bytes of answers in the model's context.
        script: the calls and the answer of the scripted driver. Values may refer to what is known: {1.data.0.id} is of
            the first answer, {setup.runId} and {facts.name} of the job's preparation.
        state: what must hold afterwards, by REST (path) or by a tool of the owner: the value `at` a path is, has or
            lacks something.
        setup: functions of stand.py that prepare the instance, or look up what is true there.
        writes: needs a fresh instance.
        facts: a function of real_facts.py that computes what the real registry holds.
        refusals: how many refused calls belong to the job.
        files: files in the user's folder, by name, with their sizes in bytes.
        old: calls, bytes and outcome when the job was first measured.
    """

    id: str
    server: str
    prompt: str
    says: list = field(default_factory=list)
    never_says: list = field(default_factory=list)
    max_calls: int = 5
    max_bytes: int = 0
    script: list = field(default_factory=list)
    state: list = field(default_factory=list)
    setup: list = field(default_factory=list)
    writes: bool = False
    facts: str = ""
    refusals: int = 0
    files: dict = field(default_factory=dict)
    old: str = ""

    @property
    def is_fresh(self) -> bool:
        return self.writes

    @property
    def is_real(self) -> bool:
        return bool(self.facts)


def read_jobs(files: Iterable[Path] = ()) -> list[Job]:
    """Return the jobs of *files*, by default of all files next to this module."""
    known = {each.name for each in fields(Job)}
    found = []
    for file in files or sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(file.read_text())["job"]:
            assert table.keys() <= known, (table["id"], table.keys() - known)
            found.append(Job(**table))
    ids = [job.id for job in found]
    assert len(set(ids)) == len(ids), "two jobs have the same id"
    return found


def at(path: str, value):
    """
    Return the value at *path*, such as data.0.name; * is each item of a list, # the number of items.

    Raises:
        LookupError: there is no such value.
    """
    for number, step in enumerate(steps := path.split(".")):
        if step == "*":
            rest = ".".join(steps[number + 1 :])
            return [at(rest, item) if rest else item for item in value]
        if step == "#":
            return len(value)
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def filled(value, known: Mapping, *, quoted: bool = False):
    """
    Return *value* with its references replaced by what is *known*.

    Args:
        known: by number of the answer, "facts" and "setup".
        quoted: the value is a pattern, in which what is known stands for itself.
    """
    if isinstance(value, dict):
        return {name: filled(member, known) for name, member in value.items()}
    if isinstance(value, list):
        return [filled(item, known) for item in value]
    if not isinstance(value, str):
        return value
    if (whole := _PLACE.fullmatch(value)) and not quoted:
        return at(whole[2], known[whole[1]])

    def text(match: re.Match) -> str:
        found = at(match[2], known[match[1]])
        found = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
        return re.escape(found) if quoted else found

    return _PLACE.sub(text, value)


def missing(job: Job, answer: str, known: Mapping) -> list[str]:
    """Return what *answer* should say and does not, or says and should not."""
    plain = answer.replace("\u2019", "'").replace("*", "")
    wanted = [filled(pattern, known, quoted=True) for pattern in job.says]
    banned = [filled(pattern, known, quoted=True) for pattern in job.never_says]
    return [
        *(f"does not say {each!r}" for each in wanted if not re.search(each, plain, re.IGNORECASE | re.DOTALL)),
        *(f"says {each!r}" for each in banned if re.search(each, plain, re.IGNORECASE)),
    ]
