"""The page of documents: files in by a plain form or the script's calls, out as attachments, gone and back."""

import asyncio
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from make import files
from make import registry as make
from make.accounts import account, signed_in
from make.documents import SMALL, Link, begin, blob_keys, send, uploaded
from muniment.documents import downloading, records, uploads
from muniment.documents.http import FileLinks
from muniment.documents.models import Document, DocumentState
from muniment.kernel.ids import now
from muniment.kernel.problems import MethodNotAllowed, NotFound
from muniment.registry.models import Company, Ownership

pytestmark = pytest.mark.django_db(transaction=True)
HOME = "/manage/documents"


@pytest.fixture(autouse=True)
def _nothing_stays():
    _empty()
    yield
    _empty()


def _empty():
    for key in blob_keys():
        records.storage().delete(key)


@pytest.fixture
def who():
    return account("owner@harbour.example")


@pytest.fixture
def owner(who):
    return who.actor("web")


@pytest.fixture
def slug(owner):
    return make.draft(owner).slug


@pytest.fixture
def page(who):
    return signed_in(who)


@pytest.fixture
def stranger():
    return signed_in(account("stranger@harbour.example"))


def fetch(path, method="GET"):
    """Ask the application that gives files as the server asks it."""
    sent = []

    async def keep(message):
        sent.append(message)

    scope = {"method": method, "path": path, "headers": []}
    asyncio.run(FileLinks(Link._call)(scope, None, keep))
    return dict(sent[0]["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.requirement("web.large-files")
def test_a_plain_form_accepts_several_files_and_reports_each(page, slug):
    content = files.pdf(size_bytes=3 << 20)
    answer = page.post(
        HOME,
        {
            "company": slug,
            "files": [
                SimpleUploadedFile("a.pdf", content, "application/pdf"),
                SimpleUploadedFile("b.txt", SMALL, "text/plain"),
                SimpleUploadedFile("c.pdf", b"<html>", "application/pdf"),
            ],
        },
        follow=True,
    )
    text = answer.content.decode()
    assert "a.pdf uploaded." in text
    assert "b.txt uploaded." in text
    assert "a web page" in text
    assert {row.filename for row in Document.objects.all()} == {"a.pdf", "b.txt"}
    assert len(blob_keys()) == 2


@pytest.mark.requirement("web.large-files")
def test_the_script_gets_a_link_sends_the_file_and_completes(page, slug):
    content = files.pdf(size_bytes=2 << 20)
    given = page.post(f"{HOME}/begin", {"company": slug, "filename": "a.pdf", "size": len(content), "type": ""}).json()
    upload = given["data"]
    assert upload["headers"] == {"Content-Type": "application/pdf"}
    Link().put(upload["url"].rpartition("/")[2], content, content_type="application/pdf")
    address = f"{HOME}/{upload['uploadId']}/complete"
    assert page.post(address, headers={"accept": "application/json"}).json()["data"]["state"] == "ready"
    assert "a.pdf uploaded." in page.post(address, follow=True).content.decode()


def test_the_scripts_calls_refuse_in_json(page, slug):
    for fields, status in (
        ({"company": slug, "filename": "a.exe", "size": 1}, 400),
        ({"company": slug, "filename": "a.pdf", "size": "x"}, 400),
        ({"company": slug, "filename": "a.pdf", "size": 51 << 20}, 413),
        ({"company": "elsewhere", "filename": "a.pdf", "size": 1}, 404),
    ):
        answer = page.post(f"{HOME}/begin", fields)
        assert (answer.status_code, set(answer.json())) == (status, {"error"})


def test_the_page_shows_states_quota_and_what_can_be_done(page, owner, slug):
    uploaded(owner, slug, name="ready.txt")
    pending = begin(owner, slug, name="pending.txt")
    arrived = begin(owner, slug, name="arrived.txt")
    send(arrived)
    text = page.get(HOME).content.decode()
    shown = ("ready.txt", "Waiting for the file", "Complete upload of arrived.txt", "of 500\xa0MB", "Extracting text")
    for words in shown:
        assert words in text, words
    assert f'data-document="{pending.upload_id}" data-state="pending"' in text
    assert "<script>" not in text
    assert "onclick" not in text


def test_names_that_people_wrote_are_escaped(page, owner, slug):
    uploaded(owner, slug, name="<b>&'\".txt")
    assert "&lt;b&gt;&amp;&#x27;&quot;.txt" in page.get(HOME).content.decode()


def test_deleting_and_taking_it_back(page, owner, slug):
    document = uploaded(owner, slug)
    text = page.post(f"{HOME}/{document.pk}/delete", follow=True).content.decode()
    assert f"{HOME}/{document.pk}/restore" in text
    assert page.get(f"{HOME}/{document.pk}/file").status_code == 404
    page.post(f"{HOME}/{document.pk}/restore")
    assert page.get(f"{HOME}/{document.pk}/file").status_code == 302


@pytest.mark.requirement("documents.served")
@pytest.mark.parametrize("name", ["דוח 報告 'x' \"y\".pdf", "plain.pdf"])
def test_a_file_comes_down_as_an_attachment_that_no_browser_shows_and_no_proxy_keeps(page, owner, slug, name):
    content = files.pdf(size_bytes=3 << 20)
    document = uploaded(owner, slug, content, name)
    lead = page.get(f"{HOME}/{document.pk}/file")
    assert (lead.status_code, lead["Cache-Control"]) == (302, "private, no-store")
    headers, body = fetch(lead["Location"])
    assert body == content
    assert headers[b"content-type"] == b"application/pdf"
    assert headers[b"content-length"] == b"%d" % len(content)
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"content-security-policy"] == b"sandbox; default-src 'none'"
    assert headers[b"cache-control"] == b"private, no-store"
    shown = headers[b"content-disposition"].decode()
    assert shown.startswith("attachment; filename=")
    assert "\r" not in shown
    assert shown.isascii()
    assert fetch(lead["Location"], "HEAD") == (headers, b"")


@pytest.mark.requirement("documents.served")
def test_a_stranger_and_a_visitor_reach_nothing(stranger, owner, slug):
    document, pending = uploaded(owner, slug), begin(owner, slug)
    addresses = [f"{HOME}/{document.pk}/{act}" for act in ("complete", "delete", "restore")]
    for address in [*addresses, f"{HOME}/{pending.upload_id}/complete"]:
        assert stranger.post(address).status_code == 404
    assert stranger.get(f"{HOME}/{document.pk}/file").status_code == 404
    assert stranger.post(HOME, {"company": slug, "files": SimpleUploadedFile("a.txt", SMALL)}).status_code == 404
    assert stranger.post(f"{HOME}/begin", {"company": slug, "filename": "a.txt", "size": 1}).status_code == 404
    assert "minutes.txt" not in stranger.get(HOME).content.decode()
    for address in (HOME, f"{HOME}/{document.pk}/file"):
        assert "/accounts/login" in Client().get(address)["Location"]
    document.refresh_from_db()
    assert (document.deleted_at, document.state) == (None, DocumentState.READY)


def test_a_download_link_lives_a_minute_and_dies_with_the_ownership(page, owner, who, slug, monkeypatch):
    document = uploaded(owner, slug)
    path = downloading.create_link(owner, document.pk)
    token = path.removeprefix("/downloads/")
    assert downloading.find_download(token).size_bytes == len(SMALL)
    with monkeypatch.context() as patched:
        patched.setattr(downloading, "LINK_S", timedelta(seconds=-1))
        with pytest.raises(NotFound):
            downloading.find_download(token)
    for forged in ("", "x", token[:-1] + ("a" if token[-1] != "a" else "b")):
        with pytest.raises(NotFound):
            downloading.find_download(forged)
    who.ownerships.all().delete()
    with pytest.raises(NotFound):
        fetch(path)
    with pytest.raises(MethodNotAllowed):
        fetch(path, "POST")


def test_only_what_is_ready_can_be_fetched(owner, slug):
    arrived = begin(owner, slug)
    send(arrived)
    with pytest.raises(NotFound):
        downloading.create_link(owner, arrived.upload_id)


def test_an_expired_upload_is_not_shown(page, owner, slug):
    upload = begin(owner, slug, name="gone.txt")
    Document.objects.filter(pk=upload.upload_id).update(state=DocumentState.EXPIRED, expires_at=now())
    assert "gone.txt" not in page.get(HOME).content.decode()


def test_a_file_of_unknown_size_that_is_awaited_has_no_size_yet(page, owner, slug):
    uploads.begin_upload(owner, slug, "unknown.txt", None, base_url="https://harbour.example")
    uploads.begin_upload(owner, slug, "known.txt", 2_000, base_url="https://harbour.example")
    rows = page.get(HOME).content.decode().partition("<tbody>")[2].split("</tr>")
    sizes = {("unknown.txt" in row, "Unknown" in row) for row in rows if "Waiting for the file" in row}
    assert sizes == {(True, True), (False, False)}


def test_without_a_listing_the_page_says_what_to_do_first(stranger):
    assert "Create a listing first" in stranger.get(HOME).content.decode()


def test_a_file_that_the_scanner_never_judged_can_be_scanned_again(page, owner, slug):
    document = uploaded(owner, slug)
    Document.objects.filter(pk=document.pk).update(
        state=DocumentState.UPLOADED, text_state="none", reason="The virus scanner gave no verdict."
    )
    shown = page.get(HOME).content.decode()
    assert "The virus scanner gave no verdict." in shown
    assert "Scan again</button>" in shown
    again = page.post(f"{HOME}/{document.pk}/complete", follow=True).content.decode()
    assert "minutes.txt uploaded." in again
    assert "gave no verdict" not in again


def test_only_the_account_that_sent_a_file_can_finish_it(page, owner, slug):
    other = account("other@harbour.example")
    Ownership.objects.create(account=other, company=Company.objects.get(slug=slug))
    document = uploaded(owner, slug)
    Document.objects.filter(pk=document.pk).update(state=DocumentState.UPLOADED, text_state="none")
    theirs = signed_in(other)
    assert "Complete upload</button>" in page.get(HOME).content.decode()
    shown = theirs.get(HOME).content.decode()
    assert document.filename in shown
    assert "Complete upload" not in shown
    assert "Delete</button>" in shown
    assert theirs.post(f"{HOME}/{document.pk}/complete", follow=True).status_code == 404


def test_a_file_that_is_being_scanned_offers_nothing_to_finish(page, owner, slug):
    document = uploaded(owner, slug)
    Document.objects.filter(pk=document.pk).update(state=DocumentState.UPLOADED)
    shown = page.get(HOME).content.decode()
    assert "Scanning for viruses" in shown
    assert "Complete upload" not in shown


def test_every_deleted_document_can_be_reached_and_restored(page, owner, slug):
    for n in range(27):
        made = Document.objects.create(
            company=Company.objects.get(slug=slug),
            account_id=owner.account_id,
            via="web",
            filename=f"paper-{n}.txt",
            content_type="text/plain",
            size_bytes=1,
            state=DocumentState.READY,
            blob_key=f"documents/none/{n}",
            created_at=now() + timedelta(seconds=n),
            deleted_at=now(),
        )
    first = page.get(HOME).content.decode()
    assert made.filename in first
    assert "paper-1.txt" not in first
    assert 'href="/manage/documents?deleted=2"' in first
    last = page.get(f"{HOME}?deleted=2").content.decode()
    assert "paper-0.txt" in last
    assert "paper-1.txt" in last
