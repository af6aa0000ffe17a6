"""The tool list_company_form_options, which both servers have."""

import msgspec

from muniment.mcp.declarations import Tool
from muniment.mcp.tools.output_schemas import INTEGER, STRING, list_of, object_of, single
from muniment.schema.form_options import form_options
from muniment.schema.objects import Schema


def form_options_tool(schema: Schema, description: str, scope: str | None = None) -> Tool:
    options = form_options(schema)
    answer = msgspec.json.encode({"data": options})
    lists = {name: list_of(STRING) for name, value in options.items() if isinstance(value, list)}
    sizes = {"type": "object", "additionalProperties": INTEGER}
    return Tool(
        name="list_company_form_options",
        title="List form options",
        description=description,
        arguments={},
        answer=single(object_of({**lists, "limits": object_of({"characters": sizes, "entries": sizes})})),
        handler=lambda _, __: answer,
        scope=scope,
        read_only=True,
        idempotent=True,
    )
