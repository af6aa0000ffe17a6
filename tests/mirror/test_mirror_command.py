"""The command and the server of a mirror, of a product that serves the demo registry, or a real one."""

import json
import os
import time
from pathlib import Path

import pytest

from services.mirrors import Following, differences, edition_of, with_descriptions
from services.ports import wait_until
from services.prepared import demo_registry
from services.product import DEMO, Product, run

pytestmark = pytest.mark.sqlite

QUICK = {"exports_interval_s": "1"}
SHOWN = {"within_s": 30, "what": "an origin that shows what was imported"}
OWN_PAGES = ("/manage", "/accounts/login/", "/review", "/operate", "/oauth/authorize", "/companies/new/claim")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mirrors")


@pytest.fixture(scope="module")
def origin(folder):
    with Product(demo_registry(folder / "origin"), **QUICK) as product:
        product.wait_ready()
        yield product


@pytest.fixture(scope="module")
def mirror(folder, origin):
    """Serve a mirror of the demo registry."""
    data = folder / "mirror"
    mirrored(origin, data)
    with Product(data, "--mirror", str(data), **QUICK) as product:
        product.wait_ready()
        yield product


def mirrored(origin, data, *options, check=True):
    return run("mirror", origin.url, str(data), *options, data=data.parent / "elsewhere", check=check)


def test_a_mirror_serves_every_document_byte_by_byte(origin, mirror):
    assert differences(origin, mirror) == []


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/companies?pageSize=100",
        "/api/v1/companies?sort=treasury",
        "/api/v1/people",
        "/api/v1/frameworks",
        "/api/v1/stats",
        "/api/v1/companies?facets=country,type,theme",
    ],
)
def test_a_mirror_lists_what_its_origin_lists_in_its_order(origin, mirror, path):
    pages = [product.get(path).json() for product in (origin, mirror)]
    for page in pages:
        page.pop("pagination", None)  # its links are the own address
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    "path", ["/", "/companies", "/people", "/frameworks", "/search?q=water", "/data", "/feed.atom", "/docs", "/map"]
)
def test_a_mirror_shows_public_pages(mirror, path):
    assert mirror.get(path).status == 200


def test_a_page_says_what_it_is_a_mirror_of(origin, mirror):
    page = mirror.get("/companies").body.decode()
    assert f'A mirror of <a href="{origin.url}">' in page
    assert f'href="{origin.url}/manage">Sign in</a>' in page


def test_the_history_of_a_listing_before_the_mirror_is_at_the_origin(origin, mirror):
    slug = mirror.get("/api/v1/companies?pageSize=1").json()["data"][0]["id"]
    page = mirror.get(f"/companies/{slug}/history").body.decode()
    assert f'href="{origin.url}/companies/{slug}/history"' in page
    assert "The change feed no longer has a change" not in page


@pytest.mark.parametrize("path", OWN_PAGES)
def test_what_is_private_is_at_the_origin(origin, mirror, path):
    answer = mirror.get(path)
    assert answer.status == 403
    assert f"{origin.url}{path}" in answer.body.decode()


def test_nothing_can_be_written_at_a_mirror(origin, mirror):
    assert mirror.request("POST", "/oauth/register", {}, b"{}").status == 403
    assert mirror.request("POST", "/companies", {}, b"").status == 403
    error = mirror.request("POST", "/api/manage/mcp", {"Content-Type": "application/json"}, b"{}")
    assert error.status == 403
    assert f"mirror of {origin.url}" in error.json()["error"]["message"]


def test_the_public_tools_of_a_mirror_answer(mirror):
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get_registry_stats", "arguments": {}},
    }
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    assert mirror.request("POST", "/api/mcp", headers, json.dumps(call).encode()).status == 200


def test_statements_about_the_tables_are_answered(mirror):
    count = mirror.get("/api/v1/query?sql=select%20count(*)%20from%20companies")
    assert count.json()["data"] == [{"count(*)": mirror.data_of("/api/v1/stats")["total"]}]


def test_a_mirror_can_be_mirrored(folder, origin, mirror):
    data = folder / "second"
    mirrored(mirror, data)
    with Product(data, "--mirror", str(data)) as second:
        assert differences(origin, second) == []
        feeds = [product.get(f"/api/v1/changes?after={edition_of(data)}").json() for product in (origin, second)]
    assert feeds[0] == feeds[1]


def test_other_commands_refuse_a_mirror(mirror):
    for command in (["import", str(DEMO)], ["export", str(mirror.data / "out")], ["backup", str(mirror.data / "b")]):
        refused = run(*command, data=mirror.data, check=False)
        assert refused.returncode == 1
        assert "is a mirror of" in refused.stderr


def test_a_folder_of_a_registry_is_not_made_a_mirror(folder, origin):
    refused = mirrored(origin, origin.data, check=False)
    assert refused.returncode == 1
    assert "the data folder of a registry, not a mirror" in refused.stderr


def test_a_folder_without_a_mirror_is_not_served(folder, tmp_path):
    refused = run("serve", "--mirror", str(tmp_path), data=tmp_path, check=False)
    assert "holds no mirror" in refused.stderr
    refused = run("serve", "--demo", "--mirror", str(tmp_path), data=tmp_path, check=False)
    assert "exclude each other" in refused.stderr


def test_a_mirror_uses_no_postgresql(mirror):
    refused = run("serve", data=mirror.data, check=False, database_url="postgresql://x@127.0.0.1:1/x")
    assert "Unset MUNIMENT_DATABASE_URL" in refused.stderr


def test_a_damaged_note_of_a_mirror_is_named(tmp_path):
    (tmp_path / "mirror.json").write_text("{")
    refused = run("serve", data=tmp_path, check=False)
    assert "cannot be read. Run muniment mirror again" in refused.stderr


def changed(origin, lines, rounds, *, each=lambda: None):
    """Change the descriptions of *lines* as often as told, and do something after each time; return the edition."""
    file = origin.data.parent / "companies.jsonl"
    for number in range(rounds):
        file.write_bytes(with_descriptions(lines, f"Description {number}."))
        run("import", str(file), data=origin.data)
        each()
    edition = edition_of(origin.data)
    wait_until(lambda: origin.get("/api/v1/stats").headers["x-muniment-edition"] == str(edition), **SHOWN)
    return edition


def lines_of(data):
    return [json.loads(line) for line in (data / "companies.jsonl").read_text().splitlines()]


def test_a_mirror_that_is_killed_continues_and_serves_each_change(folder, origin):
    data = folder / "killed"
    following = Following(origin, data).start()
    served = None
    try:
        following.wait_for(1)

        def kill():
            following.kill()
            following.start()

        edition = changed(origin, lines_of(DEMO), 4, each=kill)
        served = Product(data, "--mirror", str(data)).start()
        following.wait_for(edition)
        assert differences(origin, served) == []
        edition = changed(origin, lines_of(DEMO)[:1], 1)
        following.wait_for(edition)
    finally:
        assert following.end() == 0
        if served is not None:
            served.stop()


def test_another_history_is_told_and_the_former_copy_kept(folder):
    data, copy = demo_registry(folder / "forked"), folder / "fork"
    with Product(data, **QUICK) as before:
        before.wait_ready()
        port = before.port
        mirrored(before, copy)
        edition = changed(before, lines_of(DEMO)[:2], 1)
        mirrored(before, copy)
    assert edition_of(copy) == edition
    # The origin is restored to what it was before the last changes, and changed in another way.
    other = demo_registry(folder / "restored")
    with Product(other, **QUICK) as after:
        after.wait_ready()
        assert after.port != port
        changed(after, lines_of(DEMO)[2:5], 1)
        refused = mirrored(after, copy, check=False)
        assert refused.returncode == 1
        assert "another history" in refused.stderr
        assert "--restart" in refused.stderr
        assert edition_of(copy) == edition
        mirrored(after, copy, "--restart")
        assert list(copy.glob(f"published-until-{edition}-*.sqlite3"))
        with Product(copy, "--mirror", str(copy)) as served:
            assert differences(after, served) == []


@pytest.mark.proof
@pytest.mark.skipif(not os.environ.get("MUNIMENT_SAMPLE_DATA"), reason="needs a real registry")
def test_a_real_registry_is_mirrored_within_a_minute_and_followed_through_20_kills(tmp_path):
    source = Path(os.environ["MUNIMENT_SAMPLE_DATA"])
    data = tmp_path / "origin"
    run("import", str(source), data=data, check=False, timeout_s=900)
    lines = lines_of(source)[:500]
    with Product(data, **QUICK) as origin:
        origin.wait_ready()
        origin.get("/api/v1/exports")
        began = time.monotonic()
        mirrored(origin, tmp_path / "mirror")
        assert time.monotonic() - began < 60
        following = Following(origin, tmp_path / "mirror").start()

        def kill():
            following.kill()
            following.start()

        edition = changed(origin, lines, 20, each=kill)
        following.wait_for(edition, within_s=600)
        assert following.end() == 0
        with Product(tmp_path / "mirror", "--mirror", str(tmp_path / "mirror")) as served:
            assert differences(origin, served) == []
