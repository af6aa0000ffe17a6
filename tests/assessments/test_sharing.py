"""Reports that their owners share: by links that can be revoked."""

from datetime import timedelta

import pytest
from cryptography.fernet import Fernet

from make.registry import owner, reviewer
from make.reports import company, finished, framework
from muniment.accounts.keys import sealed
from muniment.assessments import operations as runs
from muniment.assessments import sharing
from muniment.assessments.models import ShareLink
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.kernel.tokens import token_digest

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def test_a_report_has_several_links_each_with_a_name_that_end_one_by_one():
    me = owner()
    report = finished(me)
    bank, auditor = (sharing.share_report(me, report.run_id, name=name) for name in (" The  bank ", "Auditor"))
    links = sharing.list_links(me, report.run_id)
    assert [(each.name, each.token) for each in links] == [("Auditor", auditor), ("The bank", bank)]
    for token in (bank, auditor):
        assert sharing.shared_report(token).pk == report.pk
    sharing.revoke_link(me, report.run_id, links[1].link_id)
    for dead in (bank, "", "x" * 32):
        with pytest.raises(NotFound):
            sharing.shared_report(dead)
    assert sharing.shared_report(auditor).pk == report.pk
    with pytest.raises(NotFound):
        sharing.revoke_link(me, report.run_id, links[1].link_id)
    sharing.share_report(me, report.run_id)
    sharing.unshare_report(me, report.run_id)
    assert sharing.list_links(me, report.run_id) == []
    with pytest.raises(NotFound):
        sharing.shared_report(auditor)


def test_the_last_opening_of_a_link_is_kept_to_the_minute():
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    assert sharing.list_links(me, report.run_id)[0].opened_at is None
    sharing.shared_report(token)
    first = sharing.list_links(me, report.run_id)[0].opened_at
    sharing.shared_report(token)
    assert sharing.list_links(me, report.run_id)[0].opened_at == first
    ShareLink.objects.update(opened_at=now() - timedelta(hours=1))
    sharing.shared_report(token)
    assert sharing.list_links(me, report.run_id)[0].opened_at >= first


def test_the_database_has_no_link_and_without_the_key_it_works_and_is_not_shown(settings):
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    row = ShareLink.objects.get()
    assert row.digest == token_digest(token)
    assert token not in f"{row.sealed} {row.digest} {row.name}"
    ShareLink.objects.update(sealed=Fernet(Fernet.generate_key()).encrypt(b"x").decode())
    assert sharing.list_links(me, report.run_id)[0].token == ""
    assert sharing.shared_report(token).pk == report.pk


def test_links_are_sealed_again_when_the_key_changes(settings):
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    (kind,) = (each for each in sealed.KINDS if each.words == "addresses of share links")
    former, new = settings.SECRET_KEY, "k" * 40
    assert list(kind.keys_of([new, former])) == [former]
    assert kind.reseal([new, former]) == 1
    assert kind.reseal([new, former]) == 0
    assert list(kind.keys_of([new])) == [new]
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = new, []
    assert sharing.list_links(me, report.run_id)[0].token == token


def test_names_and_numbers_of_links_have_limits(monkeypatch):
    me = owner()
    run_id = finished(me).run_id
    for name in ("x" * 81, "a\x00b"):
        with pytest.raises(BadRequest):
            sharing.share_report(me, run_id, name=name)
    monkeypatch.setattr(sharing, "MAX_LINKS", 2)
    for _ in range(2):
        sharing.share_report(me, run_id)
    with pytest.raises(Conflict):
        sharing.share_report(me, run_id)
    waiting = runs.start_run(me, company(me), framework()).run.row.pk
    with pytest.raises(Conflict, match="has no report"):
        sharing.list_links(me, waiting)


@pytest.mark.parametrize("who", ["visitor", "another owner", "reviewer"])
def test_a_stranger_shares_and_revokes_nothing(who):
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    (link,) = sharing.list_links(me, report.run_id)
    actor = {"visitor": lambda: VISITOR, "another owner": owner, "reviewer": reviewer}[who]()
    for attempt in (
        lambda: sharing.share_report(actor, report.run_id),
        lambda: sharing.list_links(actor, report.run_id),
        lambda: sharing.revoke_link(actor, report.run_id, link.link_id),
        lambda: sharing.unshare_report(actor, report.run_id),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert sharing.shared_report(token).pk == report.pk


def test_a_link_of_one_report_is_not_revoked_by_another_report_of_the_same_owner():
    me = owner()
    mine, other = finished(me), finished(me)
    token = sharing.share_report(me, mine.run_id)
    (link,) = sharing.list_links(me, mine.run_id)
    with pytest.raises(NotFound):
        sharing.revoke_link(me, other.run_id, link.link_id)
    assert sharing.shared_report(token).pk == mine.pk
