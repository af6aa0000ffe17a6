"""No statement's work grows with what it does not answer: each is executed beside few and beside many rows."""

import pytest
from django.db import connection
from django.test import Client

from make import skewed
from make.accounts import account, signed_in
from make.asgi import Client as RestClient
from make.reports import do_jobs
from make.statements import (
    LITERALS,
    executed_on_postgresql,
    executed_on_sqlite,
    plan_on_sqlite,
    visits_on_postgresql,
)
from muniment import config as settings_of_process
from muniment.accounts import tokens
from muniment.api.application import Api
from muniment.jobs import handlers, queue
from muniment.kernel.actor import SCOPES
from muniment.kernel.ids import new_id
from muniment.registry.exchange.exporter import export_registry
from muniment.schema.objects import registry_schema
from muniment.scrub import instance
from muniment.store.reader import Reader
from muniment.web.requests import page_cache
from services.manage import manage
from services.mcp import public_server

pytestmark = pytest.mark.django_db(transaction=True)

FEW, TIMES = 20, 10
MANY = FEW * TIMES
FREE_STEPS = 300
STEPS_OF_AN_ANSWER = 40
"""The instructions that each row answered, and each value asked for, explains."""
KNOWN = {
    "SELECT COUNT(*)": "a total beside a list is counted in an index",
    'INNER JOIN "registry_ownership"': "an owner's lists are sorted by what their listings have",
    'FROM "registry_ownership" INNER JOIN "registry_company"': "an owner's listings are sorted by their last change",
    "FROM registry_ownership listing": "the newest row of each of an owner's listings is looked up",
    'COUNT(DISTINCT "registry_position"."company_id")': "the boards of a person are counted in an index",
    'SUM("documents_document"."size_bytes")': "the quota adds up what an account has stored",
    'FROM "registry_petition"': "the inbox counts what waits by kind, and a claim looks for its account's other claims",
    'FROM "registry_person"': "the list of people for reviewers is sorted by name and searched within names",
    'FROM "registry_company" ORDER BY "registry_company"."name"': "the operators' list is sorted by name",
    '"registry_company"."name" LIKE': "a review looks for the same name without its case in all listings",
    '"registry_company"."website" LIKE': "a review and a claim look for the same site in all listings",
    'FROM "jobs_job" WHERE "jobs_job"."state" IN': "the operators' pages count waiting jobs, and sort them by age",
    'FROM "jobs_job" WHERE ("jobs_job"."state" IN': "the operators' pages sort waiting jobs of a kind by age",
    'FROM "jobs_job" WHERE ("jobs_job"."kind"': "a claim passes the jobs that wait in other lanes, in its index",
    'DISTINCT "registry_historyentry"."company_id"': "an import looks for edits in the histories of its listings",
    "MATCH ? LIMIT ?": "a search counts matches up to the limit of a wide one",
    'COUNT("registry_company"."id") FILTER': "the operators' overview counts what listings lack, in one reading",
    "SELECT count(*) FROM published_document WHERE kind = ? AND treasury_minor": "treasuries are counted in an index",
    "SELECT json_group_array(position": "the documents of a value that has no bits, fewer than 4,096",
    "UPDATE published_log": "what the full-text index writes before it is counted to it",
    "UPDATE published_meta": "what the full-text index writes at a commit is counted to the last statement",
}
"""Statements whose work grows with rows that they do not answer: parts of their texts, and why they may."""
KNOWN_ON_POSTGRESQL = {
    'UPPER("registry_company"."name"': "a review looks for the same name without its case in all listings",
    'UPPER("registry_company"."website"': "a review and a claim look for the same site in all listings",
}
"""More of them on PostgreSQL."""
VISITS_OF_AN_ANSWER = 5
"""The rows that each row answered explains: a row, its entries in indexes, and those of the tables joined."""
PAGES = (
    *("/manage", "/manage/documents", "/manage/reports", "/manage/credits", "/manage/searches", "/manage/tokens"),
    "/manage/webhooks",
    *("/manage/applications", "/manage/security", "/manage/companies/company-1", "/manage/profile"),
    "/manage/companies/company-1/history",
    *("/review", "/review/audit", "/review/people", "/review/people?q=person", "/review/companies/company-1"),
    *("/review/people/person-7", "/review/frameworks", "/review/replies"),
    *("/operate", "/operate/accounts", "/operate/invitations", "/operate/listings", "/operate/credits"),
    *("/operate/jobs", "/operate/mail", "/operate/audit", "/operate/import", "/operate/webhooks"),
    "/operate/subscriptions",
)
PUBLIC = (
    *("/", "/companies", "/companies?page=2", "/people", "/frameworks", "/search?q=water", "/map", "/feed.atom"),
    *("/companies/company-1", "/companies/company-1/history", "/companies/company-1/network", "/people/person-7"),
    *("/companies?city=Zug&sort=name", "/companies?q=watre", "/search/suggestions?q=zu", "/people/person-0"),
    *("/companies/company-0", "/companies/company-0/cap-table", "/sitemap.xml", "/compare?id=company-1&id=company-2"),
)
REST = (
    *("companies", "companies?page=2", "companies/company-1", "companies?city=Zug&sort=treasury", "people/person-7"),
    *("companies?city=Zug&theme=water", "companies?q=water+zug", "companies?q=watre", "companies?sort=updated"),
    *("companies?treasuryMin=10&sort=team", "companies?listedFrom=2023-01-01&sort=name", "people?sort=companies"),
    *("companies?ids=company-1,company-2", "companies?q=qwertyuiop", "stats", "changes?after=9"),
    *("companies/company-0/cap-table", "companies?type=DAO&type=nonprofit", "people?q=person", "facets?list=companies"),
)


TOOLS = (
    ("search", {"query": "water"}),
    ("fetch", {"id": "companies/company-1"}),
    ("list_companies", {"query": "zug", "pageSize": 5}),
    ("get_company", {"slug": "company-0"}),
    ("get_person", {"slug": "person-0"}),
    ("list_people", {}),
    ("changes_since", {"after": 3}),
    ("get_registry_stats", {}),
    ("list_company_form_options", {}),
)
OWNER_TOOLS = ("list_my_companies", "list_my_documents", "list_my_runs", "get_credits", "get_my_profile")


@pytest.fixture
def busy():
    return account("busy@harbour.example", "operator")


def answer_requests(busy, token, reader):
    """Do what people and programs ask for, once."""
    page_cache.use(reader)
    browser, visitor = signed_in(busy), Client()
    api = Api(reader, settings_of_process.current(), registry_schema("USD"))
    rest = RestClient(api)
    statuses = {path: browser.get(path).status_code for path in PAGES}
    statuses |= {path: visitor.get(path).status_code for path in PUBLIC}
    statuses |= {path: rest.ask(f"/api/v1/{path}").status for path in REST}
    assert {path: status for path, status in statuses.items() if status != 200} == {}
    api.close()
    page_cache.use(None)
    with manage(reader=reader) as server:
        call_owner_tools(server, token)
    with public_server(reader) as tools:
        for tool, arguments in TOOLS:
            tools.call(tool, arguments)
    queue.enqueue("jobs.grown_old", {})
    do_jobs()


def call_owner_tools(server, token):
    for tool in OWNER_TOOLS:
        server.call(token, tool)
    server.call(token, "get_my_company", slug="company-1")
    server.call(token, "update_my_company", slug="company-1", changes={"description": f"Keeps {new_id()}."})


def work_on_everything(folder):
    """Do what reads the whole instance, once."""
    for kind in handlers.periodic():
        queue.enqueue(kind, {})
    do_jobs()
    instance.run_whole_pass(lambda _: None)
    export_registry(folder, private=True)


@pytest.fixture
def rounds(busy, tmp_path):
    """Return what was executed beside few and beside many rows: to answer requests, and to work on everything."""
    token = tokens.create_token(busy.actor("web"), "laptop", permitted=SCOPES).text
    done = []
    former = 0
    for rows in (FEW, MANY):
        skewed.grow(tmp_path / str(rows), busy, former, rows)
        former = rows
        with executed_on_sqlite() as for_requests:
            reader = Reader(settings_of_process.current().published_file)
            answer_requests(busy, token, reader)
            skewed.rename(tmp_path / f"renamed-{rows}", f"Harbour {rows}")
            reader.close()
        with executed_on_sqlite() as for_everything:
            work_on_everything(tmp_path / "exported")
        done.append((for_requests, for_everything))
    return done


def answered(executed):
    """Return the number of rows that a statement returned, and of values that it was given."""
    values = len(LITERALS.findall(executed.example))
    if not executed.example.startswith(("SELECT", "WITH")):
        return values
    with connection.cursor() as cursor:
        cursor.execute(executed.example)
        return values + len(cursor.fetchall())


def described(form, before, after, example):
    return "\n".join([f"{before} -> {after} steps: {form}", *(f"    {line}" for line in plan_on_sqlite(example))])


@pytest.mark.sqlite
def test_no_statement_does_more_work_beside_more_rows(rounds):
    (few, few_for_everything), (many, many_for_everything) = rounds
    grown = []
    for form, after in many.items():
        before = few.get(form)
        if before is None:
            continue
        explained = before.most_steps * 1.5 + STEPS_OF_AN_ANSWER * answered(after) + FREE_STEPS
        is_known = any(part in form for part in KNOWN)
        if after.most_steps > explained and not is_known:
            grown.append(described(form, before.most_steps, after.most_steps, after.example))
    # Each reads its part of the data once, so all executions together may take as much more work as there is more data.
    for form, after in many_for_everything.items():
        before = few_for_everything.get(form)
        if before is None:
            continue
        is_known = any(part in form for part in KNOWN)
        if after.all_steps > before.all_steps * TIMES * 1.3 + FREE_STEPS and not is_known:
            grown.append("of all: " + described(form, before.all_steps, after.all_steps, after.example))
    assert not grown, "\n".join(["", *grown])


@pytest.mark.postgresql
def test_no_question_to_postgresql_reads_more_rows_beside_more(busy, tmp_path):
    token = tokens.create_token(busy.actor("web"), "laptop", permitted=SCOPES).text
    visits = []
    former = 0
    for rows in (FEW, MANY):
        skewed.grow(tmp_path / str(rows), busy, former, rows)
        former = rows
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        with executed_on_postgresql() as executed:
            browser = signed_in(busy)
            statuses = {path: browser.get(path).status_code for path in PAGES}
            assert {path: status for path, status in statuses.items() if status != 200} == {}
            with manage() as server:
                call_owner_tools(server, token)
            queue.enqueue("jobs.grown_old", {})
            do_jobs()
        visits.append(
            {form: max(visits_on_postgresql(*example) for example in examples) for form, examples in executed.items()}
        )
    few, many = visits
    grown = []
    for form, (after, answered_rows) in many.items():
        before, _ = few.get(form, (after, 0))
        is_known = any(part in form for part in (*KNOWN, *KNOWN_ON_POSTGRESQL))
        if after > before * 1.5 + VISITS_OF_AN_ANSWER * (1 + answered_rows) and not is_known:
            grown.append(f"{before} -> {after} rows: {form}")
    assert not grown, "\n".join(["", *grown])
