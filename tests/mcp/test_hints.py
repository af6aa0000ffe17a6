"""
Every tool that a message names is one of the server that sends the message.

The texts are read from the source, so that messages that no test provokes are walked too.
"""

import ast
import re
from pathlib import Path

import pytest

import muniment
from make.published import Publisher
from muniment.kernel.problems import BadRequest
from muniment.mcp.arguments import Addresses
from muniment.mcp.declarations import Declarations
from muniment.mcp.tools.public import public_declarations
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from muniment.store.search.everything import COLLECTIONS
from services.manage import manage

SOURCE = Path(muniment.__file__).parent
VERBS = "list|get|update|start|execute|cancel|submit|share|read|upload|create|complete|delete|compare|restore|fetch"
NAMED = re.compile(rf"\b(?:{VERBS})_[a-z_]*[a-z]\b|\bchanges_since\b|(?<=Call )(?:search|fetch)\b")
OWNER, PUBLIC = frozenset({"owner"}), frozenset({"public"})
BOTH = OWNER | PUBLIC
SENDERS = {
    "mcp/tools/owner": OWNER,
    "mcp/tools/public": PUBLIC,
    "mcp/tools/public_lookups": PUBLIC,  # save the functions in SHARED
    "mcp/tools/public_search": PUBLIC,
    "mcp/tools/public_changes": PUBLIC,
    "mcp/protocol/http": OWNER,  # the larger of two limits is that of the owner server
    "mcp/skills/skills": OWNER,
    "mcp": BOTH,
    "store": BOTH,
    "schema": BOTH,
    "kernel": BOTH,
    **dict.fromkeys(("registry", "assessments", "documents", "credits", "accounts", "oauth", "mail", "jobs"), OWNER),
}
"""Which servers send the messages of a package or module; pages, REST and commands send none."""
SHARED = {
    "mcp/tools/public_lookups": {
        "list_frameworks",
        "framework",
        "get_framework",
        "_detail",
        "_list",
        "query_of",
        "_parsed",
    }
}
"""Functions of public modules that the owner server uses too."""


def senders_of(path):
    names = path.relative_to(SOURCE).with_suffix("").parts
    for length in range(len(names), 0, -1):
        if found := SENDERS.get("/".join(names[:length])):
            return found
    return frozenset()


def is_documentation(node, parents):
    """Return whether a string is a statement of its own: a docstring."""
    return isinstance(parents.get(node), ast.Expr)


def texts_of(path):
    """Yield each sentence in a module, with the servers that may send it; the names of a record's members are none."""
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    module = str(path.relative_to(SOURCE).with_suffix(""))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_documentation(node, parents):
            around, at = set(), node
            while at in parents:
                at = parents[at]
                if isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    around.add(at.name)
            shared = around & SHARED.get(module, set())
            yield node.value, BOTH if shared else senders_of(path)


@pytest.fixture(scope="module")
def offers(tmp_path_factory):
    file = tmp_path_factory.mktemp("hints") / "p.sqlite3"
    Publisher(file).close()
    reader = Reader(file)
    public = public_declarations(
        reader, base_url="https://registry.example", registry_name="Suite", schema=registry_schema("USD")
    )
    with manage() as owners:
        yield {"public": public, "owner": owners.asker.server.offer}
    reader.close()


def names_of(offer: Declarations):
    return {tool.name for tool in offer.tools}


def test_every_message_in_the_source_names_tools_of_its_own_server(offers):
    tools = {server: names_of(offer) for server, offer in offers.items()}
    wrong, walked = [], 0
    for path in sorted(SOURCE.rglob("*.py")):
        for text, servers in texts_of(path) if senders_of(path) else ():
            named = set(NAMED.findall(text)) if " " in text else set()
            walked += bool(named)
            for server in servers:
                wrong += [f"{path.relative_to(SOURCE)}: {text!r} names {each}" for each in named - tools[server]]
    assert not wrong, "\n".join(wrong)
    assert walked > 40


@pytest.mark.parametrize("server", ["public", "owner"])
def test_every_description_names_tools_of_its_own_server(offers, server):
    offer = offers[server]
    said = [offer.instructions, offer.description]
    for tool in offer.tools:
        said += [tool.description, *(str(argument) for argument in tool.arguments.values())]
    said += [each.description for each in offer.resources]
    said += [each.text for each in offer.skills]
    for prompt in offer.prompts:
        said += [prompt.description, prompt.render(dict.fromkeys(prompt.arguments, "x"))]
    named = set(NAMED.findall("\n".join(said)))
    assert named
    assert named <= names_of(offer)


@pytest.mark.parametrize("server", ["public", "owner"])
@pytest.mark.parametrize("kind", ["company", "person", "framework"])
def test_every_refusal_of_an_address_names_tools_of_its_own_server(offers, server, kind):
    tools = names_of(offers[server])
    addresses = Addresses("https://registry.example", frozenset(tools))
    for text in ("https://other.example/companies/x", "/imprint", "/people/x", "/frameworks/x", "/companies/x"):
        if text.startswith(f"/{COLLECTIONS[kind]}/"):
            continue
        with pytest.raises(BadRequest) as refused:
            addresses.slug("slug", kind, text)
        named = set(NAMED.findall(refused.value.hint))
        assert named <= tools
        assert named or (server, kind) == ("owner", "person")  # no tool of that server finds people
