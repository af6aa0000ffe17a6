"""The Python client against a running product, and against servers that fail: synchronous and asynchronous alike."""

import asyncio
import gzip
import hashlib
import inspect
import itertools
import json
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import httpx
import msgspec
import pytest
from standardwebhooks import Webhook

import muniment_client
from muniment_client import (
    APIError,
    AsyncClient,
    AuthenticationError,
    BadRequestError,
    Client,
    ConnectionFailedError,
    Copy,
    HistoryChangedError,
    MalformedResponseError,
    NotFoundError,
    Place,
    RateLimitError,
    Retries,
    ServerError,
    TimedOutError,
    UnavailableError,
    WebhookVerificationError,
    verify_webhook,
)
from services.owner import COMPANY, EMAIL, owned_instance
from services.ports import free_port, wait_until
from services.product import run
from services.scripted import Scripted, ScriptedServer, dripping, problem
from services.silent import Silent

STATS = {"data": {"total": 1, "projectsRaising": 0, "totalTreasury": "", "founders": 0, "frameworks": 0}}
WORKS = Scripted(body=STATS)
HEX = "5e" * 32
NEVER = Retries(attempts=1)


class Blocking:
    """Call the methods of a client, of either kind, from a test: iterators become lists, and coroutines are awaited."""

    def __init__(self, target, runner):
        self._target, self._runner = target, runner

    def __getattr__(self, name):
        found = getattr(self._target, name)
        if not callable(found):
            return Blocking(found, self._runner)

        def call(*arguments, **named):
            return self._whole(found(*arguments, **named))

        return call

    def _whole(self, result):
        if inspect.iscoroutine(result):
            return self._runner.run(result)
        if inspect.isasyncgen(result):
            return self._runner.run(listed(result))
        return list(result) if inspect.isgenerator(result) else result


async def listed(generator):
    return [item async for item in generator]


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as opened:
        yield opened


@pytest.fixture(scope="module")
def transports(runner):
    """Yield connections for each kind of client: the certificates for a new one take longer to read than most tests."""
    with httpx.Client(verify=False) as plain:
        other = httpx.AsyncClient(verify=False)
        yield {Client: plain, AsyncClient: other}
        runner.run(other.aclose())


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
def connect(request, runner, transports, monkeypatch):
    """Return a function that makes a client of a URL; its pauses are noted in `connect.pauses`, and not waited for."""
    pauses = []

    async def note(seconds, *_):
        pauses.append(seconds)

    monkeypatch.setattr("muniment_client._client.time.sleep", pauses.append)
    monkeypatch.setattr("muniment_client._async_client.asyncio.sleep", note)

    def connected(url, **more):
        return Blocking(request.param(url, http_client=transports[request.param], **more), runner)

    connected.pauses = pauses
    return connected


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    with owned_instance(tmp_path_factory.mktemp("python-client")) as (product, _):
        token = run("user", "token", EMAIL, "--name", "client", data=product.data).stdout.strip()
        wait_until(lambda: product.get("/api/v1/exports").json()["data"], within_s=60, what="the exports")
        yield product, token


@pytest.fixture
def client(connect, instance):
    product, token = instance
    return connect(product.url, token=token)


@pytest.mark.whole(keeps=1)
def test_all_pages_of_every_list_are_read(client):
    companies, people = client.companies(page_size=17), client.people(page_size=17)
    stats = client.get_stats()
    assert (len(companies), len(people)) == (stats.total, stats.founders)
    assert len({company.id for company in companies}) == len(companies)
    bundle = client.get_company("saltmarsh-commons")
    assert client.cap_table("saltmarsh-commons", page_size=50) == bundle.cap_table
    assert len(client.list_frameworks().data) == stats.frameworks
    for framework in client.list_frameworks().data:
        assert client.get_framework(framework.framework_id).framework_name == framework.framework_name


def test_filters_are_sent_as_the_contract_takes_them(client):
    asked = ["tarnwick-tidal", "quillmere", "no, comma"]
    page = client.list_companies(ids=asked, raising=None)
    assert {company.id for company in page.data} == {"tarnwick-tidal", "quillmere"}
    assert page.unknown_ids == ["no, comma"]
    several = client.companies(type=["DAO", "cooperative"], raising=False)
    assert {company.type for company in several} == {"DAO", "cooperative"}
    assert all(company.raising is not True for company in several)
    assert client.get_facets(list="people", facets=["title"]).data["title"].values


def test_statements_return_rows_and_rows_of_a_type(client):
    class Row(msgspec.Struct):
        slug: str
        team_size: int | None

    sql = "SELECT slug, team_size FROM companies WHERE slug = :slug"
    assert client.query(sql, slug="quillmere").data == [{"slug": "quillmere", "team_size": 3}]
    assert client.query(sql, into=Row, slug="quillmere").data == [Row("quillmere", 3)]
    cut = client.query("SELECT a.slug FROM companies a, companies b")
    assert cut.truncated.by == ["rows"]
    assert client.query_csv(sql, slug="quillmere").content.decode().splitlines() == ["slug,team_size", "quillmere,3"]
    with pytest.raises(BadRequestError, match="no column nowhere"):
        client.query("SELECT nowhere FROM companies")


def test_a_csv_is_the_whole_list(client, tmp_path):
    file = client.companies_csv(status="active", fields=["name"])
    file.save(tmp_path / "companies.csv")
    rows = (tmp_path / "companies.csv").read_text().splitlines()
    assert rows[0] == "id,name"
    assert len(rows) == 1 + len(client.companies(status="active"))
    assert file.truncated is None


def test_errors_say_code_hint_and_request(client):
    with pytest.raises(NotFoundError) as unknown:
        client.get_company("quilmere")
    assert unknown.value.code == "not_found"
    assert "quillmere" in unknown.value.hint
    assert unknown.value.request_id
    with pytest.raises(BadRequestError, match="pageSize"):
        client.list_companies(page_size=1000)


def test_changes_are_resumed_at_the_last_one(client):
    changes = client.changes(follow=False, include_document=True)
    middle = changes[len(changes) // 2]
    rest = client.changes(Place(middle.sequence, middle.chain), follow=False)
    assert [change.sequence for change in rest] == list(range(middle.sequence + 1, changes[-1].sequence + 1))
    people = client.changes(kind=["person", "framework"], follow=False)
    assert {change.kind for change in people} == {"person", "framework"}
    assert client.changes(client.head(), follow=False) == []
    assert client.head().after == changes[-1].sequence


@pytest.mark.parametrize("place", [Place(10, HEX), Place(99_999), Place(0, None, "another")])
def test_another_history_is_told_from_invalid_arguments(client, place):
    with pytest.raises(HistoryChangedError):
        client.changes(place, follow=False)
    with pytest.raises(HistoryChangedError):
        client.verify_history(place)
    with pytest.raises(BadRequestError):
        client.changes(ids=["x"] * 101, follow=False)


def test_a_change_is_heard_of_while_waiting(instance):
    """The asynchronous client waits in one task while another changes the listing; then the wait is canceled."""
    product, token = instance

    async def follow():
        async with AsyncClient(product.url, token=token) as registry:
            changes = registry.changes(await registry.head(), ids=COMPANY)
            first = asyncio.create_task(anext(changes))
            await registry.owner.update_my_company(slug=COMPANY, changes={"description": "Heard of."})
            heard = await asyncio.wait_for(first, 60)
            second = asyncio.create_task(anext(changes))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            return heard

    heard = asyncio.run(follow())
    assert (heard.kind, heard.id, heard.change, heard.fields) == ("company", COMPANY, "updated", ["description"])


def test_a_mirror_has_every_document_byte_for_byte_and_goes_on(client, instance, tmp_path):
    file = tmp_path / "registry.sqlite"
    client.mirror(file)
    client.owner.update_my_company(slug=COMPANY, changes={"description": f"Changed after {tmp_path.name}."})
    place = client.mirror(file)
    assert place.after == client.head().after
    client.verify_history(place)
    with Copy(file) as copy:
        assert copy.place == place
        counts = dict.fromkeys(("company", "person", "framework"), 0)
        for kind in counts:
            for key, document in copy.documents(kind):
                counts[kind] += 1
                found = client.verify(kind, key, document)
                assert found.is_current, (kind, key)
                assert found.sha256 == hashlib.sha256(document).hexdigest()
        assert list(counts.values()) == [60, 41, 6]
        held = json.loads(copy.document("company", COMPANY))
    assert client.verify("company", COMPANY, held).is_current
    assert not client.verify("company", COMPANY, {**held, "capTable": [{"name": "Forged"}]}).is_current
    assert client.verify("company", "nobody", b"{}") == muniment_client.Verification(
        is_published=False, is_current=False, sha256="", edition=client.head().after
    )


def test_a_mirror_of_another_registry_or_history_is_refused_and_left_alone(client, connect, instance, tmp_path):
    file = tmp_path / "registry.sqlite"
    client.mirror(file)
    with pytest.raises(ValueError, match="name another file"):
        connect("http://127.0.0.1:1").mirror(file)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE place SET chain = ?", (HEX,))
    database.close()
    with pytest.raises(HistoryChangedError):
        client.mirror(file)
    with Copy(file) as copy:
        assert copy.document("company", COMPANY) is not None


def export_of(name, content, **more):
    return {
        "name": name, "url": f"/exports/{name}", "latestUrl": "", "rows": 1, "bytes": len(content), "edition": 7,
        "sha256": hashlib.sha256(content).hexdigest(), "at": "2026-01-01T00:00:00Z", **more,
    }  # fmt: skip


def test_a_mirror_stores_nothing_of_an_export_that_is_not_as_listed(connect, tmp_path):
    packed = gzip.compress(b"{}\n")
    files = [export_of(f"{name}-7-aa.jsonl.gz", packed, sha256=HEX) for name in ("companies", "people", "frameworks")]
    page = {"data": [], "nextAfter": 7, "chain": HEX, "feedId": "f", "head": 7}
    with ScriptedServer(Scripted(body={"data": files}), Scripted(body=page), Scripted(body=packed)) as server:
        client = connect(server.url)
        with pytest.raises(MalformedResponseError, match="SHA-256"):
            client.mirror(tmp_path / "registry.sqlite")
        listed_file = msgspec.convert(files[0], muniment_client.models.Export)
        with pytest.raises(MalformedResponseError, match="SHA-256"):
            client.download(listed_file, tmp_path / "companies.gz")
    assert [file.name for file in tmp_path.iterdir()] == ["registry.sqlite"]
    with Copy(tmp_path / "registry.sqlite") as copy:
        assert copy.place is None
        assert list(copy.documents("company")) == []


def test_changes_update_and_remove_documents_and_large_ones_are_fetched(connect, tmp_path):
    def change(sequence, key, **more):
        at = "2026-01-01T00:00:00Z"
        return {"sequence": sequence, "kind": "company", "id": key, "change": "updated", "at": at, "chain": HEX, **more}

    first = [change(1, "a", document={"company": {"id": "a"}}), change(2, "b")]
    pages = [{"data": first, "nextAfter": 2, "chain": HEX, "feedId": "f", "head": 3}]
    pages.append({"data": [change(3, "a", document=None)], "nextAfter": 3, "chain": HEX, "feedId": "f", "head": 3})
    with ScriptedServer(
        Scripted(body={"data": []}),
        Scripted(body=pages[0]),
        Scripted(body=b'{"data":{"company":{"id":"b"} }}'),
        Scripted(body=pages[1]),
    ) as server:
        assert connect(server.url).mirror(tmp_path / "m.sqlite") == Place(3, HEX, "f")
    assert server.asked[2] == "GET /api/v1/companies/b"
    with Copy(tmp_path / "m.sqlite") as copy:
        assert list(copy.documents("company")) == [("b", b'{"company":{"id":"b"} }')]


def test_exports_are_downloaded_whole(client, tmp_path):
    export = client.list_exports().data[0]
    client.download(export, tmp_path / export.name)
    assert hashlib.sha256((tmp_path / export.name).read_bytes()).hexdigest() == export.sha256
    assert list(tmp_path.iterdir()) == [tmp_path / export.name]


def test_an_owner_updates_uploads_and_is_assessed(client, tmp_path):
    (tmp_path / "audit.txt").write_text("The reserves were audited in 2026 by Harrow & Daughters.\n")
    before = client.owner.get_my_company(slug=COMPANY).company.description
    tried = client.owner.update_my_company(slug=COMPANY, changes={"description": "Tides."}, dry_run=True)
    assert tried.applied == ["description"]
    assert client.owner.get_my_company(slug=COMPANY).company.description == before
    document = client.owner.upload(COMPANY, tmp_path / "audit.txt")
    assert (document.state, document.filename) == ("ready", "audit.txt")
    with pytest.raises(ValueError, match="credits"):
        client.owner.assess(COMPANY, "plain-governance", max_cost=0)
    report = client.owner.assess(COMPANY, "plain-governance", document_ids=[document.document_id])
    assert report.company_slug == COMPANY
    assert report.overall.score > 0
    with pytest.raises(NotFoundError):
        client.owner.get_my_company(slug="quillmere")


def test_a_token_is_asked_for_and_checked(connect, instance):
    product, _ = instance
    with pytest.raises(ValueError, match="/manage/tokens"):
        _ = connect(product.url).owner
    with pytest.raises(AuthenticationError, match="unknown"):
        connect(product.url, token="mun_pat_wrong").owner.get_credits()


@pytest.mark.parametrize(
    ("answers", "pauses"),
    [
        ([problem(429, retry_after="3"), WORKS], [3]),
        ([problem(503, retry_after="0"), problem(503, retry_after="2"), WORKS], [0, 2]),
        ([problem(503, retry_after="Thu, 01 Jan 1970 00:00:00 GMT"), WORKS], [0]),
        ([Scripted(502, b"<html>"), WORKS], None),
        ([Scripted(body=b"{", cut=True), WORKS], None),
    ],
)
def test_reads_are_repeated_after_the_pause_that_was_asked_for(connect, answers, pauses):
    with ScriptedServer(*answers) as server:
        assert connect(server.url).get_stats().total == 1
    assert len(server.asked) == len(answers)
    if pauses is None:
        assert all(0 < pause <= 1 for pause in connect.pauses)
    else:
        assert connect.pauses == pauses


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        (problem(429, retry_after="61"), RateLimitError, 1),
        (problem(503, retry_after="60"), UnavailableError, 4),
        (problem(500), ServerError, 1),
        (problem(400), BadRequestError, 1),
        (problem(418), APIError, 1),
        (Scripted(504, b""), ServerError, 4),
        (Scripted(body=b"<html>"), MalformedResponseError, 1),
        (Scripted(body=b'{"data": {"total": "many"}}'), MalformedResponseError, 1),
        (Scripted(body=b'{"data": \xff}'), MalformedResponseError, 1),
        (Scripted(body=b"[" * 100_000), MalformedResponseError, 1),
        (Scripted(body=b"no gzip", headers={"Content-Encoding": "gzip"}), MalformedResponseError, 1),
        (Scripted(302, b"", {"Location": "/api/v1/stats"}), MalformedResponseError, 21),
    ],
)
def test_refusals_are_errors_after_the_attempts_that_make_sense(connect, answer, error, asked):
    with ScriptedServer(answer) as server, pytest.raises(error) as raised:
        connect(server.url).get_stats()
    assert len(server.asked) == asked
    if answer.status >= 400:
        assert raised.value.status == answer.status
        assert raised.value.retry_after_s in {None, 60, 61}


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (problem(503, retry_after="1"), 4),
        (problem(429, retry_after="1"), 4),
        (Scripted(502, b""), 1),
        (Scripted(504, b""), 1),
        (Scripted(body=b"{", cut=True), 1),
    ],
)
def test_what_changes_something_is_repeated_only_if_it_was_refused_undone(connect, answer, asked):
    with ScriptedServer(answer) as server:
        owner = connect(server.url, token="mun_pat_x").owner
        with pytest.raises((APIError, ConnectionFailedError)):
            owner.submit_for_review(slug=COMPANY)
        assert len(server.asked) == asked
        with pytest.raises((APIError, ConnectionFailedError)):
            owner.get_credits()
        assert len(server.asked) == asked + 4


@pytest.mark.parametrize("body", [{"error": {"code": -32600, "message": "No."}}, {}, {"result": {"isError": True}}])
def test_answers_that_no_tool_gives_are_errors(connect, body):
    with ScriptedServer(Scripted(body=body)) as server, pytest.raises((BadRequestError, MalformedResponseError)):
        connect(server.url, token="mun_pat_x").owner.get_credits()


def test_a_server_that_is_not_there_is_tried_again_also_for_changes(connect):
    client = connect(f"http://127.0.0.1:{free_port()}", token="mun_pat_x")
    with pytest.raises(ConnectionFailedError):
        client.owner.submit_for_review(slug=COMPANY)
    assert len(connect.pauses) == 3
    assert connect.pauses[0] < connect.pauses[1] < connect.pauses[2]


def test_a_silent_server_is_left_in_time(connect):
    with Silent() as server, pytest.raises(TimedOutError):
        connect(f"http://{server.address}", timeout_s=0.05, retries=NEVER).get_stats()


def test_a_server_that_drips_is_left_in_time(connect):
    ended = threading.Event()
    drops = dripping(itertools.repeat(b" "), lambda: ended.wait(0.02))
    with ScriptedServer(drops) as server, pytest.raises(TimedOutError):
        connect(server.url, timeout_s=0.2, retries=NEVER).get_stats()
    ended.set()


def test_a_response_without_end_is_left(connect, monkeypatch):
    for module in ("_client", "_async_client"):
        monkeypatch.setattr(f"muniment_client.{module}.MAX_BODY_BYTES", 1 << 20)
    endless = dripping(itertools.repeat(b" " * 65536), lambda: None)
    with ScriptedServer(endless) as server, pytest.raises(MalformedResponseError, match="longer"):
        connect(server.url).get_stats()


def test_a_feed_that_answers_at_once_without_news_is_not_asked_in_a_loop(connect):
    page = {"data": [], "nextAfter": 5, "chain": HEX, "feedId": "f", "head": 5}
    answers = [*[Scripted(body=page)] * 3, problem(400), Scripted(body=STATS)]
    with ScriptedServer(*answers) as server, pytest.raises(MalformedResponseError, match="edition"):
        connect(server.url).changes(Place(5))
    assert connect.pauses == [1, 1, 1]
    assert server.asked[0] == "GET /api/v1/changes?after=5&waitSeconds=50"
    assert server.asked[1] == f"GET /api/v1/changes?after=5&chain={HEX}&waitSeconds=50"


def test_a_client_of_the_callers_own_is_used_and_left_open(instance):
    product, _ = instance
    with httpx.Client(headers={"X-Own": "yes"}) as own:
        with Client(product.url, http_client=own) as client:
            assert client.get_stats().total == 60
        assert not own.is_closed


def test_a_type_of_the_callers_own_reads_what_no_struct_has(client):
    class Declared(msgspec.Struct):
        lei: str

    class Bundle(msgspec.Struct):
        company: Declared

    class Answer(msgspec.Struct):
        data: Bundle

    assert client.get("/api/v1/companies/quillmere", Answer).data.company.lei == "0000FICTIVEQUILLME55"
    assert client.get("/api/v1/companies", dict, {"pageSize": 1})["pagination"]["pageSize"] == 1
    with pytest.raises(MalformedResponseError, match="company"):
        client.get("/api/v1/people/ilsabet-corrowan", Answer)


SECRET = "whsec_" + "c2VjcmV0" * 4
EVENT = b'{"id":"evt_1","type":"listing.updated","timestamp":"2026-01-01T00:00:00Z","data":{"slug":"quillmere"}}'


def signed(body=EVENT, *, at=None, secret=SECRET):
    moment = at or datetime.now(UTC)
    signature = Webhook(secret).sign("evt_1", moment, body.decode())
    sent_at = str(int(moment.timestamp()))
    return {"Webhook-Id": "evt_1", "webhook-timestamp": sent_at, "Webhook-Signature": f"v1,AAAA {signature}"}


def test_a_message_of_a_webhook_is_verified():
    assert verify_webhook(SECRET, signed(), EVENT).data == {"slug": "quillmere"}
    other = "whsec_" + "b3RoZXIh" * 4
    for headers, body in (
        (signed(secret=other), EVENT),
        (signed(), EVENT + b" "),
        ({**signed(), "Webhook-Id": "evt_2"}, EVENT),
        ({**signed(), "webhook-timestamp": "1"}, EVENT),
        ({**signed(), "webhook-timestamp": "soon"}, EVENT),
        ({}, EVENT),
        (signed(b"[]"), b"[]"),
    ):
        with pytest.raises(WebhookVerificationError):
            verify_webhook(SECRET, headers, body)
    with pytest.raises(ValueError, match="Base64"):
        verify_webhook("not a secret!", signed(), EVENT)


def test_the_readme_runs_as_printed(instance, tmp_path):
    product, token = instance
    readme = Path(muniment_client.__file__).parents[2] / "README.md"
    blocks = readme.read_text().split("```python\n")[1:]
    samples = [block.partition("```")[0].replace("https://registry.example", product.url) for block in blocks]
    jobs = samples[1:-1]
    assert len(jobs) == 15
    assert all(len(job.strip().splitlines()) <= 5 for job in jobs)
    (tmp_path / "audit.txt").write_text("The reserves were audited in 2026.\n")
    body = EVENT.replace(b'"slug"', b'"url"')
    given = f"headers = {signed(body)!r}\nbody = {body!r}\n"
    (tmp_path / "samples.py").write_text("\n".join([samples[0], given, *jobs, samples[-1]]))
    environment = {
        "PYTHONPATH": str(readme.parent / "src"),
        "REGISTRY_TOKEN": token,
        "WEBHOOK_SECRET": SECRET,
        "PATH": "",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "samples.py"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for shown in (
        "tarnwick-tidal Tarnwick Tidal",
        "60 of 60",
        "Treasurer",
        "whole",
        "listing.updated",
        "\nTrue ",
    ):
        assert shown in done.stdout, shown
