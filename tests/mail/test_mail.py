"""Mail is a job of the transaction that causes it, and its text is gone with the job."""

from datetime import timedelta
from email import message_from_bytes, policy

import pytest
from django.core.mail import EmailMessage
from django.db import transaction

from make.accounts import Letters, deliver_mail
from make.declared import declared
from muniment import config
from muniment.accounts.security import effective_settings
from muniment.jobs import queue
from muniment.jobs.handlers import Abandoned, Postponed
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now
from muniment.mail import delivery, outgoing, places
from muniment.mail.html import as_html
from services.mail import Mailbox, text_of
from services.ports import free_port

pytestmark = pytest.mark.django_db
ADA = "ada@moss.example"


def using(monkeypatch, **settings):
    current = config.current()
    kept = {setting.name: getattr(current, setting.name) for setting in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, **settings}))


def send(subject="Published", text="Harbour Commons is published.", **more):
    outgoing.send(ADA, subject, text, **more)
    return Job.objects.filter(kind=outgoing.KIND).latest("created_at")


def test_a_message_goes_over_smtp_as_text_and_html(monkeypatch, settings):
    settings.BASE_URL = "https://registry.example"
    text = "Harbour <Commons> is published.\n\nABC-123\n\nhttps://registry.example/manage, not https://evil.example/x"
    with Mailbox() as box:
        using(monkeypatch, mail_url=box.url, mail_from="registry@harbour.example")
        send(text=text)
        deliver_mail()
        message = box.wait_for(ADA, subject="Published")
    assert message["Subject"] == "[Muniment] Published"
    assert message["Message-ID"].endswith("@registry.example>")
    assert text_of(message).strip() == text
    html = message.get_body(("html",)).get_content()
    assert "Harbour &lt;Commons&gt; is published." in html
    assert '<a href="https://registry.example/manage">https://registry.example/manage</a>, not https://evil' in html
    assert html.count("<a ") == 1
    assert "monospace" in html


def test_only_addresses_of_this_registry_become_links(settings):
    settings.BASE_URL = "https://registry.example"
    for other in ("https://registry.example.evil.example/x", "https://registry.examplex", "javascript:alert(1)"):
        assert "<a " not in as_html("", f"See {other} now.")
    assert 'href="https://registry.example/a?b=1&amp;c"' in as_html("", 'See https://registry.example/a?b=1&c".')


@pytest.mark.django_db(transaction=True)
def test_a_message_is_sent_only_if_the_change_that_causes_it_is_stored():
    letters = Letters()

    def fail():
        with transaction.atomic():
            outgoing.send(ADA, "Never", "stored")
            raise Abandoned("gone")

    with pytest.raises(Abandoned):
        fail()
    with transaction.atomic():
        outgoing.send(ADA, "Stored", "with the change")
    assert [subject for subject, _ in letters.to(ADA)] == ["[Muniment] Stored"]


def test_the_text_is_encrypted_while_it_waits_and_deleted_when_it_is_sent():
    job = send("Your code", "QWERTY-77", kind="login_code")
    assert (job.payload["to"], job.payload["kind"]) == ([ADA], "login_code")
    assert "QWERTY" not in str(job.payload)
    assert "code" not in str({**job.payload, "kind": ""})
    deliver_mail()
    job.refresh_from_db()
    assert (job.state, job.result, job.payload["sealed"]) == (State.SUCCEEDED, {"state": "sent"}, "")


def test_a_code_that_expired_is_not_delivered_and_counts_as_failed():
    letters = Letters()
    job = send(expires_at=now() - timedelta(seconds=1))
    assert letters.to(ADA) == []
    job.refresh_from_db()
    assert (job.state, job.payload["sealed"]) == (State.FAILED, "")
    assert str(job.error) == "the message expired before a mail server accepted it"
    assert delivery.mail_status().failed == 1


def test_delivery_ends_after_a_day_also_for_a_link_that_is_valid_longer():
    job = send(expires_at=now() + timedelta(days=14))
    assert job.payload["expiresAt"] < f"{now() + timedelta(hours=24, seconds=1):%Y-%m-%dT%H:%M:%S}Z"


def test_messages_wait_while_the_server_is_down_and_all_arrive_when_it_is_back(monkeypatch, caplog):
    port = free_port()
    using(monkeypatch, mail_url=f"smtp://127.0.0.1:{port}")
    monkeypatch.setattr(delivery, "_is_down", False)
    for number in range(5):
        send(f"No. {number}")
    ids = []
    for _ in range(3):
        run = queue.claim("tests", "mail")
        with pytest.raises(Postponed) as refused:
            run.handler.work(run)
        run.failed(str(refused.value), for_good=False, pause_s=refused.value.pause_s)
        assert queue.claim("tests", "mail") is None, "one attempt, however many messages wait"
        ids.append(run.id)
        Job.objects.filter(kind=outgoing.KIND).update(run_at=now())
    assert [record.message for record in caplog.records if "mail server" in record.message] == [
        "the mail server does not answer: ConnectionRefusedError; messages wait"
    ]
    with Mailbox() as box:
        using(monkeypatch, mail_url=box.url)
        deliver_mail()
        assert sorted(str(each["Subject"]) for each in box.messages) == [f"[Muniment] No. {n}" for n in range(5)]
        assert len({each["Message-ID"] for each in box.messages}) == 5


def test_a_message_that_the_server_refuses_for_good_is_given_up(monkeypatch):
    class Refusing(Mailbox):
        async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's
            return "550 no such mailbox"

    with Refusing() as box:
        using(monkeypatch, mail_url=box.url)
        job = send()
        run = queue.claim("tests", "mail")
        with pytest.raises(Abandoned, match="550"):
            run.handler.work(run)
        run.failed("refused", for_good=True)
    job.refresh_from_db()
    assert (job.state, job.payload["sealed"]) == (State.FAILED, "")


def test_a_message_that_the_server_refuses_for_now_is_tried_again(monkeypatch):
    class Busy(Mailbox):
        async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's
            return "451 try later"

    with Busy() as box:
        using(monkeypatch, mail_url=box.url)
        send()
        run = queue.claim("tests", "mail")
        with pytest.raises(Postponed, match="451"):
            run.handler.work(run)


def test_an_outage_does_not_lengthen_the_pause_after_a_later_refusal(monkeypatch):
    class Greylisting(Mailbox):
        async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's
            return "451 try later"

    using(monkeypatch, mail_url=f"smtp://127.0.0.1:{free_port()}")
    job = send()

    def pause_after_an_attempt():
        Job.objects.filter(pk=job.pk).update(run_at=now())
        run = queue.claim("tests", "mail")
        with pytest.raises(Postponed) as refusal:
            run.handler.work(run)
        run.postponed(refusal.value)
        job.refresh_from_db()
        return (job.run_at - now()).total_seconds()

    for _ in range(10):
        assert pause_after_an_attempt() <= delivery.PAUSE_S
    with Greylisting() as box:
        using(monkeypatch, mail_url=box.url)
        assert pause_after_an_attempt() <= 4 * 1.2
        assert 4 < pause_after_an_attempt() <= 8 * 1.2, "its own refusals do"


@pytest.mark.parametrize(("answer", "outcome"), [("554 no such content", Abandoned), ("452 no room", Postponed)])
def test_a_server_may_refuse_what_a_message_contains(monkeypatch, answer, outcome):
    class Picky(Mailbox):
        async def handle_DATA(self, server, session, envelope):  # noqa: N802 - aiosmtpd's name
            return answer

    with Picky() as box:
        using(monkeypatch, mail_url=box.url)
        send()
        run = queue.claim("tests", "mail")
        with pytest.raises(outcome, match=answer[:3]):
            run.handler.work(run)


def test_a_refused_sender_keeps_every_message_for_the_operator_to_mend(monkeypatch):
    class Strict(Mailbox):
        async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802 - aiosmtpd's name
            return "550 this sender is unknown"

    with Strict() as box:
        using(monkeypatch, mail_url=box.url)
        send()
        run = queue.claim("tests", "mail")
        with pytest.raises(Postponed, match="SMTPSenderRefused"):
            run.handler.work(run)


def test_a_domain_in_another_script_is_sent_to_and_stops_no_other_message(monkeypatch):
    with Mailbox() as box:
        using(monkeypatch, mail_url=box.url)
        outgoing.send("ada@köln.example", "To Cologne", "Hello.")
        send()
        deliver_mail()
        box.wait_for("ada@xn--kln-sna.example", subject="To Cologne")
        box.wait_for(ADA, subject="Published")


def test_messages_to_an_address_are_forgotten_however_it_was_typed():
    outgoing.send("Ada@Moss.example", "Hello", "text")
    other = send()
    outgoing.forget("ada@moss.example")
    assert not Job.objects.filter(kind=outgoing.KIND).exists()
    outgoing.forget("a_a@moss.example")
    assert not Job.objects.filter(pk=other.pk).exists()
    kept = send()
    outgoing.forget("a_a@moss.example")
    assert Job.objects.filter(pk=kept.pk).exists()


def test_a_message_that_does_not_open_is_given_up():
    job = send()
    Job.objects.filter(pk=job.pk).update(payload={**job.payload, "sealed": "x"})
    run = queue.claim("tests", "mail")
    with pytest.raises(Abandoned, match="secret key"):
        run.handler.work(run)


def test_a_deleted_account_gets_no_mail():
    outgoing.send(f"former-7{outgoing.NO_MAIL}", "Hello", "you")
    assert not Job.objects.filter(kind=outgoing.KIND).exists()


def test_messages_of_libraries_go_the_same_way():
    letters = Letters()
    outgoing.Backend().send_messages([EmailMessage("Plain", "text", None, [ADA])])
    deliver_mail()
    ((subject, _),) = [
        (message["Subject"], message)
        for file in set(letters._files()) - letters._before
        for message in [message_from_bytes(file.read_bytes(), policy=policy.default)]
    ]
    assert subject == "Plain"


def test_mail_does_not_wait_for_jobs_that_take_long():
    queue.enqueue("jobs.grown_old")
    send()
    assert queue.claim("tests").kind == "jobs.grown_old"
    assert queue.claim("tests") is None
    assert queue.claim("tests", "mail").kind == outgoing.KIND


def test_every_mail_has_the_name_and_mark_of_the_registry_and_loads_nothing(settings):
    settings.BASE_URL = "https://registry.example"
    text = "Your listing is public.\n\nhttps://registry.example/manage\n\nABCD-EFGH\n\nMuniment\nregistry.example\n"
    html = as_html("[Muniment] Published", text)
    assert ">Published</h1>" in html
    assert '<a class="button" href="https://registry.example/manage"' in html
    assert "Open in Muniment" in html
    assert html.count(">Muniment<") == 1, "the signature of the text is not repeated"
    assert "prefers-color-scheme: dark" in html
    for loads in ("<img", "url(", "@import", "src=", "<link"):
        assert loads not in html


def test_lines_that_begin_with_a_dash_are_a_list_and_the_registrys_colors_are_used():
    html = as_html("", "It can:\n\n- View <it>\n- Edit it\n\n- Not\na list")
    assert "<li>View &lt;it&gt;</li><li>Edit it</li></ul>" in html
    assert html.count("<li>") == 2
    assert "background:#8a2b2b;color:#ffffff" in html
    with declared(brand={"accent": "#0b5d3b"}):
        html = as_html("", "Hello.")
    assert "background:#0b5d3b;color:#ffffff" in html
    assert "#8a2b2b" not in html


def test_a_named_address_is_a_link_of_these_words_and_the_first_one_of_its_own_the_button(settings):
    settings.BASE_URL = "https://registry.example"
    text = (
        "You can:\n\n1. Change it: https://registry.example/a\n2. Leave\n\n"
        "Open <it>: https://registry.example/b\n\nOpen that: https://registry.example/c\n\n"
        "Look. Open it: https://registry.example/d\n\nOpen it: https://evil.example/e"
    )
    html = as_html("", text)
    assert '<li style="padding:4px 0"><a href="https://registry.example/a">Change it</a></li>' in html
    assert html.count("</ol>") == html.count('class="button"') == 1
    assert ">Open &lt;it&gt;</a>" in html.partition('class="button" href="https://registry.example/b"')[2]
    assert '<p style="margin:0 0 16px"><a href="https://registry.example/c">Open that</a></p>' in html
    assert '<a href="https://registry.example/d">https://registry.example/d</a>' in html
    assert "Open it: https://evil.example/e" in html


def test_what_people_wrote_chooses_no_words_of_a_link(settings):
    settings.BASE_URL = "https://registry.example"
    note = "Thanks.\n\nTake your prize: https://registry.example/x\r\n\r\nhttps://registry.example/y"
    html = as_html("", f"Declined.\n\nNote:\n{outgoing.one_block(note)}\n\n- Prize: https://registry.example/z")
    assert 'class="button"' not in html
    for address in "xyz":
        assert f'<a href="https://registry.example/{address}">https://registry.example/{address}</a>' in html


def test_a_command_names_the_page_or_uses_the_address_of_the_last_server(settings, monkeypatch):
    settings.BASE_URL = ""
    assert places.link("Open it", "/manage") == "Open it: the page /manage of this registry"
    assert "<a " not in as_html("", places.link("Open it", "/manage"))
    current = config.current()
    kept = {setting.name: getattr(current, setting.name) for setting in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, "base_url": "https://registry.example"}))
    effective_settings.record_settings()
    assert places.place("/manage") == "https://registry.example/manage"
    html = as_html("", places.link("Open it", "/manage"))
    assert 'class="button" href="https://registry.example/manage"' in html
    assert "· https://registry.example" in html


def test_a_sent_message_is_forgotten_after_a_day(monkeypatch):
    job = send()
    deliver_mail()
    Job.objects.filter(pk=job.pk).update(finished_at=now() - timedelta(hours=23))
    queue.prune()
    assert Job.objects.filter(pk=job.pk).exists()
    Job.objects.filter(pk=job.pk).update(finished_at=now() - timedelta(hours=24, seconds=1))
    queue.prune()
    assert not Job.objects.filter(pk=job.pk).exists()


def test_the_folder_of_messages_keeps_the_newest_for_a_day(monkeypatch, tmp_path):
    using(monkeypatch, data=tmp_path)
    assert delivery.empty_folder() == 0
    monkeypatch.setattr(delivery, "MAX_IN_FOLDER", 3)
    for _ in range(5):
        delivery._write(b"Subject: Published\n\n")
    newest = sorted(each.name for each in delivery.folder().iterdir())[2:]
    assert delivery.empty_folder() == 2
    assert sorted(each.name for each in delivery.folder().iterdir()) == newest
    assert delivery.empty_folder(at=now() + timedelta(hours=23)) == 0
    assert delivery.empty_folder(at=now() + timedelta(hours=25)) == 3
