"""Import of people."""

from typing import Any

import pytest

from make.registry import bring, document, item, keys, lines

pytestmark = pytest.mark.django_db


def company(slug: str = "acme", /, **members: Any) -> dict[str, Any]:
    return {"id": slug, "name": slug.title(), **members}


@pytest.mark.requirement("order.people", "reviewed.person", "import.people-from-positions")
def test_people_come_from_their_file_and_from_positions_later_publication_first(tmp_path):
    lines(
        tmp_path / "people.jsonl",
        {"slug": "ada", "name": "Ada", "documentId": "d1"},
        {"slug": "bo", "name": "Bo", "bio": ""},
    )
    lines(
        tmp_path / "companies.jsonl",
        {
            "company": company(),
            "positions": [
                {"person": {"slug": "ada", "name": "Another spelling"}},
                {"person": {"name": "Cy Vale"}},
                {"person": {"name": "Cy Vale"}, "title": "Again"},
                {"person": {"slug": "dee", "name": "Dee"}},
            ],
        },
    )
    assert bring(tmp_path)[1] == []
    assert keys("person") == ["dee", "cy-vale", "bo", "ada"]
    assert document("company", "acme")["positions"][0]["person"] == {"name": "Ada", "slug": "ada"}
    assert document("person", "ada")["positions"] == [{"company": {"id": "acme", "name": "Acme", "slug": "acme"}}]
    assert document("person", "bo")["bio"] is None
    assert item("person", "ada")["documentId"] == "d1"
    assert "positions" not in item("person", "ada")
    assert "companyCount" not in document("person", "ada")


def test_a_renamed_person_is_renamed_in_the_companies_that_show_them(tmp_path):
    lines(
        tmp_path / "companies.jsonl", {"company": company(), "positions": [{"person": {"slug": "ada", "name": "Ada"}}]}
    )
    bring(tmp_path)
    bring(lines(tmp_path / "people.jsonl", {"slug": "ada", "name": "Ada Moss"}))
    assert document("company", "acme")["positions"][0]["person"]["name"] == "Ada Moss"
