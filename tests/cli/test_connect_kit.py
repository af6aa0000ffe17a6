"""`muniment connect-kit`: everything that connects clients to an instance, in one folder."""

import json
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from muniment import cli
from muniment.config import Config
from muniment.registry_toml import applied
from muniment.registry_toml.document import Registry, RegistrySettings
from muniment.web.connecting.clients import clients
from muniment.web.connecting.links import tool_servers

BASE, NAME = "http://[fd00::1]:8443", 'Quay *"Reg]istry" <b>'
SCHEMA = Path(__file__).parents[1] / "schemas" / "server.schema.json"


class Links(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "a":
            self.found.append(dict(attrs)["href"])


@pytest.fixture
def kit(tmp_path, monkeypatch):
    monkeypatch.setattr("muniment.config.current", lambda: Config({}, base_url=BASE))
    monkeypatch.setattr(applied, "current", lambda: RegistrySettings(registry=Registry(name=NAME)))
    done = CliRunner().invoke(cli.main, ["connect-kit", str(tmp_path / "kit")])
    assert done.exit_code == 0, done.output
    return tmp_path / "kit"


def test_the_kit_has_what_clients_and_registries_read(kit):
    files = {str(path.relative_to(kit)) for path in kit.rglob("*") if path.is_file()}
    assert files == {
        *("connect.md", "connect.html", "registry.mcpb", "my-registry.mcpb"),
        *("server.json", "manage/server.json"),
    }
    rules = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for path, url in (("server.json", "/api/mcp"), ("manage/server.json", "/api/manage/mcp")):
        entry = json.loads((kit / path).read_text())
        rules.validate(entry)
        assert [remote["url"] for remote in entry["remotes"]] == [BASE + url]
        assert NAME in entry["title"]


def test_the_page_keeps_every_link_as_it_is(kit):
    page = (kit / "connect.html").read_text()
    found = Links(page).found
    for client in clients(*tool_servers(BASE, NAME)):
        for link in client["links"]:
            assert link["href"].removeprefix("/connect/") in found
    assert "Connect to Quay *&quot;Reg]istry&quot; &lt;b&gt;" in page
    assert "mun_pat_…" in page


def test_without_an_address_the_command_asks_for_one(tmp_path, monkeypatch):
    monkeypatch.setattr("muniment.config.current", lambda: Config({}))
    done = CliRunner().invoke(cli.main, ["connect-kit", str(tmp_path / "kit")])
    assert (done.exit_code, "error: Set MUNIMENT_BASE_URL" in done.stderr) == (2, True)
    assert not (tmp_path / "kit").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("muniment.config.current", lambda: Config({}, base_url=BASE))
    (tmp_path / "file").touch()
    done = CliRunner().invoke(cli.main, ["connect-kit", str(tmp_path / "file" / "kit")])
    assert (done.exit_code, f"error: {tmp_path / 'file'}" in done.stderr) == (1, True)
