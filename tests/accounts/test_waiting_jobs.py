"""Only operators see jobs and messages, without their text; they try them again or drop them."""

from datetime import timedelta

import pytest

from make.accounts import account, signed_in
from muniment.accounts.models import SecurityEvent
from muniment.accounts.waiting_jobs import drop_job, retry_job
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.mail.outgoing import send

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("django_admin")]
LIST = "/admin/jobs/job/"


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator")


@pytest.fixture
def mail():
    send("ada@harbour.example", "Your sign-in code", "Enter 471185 on the page.", kind="sign-in code")
    job = Job.objects.get(kind="mail.requested")
    Job.objects.update(run_at=now() + timedelta(hours=1), attempt=3, error="said 471185")
    return job


def test_the_back_office_shows_a_message_without_its_text(operator, mail):
    client = signed_in(operator)
    for path in (LIST, f"{LIST}{mail.pk}/change/"):
        page = client.get(path).content.decode().replace("Queued", "queued")
        for shown in ("ada@harbour.example", "sign-in code", "queued", "3"):
            assert shown in page, (path, shown)
        for secret in ("471185", mail.payload["sealed"]):
            assert secret not in page
    assert client.post(f"{LIST}{mail.pk}/change/", {"state": "succeeded"}).status_code == 403
    assert client.post(f"{LIST}{mail.pk}/delete/", {"post": "yes"}).status_code == 403


def act(client, action, *jobs):
    fields = {"action": action, "_selected_action": [job.pk for job in jobs]}
    return client.post(LIST, fields, follow=True).content.decode()


def test_an_operator_tries_a_message_again_and_it_is_in_the_audit_log(operator, mail):
    act(signed_in(operator), "try_now", mail)
    mail.refresh_from_db()
    assert mail.run_at <= now()
    event = SecurityEvent.objects.get(event="job_retried")
    assert (event.actor, event.is_audited) == (operator, True)
    assert event.detail == {"job": mail.pk, "kind": "mail.requested sign-in code"}


def test_an_operator_drops_a_message_and_its_text_is_gone(operator, mail):
    client = signed_in(operator)
    act(client, "drop", mail)
    mail.refresh_from_db()
    assert (mail.state, mail.payload["sealed"]) == ("canceled", "")
    assert SecurityEvent.objects.filter(event="job_dropped", actor=operator).count() == 1
    assert "Only a waiting message can be dropped" in act(client, "drop", mail)
    assert "Only a waiting job can be tried again" in act(client, "try_now", mail)
    assert SecurityEvent.objects.filter(event__startswith="job_").count() == 1


def test_a_job_that_is_no_message_is_not_dropped(operator):
    key = queue.enqueue("documents.completed")
    with pytest.raises(Conflict):
        drop_job(operator.actor("web"), key)
    with pytest.raises(NotFound):
        retry_job(operator.actor("web"), "missing")


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_strangers_neither_see_nor_touch_jobs(mail, role):
    stranger = account("stranger@harbour.example", role)
    client = signed_in(stranger)
    assert "ada@harbour.example" not in act(client, "drop", mail)
    assert "ada@harbour.example" not in client.get(LIST, follow=True).content.decode()
    for operation in (retry_job, drop_job):
        with pytest.raises(Forbidden):
            operation(stranger.actor("web"), mail.pk)
    assert Job.objects.get(pk=mail.pk).state == "queued"
    assert not SecurityEvent.objects.filter(event__startswith="job_").exists()
