"""Uploads: announced, sent to a link or in one call, and completed."""

import hashlib
import re
import shlex
import subprocess
from datetime import timedelta

import pytest

from make import files
from make.documents import BASE, SMALL, begin, do_jobs, send, token_of, uploaded
from make.documents import blob_keys as keys
from muniment.documents import cleanup, operations, records, uploads
from muniment.documents.models import Document, DocumentState, TextState
from muniment.documents.storage import Storage
from muniment.jobs.models import Job
from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge, TooMany
from muniment.kernel.tokens import token_digest

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.requirement("upload.three-steps")
def test_a_file_is_announced_sent_and_completed(owner, company):
    content = files.pdf("The board meets.", "Twice a year.")
    sha256 = hashlib.sha256(content).hexdigest()
    upload = begin(owner, company, content, "report.pdf", sha256=sha256.upper())
    assert upload.content_type == files.PDF
    send(upload, content, "application/pdf")
    document = uploads.complete_upload(owner, upload.upload_id)
    assert (document.state, document.sha256, document.text_state) == (DocumentState.READY, sha256, TextState.WAITING)
    assert uploads.complete_upload(owner, upload.upload_id).pk == document.pk
    assert Job.objects.filter(kind="documents.completed").count() == 1
    do_jobs()
    document.refresh_from_db()
    assert document.text_state == TextState.EXTRACTED
    assert operations.text_of(document) == [(1, "The board meets."), (2, "Twice a year.")]
    assert b"".join(records.storage().stream(document.blob_key)) == content
    wire = records.to_wire(document)
    assert list(wire)[:8] == [
        *("documentId", "companySlug", "filename", "contentType", "sizeBytes", "sha256", "state", "createdAt")
    ]


@pytest.mark.requirement("documents.link")
def test_the_link_is_told_once_and_only_its_hash_is_kept(owner, company):
    upload = begin(owner, company)
    row = Document.objects.get(pk=upload.upload_id)
    assert token_of(upload) not in str(row.__dict__)
    assert row.token_hash == token_digest(token_of(upload))
    assert timedelta(minutes=14) < upload.expires_at - now() <= timedelta(minutes=15)
    assert upload.to_wire()["headers"] == {"Content-Type": "text/plain"}


def by_cmd(line):
    """Read a line as cmd.exe and a program's start do: %NAME% is replaced, and double quotes hold words together."""
    line = re.sub(r"%[^%]+%", "replaced", line)
    return [each.replace('"', "") for each in re.findall(r'(?:[^ "]|"[^"]*")+', line)]


def by_powershell(line):
    """Read a line as PowerShell does: curved quotes are quotes, and $ and ` have a meaning within them."""
    line = re.sub("[\u201c\u201d\u201e]", '"', line)
    line = re.sub(r"`(.)", r"\1", re.sub(r"\$\w+", "replaced", line))
    return [each.replace('"', "") for each in re.findall(r'(?:[^ "]|"[^"]*")+', line)]


def by_interactive_bash(line):
    """Read a line as bash does at its prompt, with a history to expand."""
    script = f'history -s "rm -rf x"; set -o history -o histexpand\nprintf "%s\\\\n" {line}'
    ran = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    "name", ["big.txt", "-.txt", "報告 書.txt", "a;rm -rf x.txt", "it's & <b> | ^ (1), 2.txt", "#~*?.txt"]
)
def test_the_command_is_the_same_line_in_every_shell(owner, company, name):
    upload = begin(owner, company, name=name)
    meant = ["curl", "-T", f"./{name}", upload.url]
    assert upload.command == f'curl -T "./{name}" "{upload.url}"'
    assert shlex.split(upload.command) == by_cmd(upload.command) == by_powershell(upload.command) == meant
    assert by_interactive_bash(upload.command) == meant


@pytest.mark.parametrize("character", [*'$`"!%{}[]', "\u201c", "\u201d", "\u201e"])
def test_a_name_that_shells_read_differently_is_left_out_of_the_command(owner, company, character):
    upload = begin(owner, company, name=f"a{character}HOME{character}b.txt")
    assert upload.command == f'curl -T "{records.PLACEHOLDER}" "{upload.url}"'


def test_completing_before_anything_was_sent_says_what_to_do(owner, company):
    upload = begin(owner, company)
    with pytest.raises(Conflict, match="No file has been sent"):
        uploads.complete_upload(owner, upload.upload_id)


@pytest.mark.parametrize(
    ("content", "name", "reason"),
    [
        (files.docx(), "a.pdf", "declared as PDF"),
        (b"<html></html>", "a.pdf", "a web page"),
        (files.bomb(), "a.docx", "zip bomb"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_rejected_with_a_reason_and_nothing_is_kept(
    owner, company, content, name, reason
):
    upload = begin(owner, company, content, name)
    send(upload, content)
    with pytest.raises(BadRequest, match=reason):
        uploads.complete_upload(owner, upload.upload_id, dry_run=True)
    assert len(keys()) == 1
    for _ in range(2):
        with pytest.raises(BadRequest, match=reason):
            uploads.complete_upload(owner, upload.upload_id)
    assert keys() == []
    document = operations.list_documents(owner, company).items[0]
    assert document.state == DocumentState.REJECTED
    assert reason in document.reason
    assert operations.quota(owner).used_bytes == 0


def test_an_encrypted_pdf_is_kept_and_its_text_is_not_extractable(owner, company):
    document = uploaded(owner, company, files.encrypted_pdf(), "a.pdf")
    do_jobs()
    document.refresh_from_db()
    assert (document.state, document.text_state) == (DocumentState.READY, TextState.NOT_EXTRACTABLE)
    assert records.to_wire(document)["note"] == "It is encrypted."


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("name", "size", "more", "reason"),
    [
        ("../../x.pdf", 1, {}, "slash"),
        ("a\r\nb.pdf", 1, {}, "U\\+000D"),
        ("a" * 201 + ".pdf", 1, {}, "the limit is 200"),
        ("a.exe", 1, {}, "not accepted"),
        ("a.pdf", 1, {"content_type": "text/html"}, "not accepted"),
        ("a.html", 1, {"content_type": "application/pdf"}, "needs the extension .pdf"),
        ("a.pdf", 0, {}, "empty"),
        ("a.pdf", (50 << 20) + 1, {}, "the limit is 52,428,800"),
        ("a.pdf", 1, {"sha256": "abc"}, "64 hexadecimal"),
    ],
)
def test_a_file_that_cannot_be_accepted_is_refused_before_it_is_sent(owner, company, name, size, more, reason):  # noqa: PLR0917 - by case
    with pytest.raises((BadRequest, TooLarge), match=reason) as refused:
        uploads.begin_upload(owner, company, name, size, base_url=BASE, **more)
    assert refused.value.hint
    assert not Document.objects.exists()


def test_right_to_left_and_very_long_names_are_kept_as_they_are(owner, company):
    for name in ("דוח שנתי.txt", "a" * 196 + ".txt"):
        assert uploaded(owner, company, name=name).filename == name


@pytest.mark.requirement("documents.small")
def test_a_small_file_goes_in_one_call_up_to_8192_bytes(owner, company):
    document = uploads.upload_document(owner, company, "a.txt", b"x" * 8192)
    assert (document.state, document.size_bytes) == (DocumentState.READY, 8192)
    with pytest.raises(TooLarge) as refused:
        uploads.upload_document(owner, company, "a.txt", b"x" * 8193)
    assert "create_document_upload" in refused.value.hint
    assert Document.objects.count() == 1


def test_a_small_file_that_is_rejected_leaves_nothing_and_rejected_uploads_stay(owner, company):
    upload = begin(owner, company, b"no pdf", "b.pdf")
    send(upload, b"no pdf")
    with pytest.raises(BadRequest, match="was rejected"):
        uploads.complete_upload(owner, upload.upload_id)
    with pytest.raises(BadRequest, match="was rejected"):
        uploads.upload_document(owner, company, "a.pdf", b"no pdf")
    assert [document.pk for document in Document.objects.all()] == [upload.upload_id]
    assert keys() == []


def test_a_file_of_a_form_stays_alive_while_a_slow_store_takes_it(owner, company, monkeypatch):
    monkeypatch.setattr(records, "ALIVE_EVERY_S", 0)
    content = b"Minutes of the harbour board.\n" * 1000
    alive = []

    def slow():
        for start in range(0, len(content), 10_000):
            yield content[start : start + 10_000]
            alive.append(Document.objects.get().receiving_until > now())
            Document.objects.update(receiving_until=now())  # as two minutes without a sign would leave it

    kept = uploads.store_document(owner, company, "minutes.txt", slow(), len(content))
    assert kept.state == DocumentState.READY
    assert alive == [True, True, True]


def test_a_large_form_upload_is_stored_in_pieces_without_renewing_its_lease(owner, company, monkeypatch):
    write, given = Storage.write, []

    def noted(storage, key, content):
        given.append(type(content))
        write(storage, key, content)

    monkeypatch.setattr(Storage, "write", noted)
    monkeypatch.setattr(uploads, "renew_lease", None)
    large = SMALL * 1000
    for content in (SMALL, large):
        kept = uploads.store_document(owner, company, "minutes.txt", iter([content[:9], content[9:]]), len(content))
        assert (kept.state, kept.size_bytes) == (DocumentState.READY, len(content))
    assert given[0] is bytes
    assert given[1] is not bytes


def test_a_file_of_a_form_that_arrives_after_its_time_is_not_kept(owner, company, monkeypatch):
    write = Storage.write

    def slow(storage, key, content):
        write(storage, key, content)
        cleanup.sweep(at=now() + timedelta(hours=25))

    monkeypatch.setattr(Storage, "write", slow)
    with pytest.raises(NotFound):
        uploads.store_document(owner, company, "minutes.txt", iter([SMALL]), len(SMALL))
    assert keys() == []
    assert operations.list_documents(owner).items == []


def test_a_used_link_an_expired_link_and_an_invented_one_are_all_not_found(owner, company):
    used, expired = begin(owner, company), begin(owner, company)
    send(used)
    Document.objects.filter(pk=expired.upload_id).update(expires_at=now() - timedelta(seconds=1))
    for token in (token_of(used), token_of(expired), "invented", ""):
        with pytest.raises(NotFound):
            uploads.claim_link(token, len(SMALL), "")
    with pytest.raises(NotFound):
        uploads.complete_upload(owner, expired.upload_id)
    assert uploads.complete_upload(owner, used.upload_id).state == DocumentState.READY


def test_a_link_takes_only_the_size_and_type_that_were_announced(owner, company):
    token = token_of(begin(owner, company))
    with pytest.raises(TooLarge):
        uploads.claim_link(token, len(SMALL) + 1, "")
    with pytest.raises(BadRequest, match="were announced"):
        uploads.claim_link(token, len(SMALL) - 1, "")
    with pytest.raises(BadRequest, match="accepts text/plain"):
        uploads.claim_link(token, len(SMALL), "text/html")
    assert uploads.claim_link(token, None, "text/plain; charset=utf-8").attempt == 1


def test_an_upload_is_a_change_of_the_account_that_made_its_link(owner, company, monkeypatch):
    limits = Fairness(writes=60)
    monkeypatch.setattr(fairness, "_current", limits)
    token = token_of(begin(owner, company))
    limits.writes.charge(str(owner.account_id), 119)
    assert uploads.claim_link(token, len(SMALL), "").attempt == 1
    with pytest.raises(TooMany, match="Too many changes"):
        uploads.claim_link(token, len(SMALL), "")
    assert Document.objects.get().attempt == 1
    limits.writes.charge(str(owner.account_id), -1)
    assert uploads.claim_link(token, len(SMALL), "").attempt == 2


def test_of_two_transfers_the_newer_has_the_link_and_one_is_recorded(owner, company):
    upload = begin(owner, company)
    first = uploads.claim_link(token_of(upload), None, "")
    second = uploads.claim_link(token_of(upload), None, "")
    records.storage().write(first.key, SMALL)
    assert not uploads.renew_lease(first.document_id, first.attempt)
    with pytest.raises(Conflict, match="newer upload"):
        uploads.record(first, "0" * 64, len(SMALL))
    assert keys() == []
    records.storage().write(second.key, SMALL)
    uploads.record(second, hashlib.sha256(SMALL).hexdigest(), len(SMALL))
    assert keys() == [second.key]
