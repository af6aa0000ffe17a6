"""Bundles are valid, reproducible and without secrets."""

import io
import json
import zipfile
from pathlib import Path

import jsonschema
import pytest

from muniment.web.connecting.bundle import bundle
from muniment.web.connecting.links import tool_servers

RULES = json.loads((Path(__file__).parents[2] / "schemas" / "mcpb-manifest.schema.json").read_text())


def opened(content):
    return zipfile.ZipFile(io.BytesIO(content))


@pytest.mark.parametrize("base", ["https://registry.example", "http://[fd00::1]:8443", "https://münzen.example"])
@pytest.mark.parametrize("name", ["Registry", 'A "quoted" 登録簿'])
def test_a_bundle_is_valid_by_its_published_format(base, name):
    names = set()
    for server, signed_in in zip(tool_servers(base, name), (False, True), strict=True):
        archive = opened(bundle(server, signed_in=signed_in))
        manifest = json.loads(archive.read("manifest.json"))
        jsonschema.Draft7Validator(RULES).validate(manifest)
        assert manifest["server"]["entry_point"] in archive.namelist()
        assert manifest["server"]["mcp_config"]["args"][1] == server.url
        assert manifest["display_name"] == server.title
        names.add(manifest["name"])
    assert len(names) == 2


def test_the_app_keeps_the_token_and_the_bundle_has_none():
    public, manage = tool_servers("https://registry.example", "Registry")
    asked = json.loads(opened(bundle(manage, signed_in=True)).read("manifest.json"))
    assert asked["user_config"]["token"]["sensitive"] is True
    assert asked["server"]["mcp_config"]["env"]["MUNIMENT_TOKEN"] == "${user_config.token}"
    assert "user_config" not in json.loads(opened(bundle(public, signed_in=False)).read("manifest.json"))


def test_the_same_instance_gives_the_same_bytes():
    server, _ = tool_servers("https://registry.example", "Registry")
    assert bundle(server, signed_in=False) == bundle(server, signed_in=False)
    assert len(bundle(server, signed_in=False)) < 4_000
