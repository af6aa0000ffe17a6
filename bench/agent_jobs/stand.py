"""Instances for the jobs: one that is shared by readers, a fresh copy for each job that writes, and preparations."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from agent_jobs.jobs import Job, at, filled
from agent_jobs.sessions import confirm_of
from mcp import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

from services.owner import COMPANY, EMAIL, owned_registry
from services.product import Product, run

COMMONS = "saltmarsh-commons"
"""A DAO with 142 token holders, which the owner has too."""
DRAFT = "lantern-and-wake"
DRAFTED = {
    "name": "Lantern and Wake",
    "type": "cooperative",
    "industry": "Culture",
    "status": "upcoming",
    "description": "A floating theatre that its audience owns.",
    "website": "https://lantern-and-wake.example",
}
MEMO = (
    "Harbour memo of the members' meeting.\n\nThe meeting elected the board in October. The treasurer published the "
    "accounts, and two members audited them. The reserve is 480,000 dollars, which pays for nine months of repairs. "
    "Spare parts for the Heron turbine are kept in the yard for ten years.\n"
)


class Stand:
    """
    Serves the instances.

    Args:
        folder: where they are made.
        data: a real registry in the import form.
    """

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        self._folder, self._data = folder, data
        self._stack = contextlib.ExitStack()
        self._shared: dict[bool, Site] = {}
        self._source: Site | None = None
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def site(self, job: Job) -> Iterator["Site"]:
        """Yield the instance of *job*."""
        if not job.is_fresh:
            if job.is_real not in self._shared:
                data = self._real() if job.is_real else self._copy().data
                token = "" if job.is_real else self._prepared().token
                product = self._stack.enter_context(Product(data))
                product.wait_ready()
                self._shared[job.is_real] = Site(data, token, product)
            yield self._shared[job.is_real]
            return
        made = self._copy()
        try:
            with Product(made.data) as product:
                product.wait_ready()
                yield Site(made.data, made.token, product)
        finally:
            shutil.rmtree(made.data, ignore_errors=True)

    def _prepared(self) -> "Site":
        if self._source is None:
            data = owned_registry(self._folder / "source")
            run("own", EMAIL, COMMONS, data=data)
            draft = self._folder / "companies.jsonl"
            draft.write_text(json.dumps({"company": {"id": DRAFT, **DRAFTED}}))
            run("import", str(draft), "--draft", data=data)
            run("own", EMAIL, DRAFT, data=data)
            token = run("user", "token", EMAIL, "--name", "agent", data=data).stdout.strip()
            self._source = Site(data, token)
        return self._source

    def _copy(self) -> "Site":
        source = self._prepared()
        self._count += 1
        data = self._folder / f"instance-{self._count}"
        shutil.copytree(source.data, data)
        return Site(data, source.token)

    def _real(self) -> Path:
        data = self._folder / "real"
        environment = {**os.environ, "MUNIMENT_DATA": str(data)}
        command = [sys.executable, "-m", "muniment", "import", str(self._data)]
        subprocess.run(command, env=environment, capture_output=True, check=False)  # some rows of real data are bad
        return data


class Site:
    """A served instance with a token of the owner."""

    def __init__(self, data: Path, token: str, product: Product | None = None) -> None:
        self.data, self.token, self.product = data, token, product

    def address(self, server: str) -> tuple[str, str]:
        """Return the address of the public or the manage server, and the token for it."""
        path = {"public": "/api/mcp", "manage": "/api/manage/mcp"}[server]
        return self.product.url + path, self.token if server == "manage" else ""

    @contextlib.asynccontextmanager
    async def client(self, server: str) -> AsyncIterator[Client]:
        """Yield the official client, connected to the public or the manage server."""
        url, token = self.address(server)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            create_mcp_http_client(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            yield client

    async def owner(self, name: str, **arguments) -> dict:
        """Call a tool of the owner, outside of what is counted; confirm where asked."""
        async with self.client("manage") as client:
            found = (await client.call_tool(name, arguments)).structured_content
            if confirm := confirm_of(found):
                found = (await client.call_tool(name, {**arguments, "confirm": confirm})).structured_content
        assert "data" in found, (name, arguments, found)
        return found["data"]

    async def breaches(self, job: Job, known: dict) -> list[str]:
        """Return what does not hold after *job*."""
        found = []
        for check in job.state:
            if "path" in check:
                value = await asyncio.to_thread(self._get, filled(check["path"], known))
            else:
                value = {"data": await self.owner(check["tool"], **filled(check.get("args", {}), known))}
            try:
                value = at(check["at"], value)
            except LookupError:
                value = None
            if not _holds(check, value, known):
                found.append(f"{check['at']} is {value!r}")
        return found

    def _get(self, path: str) -> dict:
        answer = self.product.get(path)
        return answer.json()


def _holds(check: dict, value: object, known: dict) -> bool:
    """Return whether *value* is, has or lacks what *check* names."""
    if "has" in check:
        return filled(check["has"], known) in (value or ())
    if "lacks" in check:
        return filled(check["lacks"], known) not in (value or ())
    return value == filled(check["is"], known)


# ---------------------------------------------------------------------- preparations: what happened in earlier sessions


async def edited(site: Site) -> dict:
    """Change the description, as a session before did."""
    before = await site.owner("get_my_company", slug=COMPANY)
    since = datetime.now(UTC).isoformat(timespec="seconds")
    await asyncio.sleep(1)  # times of changes have whole seconds
    await site.owner("update_my_company", slug=COMPANY, changes={"description": "We run turbines."})
    return {"before": before["company"]["description"], "version": before["version"], "since": since}


async def renaming(site: Site) -> dict:
    """Ask for another name, which waits for a reviewer."""
    await site.owner("update_my_company", slug=COMPANY, changes={"name": "Tarnwick Tide"})
    return {}


async def memo(site: Site) -> dict:
    """Upload a small document, and wait until its text can be read."""
    made = await site.owner(
        "upload_document", companySlug=COMPANY, filename="memo.txt", contentType="text/plain", text=MEMO
    )
    await _until(site, "list_my_documents", {}, "0.textState", {"extracted"})
    return {"documentId": made["documentId"]}


async def deleted_memo(site: Site) -> dict:
    """Upload a document and delete it."""
    found = await memo(site)
    await site.owner("delete_document", **found)
    return found


async def submitted(site: Site) -> dict:
    """Submit the draft for review."""
    await site.owner("submit_for_review", slug=DRAFT)
    return {}


async def prepared_run(site: Site) -> dict:
    """Prepare a report run and leave it."""
    made = await site.owner("start_report_run", companySlug=COMPANY, frameworkId="long-life", idempotencyKey="earlier")
    return {"runId": made["runId"]}


async def report(site: Site) -> dict:
    """Have a finished report of the listing."""
    return {"runId": await _run(site, "plain-governance", "earlier")}


async def program_report(site: Site) -> dict:
    """Have a finished report for a program."""
    return {"runId": await _run(site, "harrow-bay-works-2027", "earlier")}


async def two_reports(site: Site) -> dict:
    """Have two reports against the same framework, with a change between them."""
    before = await _run(site, "plain-governance", "earlier")
    await memo(site)
    after = await _run(site, "plain-governance", "later")
    return {"before": before, "after": after}


async def largest_holders(site: Site) -> dict:
    """Find the largest holders of two cap tables by REST."""
    holders = {
        name: max(entry["percentage"] for entry in site.product.data_of(f"/api/v1/companies/{slug}")["capTable"])
        for name, slug in (("oxbow", "oxbow-mutual"), ("quince", "quinceyard"))
    }
    return {name: str(value) for name, value in holders.items()}


async def oxbow_people(site: Site) -> dict:
    """Find what one of the people says."""
    return {"bio": site.product.data_of("/api/v1/people/bartholomew-quince")["bio"]}


async def pasted_address(site: Site) -> dict:
    """Name the page of a company."""
    return {"address": f"{site.product.url}/companies/thornhollow-relay"}


async def _run(site: Site, framework: str, key: str) -> str:
    made = await site.owner("start_report_run", companySlug=COMPANY, frameworkId=framework, idempotencyKey=key)
    await site.owner("execute_report_run", runId=made["runId"])
    await _until(site, "get_report_run_status", {"runId": made["runId"]}, "state", {"succeeded"})
    return made["runId"]


async def _until(site: Site, tool: str, arguments: dict, path: str, wanted: set) -> None:
    deadline = time.monotonic() + 60
    while (found := at(path, await site.owner(tool, **arguments))) not in wanted:
        assert time.monotonic() < deadline, (tool, found)
        await asyncio.sleep(0.2)


def temporary() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="agent-jobs-")
