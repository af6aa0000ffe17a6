"""The REST reference, from the OpenAPI document."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from django.utils.safestring import SafeString
from django.utils.translation import gettext_noop

from muniment.kernel.json import JSONObject
from muniment.web.reference.schemas import Row, inline, kind_of, members

GROUPS: Final[dict[str, dict[str, str]]] = {
    "Companies": {
        "CompanyList": "A page of companies, with filters, totals and the next page.",
        "CompanyDetail": "The answer to a request for one company.",
        "CompanyBundle": "One company with all its parts: team, proposals, token, cap table and funding rounds.",
        "Company": "The facts of a company, DAO or nonprofit.",
        "Position": "A person's title at a company.",
        "Proposal": "A governance proposal, with its votes and outcome.",
        "Distribution": "How a token is distributed: its pools, method and schedule.",
        "CapTablePage": "A page of the cap table of a company.",
        "CapTableEntry": "A holder in a cap table, with tokens and share.",
        "FundingRound": "A round in which a company raises or raised funds.",
        "Assessment": "The published score of a company by one framework.",
        "Address": "A postal address.",
        "Socials": "Email address, phone number and profiles.",
        "Logo": "The copy of a logo that this registry serves, with its size.",
        "VerifiedDomain": "The domain that an owner proved, and how.",
        "FormerName": "A name that a company had before.",
    },
    "People": {
        "PersonList": "A page of people, with totals and the next page.",
        "PersonDetail": "The answer to a request for one person.",
        "Person": "A person, with their positions.",
    },
    "Frameworks": {
        "FrameworkList": "All assessment frameworks: scores and programs.",
        "FrameworkOne": "The answer to a request for one framework.",
        "FrameworkDetail": "One framework, with its company and its best scores.",
        "Framework": "The facts of an assessment framework.",
        "FrameworkCompany": "The company that runs a framework.",
        "ScorePage": "A page of the companies that a framework scored.",
        "RankedScore": "A company's published score, with its rank.",
    },
    "Search": {
        "SearchResults": "The results of a search over companies, people and frameworks.",
        "SearchResult": "One result: its kind, name and address, and what matched.",
        "Closest": "A company or person with a similar name, where nothing matches.",
        "ClosestOfAll": "A similar name of any kind, where nothing matches.",
        "Facets": "How many items each value of a filter has.",
        "FacetValues": "The values of the filters, with their counts.",
        "Pagination": "The place of a page in its list, and the cursor of the next one.",
    },
    gettext_noop("Log"): {  # no page has this word
        "LogOne": "The answer to a request for the log.",
        "Log": "The public log: its name, size, root and keys.",
        "FormerLog": "A log that could not be continued.",
        "Checkpoint": "The signed statement of the log.",
        "CosignedList": "The checkpoints that witnesses have cosigned.",
        "Cosigned": "A checkpoint that witnesses have cosigned.",
        "Cosignature": "That a witness has cosigned, and when.",
        "LogProofOne": "The answer to a request for a proof.",
        "LogProof": "A proof that a document or a leaf is in the log, or that it continues a former one.",
        "LoggedLeaf": "What a leaf is a hash of.",
        "LeafList": "A page of what the leaves are hashes of.",
        "Leaf": "A leaf of the log, with what it is a hash of.",
        "Tile": "Hashes of the log, or the data of leaves.",
    },
    "Registry": {
        "StatsOne": "The answer to a request for the statistics.",
        "Stats": "The numbers of companies, people and frameworks, and the total treasury.",
        "ChangeList": "A page of the change feed.",
        "Change": "One item that was published, updated or unlisted.",
        "ExportList": "The files with the whole registry.",
        "Table": "A public table, with the number of its rows.",
        "Column": "A column of a table.",
        "TableList": "The public tables.",
        "QueryResult": "The answer to a statement in SQL.",
        "ChangeStream": "The change feed as server-sent events.",
        "Export": "A file with the whole registry, with its size and checksum.",
        "Error": "What an error says: its code, message and hint.",
    },
}
OTHERS: Final = "Others"
EVENTS: Final = "text/event-stream"


_CONDITIONS: Final = frozenset({"If-None-Match", "If-Modified-Since"})
"""Headers of every operation; the page of the group explains them once."""
_SCHEMAS: Final = "#/components/schemas/"


class Operation(NamedTuple):
    """
    An operation.

    Args:
        sample: a command that calls it.
        answer: the name of the object that it answers.
        example: an answer, as JSON.
    """

    key: str
    method: str
    path: str
    summary: str
    description: SafeString
    parameters: tuple[Row, ...]
    sample: str
    answer: str
    example: str
    is_deprecated: bool


class OperationGroup(NamedTuple):
    """Operations of one kind of resource."""

    key: str
    title: str
    description: str
    operations: tuple[Operation, ...]


class Described(NamedTuple):
    """An object of answers."""

    name: str
    description: SafeString
    rows: tuple[Row, ...]


class ObjectGroup(NamedTuple):
    """Objects of one kind of resource."""

    title: str
    objects: tuple[Described, ...]


def groups(document: JSONObject, base: str, known: Mapping[str, str]) -> tuple[OperationGroup, ...]:
    """
    Return the operations by tag; HEAD is left out, for it answers every path like GET.

    Args:
        base: the instance's address, for the samples.
        known: keys of published documents by the collection in their addresses, in place of the contract's examples.
    """
    groups = []
    for tag in document["tags"]:
        operations = []
        for path, item in document["paths"].items():
            if tag["name"] in item["get"]["tags"]:
                operations.append(_operation(path, item["get"], base, known))
        name, description = tag["name"], tag.get("description", "")
        groups.append(OperationGroup(name.lower(), name, description, tuple(operations)))
    return tuple(groups)


def objects(document: JSONObject) -> tuple[ObjectGroup, ...]:
    """Return the objects of answers in groups; those that no group has are in the last one, by name."""
    schemas = document["components"]["schemas"]
    others = dict(sorted(schemas.items()))
    for texts in GROUPS.values():
        for name in texts:
            others.pop(name, None)
    texts_of_others = {name: schema.get("description", "") for name, schema in others.items()}
    object_groups = []
    for title, texts in {**GROUPS, OTHERS: texts_of_others}.items():
        described = []
        for name, text in texts.items():
            if name in schemas:
                described.append(Described(name, inline(text), members(schemas[name])))
        if described:
            object_groups.append(ObjectGroup(title, tuple(described)))
    return tuple(object_groups)


def _operation(path: str, declared: JSONObject, base: str, known: Mapping[str, str]) -> Operation:
    media_type, success = _first_form(declared["responses"]["200"]["content"])
    parameters = [parameter for parameter in declared["parameters"] if parameter["name"] not in _CONDITIONS]
    example = success["example"]
    if media_type != EVENTS:
        example = json.dumps(example, indent=2, ensure_ascii=False)
    return Operation(
        key=declared["operationId"],
        method="GET",
        path=path,
        summary=declared["summary"],
        description=inline(declared["description"]),
        parameters=tuple(map(_row, parameters)),
        sample=f"curl '{base}{_called(path, parameters, known)}'",
        answer=str(success["schema"]["$ref"]).removeprefix(_SCHEMAS),
        example=example,
        is_deprecated=bool(declared.get("deprecated")),
    )


def _first_form(content: JSONObject) -> tuple[str, Any]:
    """Return the media type that a response has unless another one is asked for, with its description."""
    return next(iter(content.items()))


def _row(parameter: JSONObject) -> Row:
    note = "required" if parameter.get("required") else ""
    return Row(parameter["name"], kind_of(parameter["schema"]), inline(parameter.get("description", "")), note)


def _called(path: str, parameters: list[JSONObject], known: Mapping[str, str]) -> str:
    """Return the address of a call: a real document if there is one, and what the operation requires."""
    query = []
    for parameter in parameters:
        name, example = parameter["name"], str(parameter.get("example", ""))
        if parameter["in"] == "path":
            collection = path.split("/")[3]
            value = known.get(collection) or example
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        elif parameter.get("required"):
            query.append(f"{name}={quote(example)}")
    return f"{path}?{'&'.join(query)}" if query else path
