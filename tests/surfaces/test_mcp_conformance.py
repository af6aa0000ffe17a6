"""The protocol's own conformance suite, against the product's tool server and against its transport with fixtures."""

import re
from pathlib import Path

import pytest

from conformance.fixtures import fixture_server
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import registry_schema
from services.loopback import serving
from services.mcp import fictional_registry
from services.node import node, packages

pytestmark = [pytest.mark.xdist_group("conformance"), pytest.mark.requirement("mcp.eras")]

SUITE = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
REVISIONS = ("2026-07-28", "2025-11-25")
NOT_OFFERED = {
    # These ask for sessions, subscriptions, logging or requests to the client, which a stateless server does not have.
    *("tools-call-sampling", "tools-call-elicitation", "tools-call-with-logging", "logging-set-level"),
    *("elicitation-sep1034-defaults", "elicitation-sep1330-enums", "resources-subscribe", "resources-unsubscribe"),
}
NEED_FIXTURES = {
    *NOT_OFFERED,
    # These call a tool, resource or prompt by a name that only the suite's fixtures have.
    *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource"),
    *("tools-call-mixed-content", "tools-call-error", "tools-call-with-progress"),
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
    *(f"input-required-result-basic-{kind}" for kind in ("elicitation", "sampling", "list-roots")),
    *(f"input-required-result-{kind}" for kind in ("request-state", "multiple-input-requests", "multi-round")),
    *(f"input-required-result-{kind}" for kind in ("non-tool-request", "result-type", "tampered-state")),
    "input-required-result-capability-check",
    # Four of its twenty-five checks call fixture tools; the other twenty-one must pass, see below.
    "server-stateless",
}


def required(revision: str) -> list[str]:
    """Return the scenarios that conformance to *revision* requires of a server."""
    listed = (packages() / SUITE.parents[1] / "requirements" / f"{revision}.yaml").read_text()
    section = listed.partition("\nserver:\n")[2].partition("\n\n")[0].partition("\nclient:")[0]
    return re.findall(r"^  - ([\w-]+)", section, re.MULTILINE)


def outcomes(port: int, revision: str) -> dict[str, tuple[int, int]]:
    """Run everything for *revision*; gives the passed and the failed checks of each scenario."""
    address = f"http://127.0.0.1:{port}/api/mcp"
    done = node(SUITE, "server", "--url", address, "--requirements", revision, timeout_s=150, check=False)
    found = re.findall(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    assert found, f"the suite gave no summary\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return {name: (int(passed), int(failed)) for name, passed, failed in found}


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    with fictional_registry(tmp_path_factory.mktemp("published") / "p.sqlite3") as reader:
        offer = public_declarations(
            reader, base_url="http://127.0.0.1", registry_name="Suite Registry", schema=registry_schema("USD")
        )
        server = ToolServer(offer, gate=OriginPolicy(""))
        with serving(server) as port:
            yield port


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_that_can_run_on_any_server_passes_against_the_product(public, revision):
    found = outcomes(public, revision)
    runnable = [name for name in required(revision) if name not in NEED_FIXTURES]
    assert len(runnable) >= 8
    assert {name: found[name] for name in runnable if found[name][1]} == {}
    if revision == "2026-07-28":
        assert found["server-stateless"] == (21, 4)
        assert found["http-header-validation"] == (14, 0)


@pytest.mark.parametrize(("revision", "scenarios"), [("2026-07-28", 37), ("2025-11-25", 22)])
def test_all_that_is_required_of_a_stateless_server_passes_on_the_transport_with_fixtures(revision, scenarios):
    with serving(fixture_server()) as port:
        found = outcomes(port, revision)
    asked = [name for name in required(revision) if name not in NOT_OFFERED]
    assert len(asked) == scenarios
    assert {name: found[name] for name in asked if found[name][1]} == {}
    # In the older era this one warns that there is no session, and checks nothing.
    idle = {"server-sse-multiple-streams"} if revision != "2026-07-28" else set()
    assert {name for name in asked if not found[name][0]} == idle


@pytest.mark.parametrize(("scenario", "checks"), [("sep-2640-skills-enumeration", 32), ("sep-2640-skills-manifest", 6)])
def test_the_skills_pass_the_scenarios_of_their_extension(public, scenario, checks):
    address = f"http://127.0.0.1:{public}/api/mcp"
    done = node(SUITE, "server", "--url", address, "--scenario", scenario, timeout_s=150)
    assert f"Passed: {checks}/{checks}, 0 failed, 0 warnings" in done.stdout
