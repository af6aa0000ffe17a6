"""Reports that their owners share: by a link that can be revoked, and a badge."""

import pytest

from make.registry import owner, reviewer
from make.reports import finished
from muniment.assessments import sharing
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import NotFound

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _prices(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10


def test_a_report_is_shared_by_a_link_that_can_be_ended_and_a_badge_is_shown_on_request():
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    assert sharing.shared_report(token).pk == report.pk
    again = sharing.share_report(me, report.run_id)
    for dead in (token, "", "x" * 32):
        with pytest.raises(NotFound):
            sharing.shared_report(dead)
    sharing.unshare_report(me, report.run_id)
    with pytest.raises(NotFound):
        sharing.shared_report(again)
    with pytest.raises(NotFound):
        sharing.badge_of(report.pk)
    sharing.set_badge(me, report.run_id, shown=True)
    assert sharing.badge_of(report.pk).pk == report.pk


@pytest.mark.parametrize("who", ["visitor", "another owner", "reviewer"])
def test_a_stranger_shares_and_revokes_nothing(who):
    me = owner()
    report = finished(me)
    token = sharing.share_report(me, report.run_id)
    sharing.set_badge(me, report.run_id, shown=True)
    actor = {"visitor": lambda: VISITOR, "another owner": owner, "reviewer": reviewer}[who]()
    for attempt in (
        lambda: sharing.share_report(actor, report.run_id),
        lambda: sharing.unshare_report(actor, report.run_id),
        lambda: sharing.set_badge(actor, report.run_id, shown=False),
    ):
        with pytest.raises(NotFound):
            attempt()
    assert sharing.shared_report(token).pk == sharing.badge_of(report.pk).pk == report.pk
