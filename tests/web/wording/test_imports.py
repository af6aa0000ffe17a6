"""The stored result of an import, as pages say it."""

import pytest

from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.languages.speaking import speaking
from muniment.registry.exchange.results import IMPORTED, NOTHING_INVALID, UNDONE
from muniment.web.wording.imports import outcome


def imported(kind, new=0, changed=0, unchanged=0):
    return Phrase(IMPORTED, kind=kind, new=new, changed=changed, unchanged=unchanged)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (
            Joined("; ", (imported("people", 40), imported("companies", 1_200, 2), NOTHING_INVALID)),
            "People: 40 new; Companies: 1,200 new, 2 changed",
        ),
        (
            Joined("; ", (imported("companies"), Phrase("{bad:,} invalid rows", bad=3))),
            "Companies: nothing; 3 invalid rows",
        ),
        (Phrase(UNDONE, restored=2, unpublished=0, kept=0), "2 rows restored"),
        (Phrase(UNDONE, restored=0, unpublished=0, kept=0), "Nothing was restored"),
        ("no rows found", "no rows found"),
        ("", ""),
    ],
)
def test_numbers_that_are_zero_are_left_out(result, said):
    assert outcome(result) == said


def test_the_numbers_are_written_as_the_language_writes_them():
    with speaking("de"):
        assert "1.200" in outcome(Joined("; ", (imported("companies", 1_200), NOTHING_INVALID)))
