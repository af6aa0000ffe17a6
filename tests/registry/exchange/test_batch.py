"""What the imports of all kinds share: a row is written only where it differs, and moves forward in time."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from muniment.kernel.ids import now
from muniment.registry.exchange import batch

HOUR = timedelta(hours=1)


def row(**columns):
    return SimpleNamespace(version=3, updated_at=now() - HOUR, **columns)


def test_a_row_that_differs_in_nothing_stays_as_it_is():
    standing = row(name="Acme")
    before = vars(standing).copy()
    assert batch.update_row(standing, {"name": "Acme"}, now()) is None
    assert vars(standing) == before


def test_a_row_that_differs_has_its_next_version_and_the_former_values_are_returned():
    standing = row(name="Acme", symbol="A")
    assert batch.update_row(standing, {"name": "Acme Works", "symbol": "A"}, None) == {"name": "Acme"}
    assert (standing.name, standing.version) == ("Acme Works", 4)
    assert batch.update_row(standing, {"symbol": "A"}, None, other_changes=True) == {}
    assert standing.version == 5


@pytest.mark.parametrize(
    ("hours", "believed"), [(-1, False), (0, False), (0.5, True)], ids=["earlier", "the same", "later"]
)
def test_the_moment_of_a_change_never_moves_back(hours, believed):
    standing, began = row(name="Acme"), now()
    given = standing.updated_at + hours * HOUR
    batch.update_row(standing, {"name": "Acme Works"}, given)
    assert (standing.updated_at == given) is believed
    assert believed or standing.updated_at >= began


def test_a_change_without_a_moment_happened_now():
    standing, began = row(name="Acme"), now()
    batch.update_row(standing, {"name": "Acme Works"}, None)
    assert began <= standing.updated_at <= now()
