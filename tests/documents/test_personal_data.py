"""What becomes of upload links when an account is deleted."""

import pytest

from make.documents import begin, send
from make.registry import owner, published
from muniment.accounts.models import Account
from muniment.documents.personal_data import PART
from muniment.kernel.problems import NotFound

pytestmark = pytest.mark.django_db


def test_the_upload_links_of_a_deleted_account_end_and_those_of_others_stay():
    me, other = owner("owner@harbour.example"), owner("other@harbour.example")
    mine, others = (begin(actor, published(actor).slug) for actor in (me, other))
    PART.delete(Account.objects.get(pk=me.account_id))
    with pytest.raises(NotFound):
        send(mine)
    assert send(others).document_id == others.upload_id
