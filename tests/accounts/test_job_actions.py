"""Only operators try waiting jobs and messages again, or cancel them."""

from datetime import timedelta

import pytest

from make.accounts import account
from muniment.accounts.job_actions import cancel_job, retry_job
from muniment.accounts.models import SecurityEvent
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.mail.outgoing import send

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator")


@pytest.fixture
def mail():
    send("ada@harbour.example", "Your sign-in code", "Enter 471185 on the page.", kind="sign-in code")
    job = Job.objects.get(kind="mail.requested")
    Job.objects.update(run_at=now() + timedelta(hours=1), attempt=3, error="said 471185")
    return job


def test_an_operator_tries_a_message_again_and_it_is_in_the_audit_log(operator, mail):
    retry_job(operator.actor("web"), mail.pk)
    mail.refresh_from_db()
    assert mail.run_at <= now()
    event = SecurityEvent.objects.get(event="job_retried")
    assert (event.actor, event.is_audited) == (operator, True)
    assert event.detail == {"job": mail.pk, "kind": "mail.requested sign-in code"}


def test_an_operator_cancels_a_message_and_its_text_is_gone(operator, mail):
    cancel_job(operator.actor("web"), mail.pk)
    mail.refresh_from_db()
    assert (mail.state, mail.payload["sealed"]) == ("canceled", "")
    assert SecurityEvent.objects.filter(event="job_dropped", actor=operator).count() == 1
    for operation, reason in ((cancel_job, "Only a waiting or a running job"), (retry_job, "Only a waiting job")):
        with pytest.raises(Conflict) as refusal:
            operation(operator.actor("web"), mail.pk)
        assert reason in refusal.value.hint
    assert SecurityEvent.objects.filter(event__startswith="job_").count() == 1


def test_a_job_that_is_unknown_is_not_found(operator):
    for operation in (retry_job, cancel_job):
        with pytest.raises(NotFound):
            operation(operator.actor("web"), "missing")


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_strangers_do_not_touch_jobs(mail, role):
    stranger = account("stranger@harbour.example", role)
    for operation in (retry_job, cancel_job):
        with pytest.raises(Forbidden):
            operation(stranger.actor("web"), mail.pk)
    assert Job.objects.get(pk=mail.pk).state == "queued"
    assert not SecurityEvent.objects.filter(event__startswith="job_").exists()
