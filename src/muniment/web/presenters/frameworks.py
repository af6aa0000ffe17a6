"""Frameworks as rows of other pages: those of an organization, in the order of the numbers in their names."""

import re
from typing import Final
from urllib.parse import quote

import msgspec
from django.conf import settings

from muniment.store.queries import ListQuery
from muniment.store.reader import Reader

MAX_OF_ORGANIZATION: Final = 100


class FrameworkItem(msgspec.Struct, rename="camel"):
    """A framework of a list."""

    framework_id: str
    framework_name: str
    kind: str = "score"
    description: str | None = None
    is_open: bool = False

    @property
    def address(self) -> str:
        return f"/frameworks/{quote(self.framework_id)}"


framework_of = msgspec.json.Decoder(FrameworkItem).decode


def frameworks_of(source: Reader, organization: str) -> list[FrameworkItem]:
    """Return the frameworks that an organization runs, at most :data:`MAX_OF_ORGANIZATION`, by name."""
    chosen = settings.SCHEMA.listings["framework"].select({"company": organization})
    query = ListQuery(page_size=MAX_OF_ORGANIZATION, sort="name", filters=chosen.filters)
    frameworks = [framework_of(item) for item in source.page("framework", query).items]
    return sorted(frameworks, key=lambda framework: natural(framework.framework_name))


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key by which numbers in names are sorted by their value."""
    key = []
    for text in re.split(r"([0-9]{1,9})", name):
        if text.isdecimal():
            key.append((int(text), ""))
        else:
            key.append((0, text.casefold()))
    return key
