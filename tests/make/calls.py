"""Arguments of tool calls, made from the schemas of the tools."""

from collections.abc import Mapping
from typing import Any

PUBLIC: dict[str, dict[str, Any]] = {
    "search": {"query": "company"},
    "fetch": {"id": "company:company-1"},
    "get_company": {"slug": "company-1"},
    "get_person": {"slug": "person-1"},
    "get_framework": {"frameworkId": "framework-1"},
    "get_scoring_framework": {"frameworkId": "framework-1"},
    "get_program_framework": {"frameworkId": "ember-grants"},
    "changes_since": {"since": "1"},
    "query": {"sql": "SELECT slug, name FROM companies"},
}
"""The required arguments of the public tools, over `services.mcp.fictional_registry`."""
SAMPLES: dict[str, Any] = {
    "status": ["active"],
    "type": ["DAO"],
    "ids": ["company-1", "company-2"],
    "fields": ["description", "name"],
    "company": "company-1",
    "treasuryMin": "1",
    "treasuryMax": "900000",
    "listedFrom": "2020-01-01",
    "listedTo": "2031-01-01",
    "updatedSince": "2020-01-01T00:00:00Z",
    "minCompanies": 1,
    "pageSize": 3,
    "page": 2,
    "offset": 1,
    "limit": 2,
    "sort": "name",
    "contentType": "text/plain",
    "sizeBytes": 20_000,
    "contentBase64": "aGFyYm91cg==",
    "expectedVersion": 1,
    "changes": {"description": "A harbour."},
    "sql": "SELECT slug FROM companies",
    "positions": {"end": ["x"]},
    "expectedTotals": {"positions": 2},
}
"""A value of an argument, where one made from the schema would say nothing."""


def sample(name: str, schema: Mapping[str, Any]) -> Any:
    """Return a value that the schema takes."""
    if name in SAMPLES:
        return SAMPLES[name]
    if "enum" in schema:
        return schema["enum"][-1]
    kind = schema["type"]
    if kind == "array":
        return [sample("", schema["items"])]
    return {"string": "harbour", "integer": schema.get("minimum", 0) + 1, "boolean": True, "object": {}}[kind]
