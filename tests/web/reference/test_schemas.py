"""JSON Schemas in words."""

import pytest

from muniment.web.reference.schemas import inline, kind_of, members


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "date-time"}, "time (ISO 8601)"),
        ({"type": "string", "maxLength": 2000}, "text, at most 2,000 characters"),
        ({"type": ["string", "null"]}, "text or null"),
        ({"type": "integer", "minimum": 1, "maximum": 9, "default": 5}, "whole number, 1 to 9, <code>5</code> by default"),  # noqa: E501 - one case a line
        ({"type": "integer", "minimum": 1, "maximum": 10**15}, "whole number, at least 1"),
        ({"type": "integer", "minimum": 0}, "whole number"),
        ({"type": "number", "maximum": 5}, "number, at most 5"),
        ({"enum": ["a", "<b>"]}, "one of <code>a</code>, <code>&lt;b&gt;</code>"),
        ({"const": "a"}, "<code>a</code>"),
        ({"type": "array", "items": {"$ref": "#/x/Row"}}, 'list of <a href="/docs/rest/objects#Row">Row</a>'),
        ({"type": "array"}, "list"),
        ({"anyOf": [{"$ref": "#/x/Row"}, {"type": "null"}]}, '<a href="/docs/rest/objects#Row">Row</a> or null'),
        ({"properties": {}}, "object"),
        ({}, "any value"),
    ],
)  # fmt: skip
def test_a_schema_is_told_in_words(schema, words):
    assert kind_of(schema) == words


def test_long_lists_of_values_are_cut():
    assert kind_of({"enum": [f"v{n}" for n in range(30)]}).endswith("<code>v23</code> …")


def test_descriptions_are_escaped_and_their_code_is_marked():
    assert inline("`a<b` & <script>") == "<code>a&lt;b</code> &amp; &lt;script&gt;"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("notShown says how many.", "<code>notShown</code> says how many."),
        ("Start it with execute_report_run.", "Start it with <code>execute_report_run</code>."),
        ('Edit lists by {"add": [rows]}.', "Edit lists by <code>{&quot;add&quot;: [rows]}</code>."),
        ('fields ["name","bio"] gives', "fields <code>[&quot;name&quot;,&quot;bio&quot;]</code> gives"),
        ("withdraw: true takes it back", "<code>withdraw</code>: true takes it back"),
        ("You may withdraw it. Read and/or write, e-mail, https://a.example/aB_c", ""),
        ("come with …Total.", "come with <code>…Total</code>."),
        ("needs companies:read", "needs <code>companies:read</code>"),
    ],
)
def test_names_of_members_and_tools_are_code_without_being_marked(text, html):
    assert inline(text, ["withdraw"]) == (html or text)


def test_members_tell_what_is_required_and_show_objects_within_lists():
    inner = {"type": "object", "properties": {"name": {"type": "string"}}}
    found = members({"properties": {"rows": {"type": "array", "items": inner}, "x": inner}, "required": ["x"]}, depth=1)
    assert [(row.name, row.note, [each.name for each in row.rows]) for row in found] == [
        ("rows", "", ["name"]),
        ("x", "required", ["name"]),
    ]
