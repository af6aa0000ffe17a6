"""A file that a person sends by the page of an upload link: what the link takes, says, and keeps."""

import asyncio
import hashlib
import json
from datetime import timedelta
from hashlib import sha256

import pytest

from make import files
from make.documents import SMALL, Link, begin, blob_keys, token_of
from muniment.documents import http as link_module
from muniment.documents import operations, records, uploads
from muniment.documents.http import OUTCOME, UploadLink
from muniment.documents.models import Document, DocumentState
from muniment.documents.records import Quota
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, NotFound, Problem, TooLarge, TooMany, Unavailable

pytestmark = pytest.mark.django_db(transaction=True)
BOUNDARY = b"--frontier"


@pytest.fixture(autouse=True)
def _nothing_stays():
    yield
    for key in blob_keys():
        records.storage().delete(key)


class Page:
    """Stands for the pages, and remembers what they were asked for."""

    def __init__(self):
        self.asked = []

    async def __call__(self, scope, receive, send):
        assert (await receive())["body"] == b""
        self.asked.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a page"})


def form_of(content, name="minutes.txt"):
    head = f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/odd\r\n\r\n'
    return b"--" + BOUNDARY + b"\r\n" + head.encode() + content + b"\r\n--" + BOUNDARY + b"--\r\n"


def ask(target, body=b"", *, method="POST", accept="application/json", pages=None, hang_up=False):
    """Return status, headers and body; raise the Problem."""
    pieces, sent = [body[start : start + 50_000] for start in range(0, len(body), 50_000)] or [b""], []

    async def receive():
        if not pieces:
            assert hang_up, "nothing more is sent"
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces) or hang_up}

    async def send(message):
        sent.append(message)

    token = target if isinstance(target, str) else token_of(target)
    headers = [
        (b"content-type", b"multipart/form-data; boundary=" + BOUNDARY),
        (b"content-length", str(len(body)).encode()),
        (b"accept", accept.encode()),
    ]
    scope = {"type": "http", "method": method, "path": f"/uploads/{token}", "headers": headers, "state": {"client": ""}}
    asyncio.run(UploadLink(Link._call, pages)(scope, receive, send))
    if not sent:
        return None
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


def test_a_file_sent_by_a_form_is_kept_at_once_and_the_agent_may_complete_it_too(owner, company):
    content = files.pdf(size_bytes=2 << 20)
    upload = begin(owner, company, content, "a.pdf")
    status, headers, body = ask(upload, form_of(content, "other name.PDF"))
    assert (status, headers[b"access-control-allow-origin"]) == (201, b"*")
    told = json.loads(body)["data"]
    assert (told["filename"], told["sizeBytes"], told["state"]) == ("a.pdf", len(content), "ready")
    assert told["sha256"] == hashlib.sha256(content).hexdigest()
    document = uploads.complete_upload(owner, upload.upload_id)
    assert b"".join(records.storage().stream(document.blob_key)) == content


def test_a_browser_gets_the_page_before_and_after(owner, company):
    upload, pages = begin(owner, company), Page()
    assert ask(upload, method="GET", accept="text/html,*/*", pages=pages)[2] == b"a page"
    assert OUTCOME not in pages.asked[0]["state"]
    ask(upload, form_of(b"short"), accept="text/html", pages=pages)
    ask(upload, form_of(SMALL), accept="text/html", pages=pages)
    assert [(scope["method"], type(scope["state"][OUTCOME])) for scope in pages.asked[1:]] == [
        ("GET", BadRequest),
        ("GET", dict),
    ]
    assert all(name == b"accept" for scope in pages.asked[1:] for name, _ in scope["headers"])


def test_pages_of_any_origin_may_send_a_file(owner, company):
    status, headers, _ = ask("whatever", method="OPTIONS")
    assert (status, headers[b"access-control-allow-origin"]) == (204, b"*")
    assert b"PUT" in headers[b"access-control-allow-methods"]
    assert headers[b"access-control-allow-headers"] == b"Content-Type"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("minutes.pdf", SMALL, r"accepts a plain text file \(.txt\), not minutes.pdf"),
        ("minutes", SMALL, "not minutes"),
        ("minutes.txt", SMALL + b"x", "larger than"),
        ("minutes.txt", SMALL[:-1], "were announced"),
        ("minutes.txt", b"", "is empty"),
        ("minutes.txt", bytes(len(SMALL)), "was rejected"),
    ],
)
def test_another_file_is_refused_in_words_for_a_person_and_nothing_stays(owner, company, name, content, said):
    upload = begin(owner, company)
    with pytest.raises(Problem, match=said):
        ask(upload, form_of(content, name))
    assert blob_keys() == []
    if "rejected" not in said:
        assert uploads.find_link(token_of(upload)).filename == "minutes.txt"
        assert ask(upload, form_of(SMALL))[0] == 201


def test_a_file_with_another_digest_is_refused(owner, company):
    upload = begin(owner, company, sha256="0" * 64)
    assert uploads.find_link(token_of(upload)).has_sha256
    with pytest.raises(BadRequest, match="was announced"):
        ask(upload, form_of(SMALL))


def test_a_form_that_breaks_off_leaves_nothing(owner, company):
    upload = begin(owner, company)
    assert ask(upload, form_of(SMALL)[:-40], hang_up=True) is None
    assert ask(upload, form_of(SMALL)[:20], hang_up=True) is None
    assert blob_keys() == []
    assert ask(upload, form_of(SMALL))[0] == 201


def test_a_form_waits_its_turn_like_any_upload(owner, company, monkeypatch):
    monkeypatch.setattr(link_module, "MAX_AT_ONCE", 0)
    with pytest.raises(Unavailable):
        ask(begin(owner, company), form_of(SMALL))
    monkeypatch.setattr(link_module, "MAX_AT_ONCE", 1)
    monkeypatch.setattr(link_module, "MAX_OF_ADDRESS", 0)
    with pytest.raises(TooMany):
        ask(begin(owner, company), form_of(SMALL))


def test_a_link_says_whether_it_was_used_has_expired_or_never_was(owner, company):
    used, expired, swept = begin(owner, company), begin(owner, company), begin(owner, company)
    ask(used, form_of(SMALL))
    Document.objects.filter(pk=expired.upload_id).update(expires_at=now() - timedelta(seconds=1))
    Document.objects.filter(pk=swept.upload_id).update(state=DocumentState.EXPIRED)
    for target, said in ((used, "was used"), (expired, "has expired"), (swept, "has expired"), ("none", "not valid")):
        with pytest.raises(NotFound, match=said):
            uploads.find_link(target if isinstance(target, str) else token_of(target))
    for target in (used, expired, "none"):
        with pytest.raises(NotFound, match="invalid, used or expired"):
            ask(target, form_of(SMALL))


def test_a_link_for_a_file_of_unknown_size_takes_any_up_to_the_limit(owner, company, settings_with):
    settings_with(document_max_mb=1, document_quota_mb=2)
    upload = uploads.begin_upload(owner, company, "a.txt", None, base_url="https://registry.example")
    assert upload.to_wire()["maxBytes"] == 1 << 20
    with pytest.raises(TooLarge):
        ask(upload, form_of(b"x" * ((1 << 20) + 1)))
    with pytest.raises(BadRequest, match="empty"):
        ask(upload, form_of(b""))
    assert json.loads(ask(upload, form_of(SMALL))[2])["data"]["sizeBytes"] == len(SMALL)
    assert records.quota_of(owner.account_id) == Quota(len(SMALL), 0, 2 << 20)


def test_a_link_for_a_file_of_unknown_size_works_with_curl_too_and_takes_what_is_left(owner, company, settings_with):
    settings_with(document_max_mb=1, document_quota_mb=1)
    content = b"x" * 1000
    first = uploads.begin_upload(owner, company, "a.txt", None, base_url="https://registry.example")
    assert records.quota_of(owner.account_id) == Quota(0, records.RESERVED_BYTES, 1 << 20)
    Link().put(first, content)
    uploads.complete_upload(owner, first.upload_id)
    assert records.quota_of(owner.account_id) == Quota(1000, 0, 1 << 20)
    second = uploads.begin_upload(owner, company, "b.txt", None, base_url="https://registry.example")
    assert second.max_bytes == (1 << 20) - 1000


@pytest.mark.requirement("documents.limits")
def test_ten_links_for_files_of_unknown_size_leave_room_for_others(owner, company, settings_with):
    settings_with(document_max_mb=1, document_quota_mb=1)
    links = [
        uploads.begin_upload(owner, company, f"{n}.txt", None, base_url="https://registry.example") for n in range(10)
    ]
    assert uploads.upload_document(owner, company, "small.txt", b"ok").size_bytes == 2
    assert records.quota_of(owner.account_id) == Quota(2, 10 * records.RESERVED_BYTES, 1 << 20)
    Document.objects.filter(pk=links[0].upload_id).update(expires_at=now() - timedelta(seconds=1))
    operations.delete_document(owner, links[1].upload_id)
    assert records.quota_of(owner.account_id).reserved_bytes == 8 * records.RESERVED_BYTES, "ended and deleted links"
    with pytest.raises(NotFound, match="was deleted"):
        uploads.find_link(token_of(links[1]))
    with pytest.raises(NotFound, match="invalid, used or expired"):
        Link().put(links[1], SMALL)


def test_a_file_of_unknown_size_is_counted_when_it_has_arrived(owner, company, settings_with):
    settings_with(document_max_mb=1, document_quota_mb=1)
    half = b"x" * (600 << 10)
    first, second = (
        uploads.begin_upload(owner, company, f"{n}.txt", None, base_url="https://registry.example") for n in "ab"
    )
    transfers = [uploads.claim_link(token_of(each), None, "") for each in (first, second)]
    for transfer in transfers:
        records.storage().write(transfer.key, half)
    uploads.record(transfers[0], sha256(half).hexdigest(), len(half))
    with pytest.raises(TooLarge, match="bytes are used"):
        uploads.record(transfers[1], sha256(half).hexdigest(), len(half))
    assert blob_keys() == [transfers[0].key]
    assert Link().put(second, SMALL)["sizeBytes"] == len(SMALL), "the link can be used again"


def test_a_refusal_says_that_open_links_fill_the_storage_and_what_makes_room(owner, company, settings_with):
    settings_with(document_quota_mb=1)
    begin(owner, company, b"x" * (1 << 20))
    with pytest.raises(TooLarge, match="0 of 1,048,576 bytes are used, 1,048,576 are reserved") as refused:
        uploads.upload_document(owner, company, "small.txt", b"ok")
    assert "Delete documents" not in str(refused.value.hint)
    assert "15 minutes" in str(refused.value.hint)
