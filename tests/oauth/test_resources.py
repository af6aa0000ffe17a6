"""Resource indicators: a token is for the owner-scoped tool server of this instance alone."""

import pytest

from muniment.oauth.errors import Refusal
from muniment.oauth.resources import manage_server, requested

BASE = "https://registry.example"
OWN = "https://registry.example/api/manage/mcp"


@pytest.mark.parametrize(
    "asked",
    [
        [OWN],
        [OWN + "/"],
        ["https://Registry.Example/api/manage/mcp"],
        ["https://registry.example:443/api/manage/mcp"],
        [OWN, OWN + "/"],
        ["", OWN],
    ],
)
def test_the_own_tool_server_is_recognized_in_every_spelling(asked):
    assert requested(asked, BASE) == OWN == manage_server(BASE)


def test_a_request_without_a_resource_names_none():
    assert requested([], BASE) is requested([""], BASE) is None


def test_a_port_of_the_instance_belongs_to_the_resource():
    assert requested(["http://127.0.0.1:8000/api/manage/mcp"], "http://127.0.0.1:8000")
    with pytest.raises(Refusal):
        requested(["http://127.0.0.1:8001/api/manage/mcp"], "http://127.0.0.1:8000")


@pytest.mark.parametrize(
    "asked",
    [
        ["https://registry.example"],
        ["https://registry.example/api/mcp"],
        ["http://registry.example/api/manage/mcp"],
        ["https://registry.example:8443/api/manage/mcp"],
        ["https://other.example/api/manage/mcp"],
        ["https://registry.example@other.example/api/manage/mcp"],
        ["https://a@registry.example/api/manage/mcp"],
        [OWN + "?x=1"],
        [OWN + "?"],
        [OWN + "#x"],
        [OWN + "#"],
        [OWN + "//"],
        ["https://[::1/api/manage/mcp"],
        [OWN, "https://other.example/"],
        ["registry"],
    ],
)
def test_any_other_resource_is_refused(asked):
    with pytest.raises(Refusal) as refused:
        requested(asked, BASE)
    assert refused.value.error == "invalid_target"
