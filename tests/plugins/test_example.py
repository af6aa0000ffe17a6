"""The example package, built from its source, installed beside the product and run in real processes."""

import html
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from make.pages import fields_of
from make.registry import lines
from services.mcp import modern
from services.owner import COMPANY, EMAIL, PASSWORD
from services.plugins import EXAMPLE, install, write_plugin
from services.ports import wait_until
from services.prepared import demo_registry, new_instance
from services.product import Product, run
from services.visitor import Visitor

LEI = "529900T8BM49AURSDO55"
BROKEN = "raise RuntimeError('the tide is out')\n"
NEWER = "MUNIMENT_API = 99\n"
MISSPELT = """
from muniment.plugins import hook

@hook
def page_sections(kind, document):
    return None
"""
SLOW = """
import time
from muniment.plugins import hook

@hook
def page_section(kind, document):
    time.sleep(30)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return install(EXAMPLE, tmp_path_factory.mktemp("installed"))


@pytest.fixture
def with_package(package, monkeypatch, tmp_path):
    demo_registry(tmp_path / "data")  # before there are plugins
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.setenv("STEWARD_LOG", str(tmp_path / "publications.jsonl"))
    monkeypatch.setenv("STEWARD_NEEDS_LEI", "foundation")
    return tmp_path


class Receiver:
    """A server that receives publications."""

    def __init__(self):
        received = self.received = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver():
    found = Receiver()
    yield found
    found.close()


def tool(product, token, asked, **arguments):
    headers, body = modern("tools/call", {"name": asked, "arguments": arguments})
    given = {key: value for key, value in headers if key != "host"} | {"Authorization": f"Bearer {token}"}
    return product.request("POST", "/api/manage/mcp", given, body).json()["result"]


def test_every_hook_of_the_installed_example_works(with_package, monkeypatch, receiver):
    data = with_package / "data"
    drive = with_package / "drive"
    drive.mkdir()
    monkeypatch.setenv("STEWARD_URL", receiver.url)
    listed = run("plugins", data=data).stdout
    assert listed == (
        "OK    steward (muniment-steward 1.0.0): blob_store, commands, evaluators, page_section, published,"
        " validate_change\n"
    )
    settings = {"storage_url": f"folder://{drive}", "evaluator": "thorough"}
    examined = run("doctor", data=data, check=False, **settings).stdout
    assert "OK    plugin steward: muniment-steward 1.0.0: blob_store," in examined
    assert f"OK    document store: folder://{drive}: a probe was written, read and deleted" in examined

    rows = [
        {"company": {"id": "tidal", "name": "Tidal", "type": "foundation", "lei": LEI}},
        {"company": {"id": "bad", "name": "Bad", "type": "foundation"}},
    ]
    imported = run("import", str(lines(with_package / "companies.jsonl", *rows)), data=data, check=False)
    assert "company.lei must be set for companies of the type foundation" in imported.stdout + imported.stderr
    assert "1 new" in imported.stdout + imported.stderr
    missing = run("missing-lei", data=data).stdout
    assert "saltmarsh-commons: Saltmarsh Commons" in missing
    assert "tidal: " not in missing
    assert "missing-lei" in run("--help", data=data).stdout

    run("user", "create", EMAIL, "--password-stdin", data=data, stdin=f"{PASSWORD}\n")
    run("own", EMAIL, COMPANY, data=data)
    token = run("user", "token", EMAIL, "--name", "test", data=data).stdout.strip()
    with Product(data, **settings) as product:
        product.wait_ready()
        page = product.get("/companies/tidal").body.decode()
        assert f"https://search.gleif.org/#/record/{LEI}" in page
        assert product.get("/companies/tidal").body.decode() == page
        wait_until(lambda: any(e["id"] == "tidal" for e in receiver.received), within_s=60, what="the publication")
        logged = [json.loads(line) for line in (with_package / "publications.jsonl").read_text().splitlines()]
        assert {"kind": "company", "id": "tidal", "change": "published"}.items() <= logged[0].items()

        change = {"website": "http://marsh.example"}
        refused = tool(product, token, "update_my_company", slug=COMPANY, changes=change)
        assert refused["isError"]
        assert "website must begin with https://" in refused["content"][0]["text"]
        with Visitor(product.url, {}) as owner:
            owner.post("/accounts/login/", login=EMAIL, password=PASSWORD)
            address = f"/manage/companies/{COMPANY}/edit/basics"
            shown = fields_of(owner.get(address))
            answer = owner.send(address, **{**shown, **change})
            assert "Must begin with https://." in html.unescape(answer.text)
        assert "marsh.example" not in product.get(f"/api/v1/companies/{COMPANY}").body.decode()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (BROKEN, "RuntimeError: the tide is out"),
        (NEWER, "it needs version 99 of the plugin interface, and this Muniment has version 1"),
        (MISSPELT, "unknown hook 'page_sections'"),
    ],
    ids=["raises", "newer", "misspelt"],
)
def test_beside_a_plugin_that_cannot_be_loaded_reads_go_on_and_changes_are_refused(
    with_package, package, monkeypatch, source, says
):
    data = with_package / "data"
    poor = write_plugin(with_package / "poor", "poor", source)
    monkeypatch.setenv("PYTHONPATH", f"{package}:{poor}")
    listed = run("plugins", data=data, check=False)
    assert listed.returncode == 1
    assert "OK    steward (muniment-steward 1.0.0)" in listed.stdout
    assert f"FAIL  poor (plugin_poor 1.0): not loaded: {says}" in listed.stdout
    examined = run("doctor", data=data, check=False)
    assert examined.returncode == 1
    assert "FAIL  plugin poor: was not loaded" in examined.stdout
    file = lines(with_package / "companies.jsonl", {"company": {"id": "tidal", "name": "Tidal"}})
    imported = run("import", str(file), data=data, check=False)
    assert imported.returncode == 1
    assert "The plugin poor of this registry does not work" in imported.stderr
    assert "Traceback" not in imported.stderr
    with Product(data) as product:
        product.wait_ready()
        assert product.get("/companies/quillmere").status == 200
        assert product.get("/api/v1/companies/quillmere").status == 200
        assert f"plugin poor was not loaded: {says}" in product.output()
    assert "1 new" in run("import", str(file), data=data, plugins="steward").stdout


def test_a_slow_plugin_delays_a_page_by_half_a_second_and_is_left_out(with_package, monkeypatch):
    data = with_package / "data"
    slow = write_plugin(with_package / "slow", "slow", SLOW)
    monkeypatch.setenv("PYTHONPATH", str(slow))
    with Product(data, "--workers", "1") as product:
        product.wait_ready()
        for slug in ("quillmere", "quillmere", "tarnwick-tidal"):
            assert product.get(f"/companies/{slug}").status == 200
        assert product.output().count("it took longer than 0.5 s") == 1
        assert product.stop() == 0


def test_a_command_of_a_plugin_makes_no_instance_in_passing_and_takes_a_data_folder(with_package):
    data = new_instance(with_package / "new")
    assert run("missing-lei", "--data", str(data), data=data).stdout == ""
