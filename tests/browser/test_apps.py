"""The views of the tools in the official host of MCP Apps: what they show, ask and tell, and hostile texts in them."""

import json
from typing import Any

import jsonschema
import pytest
from playwright.sync_api import expect

from browser.eyes import violations
from make import registry as make
from make import reports
from make.documents import send
from muniment.kernel.problems import Problem
from muniment.mcp.apps.views import OWNER, PUBLIC, view
from muniment.mcp.declarations import Caller
from muniment.mcp.extensions import APP_TYPE
from muniment.mcp.protocol.transport import encoded
from muniment.mcp.tools.owner.server import owner_declarations
from services.node import node, packages

BASE = "http://registry.test"
EVIL = '<img src=x onerror="top.hacked=1"><script>top.hacked=1</script>'
ALL = {"openLinks": {}, "serverTools": {}, "updateModelContext": {"text": {}}}
REQUESTS = {
    "ui/initialize": "McpUiInitializeRequest",
    "ui/open-link": "McpUiOpenLinkRequest",
    "ui/update-model-context": "McpUiUpdateModelContextRequest",
    "ui/notifications/initialized": "McpUiInitializedNotification",
    "ui/notifications/size-changed": "McpUiSizeChangedNotification",
}


@pytest.fixture(scope="module")
def schemas():
    path = packages() / "node_modules/@modelcontextprotocol/ext-apps/dist/src/generated/schema.json"
    return json.loads(path.read_text())


def check(schemas, name, value):
    jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schemas["$defs"]}).validate(value)


class Host:
    """A page with the host; `answer` returns the answers of tools that a view calls."""

    def __init__(self, page: Any, schemas: Any) -> None:
        self.page, self.schemas = page, schemas
        self.calls: list[Any] = []
        self.answer: Any = None
        self.faults: list[str] = []
        page.expose_function("callTool", self._call)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda line: self.faults.append(line.text) if line.type == "error" else None)

    def _call(self, params: Any) -> Any:
        self.calls.append(params)
        return result_of(self.answer(params))

    def show(self, name, answer, tool="", arguments=None, *, theme="light", capabilities=ALL, connect="'none'"):
        self.calls = []
        shown = {
            "html": view(name, BASE).text,
            "connect": connect,
            "tool": {"name": tool, "inputSchema": {"type": "object"}},
            "input": arguments or {},
            "result": result_of(answer),
            "capabilities": capabilities,
            "theme": theme,
        }
        self.page.evaluate("async (given) => { await window.show(given) }", shown)
        return self.page.frame_locator("iframe")

    @property
    def seen(self):
        return self.page.evaluate("window.seen")

    def check(self) -> None:
        """Fail unless every message of the view fits the schema, and no text of the registry became markup."""
        for message in self.seen["messages"]:
            if name := REQUESTS.get(message.get("method", "")):
                check(self.schemas, name, {key: message[key] for key in ("method", "params") if key in message})
        assert not self.page.evaluate("window.hacked")
        assert self.page.frames[1].evaluate("document.querySelectorAll('img, #view script').length") == 0
        assert self.faults == []


def result_of(answer: Any) -> Any:
    return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    built = tmp_path_factory.mktemp("host") / "host.js"
    node(
        "node_modules/esbuild/bin/esbuild", "host.mjs", "--bundle", "--format=iife", f"--outfile={built}", timeout_s=60
    )
    return built.read_text()


@pytest.fixture(scope="module")
def host(browser, bundle, schemas):
    context = browser.new_context(viewport={"width": 390, "height": 780})
    page = context.new_page()
    main = "<main><h1>Chat</h1><div id=app></div></main>"
    body = f"<!doctype html><html lang=en><title>Host</title>{main}<script>{bundle}</script>"
    page.route("http://host.test/", lambda route: route.fulfill(body=body, content_type="text/html"))
    page.goto("http://host.test/")
    yield Host(page, schemas)
    context.close()


@pytest.fixture(autouse=True)
def _quiet(host):
    host.faults.clear()


COMPANY = {
    "company": {
        "id": "tide", "name": f"Tide {EVIL}", "symbol": "TIDE", "type": "DAO", "status": "active",
        "description": EVIL, "treasury": "$1.2M", "teamSize": 7, "raising": True,
        "website": "https://tide.example",
    },
    "positions": [{"title": f"Chair {EVIL}", "person": {"name": EVIL, "slug": "a"}}, {"title": "", "person": None}] * 4,
    "positionsTotal": 20,
}  # fmt: skip
REPORT = {
    "companyName": EVIL, "frameworkName": "Tide score", "overall": {"score": 61.25, "band": EVIL, "coverage": 0.75},
    "sections": [{"title": EVIL, "score": None, "criteria": {"met": 2, "not_met": 1}},
                 {"title": "Money", "score": 80, "criteria": [{"status": "met"}, {"status": "met"}]}],
    "next": [{"title": "Audit", "remediation": EVIL}], "url": f"{BASE}/manage/reports/r1",
}  # fmt: skip
QUESTION = {
    "data": {
        "runId": "r1", "state": "not_submitted",
        "confirmation": {
            "message": f"This submits the report {EVIL}", "hint": "Repeat it with confirm.",
            "reason": "confirmation_required", "confirm": "signed:token", "expiresAt": "2026-11-23T10:00:00Z",
            "receiver": "harbour", "frameworkId": EVIL,
        },
    }
}  # fmt: skip
DECLINED = {
    "data": {"runId": "r1", "state": "not_submitted",
             "confirmation": {"reason": "declined", "message": "The user did not agree.", "hint": "Do not repeat."}}
}  # fmt: skip


def test_a_company_is_shown_with_hostile_texts_as_texts(host):
    frame = host.show("company", {"data": COMPANY}, "get_company", {"slug": "tide"})
    expect(frame.get_by_role("heading", name="Tide <img")).to_be_visible()
    expect(frame.get_by_text("and 15 more")).to_be_visible()
    frame.get_by_role("button", name="Open the page").click()
    host.page.wait_for_function("window.seen.links.length && window.seen.sizes.length")
    assert host.seen["links"] == [f"{BASE}/companies/tide"]
    assert violations(host.page) == []
    assert host.page.frames[1].evaluate("document.documentElement.scrollWidth <= innerWidth")
    host.check()
    frame = host.show("company", {"data": {"history": [{"id": 1}]}}, "get_my_company", {"parts": ["history"]})
    expect(frame.get_by_text("has read a part")).to_be_visible()
    host.check()


def test_a_report_is_shown_in_both_themes_and_in_every_form(host):
    for theme in ("light", "dark"):
        frame = host.show("report", {"data": REPORT}, "get_report", theme=theme)
        expect(frame.get_by_text("61.3")).to_be_visible()
        expect(frame.get_by_role("cell", name="2 met, 1 not met")).to_be_visible()
        expect(frame.get_by_text("75 % of the criteria")).to_be_visible()
        assert violations(host.page) == []
        host.check()
    frame = host.show("report", {"data": {"reportId": "r", "markdown": EVIL, "url": BASE}}, "get_report")
    expect(frame.get_by_role("button", name="Open the report")).to_be_visible()
    frame = host.show("report", {"error": {"code": "not_found", "message": EVIL, "hint": "Try."}}, "get_report")
    expect(frame.get_by_text("onerror")).to_be_visible()
    frame = host.show("report", {"data": {"reportId": "r", "next": []}}, "get_report", {"fields": ["next"]})
    expect(frame.get_by_role("heading", name="Report")).to_be_visible()
    frame = host.show("report", {"data": REPORT}, "get_report", capabilities={})
    expect(frame.get_by_text(f"Open the report: {BASE}/manage/reports/r1")).to_be_visible()
    host.check()


def test_a_change_is_confirmed_with_its_token_or_cancelled(host):
    arguments = {"runId": "r1", "dryRun": True}
    frame = host.show("change", QUESTION, "submit_application", arguments)
    host.answer = lambda _: {"data": {"runId": "r1", "state": "submitted"}}
    expect(frame.get_by_text("This submits the report")).to_be_visible()
    expect(frame.get_by_text("receiver")).to_be_visible()
    assert violations(host.page) == []
    frame.get_by_role("button", name="Confirm").focus()
    host.page.keyboard.press("Enter")
    expect(frame.get_by_role("heading", name="Done")).to_be_visible()
    assert host.calls == [{"name": "submit_application", "arguments": {"runId": "r1", "confirm": "signed:token"}}]
    host.page.wait_for_function("window.seen.contexts.length")
    assert host.seen["contexts"] == ["The user confirmed submit_application and it is done. Do not repeat it."]
    host.check()

    frame = host.show("change", QUESTION, "submit_application", arguments)
    frame.get_by_role("button", name="Cancel").click()
    expect(frame.get_by_text("Nothing was changed.")).to_be_visible()
    host.page.wait_for_function("window.seen.contexts.length")
    assert host.calls == []
    assert "cancelled" in host.seen["contexts"][0]

    frame = host.show("change", QUESTION, "submit_application", arguments)
    host.answer = lambda _: {"error": {"code": "bad_request", "message": "Too few credits.", "hint": "Buy some."}}
    frame.get_by_role("button", name="Confirm").click()
    expect(frame.get_by_role("heading", name="Not done")).to_be_visible()
    frame = host.show("change", QUESTION, "submit_application", arguments, capabilities={})
    expect(frame.get_by_text("Answer in the chat.")).to_be_visible()
    expect(frame.get_by_role("button")).to_have_count(0)
    frame = host.show("change", DECLINED, "submit_application", arguments)
    expect(frame.get_by_role("heading", name="Not done")).to_be_visible()
    host.check()


def test_differences_are_shown_by_field_and_by_row(host):
    diff = {
        "description": {"before": None, "after": EVIL},
        "positions": {"added": [{"title": EVIL}], "removed": [{"title": "Old"}], "changed": [{"id": "a", "title": {}}]},
        "capTable": {"truncated": True},
    }
    dry = {"data": {"applied": ["description"], "diff": diff, "dryRun": True}}
    frame = host.show("change", dry, "update_my_company")
    expect(frame.get_by_role("heading", name="What would change")).to_be_visible()
    expect(frame.get_by_role("row", name="description nothing → <img")).to_be_visible()
    expect(frame.locator("del", has_text="Old")).to_be_visible()
    host.check()


CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "PUT",
    "Access-Control-Allow-Headers": "Content-Type",
}
UPLOAD = {
    "data": {"uploadId": "u1", "url": f"{BASE}/uploads/t0ken", "headers": {"Content-Type": "text/plain"},
             "maxBytes": 1000}
}  # fmt: skip


def test_a_dropped_file_goes_to_its_link_and_the_model_is_told(host):
    sent = []

    def take(route):
        sent.append((route.request.method, route.request.post_data))
        route.fulfill(status=201, headers=CORS, body='{"data": {}}')

    host.page.route(f"{BASE}/uploads/*", take)
    frame = host.show("upload", UPLOAD, "create_document_upload", {"filename": EVIL}, connect=BASE)
    host.answer = lambda _: {"data": {"documentId": "u1", "state": "ready"}}
    assert violations(host.page) == []
    frame.locator("input").set_input_files({"name": "big.txt", "mimeType": "text/plain", "buffer": b"x" * 1001})
    expect(frame.get_by_text("larger than 1000 bytes")).to_be_visible()
    inner = host.page.frames[1]
    dropped = inner.evaluate_handle(
        "() => { const all = new DataTransfer(); all.items.add(new File(['minutes'], 'minutes.txt')); return all }"
    )
    inner.dispatch_event(".drop", "drop", {"dataTransfer": dropped})
    expect(frame.get_by_text("minutes.txt was uploaded.")).to_be_visible()
    assert ("PUT", "minutes") in sent
    assert host.calls == [{"name": "complete_document_upload", "arguments": {"uploadId": "u1"}}]
    host.page.wait_for_function("window.seen.contexts.length")
    assert host.seen["contexts"] == ["The user uploaded minutes.txt; document u1 is ready."]
    host.check()


def test_a_view_that_may_not_reach_the_registry_leads_to_the_page_of_the_link(host):
    frame = host.show("upload", UPLOAD, "create_document_upload")
    frame.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    frame.get_by_role("button", name="Upload in the browser").click()
    host.page.wait_for_function("window.seen.links.length")
    assert host.seen["links"] == [UPLOAD["data"]["url"]]
    assert "Content Security" in "".join(host.faults)


@pytest.fixture
def answer_of(db, settings):
    """Call a tool of the owner server as an account, and return its answer."""
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    offer = owner_declarations(
        lambda call, *rest: call(*rest),
        base_url=BASE,
        registry_name="Suite",
        schema=settings.SCHEMA,
        reader=lambda: None,
    )
    tools = {tool.name: tool for tool in offer.tools}

    def call(actor, name, **arguments):
        try:
            found: Any = tools[name].handler(arguments, Caller(actor, "", ""))
        except Problem as problem:
            return problem.to_wire()
        return json.loads(encoded(found).content)

    return call


def test_the_views_show_what_the_tools_really_answer(host, answer_of):
    actor = make.agent_of(make.owner())
    slug = reports.company(actor, name="Harbour Cooperative", description="We mend boats.", website="https://a.example")
    run = reports.finished(actor, slug, reports.program(make.owner())).run_id

    frame = host.show("company", answer_of(actor, "get_my_company", slug=slug), "get_my_company")
    for shown in ("Harbour Cooperative", "We mend boats.", "https://a.example", "published"):
        expect(frame.get_by_text(shown, exact=True)).to_be_visible()
    frame = host.show("report", answer_of(actor, "get_report", runId=run), "get_report", {"runId": run})
    expect(frame.get_by_role("heading", name="Harbour Cooperative · Plain Harbour")).to_be_visible()
    expect(frame.get_by_role("cell", name="Everything")).to_be_visible()
    expect(frame.get_by_text("Publish the accounts.")).to_be_visible()
    changes = {"slug": slug, "changes": {"description": "We build boats."}, "dryRun": True}
    frame = host.show("change", answer_of(actor, "update_my_company", **changes), "update_my_company", changes)
    expect(frame.get_by_role("row", name="description We mend boats. → We build boats.")).to_be_visible()

    asked = {"runId": run}
    question = answer_of(actor, "submit_application", **asked)
    frame = host.show("change", question, "submit_application", asked)
    expect(frame.get_by_text("can then read it")).to_be_visible()
    confirmed = {**asked, "confirm": question["data"]["confirmation"]["confirm"]}
    done = answer_of(actor, "submit_application", **confirmed)  # a callback of the browser has no database
    host.answer = lambda _: done
    frame.get_by_role("button", name="Confirm").click()
    expect(frame.get_by_text("submitted")).to_be_visible()
    assert host.calls == [{"name": "submit_application", "arguments": confirmed}]

    asked = {"companySlug": slug, "filename": "minutes.txt"}
    link = answer_of(actor, "create_document_upload", **asked)
    content = b"Minutes."
    send(link["data"]["url"].rpartition("/")[2], content)
    kept = answer_of(actor, "complete_document_upload", uploadId=link["data"]["uploadId"])
    host.page.route(f"{BASE}/uploads/*", lambda route: route.fulfill(status=201, headers=CORS, body="{}"))
    frame = host.show("upload", link, "create_document_upload", asked, connect=BASE)
    host.answer = lambda _: kept
    frame.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": content})
    expect(frame.get_by_text("a.txt was uploaded.")).to_be_visible()
    host.page.wait_for_function("window.seen.contexts.length")
    assert "is ready" in host.seen["contexts"][0]
    host.check()


def test_the_host_may_ask_a_view_to_end_and_nothing_else_of_it(host):
    host.show("company", {"data": COMPANY}, "get_company")
    assert host.page.evaluate("window.bridge.teardownResource({})") == {}
    frame = host.page.frames[1]
    assert frame.evaluate("dispatchEvent(new MessageEvent('message', {data: {jsonrpc: '2.0', id: 1, result: {}}}))")
    host.check()


@pytest.mark.parametrize("name", sorted({*PUBLIC.values(), *OWNER.values()}))
def test_a_view_is_small_and_declared_as_the_schema_says(name, schemas):
    found = view(name, "https://registry.example")
    assert found.mime_type == APP_TYPE
    assert len(found.text) < 10_000
    check(schemas, "McpUiToolMeta", {"resourceUri": found.uri})
    check(schemas, "McpUiResourceMeta", found.meta["ui"])
    assert ("csp" in found.meta["ui"]) == (name == "upload")
    assert "innerHTML" not in found.text
