"""The pages of webhooks: of an account below /manage, of the registry below /operate."""

import html
import re
from datetime import timedelta

import pytest
from django.test import Client

from make.accounts import account, age, signed_in
from make.pages import fields_of, valid
from make.registry import owner as owner_of_listing
from make.registry import published
from muniment.kernel.ids import now
from muniment.kernel.wire import timestamp
from muniment.webhooks import endpoints
from muniment.webhooks.endpoints import MAX_ENDPOINTS, MAX_LISTINGS, Wanted, create_endpoint
from muniment.webhooks.events import OWNER_KINDS, REGISTRY_KINDS
from muniment.webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/in"
SURFACES = [False, True]
HOMES = {False: "/manage/webhooks", True: "/operate/webhooks"}


def manager(*, of_registry):
    return account("operator@harbour.example", "operator") if of_registry else account()


def made(who, *, of_registry=False, url=URL, **fields):
    """Create a webhook of an account, or of the registry, with *fields* as its state."""
    kinds = REGISTRY_KINDS if of_registry else OWNER_KINDS
    row = create_endpoint(who.actor("web"), Wanted(url, kinds), of_registry=of_registry)
    Endpoint.objects.filter(pk=row.pk).update(**fields)
    row.refresh_from_db()
    return row


def delivery(row, number=1, **fields):
    values = {"event_id": f"evt_{number}", "kind": "listing.updated", "subject": "company:harbour", "body": "{}"}
    return Delivery.objects.create(endpoint=row, **{**values, **fields})


def tried(status=503, said="Busy", milliseconds=12):
    return {"at": timestamp(now()), "status": status, "said": said, "milliseconds": milliseconds}


@pytest.mark.parametrize("of_registry", SURFACES)
def test_a_webhook_is_created_changed_and_deleted(of_registry):
    client, home = signed_in(manager(of_registry=of_registry)), HOMES[of_registry]
    empty = client.get(home).text
    valid(empty)
    assert "No webhooks yet" in empty
    assert 'href="/docs/guides/webhooks"' in empty
    form = client.get(f"{home}/new").text
    valid(form)
    fields = fields_of(form)
    kinds = re.findall(r'name="kinds" value="([^"]+)"', form)
    assert kinds == list(REGISTRY_KINDS if of_registry else OWNER_KINDS)
    done = client.post(f"{home}/new", {**fields, "url": f"{URL}#part", "kinds": kinds[:2]})
    row = Endpoint.objects.get()
    assert (row.url, row.kinds, row.account_id is None) == (URL, kinds[:2], of_registry)
    assert done["Location"] == f"{home}/{row.pk}"
    page = client.get(done["Location"]).text
    valid(page)
    assert "Give its secret to the receiver." in page
    assert "Nothing has been sent yet." in page
    assert "whsec_" not in page
    edit = client.get(f"{home}/{row.pk}/edit").text
    valid(edit)
    again = fields_of(edit)
    assert again["url"] == URL
    assert len(re.findall(r'name="kinds"[^>]* checked', edit)) == 2
    client.post(f"{home}/{row.pk}/edit", {**again, "url": "https://other.example.com/", "kinds": kinds[0]})
    row.refresh_from_db()
    assert (row.url, row.kinds) == ("https://other.example.com/", kinds[:1])
    question = client.get(f"{home}/{row.pk}/delete").text
    valid(question)
    assert "Delete the webhook?" in question
    assert client.post(f"{home}/{row.pk}/delete", fields_of(question))["Location"] == home
    assert not Endpoint.objects.exists()
    assert "The webhook https://other.example.com/ was deleted." in client.get(home).text


@pytest.mark.parametrize(
    ("changed", "at", "says"),
    [
        ({"url": "http://hooks.example.com/"}, "url", "The URL must begin with https://"),
        ({"url": "https://user@hooks.example.com/"}, "url", "The URL must begin with https://"),
        ({"url": "https://hooks.example.com:8443/"}, "url", "The URL must begin with https://"),
        ({"url": ""}, "url", "This field is required"),
        ({"kinds": []}, "kinds", "Choose at least one event."),
        ({"kinds": ["listing.sold"]}, "kinds", "listing.sold"),
        ({"listings": "two\nsl/ash"}, "listings", "The listing sl/ash"),
        ({"listings": "\n".join(f"x-{n}" for n in range(MAX_LISTINGS + 1))}, "listings", "may name 200 listings"),
    ],
)
def test_errors_are_shown_at_their_field_and_what_was_typed_stays(changed, at, says):
    client = signed_in(account())
    sent = {"url": URL, "kinds": ["listing.updated"], "listings": "harbour", **changed}
    answer = client.post("/manage/webhooks/new", sent)
    assert answer.status_code == 422
    valid(answer.text)
    fault = re.search(rf'id="id_{at}_fault"[^>]*>(.*?)</ul>', answer.text, re.DOTALL)
    assert says in html.unescape(fault[1])
    shown = fields_of(answer.text)
    assert shown["url"] == sent["url"]
    assert shown["listings"] == sent["listings"].replace("\n", "\r\n")
    assert not Endpoint.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_listings_are_named_by_slug_or_address_and_those_that_are_not_public_are_named():
    listing = published(owner_of_listing())
    client = signed_in(account())
    named = f"https://registry.example/companies/{listing.slug}/team?x=1\r\n\r\n{listing.slug}\r\nno-such"
    went = client.post("/manage/webhooks/new", {"url": URL, "kinds": ["listing.updated"], "listings": named})
    assert Endpoint.objects.get().listings == [listing.slug, "no-such"]
    page = client.get(went["Location"]).text
    assert "Not public now: no-such. Check the spelling" in page


def test_the_most_webhooks_are_named_before_and_refused_after():
    me = account()
    for number in range(MAX_ENDPOINTS):
        made(me, url=f"https://hooks.example.com/{number}")
    client = signed_in(me)
    assert "There are 10 webhooks, which is the most." in client.get("/manage/webhooks").text
    answer = client.post("/manage/webhooks/new", {"url": URL, "kinds": ["listing.updated"]})
    assert answer.status_code == 409
    assert "There are 10 webhooks already." in answer.text
    assert fields_of(answer.text)["url"] == URL


@pytest.mark.parametrize("of_registry", SURFACES)
def test_the_secret_is_shown_and_rotated_after_a_confirmation(of_registry):
    who = manager(of_registry=of_registry)
    row, client = made(who, of_registry=of_registry), signed_in(who)
    page = f"{HOMES[of_registry]}/{row.pk}"
    answer = client.post(f"{page}/secret")
    before = re.search(r"whsec_[\w+/=]+", answer.text)[0]
    valid(answer.text)
    assert answer["Cache-Control"] == "no-store"
    question = client.get(f"{page}/rotate").text
    assert "The secret before the current one stops signing now." not in question
    assert client.post(f"{page}/rotate", fields_of(question))["Location"] == page
    assert "The former secret signs too until" in client.get(page).text
    assert before not in client.post(f"{page}/secret").text
    assert "The secret before the current one stops signing now." in client.get(f"{page}/rotate").text
    Endpoint.objects.update(secret="lost")
    assert "Rotate it." in html.unescape(client.post(f"{page}/secret").text)


@pytest.mark.parametrize("of_registry", SURFACES)
def test_an_unconfirmed_session_confirms_before_it_creates_changes_or_sees_a_secret(of_registry):
    who = manager(of_registry=of_registry)
    row, client, home = made(who, of_registry=of_registry), signed_in(who), HOMES[of_registry]
    age(client)
    form = {"url": "https://typed.example.com/", "kinds": ["listing.updated"], "listings": ""}
    for path, data in (("new", form), (f"{row.pk}/edit", form), (f"{row.pk}/secret", {}), (f"{row.pk}/rotate", {})):
        answer = client.post(f"{home}/{path}", data)
        assert answer["Location"].startswith("/accounts/reauthenticate/"), path
    assert Endpoint.objects.get().url == URL
    assert Endpoint.objects.get().former_until is None
    assert fields_of(client.get(f"{home}/new").text)["url"] == "https://typed.example.com/"
    assert client.get(f"{home}/{row.pk}").status_code == 200


def test_the_states_are_told_in_words_and_an_ended_webhook_is_started_again():
    me, moment = account(), now()
    since = {"failing_since": moment - timedelta(days=2), "failures": 9}
    works = made(me, url="https://a.example.com/")
    failing = made(me, url="https://b.example.com/", **since)
    paused = made(me, url="https://c.example.com/", **since, paused_until=moment + timedelta(hours=1))
    ended = made(me, url="https://d.example.com/", **since, ended="gone", ended_at=moment)
    client = signed_in(me)
    listed = client.get("/manage/webhooks").text
    valid(listed)
    for words in ("Works", "Failing since ", "Failing, paused until ", "It answered 410 Gone."):
        assert words in listed
    pages = [client.get(f"/manage/webhooks/{each.pk}").text for each in (works, failing, paused, ended)]
    for page in pages:
        valid(page)
    assert "If nothing succeeds, the webhook ends on" in pages[1]
    assert "Try now" in pages[2]
    assert "Start again" in pages[3]
    assert "Send test event" not in pages[3]
    client.post(f"/manage/webhooks/{ended.pk}/resume")
    assert endpoints.state_of(Endpoint.objects.get(pk=ended.pk)) == "works"
    assert "was started again" in client.get(f"/manage/webhooks/{ended.pk}").text


def test_a_test_event_is_sent_and_the_next_one_only_after_seconds():
    me = account()
    row, client = made(me), signed_in(me)
    client.post(f"/manage/webhooks/{row.pk}/test")
    page = client.get(f"/manage/webhooks/{row.pk}").text
    assert "A test event is on its way." in page
    assert "<code>test</code>" in page
    client.post(f"/manage/webhooks/{row.pk}/test")
    assert "A test event was sent seconds ago." in client.get(f"/manage/webhooks/{row.pk}").text
    assert Delivery.objects.count() == 1


def test_deliveries_are_shown_with_their_attempts_and_sent_again():
    me, moment = account(), now()
    row, client = made(me), signed_in(me)
    delivered = delivery(row, 1, state="delivered", attempts=[tried(200, "fine")], finished_at=moment)
    failed = delivery(row, 2, state="failed", attempts=[tried(None, "no answer in time"), tried(500, "<b>Oh</b>")])
    delivery(row, 3, attempts=[tried()], next_at=moment + timedelta(minutes=1))
    delivery(row, 4)
    where = f"/manage/webhooks/{row.pk}"
    page = client.get(where).text
    valid(page)
    for words in ("Delivered", "Given up", "Failed, tried again", "Waits for the event before it", "1 attempt<"):
        assert words in page
    assert "<bdi>harbour</bdi>" in page
    assert "&lt;b&gt;Oh&lt;/b&gt;" in page
    assert "No answer" in page
    assert "12 ms" in page
    assert page.count("Send again<") == 2
    client.post(f"{where}/deliveries/{delivered.pk}/replay")
    assert "The event is sent again." in client.get(where).text
    client.post(f"{where}/deliveries/{delivered.pk}/replay")
    assert "This event is waiting to be sent." in client.get(where).text
    client.post(f"{where}/replay")
    assert "Events that are sent again: 1." in client.get(where).text
    failed.refresh_from_db()
    assert (failed.state, failed.attempts) == ("waiting", [])


def test_only_the_latest_events_are_listed_in_pages():
    me = account()
    row, client = made(me), signed_in(me)
    for number in range(101):
        delivery(row, number, event_id=f"evt_{number:03}", attempts=[tried()])
    seen = []
    for page in (1, 2, 3, 4):
        shown = client.get(f"/manage/webhooks/{row.pk}?page={page}").text
        seen += re.findall(r"evt_\d{3}", shown)
    assert seen == [f"evt_{number:03}" for number in range(100, 0, -1)]
    assert "Go to the first page" in client.get(f"/manage/webhooks/{row.pk}?page=5").text


STEPS = (
    *("", "/edit", "/secret", "/rotate", "/delete", "/replay", "/deliveries/1/replay", "/test", "/resume"),
    f"/deliveries/{1 << 70}/replay",
)


def test_a_stranger_neither_sees_nor_changes_a_webhook():
    me = account()
    row = made(me)
    before = list(Endpoint.objects.values_list())
    strangers = [
        signed_in(account("stranger@harbour.example")),
        signed_in(account("reviewer@harbour.example", "reviewer")),
        signed_in(account("other@harbour.example", "operator")),
    ]
    for stranger in strangers:
        assert URL not in stranger.get("/manage/webhooks").text
        for step in STEPS:
            for method in (stranger.get, stranger.post):
                answer = method(f"/manage/webhooks/{row.pk}{step}")
                assert answer.status_code in {404, 405, 409}, step
                assert URL not in answer.text
        answer = stranger.post(
            f"/manage/webhooks/{row.pk}/edit", {"url": "https://e.example/", "kinds": "credits.changed"}
        )
        assert answer.status_code == 404
    assert list(Endpoint.objects.values_list()) == before
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("role", ["owner", "reviewer"])
def test_the_webhooks_of_the_registry_belong_to_operators(role):
    row = made(account("operator@harbour.example", "operator"), of_registry=True)
    me = account(f"{role}@elsewhere.example", role)
    client = signed_in(me)
    mine = made(me, url="https://mine.example.com/")
    for number in (row.pk, mine.pk):
        for step in STEPS:
            for method in (client.get, client.post):
                assert method(f"/operate/webhooks/{number}{step}").status_code == 404, step
    assert client.get("/operate/webhooks").status_code == 404
    assert client.post("/operate/webhooks/new", {"url": URL, "kinds": "listing.updated"}).status_code == 404
    assert client.get(f"/manage/webhooks/{row.pk}").status_code == 404


@pytest.mark.parametrize("of_registry", SURFACES)
def test_a_visitor_is_led_to_sign_in_and_changes_nothing(of_registry):
    row = made(manager(of_registry=of_registry), of_registry=of_registry)
    home = HOMES[of_registry]
    for path in ("", "/new", f"/{row.pk}", f"/{row.pk}/edit", f"/{row.pk}/delete", f"/{row.pk}/rotate"):
        assert Client().get(f"{home}{path}")["Location"].startswith("/accounts/login/"), path
    for path in ("/new", *(f"/{row.pk}{step}" for step in STEPS if step)):
        assert Client().post(f"{home}{path}").status_code == 302, path
    assert Endpoint.objects.count() == 1
    assert not Delivery.objects.exists()


def test_a_form_of_another_site_is_refused():
    me = account()
    row = made(me)
    client = signed_in(me, enforce_csrf_checks=True)
    for step in ("edit", "secret", "rotate", "delete", "replay", "test", "resume"):
        assert client.post(f"/manage/webhooks/{row.pk}/{step}").status_code == 403, step
    assert Endpoint.objects.exists()
