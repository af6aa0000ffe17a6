"""The job that follows an upload extracts the text, once."""

import pytest

from make import files
from make.documents import do_jobs, uploaded
from muniment.documents import tasks
from muniment.documents.models import Document, Page, TextState
from muniment.jobs import queue
from muniment.jobs.handlers import HandedBack

pytestmark = pytest.mark.django_db(transaction=True)


def test_text_is_replaced_not_doubled_when_the_job_runs_again(owner, company):
    document = uploaded(owner, company)
    do_jobs()
    Document.objects.filter(pk=document.pk).update(text_state=TextState.WAITING)
    queue.enqueue("documents.completed", {"documentId": document.pk})
    do_jobs()
    assert Page.objects.filter(document=document).count() == 1


def test_a_worker_that_shuts_down_hands_a_file_back_before_it_is_read(owner, company):
    document = uploaded(owner, company)
    run = queue.claim("tests")
    run.drain()
    with pytest.raises(HandedBack):
        run.handler.work(run)
    assert not Page.objects.exists()
    run.hand_back()
    do_jobs()
    document.refresh_from_db()
    assert document.text_state == TextState.EXTRACTED


def test_pictures_have_no_text(owner, company):
    document = uploaded(owner, company, files.png(), "seal.png")
    do_jobs()
    document.refresh_from_db()
    assert (document.text_state, document.text_note) == (TextState.NOT_EXTRACTABLE, "It is an image.")


def test_a_file_that_can_never_be_read_has_a_note(owner, company):
    document = uploaded(owner, company)
    tasks.give_up("job", {"documentId": document.pk}, "failed", "boom")
    document.refresh_from_db()
    assert document.text_state == TextState.NOT_EXTRACTABLE
