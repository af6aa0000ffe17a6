"""Upload links of a deleted account, and documents that name a person."""

import pytest

from make.documents import begin, send, uploaded
from make.registry import owner, published
from make.reports import do_jobs
from muniment.accounts.models import Account
from muniment.documents.personal_data import PART
from muniment.kernel.problems import NotFound
from muniment.registry.people.erasing import find_mentions

pytestmark = pytest.mark.django_db


def test_the_upload_links_of_a_deleted_account_end_and_those_of_others_stay():
    me, other = owner("owner@harbour.example"), owner("other@harbour.example")
    mine, others = (begin(actor, published(actor).slug) for actor in (me, other))
    PART.delete(Account.objects.get(pk=me.account_id))
    with pytest.raises(NotFound):
        send(mine)
    assert send(others).document_id == others.upload_id


def test_documents_that_name_a_person_are_listed_for_the_operator():
    me = owner("owner@harbour.example")
    slug = published(me).slug
    uploaded(me, slug, b"Chaired by Ottoline Quay.", "minutes.txt")
    uploaded(me, slug, name="Ottoline Quay.txt")
    do_jobs()
    mentions = {
        (mention.what, mention.where, mention.field): mention.address for mention in find_mentions("Ottoline Quay")
    }
    page = f"/review/companies/{slug}"
    assert mentions["text of a document", f"{slug}: minutes.txt", "text"] == page
    assert mentions["document", f"{slug}: Ottoline Quay.txt", "filename"] == page
