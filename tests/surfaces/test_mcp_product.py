"""The running product serves the public tools, their cards, and what REST shows, at their addresses."""

from urllib.parse import quote

import pytest

from services.mcp import LEGACY, initialize, legacy, modern
from services.product import run


def post(product, request):
    headers, body = request
    answer = product.request("POST", "/api/mcp", body=body, headers={n: v for n, v in headers if n != "host"})
    assert answer.status == 200, answer
    return answer.json()["result"]


def call(product, name, **arguments):
    return post(product, modern("tools/call", {"name": name, "arguments": arguments}))["structuredContent"]


@pytest.mark.requirement("mcp.public", "auth.none-for-reading")
def test_a_client_shakes_hands_lists_and_calls_without_any_credential(demo):
    assert post(demo, initialize())["protocolVersion"] == LEGACY
    assert len(post(demo, legacy("tools/list"))["tools"]) == 16
    assert call(demo, "get_registry_stats") == demo.get("/api/v1/stats").json()


def as_decided(shown):
    """Cut the lists of a bundle that are longer than a hundred, with the totals of all three and where to continue."""
    data = shown["data"]
    lists = {name: data[name] for name in ("positions", "proposals", "capTable") if "company" in data and name in data}
    if max(map(len, lists.values()), default=0) <= 100:
        return shown
    totals = {f"{name}Total": len(entries) for name, entries in lists.items()}
    return {"data": {**data, **{name: entries[:100] for name, entries in lists.items()}, **totals}, "nextOffset": 100}


@pytest.mark.requirement("mcp.structured")
def test_tools_with_full_detail_and_rest_show_the_same(demo):
    for kind, tool, key, argument in (
        ("companies", "get_company", "id", "slug"),
        ("people", "get_person", "slug", "slug"),
        ("frameworks", "get_framework", "frameworkId", "frameworkId"),
    ):
        for item in demo.get(f"/api/v1/{kind}").json()["data"]:
            shown = demo.get(f"/api/v1/{kind}/{quote(item[key])}").json()
            assert call(demo, tool, **{argument: item[key], "detail": "full"}) == as_decided(shown)


@pytest.mark.requirement("mcp.manifest", "mcp.cards")
def test_the_cards_are_at_their_addresses_and_link_to_the_server(demo):
    manifest = demo.get("/.well-known/mcp.json")
    assert (manifest.status, manifest.headers["access-control-allow-origin"]) == (200, "*")
    assert manifest.json()["remotes"][0]["url"].endswith("/api/mcp")
    for path in ("/api/mcp/server-card", "/.well-known/ai-catalog.json", "/.well-known/mcp/server.json"):
        assert demo.get(path).status == 200
    assert demo.get("/api/mcp/icon.svg").headers["content-type"] == "image/svg+xml"


@pytest.mark.requirement("mcp.host-origin")
def test_refusals_are_json_with_the_request_id(demo):
    answer = demo.get("/api/mcp")
    assert (answer.status, answer.headers["allow"]) == (405, "POST, OPTIONS")
    assert answer.json()["error"]["code"] == "method_not_allowed"
    assert answer.headers["x-request-id"]


class Seen:
    """Calls tools and checks that every answer fits; the asker checks that it is valid by its schema."""

    def __init__(self, asker):
        self.asker = asker
        self.count = 0

    def __call__(self, name, **arguments):
        found = self.asker.call(name, arguments)
        self.count += 1
        assert not found["isError"], (name, arguments, found)
        assert len(found["content"][0]["text"].encode()) <= 60_000, (name, arguments)
        return found["structuredContent"]


def every_page(seen, tool, detail, key):
    """See each page of a list, and a quarter of its items one by one."""
    page = 1
    while page:
        found = seen(tool, page=page, pageSize=100)
        for item in found["data"][page % 4 :: 4]:
            seen(detail, slug=item[key])
        page = found["nextPage"]


@pytest.mark.proof
@pytest.mark.timeout(900)
@pytest.mark.requirement("mcp.structured", "mcp.size")
def test_every_answer_on_a_real_registry_is_valid_and_fits(sample_data, tmp_path):
    from muniment.store.reader import Reader
    from services.mcp import public_server

    run("import", str(sample_data), data=tmp_path, check=False)
    reader = Reader(tmp_path / "muniment.sqlite3")
    with public_server(reader) as asker:
        seen = Seen(asker)
        every_page(seen, "list_companies", "get_company", "id")
        every_page(seen, "list_people", "get_person", "slug")
        for slug in ("optimism", "cosmoshub", "ethereum"):
            seen("get_company", slug=slug)
        page = 1
        while page:
            page = seen("list_companies", page=page, pageSize=100, detail="full")["nextPage"]
        for name in ("list_frameworks", "list_scoring_frameworks", "list_program_frameworks"):
            for item in seen(name)["data"]:
                seen("get_framework", frameworkId=item["frameworkId"])
        for sort in ("treasury", "name"):
            assert seen("list_companies", sort=sort, type="DAO")["data"]
    reader.close()
    assert seen.count > 4_000
