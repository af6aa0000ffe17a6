"""Filters of the pages."""

from datetime import timedelta

import pytest

from muniment.kernel.ids import now
from muniment.web.templatetags import pages


@pytest.mark.parametrize(
    ("passed", "shown"),
    [
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=27), "27 seconds"),
        (timedelta(minutes=1, seconds=2), "1 minute"),
        (timedelta(hours=3, minutes=20), "3 hours"),
        (timedelta(days=9), "1 week"),
    ],
)
def test_waiting_time_is_shown_in_its_largest_unit(passed, shown):
    assert pages.elapsed(now() - passed).replace("\xa0", " ") == shown
