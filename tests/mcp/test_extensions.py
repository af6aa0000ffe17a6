"""What both tool servers declare beyond tools: views, skills and prompts, in both generations of the protocol."""

import hashlib
import re

import pytest

from make import registry as make
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.mcp.extensions import APP_TYPE, SKILLS, UI
from services.manage import manage
from services.mcp import fictional_registry, initialize, legacy, modern, public_server

pytestmark = pytest.mark.django_db


class Side:
    """One of the servers, and how it is asked."""

    def __init__(self, server, ask):
        self.server, self.offer, self.ask = server, server.offer, ask

    def both(self, method, params=None):
        """Return the results of both generations."""
        return self.ask(modern(method, params)).result, self.ask(legacy(method, params or {})).result


@pytest.fixture(params=["public", "owner"])
def side(request, tmp_path):
    if request.param == "public":
        with fictional_registry(tmp_path / "p.sqlite3") as reader, public_server(reader) as asker:
            yield Side(asker.server, lambda asked: asker.ask(*asked))
    else:
        with manage() as served:
            token = tokens.create_token(make.owner(), "laptop", permitted=SCOPES).text
            yield Side(served.asker.server, lambda asked: served.ask(token, asked))


def test_the_extensions_are_declared_in_both_generations(side):
    for asked in (modern("server/discover"), initialize(), initialize("2025-06-18")):
        capabilities = side.ask(asked).result["capabilities"]
        assert capabilities["extensions"] == {UI: {"mimeTypes": [APP_TYPE]}, SKILLS: {}}
        assert {"resources", "prompts"} <= capabilities.keys()


def test_a_skill_is_listed_got_and_read_with_the_digest_of_its_bytes(side):
    for listed in side.both("skills/list"):
        assert 1 <= len(listed["skills"]) <= 5
        assert listed["resultType"] == "complete"
        assert listed["cacheScope"] == side.offer.cache_scope
        for skill in listed["skills"]:
            name = skill["frontmatter"]["name"]
            assert skill["uri"] == f"skill://{name}/SKILL.md"
            assert 20 < len(skill["frontmatter"]["description"]) < 1024
            for got in side.both("skills/get", {"uri": skill["uri"]}):
                assert got["skill"] == skill
            [entry] = skill["resources"]
            for read in side.both("resources/read", {"uri": entry["uri"]}):
                [content] = read["contents"]
                text = content["text"].encode()
                assert content["mimeType"] == "text/markdown"
                assert entry["digest"] == f"sha256:{hashlib.sha256(text).hexdigest()}"
                assert entry["size"] == len(text)


@pytest.mark.parametrize("make_request", [modern, legacy])
def test_an_unknown_skill_and_a_further_page_are_invalid(side, make_request):
    for method, params in (("skills/get", {"uri": "skill://none/SKILL.md"}), ("skills/list", {"cursor": "2"})):
        assert side.ask(make_request(method, params)).json()["error"]["code"] == -32602


def test_skills_and_prompts_name_only_tools_and_arguments_of_their_own_server(side):
    tools = {tool.name: tool for tool in side.offer.tools}
    words = {name for tool in tools.values() for name in (*tool.arguments, *tool.answer)}
    given = {name: f"<{name}>" for prompt in side.offer.prompts for name in prompt.arguments}
    prompts = [prompt.render(given) for prompt in side.offer.prompts]
    for text in [skill.text for skill in side.offer.skills] + prompts:
        named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text))
        assert named, text
        assert named - tools.keys() - words == set()
    for skill in side.offer.skills:
        assert len(re.findall(r"`[a-z]+(?:_[a-z]+)+`|`search`", skill.text)) >= 3


def test_the_tool_that_asks_for_a_confirmation_has_the_view_with_its_buttons(side):
    asks = {tool.name for tool in side.offer.tools if "confirm" in tool.arguments}
    assert asks <= {tool.name for tool in side.offer.tools if "/change-" in tool.view}


def test_a_view_is_served_at_its_address_and_at_those_of_other_versions(side):
    tools = side.both("tools/list")
    for listed in tools:
        linked = {tool["_meta"]["ui"]["resourceUri"] for tool in listed["tools"] if "_meta" in tool}
        assert linked == {view.uri for view in side.offer.views}
    listed = side.both("resources/list")
    for uri in linked:
        assert all(uri in {each["uri"] for each in found["resources"]} for found in listed)
        for read in side.both("resources/read", {"uri": uri}):
            [content] = read["contents"]
            assert content["mimeType"] == APP_TYPE
            assert content["_meta"]["ui"]["prefersBorder"] is True
            former = side.both("resources/read", {"uri": re.sub(r"-[0-9a-f]{8}\.", "-00000000.", uri)})[0]
            assert former["contents"][0]["text"] == content["text"]
    missing = side.ask(modern("resources/read", {"uri": "ui://muniment/none.html"})).json()
    assert missing["error"]["code"] == -32602


def test_the_prompts_are_rendered_with_their_arguments(side):
    for listed in side.both("prompts/list"):
        assert len(listed["prompts"]) == len(side.offer.all_prompts)
    for prompt in side.offer.all_prompts:
        given = {name: f"value-{name}" for name in prompt.arguments}
        for got in side.both("prompts/get", {"name": prompt.name, "arguments": given}):
            assert all(value in got["messages"][0]["content"]["text"] for value in given.values())
