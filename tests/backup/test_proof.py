"""A backup is verified without an instance: everything that its header and manifest say is counted."""

import hashlib

import msgspec
import pytest

from muniment.backup import container
from muniment.backup.container import Damaged
from muniment.backup.contents import FORMAT, Header, Manifest, Tally, blob_line, part
from muniment.backup.proof import verify

BLOB = b"Minutes of the harbour board."
SHA256 = hashlib.sha256(BLOB).hexdigest()
COLUMNS = ["id", "blob_key", "size_bytes", "sha256"]
ROWS = [b'["d1","documents/d1/1",%d,"%s"]' % (len(BLOB), SHA256.encode()), b'["d2","",0,""]']


def tally(*things):
    made = Tally()
    made.add(*things)
    return made.count()


def header(**changes):
    made = Header(
        format=FORMAT,
        made_at="2024-05-01T00:00:00Z",
        version="0.1.0",
        database="sqlite",
        currency="USD",
        migrations=[],
        tables={"documents_document": COLUMNS},
        next_ids={},
        edition=1,
        edition_at="2024-05-01T00:00:00Z",
        key_check="",
    )
    return part("header.json", msgspec.json.encode(msgspec.structs.replace(made, **changes)))


def manifest(**changes):
    made = Manifest(
        tables={"documents_document": tally(*ROWS)},
        published=tally(),
        blobs=tally(blob_line("documents/d1/1", len(BLOB), SHA256)),
        blob_bytes=len(BLOB),
        lost=[],
        damaged=[],
    )
    return part("manifest.json", msgspec.json.encode(msgspec.structs.replace(made, **changes)))


def rows(*lines):
    return part("rows/documents_document/000000.jsonl", b"".join(line + b"\n" for line in lines or ROWS))


def blob(content=BLOB):
    return part("blobs/documents/d1/1", content)


def proved(folder, *parts):
    container.write(folder / "b", parts, verify=lambda _: None)
    return verify(folder / "b")


def test_a_good_backup_is_proved_with_its_numbers(tmp_path):
    found = proved(tmp_path, header(), part("keys/django.key", b"secret"), rows(), blob(), manifest())
    assert (found.rows, found.keys, found.manifest.blobs.n) == (2, 1, 1)


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (rows(), blob(), manifest()),
        (part("header.json", b"{"), manifest()),
        (part("header.json", b"[]"), manifest()),
        (header(format="muniment.backup/2"), rows(), blob(), manifest()),
        (header(), rows(), blob()),
        (header(), rows(), blob(), part("manifest.json", b"{}")),
        (header(), rows(), blob(), manifest(), part("extra", b"")),
        (header(), rows(), part("rows/other_table/000000.jsonl", b"[1]\n"), blob(), manifest()),
        (header(), rows(ROWS[0], b'["d2",""]'), blob(), manifest()),
        (header(), rows(ROWS[0]), blob(), manifest()),
        (header(), rows(), manifest()),
        (header(), rows(), blob(b"Other minutes"), manifest()),
        (header(), rows(), blob(), manifest(blob_bytes=5)),
        (header(), rows(), blob(), manifest(tables={})),
        (
            header(),
            rows(ROWS[1]),
            blob(),
            manifest(tables={"documents_document": tally(ROWS[1])}),
        ),
        (header(), rows(), manifest(blobs=tally(), blob_bytes=0)),
    ],
    ids=[
        "empty",
        "no header",
        "broken header",
        "header of another form",
        "another format",
        "no manifest",
        "broken manifest",
        "unexpected part",
        "rows of an unknown table",
        "a short row",
        "a row missing",
        "a blob missing",
        "another blob",
        "another size",
        "a table that the manifest lacks",
        "a blob without a document",
        "a document without a blob",
    ],
)
def test_an_inconsistent_backup_is_damaged(tmp_path, parts):
    with pytest.raises(Damaged):
        proved(tmp_path, *parts)


@pytest.mark.parametrize("told", ["lost", "damaged"])
def test_a_blob_that_was_lost_or_damaged_before_does_not_spoil_the_backup(tmp_path, told):
    parts = {"lost": (), "damaged": (blob(b"Other minutes"),)}[told]
    seen = [blob_line("documents/d1/1", 13, hashlib.sha256(b"Other minutes").hexdigest())] if parts else []
    made = manifest(**{told: ["d1"]}, blobs=tally(*seen), blob_bytes=13 if parts else 0)
    assert getattr(proved(tmp_path, header(), rows(), *parts, made).manifest, told) == ["d1"]
