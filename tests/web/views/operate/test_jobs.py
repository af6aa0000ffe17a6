"""Jobs and mail on the operator's pages: states, errors without secrets, try again, cancel, a test message."""

import pytest

from make.accounts import account, deliver_mail, signed_in
from muniment.accounts.job_actions import cancel_job, list_jobs, send_test_message
from muniment.accounts.models import SecurityEvent
from muniment.config import Config
from muniment.jobs import handlers, queue
from muniment.jobs.handlers import Handler
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden
from muniment.mail.outgoing import KIND, send
from muniment.web.wording.jobs import job_kind

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator")


@pytest.fixture
def browser(operator):
    Job.objects.all().delete()
    return signed_in(operator)


@pytest.fixture
def failing():
    def fail(_):
        raise RuntimeError("no entry: postgresql://tide:ebb-and-flow@db.example/registry")

    handlers.register(Handler(kind="tests.failing", work=fail, max_attempts=1))
    yield
    handlers.unregister("tests.failing")


def failed(kind="tests.failing"):
    key = queue.enqueue(kind)
    Job.objects.filter(pk=key).update(
        state=State.FAILED,
        attempt=1,
        kills=2,
        finished_at=now(),
        error="Traceback\nRuntimeError: no entry: postgresql://tide:ebb-and-flow@db.example/registry",
    )
    return key


@pytest.mark.usefixtures("failing")
def test_a_failed_job_shows_its_last_line_without_secrets_and_is_tried_again(browser, operator):
    key = failed()
    page = browser.get("/operate/jobs?state=failed").content.decode()
    assert "tests.failing" in page
    assert "RuntimeError: no entry" in page
    assert "ebb-and-flow" not in page
    assert "No job is in this state." in browser.get("/operate/jobs").content.decode()
    assert "No message is in this state. Sent messages are listed for a day" in browser.get("/operate/mail").text
    browser.post(f"/operate/jobs/{key}/retry")
    run = queue.claim("tests")
    assert (run.id, run.attempt) == (key, 2)
    assert Job.objects.get(pk=key).kills == 0
    run.failed("again", for_good=False)
    assert Job.objects.get(pk=key).state == State.FAILED
    assert SecurityEvent.objects.filter(event="job_retried", actor=operator).count() == 1


def test_a_job_whose_failure_was_cleaned_up_after_is_not_tried_again(browser):
    key = failed(KIND)
    browser.post(f"/operate/jobs/{key}/retry")
    assert Job.objects.get(pk=key).state == State.FAILED
    assert b"This job cannot be tried again." in browser.get("/operate/jobs").content


def test_a_waiting_job_is_canceled_once(browser, operator):
    key = queue.enqueue("documents.grown_old")
    assert f"/operate/jobs/{key}/cancel" in browser.get("/operate/jobs?kind=documents.grown_old").content.decode()
    browser.post(f"/operate/jobs/{key}/cancel")
    assert Job.objects.get(pk=key).state == State.CANCELED
    assert SecurityEvent.objects.filter(event="job_dropped", actor=operator).count() == 1
    with pytest.raises(Conflict):
        cancel_job(operator.actor("web"), key)


def test_mail_shows_recipients_and_reasons_but_no_text(browser):
    send("ada@harbour.example", "Your sign-in code", "Enter 471185 on the page.", kind="sign-in code")
    send("eve@harbour.example", "Your sign-in code", "Enter 471185 on the page.", kind="sign-in code")
    waiting = Job.objects.filter(kind=KIND).order_by("pk")
    Job.objects.filter(pk=waiting[0].pk).update(error="the mail server does not answer: TimeoutError")
    Job.objects.filter(pk=waiting[1].pk).update(error="ValueError: Enter 471185 on the page.")
    page = browser.get("/operate/mail").content.decode()
    for shown in ("ada@harbour.example", "eve@harbour.example", "the mail server does not answer: TimeoutError"):
        assert shown in page
    for secret in ("471185", waiting[0].payload["sealed"]):
        assert secret not in page


def test_a_test_message_goes_to_the_operator(browser, operator, stand):
    before = set((stand.folder / "mail").glob("*"))
    answer = browser.post("/operate/mail", follow=True)
    assert b"A test message to operator@harbour.example is on its way." in answer.content
    deliver_mail()
    [message] = set((stand.folder / "mail").glob("*")) - before
    assert "Mail of this registry arrives." in message.read_text()
    assert SecurityEvent.objects.filter(event="test_message_sent", actor=operator).count() == 1


def test_strangers_reach_no_job(browser):
    key = queue.enqueue("documents.grown_old")
    stranger = account("stranger@harbour.example", "reviewer").actor("web")
    for operation in (
        lambda: cancel_job(stranger, key),
        lambda: list_jobs(stranger),
        lambda: send_test_message(stranger),
    ):
        with pytest.raises(Forbidden):
            operation()
    assert Job.objects.get(pk=key).state == State.QUEUED


def test_every_kind_of_job_of_the_product_has_words(browser):
    kinds = [each for each in handlers.kinds() if not each.startswith("tests.")]
    assert [each for each in kinds if job_kind(each) == each] == []
    queue.enqueue("registry.rounds_due")
    page = browser.get("/operate/jobs?kind=registry.rounds_due").content.decode()
    assert '<option value="registry.rounds_due" selected>Open and close funding rounds</option>' in page
    assert 'Open and close funding rounds<br><span class="mono quiet small"' in page
    assert job_kind("plugin.own") == "plugin.own"


def test_mail_says_what_became_of_a_message_and_that_nobody_receives_it(browser, monkeypatch, stand):
    send("ada@harbour.example", "Hello", "Hello.")
    deliver_mail()
    page = browser.get("/operate/mail?state=ended").content.decode()
    assert "Written to the folder" in page
    assert "1 message, newest first" in page
    for address in ("/operate/mail", "/operate/invitations", "/operate/accounts"):
        assert b"messages are only written to" in browser.get(address).content, address
    sending = Config({}, data=stand.folder, mail_url="smtp://mail.example:25")
    monkeypatch.setattr("muniment.config.current", lambda: sending)
    assert ">Sent</span>" in browser.get("/operate/mail?state=ended").content.decode()
    assert b"messages are only written to" not in browser.get("/operate/invitations").content
