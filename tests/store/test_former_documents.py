"""Nodes of former versions read the documents that this version publishes, while nodes are upgraded one by one."""

import msgspec
import pytest

from make.published import company, framework, person
from muniment.store import postgres_feed
from muniment.store.published import SCHEMA_VERSION


class Former(msgspec.Struct, frozen=True, kw_only=True):
    """The document as the first version that knows forms reads it; later versions may read more, and no less."""

    kind: str
    key: str
    position: int
    item: bytes
    body: bytes
    updated_at: str
    name: str
    provenance: str = ""
    facets: dict[str, tuple[str, ...]] = {}
    texts: tuple[str, str, str] = ("", "", "")
    treasury_minor: int = 0
    raising: bool = False


@pytest.mark.parametrize(
    "document",
    [
        company(1),
        company(2, treasuryMinor=None, raising=True),
        person(3, positions=(("Mate", "harbour"),)),
        framework(4),
    ],
    ids=["a company", "a company without a treasury", "a person", "a framework"],
)
def test_a_former_version_reads_what_this_one_writes(document):
    read = msgspec.msgpack.decode(postgres_feed.encoded(document), type=Former)
    assert (read.key, read.body, read.facets) == (document.key, document.body, document.facets)
    assert read.treasury_minor == (document.treasury_minor or 0)


def test_this_version_reads_what_a_former_one_writes():
    document = company(1)
    known = {name: getattr(document, name) for name in Former.__struct_fields__}
    read = postgres_feed.decoded(msgspec.msgpack.encode(Former(**known)))
    assert (read.body, read.treasury_minor, read.team_size, read.schema) == (document.body, 100, None, 0)


def test_this_version_reads_what_it_wrote():
    for document in (company(1, teamSize=5), company(2, treasuryMinor=None)):
        marked = msgspec.structs.replace(document, schema=SCHEMA_VERSION)
        assert postgres_feed.decoded(postgres_feed.encoded(document)) == marked
