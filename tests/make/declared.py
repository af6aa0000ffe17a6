"""A registry that declares settings, for the length of a test."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muniment import config
from muniment.registry_toml import applied
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.reading import check

_numbers = itertools.count(1_000)


@contextmanager
def declared(**sections: Any) -> Iterator[None]:
    """Apply settings in this process's data folder, without a database."""
    applied.keep(Applied(next(_numbers), "", check(sections)))
    try:
        yield
    finally:
        (config.current().data / applied.COPY).unlink()
        applied.look()
