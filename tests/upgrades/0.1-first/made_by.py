# ruff: noqa: I001, PERF401, PLR0915 - a record of what another commit's code ran
"""
Make an instance with work in every state, and the files of this folder from it.

Runs with the code of the commit that README.md names, from that commit's root:
``PYTHONPATH=tests .venv/bin/python made_by.py FOLDER``. Everything in it is fictional.
"""

import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).parent
BASE_URL = "http://registry.example"
FAR = datetime(2100, 1, 1, tzinfo=UTC)
"""When what would otherwise end by itself ends: the fixture outlives links and sessions."""
PASSWORD = "four harbours, one tide"
OWNER, REVIEWER, VISITOR = "owner@harbour.example", "reviewer@harbour.example", "visitor@harbour.example"
MINUTES = b"Minutes of the board. The annual accounts are published every spring.\n" * 30
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "suite", "version": "1"},
}


def prepare(data: Path) -> None:
    os.environ |= {
        "MUNIMENT_DATA": str(data),
        "MUNIMENT_BASE_URL": BASE_URL,
        "MUNIMENT_RATE_LIMIT": "off",
        "DJANGO_SETTINGS_MODULE": "muniment.settings",
    }
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def fill(data: Path) -> dict:
    """Fill the instance by the product's own operations; gives what the test has to know of it."""
    from django.test import Client

    from make.apps import proof
    from make.pictures import picture
    from make.reports import do_jobs, specification
    from muniment.accounts import mail
    from muniment.accounts.operations import create_account
    from muniment.accounts.tokens import create_token
    from muniment.assessments import applications, operations, sharing, work
    from muniment.documents.operations import upload_document
    from muniment.jobs import queue
    from muniment.kernel.actor import COMMAND, SCOPES
    from muniment.oauth import clients, grants
    from muniment.oauth.models import Grant
    from muniment.oauth.resources import manage_server
    from muniment.registry import petitions, pictures
    from muniment.registry.changes import CompanyChange
    from muniment.registry.frameworks import author_framework, create_framework
    from muniment.registry.importing import import_registry
    from muniment.registry.invitations import invite_owner
    from muniment.registry.models import Company, Invitation, PendingChange, Person
    from muniment.registry.operations import add_owner, create_company, open_funding_round, set_icon, update_company
    from muniment.registry.profiles import join_person
    from muniment.registry.reviews import request_changes, submit_company
    from services.product import DEMO

    import_registry(DEMO)
    accounts = {
        email: create_account(COMMAND, email, PASSWORD, role=role)
        for email, role in ((OWNER, "owner"), (REVIEWER, "reviewer"), (VISITOR, "owner"))
    }
    owner, reviewer, visitor = (account.actor("web", "pages") for account in accounts.values())
    mine, other, claimed, suggested = (
        each.slug for each in Company.objects.filter(state="published").order_by("pk")[:4]
    )
    add_owner(COMMAND, mine, owner.account_id)
    add_owner(COMMAND, other, visitor.account_id)
    people = [person.slug for person in Person.objects.filter(published=True).order_by("pk")[:2]]
    join_person(COMMAND, people[0], owner.account_id)
    icon = pictures.store_picture(picture())
    set_icon(owner, mine, icon)
    open_funding_round(visitor, other, name="Seed", target="$2.5M")
    update_company(owner, mine, CompanyChange(description="Keeps the «harbour» — 港.", team_size=12))

    facts = {"type": "cooperative", "industry": "Agriculture", "description": "Salt-marsh farmers who share a van."}
    facts |= {"website": "https://salt.example", "status": "active"}
    draft = create_company(owner, CompanyChange(name="Slackwater Ferry", **facts)).slug
    submitted = create_company(owner, CompanyChange(name="Brine and Bramble", **facts)).slug
    submit_company(owner, submitted)
    returned = create_company(owner, CompanyChange(name="Pilot Gig Works", **facts)).slug
    submit_company(owner, returned)
    request_changes(reviewer, returned, "Say where you are.")
    renamed = f"{Company.objects.get(slug=mine).name} United"
    update_company(owner, mine, CompanyChange(name=renamed))
    asked = {
        "claim": petitions.claim_company(visitor, claimed, "I am its treasurer.").pk,
        "profile": petitions.claim_person(visitor, people[1], "This is my profile.").pk,
        "suggestion": petitions.suggest_edit(
            visitor, suggested, CompanyChange(description="Founded by its members."), "It says so on their page."
        ).pk,
    }
    before = set(mail.folder().glob("*.eml"))
    invite_owner(owner, mine, VISITOR, base_url=BASE_URL)
    Invitation.objects.update(invited_at=FAR)
    letter = next(file for file in mail.folder().glob("*.eml") if file not in before).read_text()

    for framework, kind, company, criteria in (
        ("Plain Harbour", "score", None, 30),
        ("Safe Moorings", "score", None, 3),
        ("Harbour Fund", "program", mine, 3),
    ):
        made = create_framework(reviewer, name=framework, kind=kind, company=company)
        author_framework(reviewer, made.slug, specification(criteria))
    read = upload_document(owner, mine, "minutes.txt", MINUTES)
    do_jobs()  # its text is read

    def execute(actor, company, framework, *documents):
        run = operations.start_run(actor, company, framework, document_ids=documents).run.row.pk
        operations.execute_run(actor, run)
        return run

    finished = execute(visitor, other, "harbour-fund")
    do_jobs()
    application = applications.submit_application(visitor, finished).pk
    shared = sharing.share_report(visitor, finished)
    running = execute(owner, mine, "plain-harbour", read.pk)
    interrupt(work, queue.claim("a worker that was lost"))
    queued = execute(owner, mine, "safe-moorings", read.pk)
    waiting = upload_document(owner, mine, "statutes.txt", b"The members meet in March.\n")
    queue.enqueue_periodic()

    token = create_token(owner, "laptop", permitted=SCOPES, days=None).text
    shown = proof()
    redirect = "http://127.0.0.1:33418/callback"
    client, _ = clients.register_client({"redirect_uris": [redirect], "client_name": "Harbour Agent"})
    code = grants.issue_code(
        owner,
        client,
        redirect_uri=redirect,
        challenge=shown.challenge,
        permitted=SCOPES,
        resource=manage_server(BASE_URL),
    )
    pair = grants.redeem(
        code, client_id=client.identifier, redirect_uri=redirect, verifier=shown.verifier, resource=None
    ).pair
    Grant.objects.update(access_expires_at=FAR, refresh_expires_at=FAR)
    sessions = {}
    for email in accounts:
        browser = Client()
        browser.post("/accounts/login/", {"login": email, "password": PASSWORD})
        assert email.encode() in browser.get("/accounts/email/").content
        sessions[email] = {name: cookie.value for name, cookie in browser.cookies.items()}
    from django.contrib.sessions.models import Session

    Session.objects.update(expire_date=FAR)
    return {
        "owner": OWNER,
        "reviewer": REVIEWER,
        "visitor": VISITOR,
        "password": PASSWORD,
        "sessions": sessions,
        "token": token,
        "app": {"client_id": client.identifier, "access": pair.access, "refresh": pair.refresh},
        "companies": {"mine": mine, "other": other, "claimed": claimed, "suggested": suggested}
        | {"draft": draft, "submitted": submitted, "returned": returned},
        "renamed": renamed,
        "change": PendingChange.objects.get(company__slug=mine, decision="").pk,
        "requests": asked,
        "invitation": re.search(r"/manage/invitations/([\w-]+)", letter)[1],
        "people": people,
        "picture": icon,
        "documents": {"read": read.pk, "waiting": waiting.pk},
        "runs": {"finished": finished, "running": running, "queued": queued},
        "application": application,
        "shared": shared,
        "jobs": open_jobs(),
    }


def open_jobs() -> dict[str, int]:
    from django.db.models import Count

    from muniment.jobs.models import Job

    found = Job.objects.filter(state__in=["queued", "running"])
    return dict(found.values_list("kind").annotate(jobs=Count("id")).order_by("kind"))


def interrupt(work, run) -> None:
    """Do an attempt at a run until its second batch of criteria is kept, then lose the worker."""
    kept = run.checkpoint
    batches = []

    def checkpoint(name, output, **more):
        kept(name, output, **more)
        if name.startswith("judge:"):
            batches.append(name)
        if len(batches) == 2:
            raise KeyboardInterrupt

    run.checkpoint = checkpoint
    try:
        work.execute(run)
    except KeyboardInterrupt:
        return
    raise AssertionError("the run came to its end")


def close(data: Path) -> None:
    from django.db import connection, connections

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connections.close_all()
    for name in ("mail", "exports"):
        shutil.rmtree(data / name, ignore_errors=True)
    for file in data.glob("muniment.sqlite3?*"):
        file.unlink()


def requests(known: dict) -> list:
    """Return the requests whose answers are recorded: addresses, and calls of public tools."""
    from muniment.registry.models import Company, Framework, Person

    companies = Company.objects.filter(state="published").order_by("pk").values_list("slug", flat=True)
    people = Person.objects.filter(published=True).order_by("pk").values_list("slug", flat=True)
    frameworks = Framework.objects.order_by("pk").values_list("slug", flat=True)
    lists = (
        "companies?pageSize=100",
        "companies?pageSize=7&page=3&sort=name",
        "companies?q=tide",
        "companies?raising=true",
        "companies?type=DAO&fields=name,treasury,themes",
        "companies?updatedSince=2020-01-01T00:00:00Z&hasToken=true",
        "people?pageSize=100",
        "people?q=a",
        "frameworks",
        "stats",
        "changes?after=0",
    )
    found = [f"/api/v1/{path}" for path in lists]
    found += [f"/api/v1/companies/{quote(slug)}" for slug in companies]
    found += [f"/api/v1/people/{quote(slug)}" for slug in people]
    found += [f"/api/v1/frameworks/{slug}" for slug in frameworks]
    found += ["/feed.atom", "/sitemap.xml", "/sitemap-companies-1.xml", "/sitemap-people-1.xml"]
    tools = [["list_companies", {"pageSize": 50, "detail": "full"}], ["get_registry_stats", {}], ["list_people", {}]]
    tools += [["get_company", {"slug": known["companies"]["mine"]}], ["get_person", {"slug": known["people"][0]}]]
    tools += [["list_program_frameworks", {}], ["get_framework", {"frameworkId": "plain-harbour"}]]
    return found + tools


def record(data: Path, asked: list) -> list:
    """Serve a copy of the instance and give each request with its answer."""
    from services.product import Product, run

    copy = data.parent / "served"
    shutil.copytree(data, copy)
    run("export", str(data.parent / "exported"), "--private", data=copy, base_url=BASE_URL)
    answers = []
    with Product(copy, base_url=BASE_URL) as product:
        product.wait_ready()
        for each in asked:
            if isinstance(each, str):
                answer = product.get(each)
                assert answer.status == 200, (each, answer)
                answers.append([each, answer.body.decode()])
            else:
                answers.append([each, tool(product, *each)])
    for file in sorted((data.parent / "exported").iterdir()):
        answers.append([f"export {file.name}", file.read_text()])
    return answers


def tool(product, name: str, arguments: dict) -> dict:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "MCP-Method": "tools/call",
        "MCP-Name": name,
    }
    params = {"name": name, "arguments": arguments, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return product.request("POST", "/api/mcp", headers, body).json()["result"]["structuredContent"]


def on_postgresql(data: Path) -> str:
    """Move a copy of the instance to PostgreSQL, and give its dump as statements."""
    from services.postgres import Postgres, binaries
    from services.product import run

    copy = data.parent / "moved"
    shutil.copytree(data, copy)
    cluster = Postgres()
    try:
        url = cluster.create("moved")
        run("move", "--to", url, data=copy, base_url=BASE_URL, database_url="")
        dump = [binaries() / "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=200", url]
        text = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
    finally:
        cluster.close()
    # Only what every version takes: no commands of psql, no settings of the newest server.
    lines = (line for line in text.splitlines() if not line.startswith(("\\", "SET ", "--")))
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    from services.product import run

    data = Path(tempfile.mkdtemp()) / "data"
    prepare(data)
    known = fill(data)
    asked = requests(known)
    close(data)
    answers = record(data, asked)
    run("backup", str(folder / "instance.backup"), data=data, base_url=BASE_URL, database_url="")
    dump = on_postgresql(data)
    with tarfile.open(folder / "data.tar.xz", "w:xz", preset=9) as archive:
        for file in sorted(data.rglob("*")):
            archive.add(file, file.relative_to(data), recursive=False)
    (folder / "postgresql.sql.xz").write_bytes(lzma.compress(dump.encode(), preset=9))
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in answers)
    (folder / "answers.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    (folder / "known.json").write_text(json.dumps(known, ensure_ascii=False, indent=2) + "\n")
    shutil.rmtree(data.parent)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
