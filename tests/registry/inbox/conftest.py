"""Links of items under review lead to loopback."""

from functools import partial

import pytest


@pytest.fixture
def open_to(connect):
    return partial(connect, "inbox.checks")
