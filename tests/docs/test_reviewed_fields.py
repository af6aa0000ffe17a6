"""Every text that names the fields whose changes need review names those of the schema."""

from pathlib import Path

import pytest

from muniment.schema.objects import registry_schema

ROOT = Path(__file__).parents[2]
TEXTS = [
    "docs/THREATS.md",
    "src/muniment/mcp/skills/keep-my-listing-current/SKILL.md",
    "src/muniment/mcp/tools/owner/companies.py",
    "src/muniment/mcp/tools/owner/server.py",
    "src/muniment/registry/company/listings.py",
    "src/muniment/web/reference/guides/manage.md",
    "src/muniment/web/templates/review/home.html",
    "src/muniment/web/views/manage/companies.py",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_names_the_fields_that_need_review(text):
    reviewed = [name for name, field in registry_schema("USD").company.editable.items() if field.review]
    *first, last = reviewed
    begun = ", ".join(first)
    phrases = (f"{begun} or {last}", f"{begun} and {last}", f"{begun}, {last}")
    content = (ROOT / text).read_text("utf-8")
    assert any(phrase in content for phrase in phrases), f"the schema reviews {reviewed}"
