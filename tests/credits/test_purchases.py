"""Buying credits against a small Stripe that speaks its HTTP: what is ordered, told, believed and refused."""

import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db.models import ProtectedError

from make.purchases import PAGE, balance, bought, reconcile, selling, state, tell
from make.registry import agent_of, owner
from muniment.accounts.models import Account
from muniment.config import Config, ConfigError
from muniment.credits import billing, purchases
from muniment.credits import operations as ledger
from muniment.credits.models import Notice, Purchase, Transfer
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany, Unavailable
from muniment.setting_values import Pack
from services.crowd import at_once
from services.product import environment
from services.stripe import KEY, WEBHOOK_SECRET, signed


@pytest.fixture
def stripe(settings):
    with selling(settings) as account:
        yield account


@pytest.mark.django_db
def test_an_order_is_kept_before_stripe_is_asked_and_the_session_says_what_it_is(stripe):
    me = owner()
    session = stripe.sessions[bought(me)]
    purchase = Purchase.objects.get()
    assert (purchase.credits, purchase.price_minor, purchase.currency, purchase.state) == (500, 4000, "USD", "open")
    assert (session["amount_total"], session["currency"]) == (4000, "usd")
    assert session["client_reference_id"] == session["metadata"]["muniment_purchase"] == purchase.pk
    assert session["success_url"] == f"{PAGE}?bought={purchase.pk}"
    assert session["cancel_url"] == f"{PAGE}?left={purchase.pk}"
    [(_, _, form)] = stripe.asked
    assert form["adaptive_pricing"] == {"enabled": "false"}
    assert "email" not in json.dumps(form)
    assert not {"telemetry_id", "platform"} & set(json.loads(stripe.said_of_itself))
    assert balance(me) == 100


@pytest.mark.django_db
def test_a_paid_session_credits_the_account_once_however_often_and_by_whichever_event_it_is_told(stripe):
    me, stranger = owner(), owner()
    session_id = bought(me)
    event = stripe.pay(session_id)
    assert tell(event) == "paid"
    assert tell(event) == "already processed"
    assert tell({**event, "id": "evt_another"}) == "already paid"
    assert tell({**event, "id": "evt_third", "type": "checkout.session.async_payment_succeeded"}) == "already paid"
    assert (balance(me), balance(stranger), state(session_id)) == (600, 100, "paid")
    assert set(Notice.objects.values_list("kind", "outcome")) == {
        ("checkout.session.completed", "paid"),
        ("checkout.session.completed", "already paid"),
        ("checkout.session.async_payment_succeeded", "already paid"),
    }
    [entry] = Transfer.objects.filter(kind="purchase")
    assert (entry.debit.name, entry.amount, entry.reference) == (ledger.SOLD, 500, Purchase.objects.get().pk)
    entry = ledger.get_balance(me).entries[0].to_wire()
    assert (entry["kind"], entry["amount"], entry["note"]) == ("purchase", 500, "$40.00")


@pytest.mark.django_db(transaction=True)
def test_five_tellings_at_once_the_return_and_another_event_credit_once(stripe):
    me = owner()
    session_id = bought(me)
    event = stripe.pay(session_id)
    purchase_id = Purchase.objects.get().pk
    works = [lambda: tell(event)] * 5
    works += [lambda: tell({**event, "id": "evt_twin"}), lambda: purchases.check_purchase(me, purchase_id)]
    outcomes = at_once(works)
    told = [each for each in outcomes if isinstance(each, str)]
    assert len(told) == 6, outcomes
    assert told.count("already processed") == 4
    assert set(told) <= {"already processed", "paid", "already paid"}
    assert (balance(me), Transfer.objects.filter(kind="purchase").count()) == (600, 1)


@pytest.mark.django_db
def test_an_event_with_an_invalid_expired_or_truncated_signature_is_refused(stripe):
    me = owner()
    event = stripe.pay(bought(me))
    body = json.dumps(event).encode()
    for given, signature in (
        (body, ""),
        (body, "nonsense"),
        (body, "t=1,v1="),
        (body, signed(body, secret="whsec_of_another")),
        (body, signed(body, age_s=301)),
        (body, signed(body).replace("v1=", "v0=")),
        (body, "t=1,v1=ü"),
        (body[:-20], signed(body)),
        (body + b" ", signed(body)),
        (body.replace(b"4000", b"9000"), signed(body)),
        (b"\xff\xfe", signed(b"\xff\xfe")),
        (b"", signed(b"")),
        (b"[]", signed(b"[]")),
        (b'{"id": "evt_1"}', signed(b'{"id": "evt_1"}')),
        (body[:-20], signed(body[:-20])),
        *(
            (other, signed(other))
            for other in (json.dumps({**event, "id": id_}).encode() for id_ in ("", "x" * 256, 5))
        ),
        *((other, signed(other)) for other in (b'{"id": "evt_2", ' + body[1:], b'{"x": NaN, ' + body[1:])),
    ):
        with pytest.raises(BadRequest, match="signature is invalid"):
            purchases.receive_event(given, signature)
    assert (balance(me), Notice.objects.count()) == (100, 0)
    assert tell(event, age_s=290) == "paid"


@pytest.mark.django_db
def test_a_payment_by_bank_is_pending_until_the_bank_has_spoken(stripe):
    me = owner()
    good, bad = bought(me), bought(me, 100)
    assert tell(stripe.pay(good, how="bank")) == tell(stripe.pay(bad, how="bank")) == "pending"
    assert [each.credits for each in purchases.pending_purchases(me)] == [500, 100]
    assert balance(me) == 100
    assert tell(stripe.bank_says(good, good=True)) == "paid"
    failed = stripe.bank_says(bad, good=False)
    assert tell(failed) == "failed"
    assert (balance(me), purchases.pending_purchases(me)) == (600, [])
    # Events come in any order.
    late = {**stripe.tell("checkout.session.completed", {**stripe.sessions[bad]}), "id": "evt_late"}
    assert tell(late) == "failed"
    assert tell(stripe.bank_says(bad, good=True)) == "paid"
    assert balance(me) == 700


@pytest.mark.django_db
def test_an_unpaid_checkout_page_expires_and_a_late_payment_still_counts(stripe):
    me = owner()
    session_id = bought(me)
    assert tell(stripe.expire(session_id)) == "expired"
    assert state(session_id) == "expired"
    assert tell(stripe.pay(session_id)) == "paid"
    assert balance(me) == 600


@pytest.mark.django_db
@pytest.mark.parametrize("change", [{"amount_total": 1}, {"currency": "jpy"}])
def test_another_amount_or_currency_credits_nothing_and_is_reported_to_the_operator(stripe, change, caplog):
    me = owner()
    session_id = bought(me)
    event = stripe.pay(session_id)
    event["data"]["object"].update(change)
    assert tell(event).startswith("refused: ")
    assert (balance(me), state(session_id)) == (100, "refused")
    assert "nothing was credited" in caplog.text
    assert tell(stripe.refund(session_id, 4000)) == "0 credits taken back"


@pytest.mark.django_db
def test_a_session_that_names_another_purchase_credits_no_account(stripe, caplog):
    me, stranger = owner(), owner()
    mine, theirs = bought(me), bought(stranger)
    event = stripe.pay(theirs)
    event["data"]["object"]["client_reference_id"] = Purchase.objects.get(session_id=mine).pk
    assert tell(event).startswith("refused: session")
    assert (balance(me), balance(stranger), state(mine), state(theirs)) == (100, 100, "open", "open")
    assert "nothing was credited" in caplog.text
    assert tell(stripe.pay(mine)) == "paid"


@pytest.mark.django_db
def test_an_event_about_nothing_here_is_accepted_and_ignored(stripe, caplog):
    session_id = bought(owner())
    assert tell(stripe.tell("customer.created", {"id": "cus_1"})) == "nothing to do"
    assert (
        tell({"id": "evt_thin", "object": "v2.core.event", "type": "v2.x", "data": {"object": None}}) == "nothing to do"
    )
    event = stripe.pay(session_id)
    event["data"]["object"].update(client_reference_id="of another shop", metadata={})
    assert tell(event) == "not a purchase of this registry"
    assert not caplog.records
    event["data"]["object"]["metadata"] = {"muniment_purchase": "of a lost database"}
    assert tell(event) == "not a purchase of this registry"
    assert "names an unknown purchase" in caplog.text
    foreign = stripe.refund(session_id, 1)
    foreign["data"]["object"].update(metadata={}, payment_intent="pi_of_another_shop")
    assert tell(foreign) == "not a purchase of this registry"
    foreign["data"]["object"]["payment_intent"] = None
    assert tell(foreign) == "not a purchase of this registry"
    assert Notice.objects.count() == 0


@pytest.mark.django_db
def test_while_stripe_is_away_nothing_is_sold_nothing_is_lost_and_nothing_is_said_of_the_key(stripe, caplog):
    me = owner()
    session_id = bought(me)
    stripe.pay(session_id)
    stripe.is_down = True
    with pytest.raises(Unavailable, match="payment page is unavailable") as refused:
        bought(me, 100)
    assert "You were not charged" in refused.value.hint
    keys = {path for method, path, _ in stripe.asked if method == "POST"}
    assert keys == {"/v1/checkout/sessions"}
    with pytest.raises(billing.ProviderUnavailable):
        reconcile(timedelta(minutes=4))
    first = Purchase.objects.get(session_id=session_id)
    assert purchases.check_purchase(me, first.pk).state == "open"
    stripe.is_down = False
    assert purchases.check_purchase(me, first.pk).state == "paid"
    assert balance(me) == 600
    assert sorted(Purchase.objects.values_list("state", flat=True)) == ["failed", "paid"]
    assert KEY not in caplog.text
    assert WEBHOOK_SECRET not in caplog.text


@pytest.mark.django_db
def test_a_lost_answer_is_requested_again_and_opens_one_page(stripe):
    stripe.drops = 1
    session_id = bought(owner())
    assert [session_id] == list(stripe.sessions)
    assert [path for _, path, _ in stripe.asked] == ["/v1/checkout/sessions"] * 2
    assert Purchase.objects.get().session_id == session_id


@pytest.mark.django_db
def test_a_wrong_key_and_a_page_of_another_host_are_reported_to_the_operator_only(stripe, settings, caplog):
    settings.STRIPE_CHECKOUT_URL = "https://checkout.stripe.com"
    with pytest.raises(Unavailable):
        bought(owner())
    assert "set MUNIMENT_STRIPE_CHECKOUT_URL" in caplog.text
    settings.STRIPE_SECRET_KEY = "sk_test_of_another_account"
    with pytest.raises(Unavailable) as refused:
        bought(owner())
    assert "401" in caplog.text
    assert "401" not in refused.value.message + refused.value.hint


@pytest.mark.django_db
def test_a_purchase_is_its_buyers_alone_and_an_account_that_was_closed_still_gets_what_it_paid(stripe):
    me, stranger = owner(), owner()
    session_id = bought(me)
    purchase = Purchase.objects.get()
    for act in (purchases.get_purchase, purchases.check_purchase):
        with pytest.raises(NotFound):
            act(stranger, purchase.pk)
        for unknown in ("no-such-purchase", "nul\0", "x" * 300, "\ud800"):
            with pytest.raises(NotFound):
                act(me, unknown)
    Account.objects.filter(pk=me.account_id).update(is_active=False)
    assert tell(stripe.pay(session_id)) == "paid"
    assert balance(me) == 600
    with pytest.raises(ProtectedError):
        Account.objects.get(pk=me.account_id).delete()


@pytest.mark.django_db
def test_only_packs_on_sale_are_sold_and_not_more_than_twenty_begun_in_an_hour(stripe):
    me = owner()
    for size in (0, 1, -100, 101):
        with pytest.raises(BadRequest, match="no pack") as refused:
            bought(me, size)
        assert "100, 500" in refused.value.hint
    for _ in range(20):
        bought(me, 100)
    with pytest.raises(TooMany):
        bought(me, 100)
    assert bought(owner(), 100)


@pytest.mark.django_db
def test_without_settings_nothing_is_sold_and_a_refusal_names_the_page(settings):
    settings.STARTING_CREDITS, settings.BASE_URL = 5, "https://registry.example"
    me = owner()
    assert (billing.is_on(), purchases.prices()) == (False, [])
    with pytest.raises(NotFound):
        bought(me)
    with pytest.raises(NotFound):
        purchases.receive_event(b"{}", "")
    with pytest.raises(Conflict) as refused:
        ledger.hold(me, "run", 10)
    assert "how to get more" in refused.value.hint


@pytest.mark.django_db
def test_without_settings_stripe_is_not_asked(settings):
    settings.CREDIT_PACKS = ()
    with pytest.raises(billing.ProviderUnavailable):
        billing.provider()


@pytest.mark.django_db
def test_too_few_credits_name_where_to_buy_them(stripe, settings):
    settings.STARTING_CREDITS, settings.BASE_URL = 5, "https://registry.example"
    with pytest.raises(Conflict) as refused:
        ledger.hold(agent_of(owner()), "run", 10)
    assert refused.value.hint == "Buy credits at https://registry.example/manage/credits, then try again."


@pytest.mark.parametrize("packs", ["100", "100=", "0=5", "100=0", "100=9.5", "100=1,100=2", "-1=5", "100=123456789"])
def test_packs_that_cannot_be_are_refused_at_the_start(packs):
    with pytest.raises(ConfigError, match="MUNIMENT_CREDIT_PACKS"):
        Config({"MUNIMENT_CREDIT_PACKS": packs})


def test_packs_are_read_in_their_order():
    assert Config({"MUNIMENT_CREDIT_PACKS": "500=4000, 100=900"}).credit_packs == (Pack(500, 4000), Pack(100, 900))


def test_stripe_is_loaded_when_something_is_bought_and_not_before(tmp_path):
    code = (
        "import sys, django; django.setup()\n"
        "import muniment.server.process.server_process, muniment.web.urls, muniment.mcp.tools.owner.reports\n"
        "from muniment.credits import billing, purchases; from muniment.jobs import handlers\n"
        "assert billing.is_on() and 'credits.left_open' in handlers.kinds()\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'stripe']\n"
    )
    given = {"credit_packs": "100=900", "stripe_secret_key": KEY, "stripe_webhook_secret": WEBHOOK_SECRET}
    variables = {**environment(tmp_path / "data", **given), "DJANGO_SETTINGS_MODULE": "muniment.settings"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
