"""
This version upgrades an instance of the first 0.1.0: data, queued jobs, credentials and pending decisions.

Stored names (job kinds, tables, migrations, content types, session data, history) are what modules may not rename.
"""

import json
import lzma
import re
import sqlite3
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from services.mcp import modern
from services.ports import wait_until
from services.product import Product, run
from services.visitor import Visitor

FIRST = Path(__file__).parent / "0.1-first"
BASE_URL = "http://registry.example"
KNOWN = json.loads((FIRST / "known.json").read_text())
COMPANIES, RUNS = KNOWN["companies"], KNOWN["runs"]


class Upgraded(NamedTuple):
    """The product that serves the old data, and its answers before any decision."""

    product: Product
    data: Path
    database_url: str
    answers: dict[str, Any]

    def tool(self, name: str, *, token: str = KNOWN["token"], path: str = "/api/manage/mcp", **arguments: Any) -> Any:
        """Call a tool and return its structuredContent."""
        headers, body = modern("tools/call", {"name": name, "arguments": arguments})
        sent = {name: value for name, value in headers if name != "host"}
        if path != "/api/mcp":
            sent["authorization"] = f"Bearer {token}"
        answer = self.product.request("POST", path, sent, body)
        assert answer.status == 200, answer
        return answer.json()["result"]["structuredContent"]

    def query(self, statement: str) -> list[Any]:
        if self.database_url:
            with psycopg.connect(self.database_url) as connection:
                return connection.execute(statement).fetchall()
        connection = sqlite3.connect(self.data / "muniment.sqlite3")
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()

    def as_account(self, email: str) -> Visitor:
        """Return the browser in which the account signed in before the upgrade."""
        visitor = Visitor(self.product.url, {})
        for name, value in KNOWN["sessions"][email].items():
            visitor.web.cookies.set(name, value, domain="127.0.0.1")
        return visitor

    def decide(self, page: str, **fields: str) -> None:
        """Send the form of a review page as the reviewer, with its hidden fields."""
        with self.as_account(KNOWN["reviewer"]) as reviewer:
            reviewer.post(f"{page}/decide", **hidden(reviewer.get(page), f"{page}/decide"), **fields)


def hidden(page: str, action: str) -> dict[str, str]:
    """Return the hidden fields of a page's form."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page, re.DOTALL)
    assert form is not None, f"no form leads to {action}"
    found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[0]))
    found.pop("csrfmiddlewaretoken", None)
    return found


def recorded() -> list[tuple[Any, Any]]:
    lines = lzma.decompress((FIRST / "answers.jsonl.xz").read_bytes()).decode().splitlines()
    return [(asked, answer) for asked, answer in map(json.loads, lines)]


def exported(folder: Path, data: Path, database_url: str) -> dict[str, str]:
    run("export", str(folder), "--private", data=data, base_url=BASE_URL, database_url=database_url)
    assert (folder / KNOWN["picture"][1:]).is_file()
    return {f"export {file.name}": file.read_text() for file in sorted(folder.glob("*.jsonl"))}


def addressed(asked: Any, answer: Any) -> Any:
    """Return a recorded answer with the present URL of pictures, which the first version gave as they were stored."""
    if str(asked).startswith("export "):
        return answer
    return json.loads(json.dumps(answer).replace('"/pictures/', f'"{BASE_URL}/pictures/'))


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ],
)
def upgraded(request, tmp_path_factory):
    """Upgrade the old instance, serve it, and send every recorded request."""
    folder = tmp_path_factory.mktemp("upgraded")
    data, url = folder / "data", ""
    with tarfile.open(FIRST / "data.tar.xz") as archive:
        archive.extractall(data, filter="data")
    if request.param == "postgresql":
        (data / "muniment.sqlite3").unlink()
        cluster = request.getfixturevalue("postgres")
        url = cluster.create("from_the_first")
        with psycopg.connect(url) as connection:
            connection.execute(lzma.decompress((FIRST / "postgresql.sql.xz").read_bytes()))
    run("migrate", data=data, base_url=BASE_URL, database_url=url)
    answers = exported(folder / "exported", data, url)
    with Product(data, base_url=BASE_URL, database_url=url) as product:
        product.wait_ready()
        found = Upgraded(product, data, url, answers)
        for asked, _ in recorded():
            if isinstance(asked, list):
                answers[json.dumps(asked)] = found.tool(asked[0], path="/api/mcp", **whole(*asked))
            elif asked.startswith("/"):
                answers[asked] = product.get(asked).body.decode()
        yield found
    if url:
        cluster.drop("from_the_first")


def whole(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a recorded call, asking for whole items, which the first version always gave."""
    return arguments if tool in {"get_registry_stats", "list_company_form_options"} else {**arguments, "detail": "full"}


def known_part(before: Any, now: Any) -> Any:
    """Return of an answer what the first version knew: later ones add members, and jobs publish some items again."""
    if isinstance(before, dict) and isinstance(now, dict):
        return {
            name: value if name == "updatedAt" and now[name] > value else known_part(value, now[name])
            for name, value in before.items()
            if name in now
        }
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [known_part(*each) for each in zip(before, now, strict=True)]
    return now


def decoded(answer: Any) -> Any:
    """Return an answer as JSON: of an export, its lines; of any other text, itself."""
    if not isinstance(answer, str):
        return answer
    try:
        return [_with_known_dates(json.loads(line)) for line in answer.splitlines()]
    except json.JSONDecodeError:
        return re.sub(r"<lastmod>[^<]*</lastmod>", "", answer)  # later versions tell it in site maps


def _with_known_dates(line: Any) -> Any:
    """Leave out the first day of a month: the first version wrote it for a month without a day, too."""
    company = line.get("company") if isinstance(line, dict) else None
    if isinstance(company, dict) and company.get("listedAt", "").endswith("-01"):
        del company["listedAt"]
    return line


def in_order(answer: Any) -> Any:
    """Return an answer with its lists sorted."""
    if isinstance(answer, dict):
        return {name: in_order(value) for name, value in answer.items()}
    return sorted(map(in_order, answer), key=_name) if isinstance(answer, list) else answer


def _name(item: Any) -> str:
    known = item.get("slug") or item.get("company") if isinstance(item, dict) else item
    return json.dumps(known, sort_keys=True)


OTHER_ORDER = {
    "/api/v1/people?q=a",
    "/api/v1/people/ilsabet-corrowan",
    "/api/v1/people/hespera-dunmarrow",
    '["get_person", {"slug": "ilsabet-corrowan"}]',
}
"""The first version ranked searches otherwise, and began with listings of a future date, which now come last."""
OTHER_PAGE = {*OTHER_ORDER, "/feed.atom", '["list_companies", {"pageSize": 50, "detail": "full"}]'}


def test_every_public_answer_and_export_holds_all_that_it_held(upgraded):
    feed = "/api/v1/changes?after=0"
    before = {
        asked if isinstance(asked, str) else json.dumps(asked): addressed(asked, answer) for asked, answer in recorded()
    }
    assert len(before) > 100
    assert before.keys() == upgraded.answers.keys()
    # The documents have further members, so the feed starts over, and says where to continue.
    assert "no longer goes back that far" in upgraded.answers.pop(feed)
    del before[feed]
    pairs = {asked: (decoded(answer), decoded(upgraded.answers[asked])) for asked, answer in before.items()}
    assert [
        asked for asked, (old, new) in pairs.items() if known_part(old, new) != old and asked not in OTHER_PAGE
    ] == []
    for asked in OTHER_ORDER:
        old, new = (in_order(each) for each in pairs[asked])
        assert known_part(old, new) == old, asked


def test_every_queued_job_is_finished(upgraded):
    asked = ", ".join(f"'{kind}'" for kind in KNOWN["jobs"])
    open_jobs = f"SELECT kind, state FROM jobs_job WHERE state <> 'succeeded' AND kind IN ({asked})"
    wait_until(lambda: upgraded.query(open_jobs) == [], within_s=30, what="the old jobs finished")
    assert sum(KNOWN["jobs"].values()) >= 11


def test_the_run_of_a_lost_worker_resumes_and_the_queued_one_runs_and_both_are_paid(upgraded):
    def state(run_id):
        return upgraded.tool("get_report_run_status", runId=run_id)["data"]["state"]

    for each in (RUNS["running"], RUNS["queued"]):
        wait_until(lambda each=each: state(each) == "succeeded", within_s=30, what="the run succeeding")
        assert upgraded.tool("get_report", runId=each, format="full")["data"]["reportId"]
    attempts = upgraded.query(f"SELECT attempt FROM jobs_job WHERE id = '{RUNS['running']}'")
    steps = upgraded.query(f"SELECT attempt FROM jobs_step WHERE job_id = '{RUNS['running']}' ORDER BY id")
    assert attempts == [(2,)]
    assert [attempt for (attempt,) in steps] == [1, 1, 1, 2, 2], "finished criteria are not judged again"
    credits_ = upgraded.tool("get_credits")["data"]
    assert (credits_["balance"], credits_["held"], credits_["available"]) == (80, 0, 80)


def test_the_queued_text_is_extracted_and_stored_files_are_served(upgraded):
    def texts():
        found = upgraded.tool("list_my_documents")["data"]
        return {each["documentId"]: each["textState"] for each in found}

    documents = KNOWN["documents"]
    wait_until(lambda: set(texts().values()) == {"extracted"}, within_s=30, what="the text extracted")
    assert texts().keys() == set(documents.values())
    with upgraded.as_account(KNOWN["owner"]) as owner:
        assert owner.get(f"/manage/documents/{documents['waiting']}/file") == "The members meet in March.\n"
        assert owner.web.get(KNOWN["picture"]).headers["content-type"] == "image/webp"


def test_a_session_stays_signed_in_and_its_draft_can_be_submitted(upgraded):
    page = f"/manage/companies/{COMPANIES['draft']}"
    with upgraded.as_account(KNOWN["owner"]) as owner:
        assert "Slackwater Ferry" in owner.get(f"{page}/edit/basics")
        owner.post(f"{page}/submit", **hidden(owner.get(f"{page}/check"), f"{page}/submit"))
    mine = upgraded.tool("get_my_company", slug=COMPANIES["draft"])["data"]
    assert mine["state"] == "submitted"


def test_a_listing_with_requested_changes_keeps_its_note_and_history(upgraded):
    page = f"/manage/companies/{COMPANIES['returned']}"
    with upgraded.as_account(KNOWN["owner"]) as owner:
        assert "Say where you are." in owner.get(page)
        assert "Say where you are." in owner.get(f"{page}/history")


def test_every_pending_review_can_be_decided(upgraded):
    upgraded.decide(f"/review/companies/{COMPANIES['submitted']}", do="approve")
    upgraded.decide(f"/review/changes/{KNOWN['change']}", do="approve")
    for number in KNOWN["requests"].values():
        upgraded.decide(f"/review/requests/{number}", do="approve")

    def company(key):
        answer = upgraded.product.get(f"/api/v1/companies/{COMPANIES[key]}")
        return answer.json()["data"]["company"] if answer.status == 200 else {}

    wait_until(lambda: company("submitted").get("name") == "Brine and Bramble", within_s=60, what="the listing public")
    wait_until(lambda: company("mine")["name"] == KNOWN["renamed"], within_s=60, what="the new name")
    wait_until(
        lambda: company("suggested")["description"] == "Founded by its members.", within_s=60, what="the suggested text"
    )
    with upgraded.as_account(KNOWN["visitor"]) as visitor:
        assert f"/manage/companies/{COMPANIES['claimed']}" in visitor.get("/manage")
        assert upgraded.product.data_of(f"/api/v1/people/{KNOWN['people'][1]}")["name"] in visitor.get(
            "/manage/profile"
        )


def test_an_invitation_and_an_application_can_be_accepted(upgraded):
    invitation = f"/manage/invitations/{KNOWN['invitation']}"
    with upgraded.as_account(KNOWN["visitor"]) as visitor:
        visitor.get(invitation)
        visitor.post(invitation)
        assert f"/manage/companies/{COMPANIES['mine']}" in visitor.get("/manage")
    application = f"/manage/applications/{KNOWN['application']}"
    with upgraded.as_account(KNOWN["owner"]) as owner:
        owner.post(f"{application}/accept", **hidden(owner.get(application), f"{application}/accept"))
    assert upgraded.query("SELECT state FROM assessments_application") == [("accepted",)]


def test_a_shared_report_is_served(upgraded):
    shown = upgraded.product.get(f"/reports/shared/{KNOWN['shared']}")
    assert (shown.status, b"Harbour Fund" in shown.body) == (200, True)


def test_tokens_passwords_and_connected_apps_work(upgraded):
    app = KNOWN["app"]
    assert upgraded.tool("get_my_profile", token=app["access"])["data"]["email"] == KNOWN["owner"]
    form = {"grant_type": "refresh_token", "refresh_token": app["refresh"], "client_id": app["client_id"]}
    with Visitor(upgraded.product.url, {}) as client:
        pair = client.web.post("/oauth/token", data=form).json()
        client.post("/accounts/login/", login=KNOWN["visitor"], password=KNOWN["password"])
    assert upgraded.tool("get_my_profile", token=pair["access_token"])["data"]["email"] == KNOWN["owner"]


@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql)])
def test_a_backup_of_the_first_version_can_be_restored(database, request, tmp_path):
    url = ""
    if database == "postgresql":
        cluster = request.getfixturevalue("postgres")
        url = cluster.create("restored_from_the_first")
    data = tmp_path / "data"
    run("restore", str(FIRST / "instance.backup"), data=data, base_url=BASE_URL, database_url=url)
    found = exported(tmp_path / "exported", data, url)
    for asked, answer in recorded():
        if str(asked).startswith("export "):
            old, new = decoded(answer), decoded(found.pop(asked))
            assert known_part(old, new) == old
    assert found == {}
    if url:
        cluster.drop("restored_from_the_first")
