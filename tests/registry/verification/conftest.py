"""Websites with domain proofs are on loopback."""

from functools import partial

import pytest


@pytest.fixture
def open_to(connect):
    return partial(connect, "verification.checks")
