"""The stored result of an import, as pages say it."""

import pytest

from muniment.languages.speaking import speaking
from muniment.web.wording.imports import outcome


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        (
            "people: 40 new, 0 changed, 0 unchanged; companies: 1,200 new, 2 changed, 0 unchanged; no invalid rows",
            "People: 40 new; Companies: 1,200 new, 2 changed",
        ),
        ("companies: 0 new, 0 changed, 0 unchanged; 3 invalid rows", "Companies: nothing; 3 invalid rows"),
        ("2 rows restored, 0 unpublished, 0 kept", "2 rows restored"),
        ("0 rows restored, 0 unpublished, 0 kept", "Nothing was restored"),
        ("no rows found", "no rows found"),
        ("", ""),
    ],
)
def test_numbers_that_are_zero_are_left_out(stored, said):
    assert outcome(stored) == said


def test_the_numbers_are_written_as_the_language_writes_them():
    with speaking("de"):
        assert "1.200" in outcome("companies: 1,200 new, 0 changed, 0 unchanged; no invalid rows")
