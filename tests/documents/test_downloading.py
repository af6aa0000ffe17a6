"""Download links: a minute long, for the account that asked, while it owns the document."""

import asyncio
import io
import zipfile

import pytest
from django.core import signing
from django.db import connections

from make import registry as make
from make.documents import SMALL, begin, send, uploaded
from muniment.accounts import personal_data
from muniment.accounts.models import Account
from muniment.documents import downloading, operations, records
from muniment.documents.http import DownloadLink
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import MethodNotAllowed, NotFound, Unavailable
from muniment.registry.models import Ownership

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def document(owner):
    return uploaded(owner, make.draft(owner).slug, name='Süd "1".txt')


def token_of(path):
    return path.removeprefix("/downloads/")


def fetch(path, method="GET"):
    """Ask the link's application; return its messages."""

    async def call(operation, *args):
        def run():
            try:
                return operation(*args)
            finally:
                connections.close_all()

        return await asyncio.to_thread(run)

    async def ask():
        sent = []

        async def send(message):
            sent.append(message)

        await DownloadLink(call)({"type": "http", "method": method, "path": path}, None, send)
        return sent

    return asyncio.run(ask())


def test_a_link_leads_to_the_file_as_an_attachment_that_no_page_may_use(owner, document):
    path = downloading.create_link(owner, document.pk)
    start, *pieces = fetch(path)
    headers = dict(start["headers"])
    assert b"".join(piece["body"] for piece in pieces) == SMALL
    assert (
        headers[b"content-disposition"]
        == b"attachment; filename=\"S_d _1_.txt\"; filename*=UTF-8''S%C3%BCd%20%221%22.txt"
    )
    assert (headers[b"content-length"], headers[b"cache-control"]) == (b"%d" % len(SMALL), b"private, no-store")
    assert (headers[b"x-content-type-options"], headers[b"referrer-policy"]) == (b"nosniff", b"no-referrer")
    assert b"sandbox" in headers[b"content-security-policy"]
    assert [piece["body"] for piece in fetch(path, "HEAD")[1:]] == [b""]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_a_link_is_only_read(owner, document, method):
    with pytest.raises(MethodNotAllowed) as refused:
        fetch(downloading.create_link(owner, document.pk), method)
    assert refused.value.headers == {"Allow": "GET, HEAD"}


@pytest.mark.parametrize("who", ["visitor", "another owner", "reviewer"])
def test_a_stranger_has_no_link(document, who):
    actor = {"visitor": lambda: VISITOR, "another owner": make.owner, "reviewer": make.reviewer}[who]()
    with pytest.raises(NotFound):
        downloading.create_link(actor, document.pk)


@pytest.mark.parametrize("change", ["closed account", "no owner any more", "deleted"])
def test_a_link_ends_with_what_it_was_made_for(owner, document, change):
    token = token_of(downloading.create_link(owner, document.pk))
    assert downloading.find_download(token).filename == document.filename
    if change == "closed account":
        Account.objects.update(is_active=False)
    elif change == "deleted":
        operations.delete_document(owner, document.pk)
    else:
        Ownership.objects.all().delete()
    with pytest.raises(NotFound):
        downloading.find_download(token)


def test_a_link_that_was_made_with_another_key_or_for_another_use_is_refused(owner, document):
    for forged in (
        "",
        "x",
        signing.dumps([document.pk, owner.account_id]),
        signing.dumps([document.pk, owner.account_id], key="another", salt=downloading._SALT),
    ):
        with pytest.raises(NotFound):
            downloading.find_download(forged)


def test_a_document_that_is_not_ready_has_no_link(owner):
    upload = begin(owner, make.draft(owner).slug)
    send(upload)
    with pytest.raises(NotFound):
        downloading.create_link(owner, upload.upload_id)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda content: b"", "missing"),
        (lambda content: content[:-1], f"has {len(SMALL) - 1:,} bytes instead of {len(SMALL):,}"),
        (lambda content: content[:-1] + bytes([content[-1] ^ 1]), "damaged"),
    ],
    ids=["missing", "too short", "a flipped bit"],
)
def test_a_document_whose_file_is_not_the_upload_is_never_sent(owner, document, caplog, change, reason):
    file = records.storage().folder / document.blob_key
    file.write_bytes(changed) if (changed := change(SMALL)) else file.unlink()
    path = downloading.create_link(owner, document.pk)
    with pytest.raises(Unavailable) as refused:
        fetch(path)
    assert reason in refused.value.message
    assert "a document cannot be downloaded" in caplog.text
    with zipfile.ZipFile(io.BytesIO(archive(owner))) as found:
        names = [name for name in found.namelist() if name.startswith("documents/")]
        assert names == [f"documents/{document.pk}-missing.json"]
        assert reason.encode() in found.read(names[0])
    file.write_bytes(SMALL)
    assert b"".join(piece["body"] for piece in fetch(path)[1:]) == SMALL


def archive(owner):
    """Return the archive of the account's personal data."""
    out = io.BytesIO()
    personal_data.write_archive(Account.objects.get(pk=owner.account_id), out)
    return out.getvalue()


def test_a_file_that_goes_between_its_check_and_its_first_piece_is_unavailable(owner, document, caplog, monkeypatch):
    monkeypatch.setattr(downloading, "require_whole", lambda _: records.storage().delete(document.blob_key))
    with pytest.raises(Unavailable):
        fetch(downloading.create_link(owner, document.pk))
    assert "the blob of a document is missing" in caplog.text
