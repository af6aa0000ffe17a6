"""Text out of documents, and the scanner before it: what each says when it can or cannot."""

import io
import socketserver
import threading
from datetime import timedelta

import obstore
import pytest

from make.documents import blob_keys as keys
from make.documents import do_jobs, uploaded
from muniment.documents import cleanup, operations, records, tasks, uploads
from muniment.documents.content import scanning
from muniment.documents.content.scanning import ScannerAway, ScannerUnavailable
from muniment.documents.models import Document, DocumentState, TextState
from muniment.documents.storage import Storage
from muniment.jobs import queue
from muniment.jobs.handlers import Postponed
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest
from services.ports import free_port

pytestmark = pytest.mark.django_db(transaction=True)


class Clamd:
    """Speaks clamd's INSTREAM on a loopback port and finds EICAR; a limited one refuses every other file."""

    def __init__(self, *, limited=False):
        class Session(socketserver.StreamRequestHandler):
            def handle(self):
                command = self.rfile.read(5)
                if command == b"zPING":
                    self.wfile.write(b"PONG\0")
                    return
                assert command + self.rfile.read(5) == b"zINSTREAM\0"
                content = io.BytesIO()
                while size := int.from_bytes(self.rfile.read(4), "big"):
                    content.write(self.rfile.read(size))
                if b"EICAR" in content.getvalue():
                    self.wfile.write(b"stream: Eicar-Test FOUND\0")
                else:
                    self.wfile.write(b"INSTREAM size limit exceeded. ERROR\0" if limited else b"stream: OK\0")

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)


def test_with_a_scanner_a_file_is_ready_only_once_it_is_clean(owner, company, settings_with):
    clamd = Clamd()
    settings_with(clamd=clamd.address)
    clean = uploaded(owner, company)
    bad = uploaded(owner, company, b"EICAR test file")
    assert (clean.state, bad.state) == (DocumentState.UPLOADED, DocumentState.UPLOADED)
    assert uploads.complete_upload(owner, clean.pk).state == DocumentState.UPLOADED
    do_jobs()
    clamd.close()
    clean.refresh_from_db()
    bad.refresh_from_db()
    assert (clean.state, clean.text_state) == (DocumentState.READY, TextState.EXTRACTED)
    assert (bad.state, bad.reason) == (DocumentState.REJECTED, "The virus scanner found Eicar-Test.")
    assert keys() == [clean.blob_key]


def test_a_scanner_that_is_away_lets_the_file_wait(owner, company, settings_with):
    settings_with(clamd=f"127.0.0.1:{free_port()}")
    document = uploaded(owner, company)
    other = uploaded(owner, company)
    for _ in range(12):
        run = queue.claim("tests")
        with pytest.raises(Postponed) as postponed:
            run.handler.work(run)
        run.postponed(postponed.value)
        waits = Job.objects.filter(state="queued").values_list("run_at", flat=True)
        assert [2 < (at - queue.clock()).total_seconds() < 5 for at in waits] == [True, True], "one attempt at a time"
        Job.objects.filter(pk=run.id).update(run_at=queue.clock())
    clamd = Clamd()
    settings_with(clamd=clamd.address)
    Job.objects.update(run_at=queue.clock())
    do_jobs()
    clamd.close()
    for each in (document, other):
        each.refresh_from_db()
        assert (each.state, each.text_state) == (DocumentState.READY, TextState.EXTRACTED)


def test_a_store_that_is_away_lets_the_file_wait(owner, company, monkeypatch):
    document = uploaded(owner, company)
    run = queue.claim("tests")

    def away(*_):
        raise obstore.exceptions.GenericError("error sending request")

    monkeypatch.setattr(Storage, "local", away)
    with pytest.raises(Postponed, match="error sending request") as postponed:
        run.handler.work(run)
    assert postponed.value.is_excused
    document.refresh_from_db()
    assert document.text_state == TextState.WAITING


def test_a_file_that_the_scanner_refuses_to_look_at_is_not_ready(owner, company, settings_with):
    clamd = Clamd(limited=True)
    settings_with(clamd=clamd.address)
    document = uploaded(owner, company)
    run = queue.claim("tests")
    with pytest.raises(ScannerUnavailable):
        run.handler.work(run)
    clamd.close()
    document.refresh_from_db()
    assert document.state == DocumentState.UPLOADED


def unscanned(owner, company, settings_with):
    """Have a document whose scanner was away for as long as the queue tries."""
    settings_with(clamd=f"127.0.0.1:{free_port()}")
    document = uploaded(owner, company)
    Document.objects.update(created_at=now() - tasks.LONGEST_OUTAGE)
    tried = 0
    while run := queue.claim("tests"):
        tried += 1
        with pytest.raises(ScannerAway):
            run.handler.work(run)
        run.failed("away", for_good=False)
        Job.objects.filter(state="queued").update(run_at=now())
    assert tried == 8
    document.refresh_from_db()
    return document


def test_a_scanner_that_ends_the_connection_without_an_answer_is_away(settings_with):
    silent = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)  # handles by closing
    thread = threading.Thread(target=silent.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    settings_with(clamd=f"127.0.0.1:{silent.server_address[1]}")
    try:
        with pytest.raises(ScannerAway):
            scanning.scan([b"a file"])
    finally:
        silent.shutdown()
        silent.server_close()
        thread.join(60)


def test_a_scanner_has_one_deadline_for_all_it_is_asked(settings_with, monkeypatch):
    scanner = Clamd()
    settings_with(clamd=scanner.address)
    monkeypatch.setattr(scanning, "ANSWER_S", 0.0)
    try:
        with pytest.raises(ScannerAway, match="it took too long"):
            scanning.scan([b"a file"])
    finally:
        scanner.close()


def test_a_scanner_that_never_answers_leaves_the_file_to_be_scanned_again(owner, company, settings_with):
    document = unscanned(owner, company, settings_with)
    assert (document.state, document.text_state) == (DocumentState.UPLOADED, TextState.NONE)
    assert "Complete the upload again within 24 hours" in records.to_wire(document)["note"]
    clamd = Clamd()
    settings_with(clamd=clamd.address)
    again = uploads.complete_upload(owner, document.pk)
    assert (again.state, again.text_state, again.reason) == (DocumentState.UPLOADED, TextState.WAITING, "")
    do_jobs()
    clamd.close()
    document.refresh_from_db()
    assert (document.state, document.text_state) == (DocumentState.READY, TextState.EXTRACTED)


def test_a_file_that_was_never_scanned_is_rejected_after_a_day_and_no_longer_counts_toward_the_quota(
    owner, company, settings_with
):
    document = unscanned(owner, company, settings_with)
    assert operations.quota(owner).used_bytes == document.size_bytes
    cleanup.sweep(at=now() + timedelta(hours=23))
    document.refresh_from_db()
    assert document.state == DocumentState.UPLOADED
    cleanup.sweep(at=now() + timedelta(hours=25))
    document.refresh_from_db()
    assert (document.state, document.reason) == (
        DocumentState.REJECTED,
        "The virus scan did not finish. Upload the file again.",
    )
    assert operations.quota(owner).used_bytes == 0
    assert keys() == []
    with pytest.raises(BadRequest, match="scan did not finish"):
        uploads.complete_upload(owner, document.pk)
    assert document.pk in [each.pk for each in operations.list_documents(owner).items]


def test_a_document_whose_job_is_gone_is_given_another_a_day_later(owner, company, settings_with):
    clamd = Clamd()
    settings_with(clamd=clamd.address)
    lost, waiting = uploaded(owner, company), uploaded(owner, company)
    Job.objects.filter(payload={"documentId": lost.pk}).delete()
    cleanup.sweep(at=now() + timedelta(hours=23))
    assert Job.objects.filter(kind="documents.completed").count() == 1
    for _ in range(2):
        cleanup.sweep(at=now() + timedelta(hours=25))
        jobs = Job.objects.filter(kind="documents.completed").values_list("payload", flat=True)
        assert sorted(each["documentId"] for each in jobs) == sorted([lost.pk, waiting.pk])
    do_jobs()
    clamd.close()
    lost.refresh_from_db()
    assert (lost.state, lost.text_state) == (DocumentState.READY, TextState.EXTRACTED)
