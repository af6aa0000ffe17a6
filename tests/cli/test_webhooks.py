"""`muniment webhooks`: list those of the registry and of accounts, test, replay, resume, delete."""

import pytest
from click.testing import CliRunner

from make.accounts import account
from muniment.cli import main
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden, NotFound
from muniment.webhooks import endpoints
from muniment.webhooks.endpoints import Wanted, create_endpoint
from muniment.webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/in"


def command(*arguments, stdin=None):
    """Run the command in this process, which has the database of the test."""
    return CliRunner().invoke(main, ["webhooks", *arguments], input=stdin).output


@pytest.fixture
def of_owner():
    return create_endpoint(account().actor("web"), Wanted(URL, ["listing.updated"]))


@pytest.fixture
def of_registry():
    actor = account("operator@harbour.example", "operator").actor("web")
    return create_endpoint(actor, Wanted("https://registry.example.com/in", ["listing.updated"]), of_registry=True)


def failed(row, number=1):
    return Delivery.objects.create(
        endpoint=row, event_id=f"evt_{number}", kind="listing.updated", body="{}", state="failed", finished_at=now()
    )


def test_all_webhooks_are_listed_with_their_states(of_owner, of_registry):
    Endpoint.objects.filter(pk=of_owner.pk).update(ended="gone", ended_at=now())
    assert command("list").splitlines() == [
        f"{of_registry.pk}\tregistry\tworks\thttps://registry.example.com/in",
        f"{of_owner.pk}\towner@harbour.example\tended: it answered 410\t{URL}",
    ]
    Endpoint.objects.filter(pk=of_owner.pk).update(ended="failing")
    assert "ended: it failed for a week" in command("list")
    Endpoint.objects.filter(pk=of_owner.pk).update(ended="", failing_since=now())
    assert "failing since 20" in command("list")
    Endpoint.objects.filter(pk=of_owner.pk).update(paused_until=now().replace(year=2999))
    assert "paused until 2999-" in command("list")


def test_a_webhook_of_an_account_is_resumed_and_deleted(of_owner):
    Endpoint.objects.update(ended="gone", ended_at=now())
    assert command("resume", of_owner.pk) == f"{URL} is sent what waits for it.\n"
    assert Endpoint.objects.get().ended == ""
    assert "Delete the webhook" in command("delete", of_owner.pk, stdin="n\n")
    assert Endpoint.objects.exists()
    assert command("delete", of_owner.pk, "--yes") == f"{URL} is sent nothing more.\n"
    assert not Endpoint.objects.exists()
    assert "Webhook not found." in command("delete", of_owner.pk, "--yes")


def test_an_event_is_sent_again_by_its_id_and_all_that_failed(of_registry):
    for number in (1, 2, 3):
        failed(of_registry, number)
    assert command("replay", of_registry.pk, "evt_2") == "1 event is sent again.\n"
    assert command("replay", of_registry.pk, "--failed") == "2 events are sent again.\n"
    assert set(Delivery.objects.values_list("state", flat=True)) == {"waiting"}
    assert "is waiting to be sent" in command("replay", of_registry.pk, "evt_2")
    assert "not kept any more" in command("replay", of_registry.pk, "evt_9")
    for arguments in ((), ("evt_2", "--failed")):
        assert "Name an event, or use --failed." in command("replay", of_registry.pk, *arguments)


def test_a_test_event_is_sent(of_registry):
    sent = command("test", of_registry.pk)
    assert sent == f"The event {Delivery.objects.get().event_id} is sent by the next worker.\n"
    assert "sent seconds ago" in command("test", of_registry.pk)


def test_only_operators_list_those_of_all_accounts_and_pages_do_not_reach_them(of_owner):
    for role in ("owner", "reviewer"):
        with pytest.raises(Forbidden):
            endpoints.list_all_endpoints(account(f"{role}@elsewhere.example", role).actor("web"))
    operator = account("operator@harbour.example", "operator")
    with pytest.raises(Forbidden):
        endpoints.list_all_endpoints(Actor(operator.pk, "operator", "token"))
    with pytest.raises(NotFound):
        endpoints.get_endpoint(operator.actor("web"), of_owner.pk, of_registry=True)
