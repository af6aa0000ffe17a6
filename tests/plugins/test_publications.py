"""Plugins hear of every publication once it is committed, in jobs of their own, at least once."""

import pytest
from django.db import transaction

from make.registry import owner, published
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.jobs.worker import Worker
from muniment.plugins import hook
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.publishing import publisher
from services.plugins import plugged

pytestmark = pytest.mark.django_db


class Hearing:
    def __init__(self):
        self.heard = []
        self.fails_at = ""

    @hook
    def published(self, publication):
        if publication.id == self.fails_at:
            raise ConnectionError("the receiver is away")
        self.heard.append((publication.kind, publication.id, publication.change, publication.edition))


def work():
    """Do one attempt at each job that is due; return their states."""
    Job.objects.filter(state="queued").update(run_at="2020-01-01T00:00:00Z")
    while run := queue.claim("tests", publisher.PLUGIN_LANE):
        Worker(threads=1)._work(run)
    return list(Job.objects.filter(kind=publisher.PUBLISHED_JOB).order_by("pk").values_list("state", "error"))


def test_each_plugin_hears_of_each_publication_after_the_commit():
    one, two = Hearing(), Hearing()
    with plugged(one=one, two=two):
        mine = published(owner())
        assert one.heard == []
        assert work() == [("succeeded", "")] * 2
        assert one.heard == two.heard
        assert [(kind, slug, change) for kind, slug, change, _ in one.heard] == [("company", mine.slug, "published")]
        assert one.heard[0][3] > 0


def test_what_is_rolled_back_is_not_heard_of():
    hearing, me = Hearing(), owner()
    mine = published(me)
    with plugged(hearing=hearing):
        with transaction.atomic():
            listings.update_company(me, mine.slug, CompanyChange(description="Not kept."))
            transaction.set_rollback(True)
        assert work() == []
        assert hearing.heard == []


def test_a_failure_is_tried_again_from_there_on_and_does_not_delay_other_plugins():
    one, two = Hearing(), Hearing()
    with plugged(one=one, two=two):
        rows = [("company", slug, "updated", number) for number, slug in enumerate(("a", "b", "c"), 1)]
        one.fails_at = "b"
        publisher.announce_to_plugins(rows)
        states = work()
        assert sorted(state for state, _ in states) == ["queued", "succeeded"]
        assert any("ConnectionError: the receiver is away" in error for _, error in states)
        assert [slug for _, slug, _, _ in one.heard] == ["a"]
        assert [slug for _, slug, _, _ in two.heard] == ["a", "b", "c"]
        one.fails_at = ""
        assert work() == [("succeeded", "")] * 2
        assert [slug for _, slug, _, _ in one.heard] == ["a", "b", "c"]


def test_a_large_import_is_several_jobs_and_a_plugin_that_is_gone_ends_its_jobs():
    hearing = Hearing()
    with plugged(hearing=hearing):
        publisher.announce_to_plugins(
            ("company", f"c{n}", "published", n) for n in range(publisher.PUBLICATIONS_IN_A_JOB + 1)
        )
        assert Job.objects.filter(kind=publisher.PUBLISHED_JOB).count() == 2
    with plugged():
        states = work()
    assert [state for state, _ in states] == ["failed", "failed"]
    assert "is not installed" in states[0][1]
    with plugged(hearing=hearing):
        publisher.announce_to_plugins([("company", "a", "updated", 1)])
    with plugged(hearing=ImportError("half an update")):
        assert any(state == "queued" and "cannot be loaded" in error for state, error in work())


def test_without_plugins_no_job_is_made():
    published(owner())
    assert not Job.objects.filter(kind=publisher.PUBLISHED_JOB).exists()
