"""The charts of answers to statements show the numbers in the places that their labels name."""

import pytest

from muniment.store.tables.answering import Answered
from muniment.web.presenters.results import _drawn


@pytest.mark.parametrize(
    ("times", "places"),
    [
        (("2000", "2001", "2010"), ["0.00", "10.02", "100.00"]),
        (("1943-11", "2026-07", "2026-08"), ["0.00", "99.90", "100.00"]),
        (("2026-01-01", "2026-01-02", "2026-01-05"), ["0.00", "25.00", "100.00"]),
        (
            ("2026-01-01T00:00:00.000000Z", "2026-01-01T06:00:00.000000Z", "2026-01-02T00:00:00.000000Z"),
            ["0.00", "25.00", "100.00"],
        ),
        (("2026-01", "2026-13", "2026-20"), ["0.00", "50.00", "100.00"]),  # months that no calendar has
    ],
)
def test_a_line_over_time_has_each_point_at_its_time(times, places):
    rows = [[time, number] for number, time in enumerate(times)]
    answered = Answered(1, "", "", ["month", "companies"], rows, len(rows), [], changes=False, cpu_s=0.0)
    _, plot = _drawn("New companies", answered, [False, True], "line")
    assert [x for x, _ in plot.points] == places
