"""An upload link receives one file, of the announced size and type."""

import hashlib
from datetime import timedelta

import pytest

from make.documents import SMALL, begin, send, token_of
from make.documents import blob_keys as keys
from muniment.documents import receiving, records, uploads
from muniment.documents.models import Document, DocumentState
from muniment.kernel import fairness
from muniment.kernel.fairness import Fairness
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooLarge, TooMany

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_used_link_an_expired_link_and_an_invented_one_are_all_not_found(owner, company):
    used, expired = begin(owner, company), begin(owner, company)
    send(used)
    Document.objects.filter(pk=expired.upload_id).update(expires_at=now() - timedelta(seconds=1))
    for token in (token_of(used), token_of(expired), "invented", ""):
        with pytest.raises(NotFound):
            receiving.claim_link(token, len(SMALL), "")
    with pytest.raises(NotFound):
        uploads.complete_upload(owner, expired.upload_id)
    assert uploads.complete_upload(owner, used.upload_id).state == DocumentState.READY


def test_a_link_takes_only_the_size_and_type_that_were_announced(owner, company):
    token = token_of(begin(owner, company))
    with pytest.raises(TooLarge):
        receiving.claim_link(token, len(SMALL) + 1, "")
    with pytest.raises(BadRequest, match="were announced"):
        receiving.claim_link(token, len(SMALL) - 1, "")
    with pytest.raises(BadRequest, match="accepts text/plain"):
        receiving.claim_link(token, len(SMALL), "text/html")
    assert receiving.claim_link(token, None, "text/plain; charset=utf-8").attempt == 1


def test_an_upload_is_a_change_of_the_account_that_made_its_link(owner, company, monkeypatch):
    limits = Fairness(writes=60)
    monkeypatch.setattr(fairness, "_current", limits)
    token = token_of(begin(owner, company))
    limits.writes.charge(str(owner.account_id), 119)
    assert receiving.claim_link(token, len(SMALL), "").attempt == 1
    with pytest.raises(TooMany, match="Too many changes"):
        receiving.claim_link(token, len(SMALL), "")
    assert Document.objects.get().attempt == 1
    limits.writes.charge(str(owner.account_id), -1)
    assert receiving.claim_link(token, len(SMALL), "").attempt == 2


def test_of_two_transfers_the_newer_has_the_link_and_one_is_recorded(owner, company):
    upload = begin(owner, company)
    first = receiving.claim_link(token_of(upload), None, "")
    second = receiving.claim_link(token_of(upload), None, "")
    records.storage().write(first.key, SMALL)
    assert not receiving.keep_alive(first)
    with pytest.raises(Conflict, match="newer upload"):
        receiving.record(first, "0" * 64, len(SMALL))
    assert keys() == []
    records.storage().write(second.key, SMALL)
    receiving.record(second, hashlib.sha256(SMALL).hexdigest(), len(SMALL))
    assert keys() == [second.key]
