"""
The public tool server: sixteen tools over the reader that the REST API uses, so both return the same data.

Source: tools, Public server; decisions, section 3.
"""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from muniment import __version__
from muniment.kernel.fairness import Limiter
from muniment.kernel.json import JSONMapping
from muniment.mcp.apps.views import PUBLIC, with_views
from muniment.mcp.arguments import MAX_ADDRESS_CHARACTERS, taking_addresses
from muniment.mcp.declarations import Declarations, Follow, Marked, Prompt, ResourceTemplate, Tool
from muniment.mcp.protocol.http import OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.skills.skills import PUBLIC as PUBLIC_SKILLS
from muniment.mcp.skills.skills import skills
from muniment.mcp.tools import answers
from muniment.mcp.tools.answers import ABOUT_TEXTS, DETAIL, FIELDS, licence_sentence
from muniment.mcp.tools.form_options import form_options_tool
from muniment.mcp.tools.output_schemas import (
    CHANGED,
    FETCHED,
    INTEGER,
    ROWS,
    SEARCH_RESULTS,
    STATS_SCHEMA,
    STRING,
    bundle,
    listed,
    record_of,
    searched,
    single,
)
from muniment.mcp.tools.public_lookups import MAX_IDS, ChangeTools, PublicTools
from muniment.mcp.tools.public_search import SearchTools
from muniment.mcp.tools.query import query_tool
from muniment.registry_toml.document import Query
from muniment.registry_toml.queries import saved_queries
from muniment.schema.filters import Criterion, Listing
from muniment.schema.objects import Schema
from muniment.store.reader import Reader
from muniment.store.tables.statements import parameters_in, value_of

_INSTRUCTIONS = f"""\
A registry of reviewed companies, DAOs, nonprofits, accelerators and VCs, the people who hold positions in them, \
and assessment frameworks. Everything is public and read-only.

- search finds companies, people and frameworks by any words; fetch reads one as text; query answers SQL. \
list_companies and list_people take q, filters and sort; their items have the slug (a company's id, a person's slug) \
for get_company and get_person. \
Page addresses and exact names work too.
{ABOUT_TEXTS}\
- Answers are summaries without nulls, logos and times; …Truncated marks cut texts. fields returns only what it names, \
e.g. ["treasury"]; detail "full" returns everything.
- An answer has at most 60 KB; 25 items take 5 to 10 KB, with one field 1. Ask only for parts of \
get_company you need.
- Lists: repeat with page = nextPage until it is null. pagination.total counts.
- The hint of a failure says what to call instead.
"""

MAX_PAGE: Final = 200
"""Items of a page, twice as many as in REST, since summaries are short."""
_PAGE: dict[str, JSONMapping] = {
    "page": {"type": "integer", "minimum": 1, "maximum": 10**15 - 1, "default": 1},
    "pageSize": {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": 25, "description": "default 25"},
}
_SLUG = {"type": "string", "minLength": 1, "maxLength": MAX_ADDRESS_CHARACTERS}
_NAMES: Final = "slug, address or exact name"
_FRAMEWORK_ID = {"frameworkId": _SLUG}
_IDS = {"ids": {"type": "array", "items": _SLUG, "maxItems": MAX_IDS}}
_WORDS = {"type": "string", "maxLength": 200}
_SHOWN = {**DETAIL, **FIELDS}
_OPTIONAL = frozenset({"hint", "notUnderstood", "left"})


def _tool(
    name: str,
    title: str,
    description: str,
    answer: JSONMapping,
    handler: Any,
    /,
    *,
    keys: Mapping[str, str] = MappingProxyType({}),
    **arguments: Any,
) -> Tool:
    required = tuple(key for key in ("slug", "frameworkId", "query", "id", "since") if key in arguments)
    # Beside its data, an answer may lack every other member.
    promised: tuple[str, ...] = ("data",)
    if "data" not in answer:
        promised = tuple(member for member in answer if member not in _OPTIONAL)
    return Tool(
        name=name,
        title=title,
        description=description,
        arguments=arguments,
        required=required,
        promised=promised,
        answer=answer,
        handler=handler,
        keys=keys,
        instant=name.startswith(("get_", "list_")),
        read_only=True,
        idempotent=True,
    )


def _criteria(listing: Listing) -> dict[str, JSONMapping]:
    found = {name: {**_values_of(each), **_help_of(each)} for name, each in listing.criteria.items()}
    facets = {"type": "array", "items": {"enum": list(listing.counted)}, "description": "count the values of these"}
    return {**found, "facets": facets}


def _help_of(of: Criterion) -> JSONMapping:
    """Return the description of an argument; names of choices and bounds say by themselves what they select."""
    speaks = of.several or of.is_amount or of.schema["type"] in {"boolean", "integer"}
    said = of.help.partition(", ")[2] if speaks else of.help
    return {"description": said.rstrip(".")} if said else {}


def _values_of(of: Criterion) -> JSONMapping:
    """Return the JSON Schema of an argument; words in place of patterns and formats, which models do not need."""
    value: JSONMapping
    if "enum" in of.schema:
        value = {"enum": of.schema["enum"]}
    elif of.is_amount:
        value = {"type": "string"}
    else:
        value = {"type": of.schema["type"]}
    return {"type": "array", "items": value} if of.several else value


def framework_tools(
    schema: Schema, list_frameworks: Any, get_framework: Any, more: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Tool, Tool]:
    """Return the tools for frameworks of both kinds, which both servers have; *more* are members of each framework."""
    return (
        _tool(
            "list_frameworks",
            "List frameworks",
            "All frameworks, scores and programs. isOpen: whether it can be run.",
            listed(record_of(schema.framework, **more)),
            list_frameworks,
            keys={"company": "company"},
            **{
                **_criteria(schema.listings["framework"]),
                "kind": {
                    "enum": ["score", "program"],
                    "description": "score: scores any company; program: run by a company, takes applications",
                },
                **_SHOWN,
            },
        ),
        _tool(
            "get_framework",
            "Get a framework",
            "One framework, score or program.",
            single(record_of(schema.framework, companyDescription=STRING, topScores=ROWS, **more)),
            get_framework,
            keys={"frameworkId": "framework"},
            frameworkId={**_SLUG, "description": _NAMES},
            **_SHOWN,
        ),
    )


def _tools(tools: PublicTools, searches: SearchTools, changes: ChangeTools, schema: Schema) -> tuple[Tool, ...]:
    companies, people = schema.listings["company"], schema.listings["person"]
    frameworks = listed(record_of(schema.framework))
    framework = single(record_of(schema.framework, companyDescription=STRING, topScores=ROWS))
    return (
        _tool(
            "search",
            "Search everything",
            "Companies, people and frameworks by present or former name, team, symbol, domain, identifier, place or "
            "topic, best first. Every word must match; forgives typos.",
            SEARCH_RESULTS,
            searches.search,
            query={"type": "string", "maxLength": 2_000},
        ),
        _tool(
            "fetch",
            "Fetch a result",
            "One company, person or framework as text, with its URL to cite.",
            FETCHED,
            searches.fetch,
            id={"type": "string", "maxLength": 500, "description": "id of a search result, e.g. company:blue-river"},
        ),
        _tool(
            "list_companies",
            "List companies",
            "Search and list companies, DAOs, nonprofits and funds, newest first. Several values of a filter mean or.",
            searched(record_of(schema.company)),
            tools.list_companies,
            keys={"ids": "company"},
            **_PAGE,
            q={**_WORDS, "description": "search words, ranked; the last as a prefix"},
            sort={
                "enum": [*companies.sorts],
                "description": "treasury, team: largest first; relevance: only with q, then the default",
            },
            **_criteria(companies),
            **_IDS,
            **_SHOWN,
        ),
        _tool(
            "get_company",
            "Get a company",
            "One company with its team, token holders, proposals and token distribution. "
            "Lists of over 100 rows, or over limit, come with …Total; nextOffset continues them.",
            {**single(bundle(schema)), "nextOffset": INTEGER},
            tools.get_company,
            keys={"slug": "company"},
            slug={**_SLUG, "description": _NAMES},
            parts={
                "type": "array",
                "items": {"enum": list(answers.PARTS)},
                "description": "besides the facts, e.g. positions for the team; default all",
            },
            offset={
                "type": "integer",
                "minimum": 0,
                "maximum": 10**6,
                "default": 0,
                "description": "first row of each list",
            },
            limit={"type": "integer", "minimum": 1, "maximum": 1_000, "description": "rows of each list"},
            **_SHOWN,
        ),
        _tool(
            "list_people",
            "List people",
            "Search and list people, newest first, with their number of companies; by company or title, with the "
            'positions that match. Bios are cut; fields ["name","bio"] gives them whole.',
            searched(record_of(schema.person, positionsTotal=INTEGER)),
            tools.list_people,
            keys={"ids": "person", "company": "company"},
            **_PAGE,
            q={**_WORDS, "description": "search words in names and bios"},
            sort={"enum": [*people.sorts], "description": "companies: most first"},
            **_criteria(people),
            **_IDS,
            **_SHOWN,
        ),
        _tool(
            "get_person",
            "Get a person",
            "One person with all positions and their companies.",
            single(record_of(schema.person, without=("companyCount",), positionsTotal=INTEGER)),
            tools.get_person,
            keys={"slug": "person"},
            slug={**_SLUG, "description": _NAMES},
            **_SHOWN,
        ),
        *framework_tools(schema, tools.list_frameworks, tools.get_framework),
        _tool(
            "list_scoring_frameworks",
            "List scoring frameworks",
            "Frameworks that score any company.",
            frameworks,
            tools.list_frameworks_of("score"),
            **_SHOWN,
        ),
        _tool(
            "get_scoring_framework",
            "Get a scoring framework",
            "One scoring framework.",
            framework,
            tools.get_framework_of("score"),
            keys={"frameworkId": "framework"},
            **_FRAMEWORK_ID,
            **_SHOWN,
        ),
        _tool(
            "list_program_frameworks",
            "List programs",
            "All programs, each run by a company: isOpen ones take applications, others are closed. With total.",
            frameworks,
            tools.list_frameworks_of("program"),
            isOpen={"type": "boolean"},
            **_SHOWN,
        ),
        _tool(
            "get_program_framework",
            "Get a program",
            "One program.",
            framework,
            tools.get_framework_of("program"),
            keys={"frameworkId": "framework"},
            **_FRAMEWORK_ID,
            **_SHOWN,
        ),
        query_tool(schema, lambda: tools.reader),
        _tool(
            "changes_since",
            "List changes",
            "Companies, people and frameworks published, updated or unlisted since then, oldest first, with kind, id "
            "(slug) and name.",
            CHANGED,
            changes.changes_since,
            since={"type": "string", "maxLength": 100, "description": "date, time or the nextSince of an answer"},
        ),
        _tool(
            "get_registry_stats",
            "Get registry statistics",
            "The numbers of companies, people, frameworks and fundraising companies; the total treasury.",
            single(STATS_SCHEMA),
            tools.get_registry_stats,
        ),
        form_options_tool(
            schema,
            "The accepted values and lengths of a company's fields, and inUse: the values of public companies with "
            "counts.",
            reader=lambda: tools.reader,
        ),
    )


def _resources(tools: PublicTools) -> tuple[ResourceTemplate, ...]:
    stats = ResourceTemplate(
        uri="registry://stats",
        name="stats",
        title="Registry statistics",
        description="The result of get_registry_stats.",
        read=lambda _, caller: tools.get_registry_stats({}, caller),
    )
    documents = (
        ("registry://companies/{slug}", "company", tools.company),
        ("registry://people/{slug}", "person", tools.person),
        ("registry://frameworks/{frameworkId}", "framework", tools.framework),
    )
    return (stats, *(_template(uri, kind, read, tools.slugs(kind)) for uri, kind, read in documents))


def _template(
    uri: str, kind: str, read: Callable[[str], Marked], complete: Callable[[str, int], list[str]]
) -> ResourceTemplate:
    return ResourceTemplate(
        uri=uri,
        name=kind,
        title=kind.capitalize(),
        description=f"The result of get_{kind} with detail full.",
        read=lambda key, _: read(key),
        complete=complete,
    )


def _prompts(tools: PublicTools) -> tuple[Prompt, ...]:
    return (
        Prompt(
            name="research_company",
            title="Research a company",
            description="A sourced profile of one company, its people and its governance.",
            arguments={"slug": "the company's slug"},
            render=lambda given: (
                f"Research the company with the slug {given['slug']} in this registry. Call get_company, then "
                "get_person for the three most senior positions. Write: what it is and does; who runs it and what "
                "else they run; its treasury, token and largest holders; how recent proposals ended; what is "
                "missing in the registry. Cite the tool for each fact, and invent nothing."
            ),
            complete={"slug": tools.slugs("company")},
        ),
        Prompt(
            name="compare_companies",
            title="Compare companies by a framework",
            description="Two or more companies compared by what a framework's description asks for.",
            arguments={"frameworkId": "the framework", "slugs": "the companies' slugs, separated by commas"},
            render=lambda given: (
                f"Compare these companies of the registry: {given['slugs']}. Call get_framework with frameworkId "
                f"{given['frameworkId']} and get_company for each. The framework's specification is private: take "
                "what it asks for from its description. Return a table with a row per point and a column per company, "
                "with the evidence found or 'not in the registry'; then name the strongest and what is missing. This "
                "is a reading of public facts, not the framework's score."
            ),
            complete={"frameworkId": tools.slugs("framework")},
        ),
    )


def _prompts_of_queries(tools: PublicTools) -> Callable[[], tuple[Prompt, ...]]:
    """Return what makes the saved queries of the registry prompts, again when they change."""
    slugs = {kind: tools.slugs(kind) for kind in ("company", "person", "framework")}

    @functools.lru_cache(maxsize=1)
    def made_of(queries: tuple[Query, ...]) -> tuple[Prompt, ...]:
        return tuple(_prompt_of_query(query, slugs) for query in queries)

    return lambda: made_of(saved_queries())


def _prompt_of_query(query: Query, slugs: Mapping[str, Callable[[str, int], list[str]]]) -> Prompt:
    """Return a saved query as a prompt, whose arguments are the parameters of the statement."""
    names = parameters_in(query.sql)
    arguments = {name: f"the value of :{name} in the statement" for name in names}
    arguments |= {name: f"the slug of a {name}" for name in names if name in slugs}

    def render(given: Mapping[str, str]) -> str:
        params = msgspec.json.encode({name: value_of(given[name]) for name in names}).decode()
        values = f" and the params {params}" if names else ""
        return (
            f"Answer the saved query “{query.title}” of this registry. {query.text} Call the tool query with this "
            f"sql{values}:\n\n{query.sql}\n\nShow the rows as a table, with the edition of the answer, and say so if "
            "they were truncated."
        )

    return Prompt(
        name=query.slug,
        title=query.title,
        description=query.text or query.title,
        arguments=arguments,
        render=render,
        complete={name: slugs[name] for name in names if name in slugs},
    )


def public_declarations(
    reader: Reader, *, base_url: str, registry_name: str, schema: Schema, follow: Follow | None = None
) -> Declarations:
    """Return the declarations of the public server; *base_url* has no trailing slash."""
    tools = PublicTools(reader, base_url, schema)
    searches, changes = SearchTools(reader, base_url, schema), ChangeTools(reader, base_url, schema)
    made = taking_addresses(_tools(tools, searches, changes, schema), base_url)
    declared, views = with_views(made, PUBLIC, base_url)
    return Declarations(
        name="muniment",
        title=registry_name,
        version=__version__,
        description=f"{registry_name}: companies, people and assessment frameworks, read-only."[:100],
        instructions=_INSTRUCTIONS + licence_sentence(),
        website_url=base_url,
        icon_url=f"{base_url}/api/mcp/icon.svg",
        tools=declared,
        views=views,
        skills=skills(PUBLIC_SKILLS),
        resources=_resources(tools),
        prompts=_prompts(tools),
        changing_prompts=_prompts_of_queries(tools),
        follow=follow,
    )


def public_server(
    reader: Reader,
    *,
    gate: OriginPolicy,
    limiter: Limiter | None,
    base_url: str,
    registry_name: str,
    schema: Schema,
    follow: Follow | None = None,
) -> ToolServer:
    """Return the public server; *base_url* and *follow* as for :func:`public_declarations` and `Declarations`."""
    declarations = public_declarations(
        reader, base_url=base_url, registry_name=registry_name, schema=schema, follow=follow
    )
    return ToolServer(declarations, gate=gate, limiter=limiter)
