"""What becomes of a payment later: events that never come, money that goes back, and any order of it all."""

import random
from datetime import timedelta

import pytest

from make.purchases import balance, bought, reconcile, selling, state, tell
from make.registry import owner
from muniment.credits import operations as ledger
from muniment.credits import purchases
from muniment.credits.models import Notice, Purchase, PurchaseState
from muniment.jobs import handlers, queue
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict
from services.crowd import at_once


@pytest.fixture
def stripe(settings):
    with selling(settings) as account:
        yield account


@pytest.mark.django_db
def test_refunds_take_credits_in_proportion_and_a_dispute_that_is_won_gives_them_back(stripe):
    me = owner()
    session_id = bought(me)
    tell(stripe.pay(session_id))
    third = stripe.refund(session_id, 1333)
    assert tell(third) == "166 credits taken back"
    assert tell({**third, "id": "evt_again"}) == "0 credits taken back"
    assert balance(me) == 434
    assert tell(stripe.dispute(session_id)) == "334 credits taken back"
    assert balance(me) == 100
    assert tell(stripe.dispute(session_id, "funds_reinstated")) == "-334 credits taken back"
    assert tell(stripe.refund(session_id, 2667)) == "334 credits taken back"
    assert tell(third) == "already processed"
    purchase = Purchase.objects.get()
    assert (balance(me), purchase.taken_back, purchase.refunded_minor) == (100, 500, 4000)
    assert [entry.amount for entry in ledger.get_balance(me).entries if entry.kind == "refund"] == [
        -334,
        334,
        -334,
        -166,
    ]


@pytest.mark.django_db
def test_a_refund_takes_available_credits_leaves_held_ones_and_reports_the_rest_to_the_operator(stripe, caplog):
    me = owner()
    session_id = bought(me)
    tell(stripe.pay(session_id))
    ledger.hold(me, "run", 560)
    assert tell(stripe.refund(session_id, 4000)) == "40 credits taken back, 460 already spent or held"
    assert "460 credits of returned money" in caplog.text
    assert ledger.get_balance(me).available == 0
    ledger.release("run")
    assert tell(stripe.dispute(session_id)) == "460 credits taken back"
    assert balance(me) == 100


@pytest.mark.django_db
@pytest.mark.parametrize("give_back", ["refund", "dispute"])
def test_money_that_goes_back_in_another_currency_takes_no_credits_and_is_reported(stripe, give_back, caplog):
    me = owner()
    session_id = bought(me)
    tell(stripe.pay(session_id))
    event = stripe.refund(session_id, 4000) if give_back == "refund" else stripe.dispute(session_id)
    event["data"]["object"]["currency"] = "jpy"
    assert tell(event) == "refused: the refund is in JPY, the payment was in USD"
    assert "nothing was credited, check it in the provider's dashboard" in caplog.text
    purchase = Purchase.objects.get()
    assert (balance(me), purchase.refunded_minor, purchase.disputed_minor, purchase.taken_back) == (600, 0, 0, 0)
    assert tell(event) == "already processed"


@pytest.mark.django_db
def test_a_refund_that_overtakes_its_payment_is_requested_again(stripe):
    me = owner()
    session_id = bought(me)
    paid = stripe.pay(session_id)
    refund = stripe.refund(session_id, 4000)
    with pytest.raises(Conflict, match="not paid yet"):
        tell(refund)
    assert tell(paid) == "paid"
    assert tell(refund) == "500 credits taken back"
    assert balance(me) == 100


@pytest.mark.django_db
def test_a_lost_event_loses_nothing_since_the_job_asks(stripe):
    me = owner()
    paid, left, waiting, failed = bought(me), bought(me, 100), bought(me, 100), bought(me, 100)
    stripe.pay(paid)
    stripe.expire(left)
    stripe.pay(waiting, how="bank")
    stripe.pay(failed, how="bank")
    stripe.bank_says(failed, good=False)
    assert reconcile() == {"asked": 0, "settled": 0}, "too early"
    assert reconcile(timedelta(minutes=4)) == {"asked": 4, "settled": 3}
    assert [state(each) for each in (paid, left, waiting, failed)] == ["paid", "expired", "pending", "failed"]
    assert balance(me) == 600
    assert reconcile() == {"asked": 0, "settled": 0}, "the pause grows"
    assert reconcile(timedelta(minutes=5)) == {"asked": 1, "settled": 0}
    stripe.bank_says(waiting, good=True)
    assert reconcile(timedelta(hours=7)) == {"asked": 1, "settled": 1}
    assert balance(me) == 700


@pytest.mark.django_db
def test_the_job_closes_what_stripe_does_not_know_and_what_never_got_a_page(stripe):
    session_id = bought(owner())
    stripe.sessions.clear()
    assert reconcile(timedelta(minutes=4)) == {"asked": 1, "settled": 1}
    assert state(session_id) == "expired"
    bought(owner())
    Purchase.objects.filter(state="open").update(session_id=None)
    assert reconcile(timedelta(minutes=30)) == {"asked": 0, "settled": 0}
    assert reconcile(timedelta(hours=2)) == {"asked": 0, "settled": 1}


@pytest.mark.django_db
def test_the_job_leaves_an_open_page_open_and_closes_only_the_unknown_one(stripe):
    unknown, open_ = bought(owner()), bought(owner())
    del stripe.sessions[unknown]
    assert reconcile(timedelta(minutes=4)) == {"asked": 2, "settled": 1}
    assert (state(unknown), state(open_)) == ("expired", "open")


@pytest.mark.django_db
def test_the_job_stops_when_it_is_canceled(stripe):
    session_id = bought(owner())
    stripe.pay(session_id)
    Purchase.objects.update(at=now() - timedelta(hours=1))
    handlers.register(handlers.Handler(kind="tests.reconcile", work=purchases.reconcile_purchases))
    try:
        job_id = queue.enqueue("tests.reconcile")
        run = queue.claim("tests")
        queue.cancel(run.id)
        run.renew()
        with pytest.raises(handlers.Canceled):
            purchases.reconcile_purchases(run)
    finally:
        handlers.unregister("tests.reconcile")
    assert job_id
    assert state(session_id) == "open"


@pytest.mark.django_db
def test_a_payment_whose_session_was_never_noted_is_credited_when_it_is_told(stripe):
    me = owner()
    session_id = bought(me)
    Purchase.objects.update(session_id=None)
    assert tell(stripe.pay(session_id)) == "paid"
    assert (balance(me), state(session_id)) == (600, "paid")


@pytest.mark.django_db
def test_the_proof_finds_a_purchase_that_was_tampered_with(stripe):
    session_id = bought(owner())
    tell(stripe.pay(session_id))
    Purchase.objects.update(credits=400, taken_back=7)
    faults = " ".join(ledger.check_ledger())
    assert "should credit 400, but its transfers add up to 500" in faults
    assert "had 7 taken back, but its transfers add up to 0" in faults
    Purchase.objects.update(credits=500, taken_back=0)


@pytest.mark.django_db(transaction=True)
def test_payments_refunds_and_runs_of_one_account_at_once_wait_for_each_other_and_overdraw_nothing(stripe):
    me = owner()
    first, second = bought(me), bought(me, 100)
    tell(stripe.pay(first))
    events = [stripe.pay(second), stripe.refund(first, 2000), stripe.refund(first, 2000), stripe.dispute(first)]
    works = [lambda event=event: tell(event) for event in events * 2]
    works += [lambda key=f"run{n}": ledger.hold(me, key, 100) for n in range(8)]
    outcomes = at_once(works)
    assert {type(each) for each in outcomes} <= {str, Conflict, type(None)}, outcomes
    seen = ledger.get_balance(me)
    purchase = Purchase.objects.get(session_id=first)
    assert seen.balance == 700 - purchase.taken_back >= seen.held
    assert purchase.to_take_back == 500
    for each in seen.holds:
        ledger.release(each.pk)
    tell(stripe.refund(first, 0))
    assert balance(me) == 200


def days_of_payments(stripe, lot, people):
    """Let people pay in ways drawn by lot; gives the events, and what each should have in the end."""
    told, due = [], dict.fromkeys(people, 100)
    for _ in range(10):
        buyer, size = lot.choice(people), lot.choice([100, 500])
        session_id = bought(buyer, size)
        end = lot.choice(["paid", "paid", "bank", "bank fails", "expired", "left"])
        if end == "expired":
            told.append(stripe.expire(session_id))
        elif end != "left":
            told.append(stripe.pay(session_id, how="card" if end == "paid" else "bank"))
        if end.startswith("bank"):
            told.append(stripe.bank_says(session_id, good=end == "bank"))
        if end in {"paid", "bank"}:
            parts = [lot.randrange(1, 400) for _ in range(lot.choice([0, 0, 1, 2]))]
            told += [stripe.refund(session_id, part) for part in parts]
            due[buyer] += size - size * sum(parts) // stripe.sessions[session_id]["amount_total"]
    return told, due


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6))
def test_lost_repeated_or_reordered_events_credit_exactly_what_was_paid(stripe, seed):
    lot = random.Random(seed)
    people = [owner(), owner()]
    told, due = days_of_payments(stripe, lot, people)
    # Events of refunds are repeated until they are taken; of the others some are lost.
    kept = [each for each in told if each["type"] == "charge.refunded" or lot.random() < 0.7]
    waiting = kept * 3
    lot.shuffle(waiting)
    while waiting:
        event = waiting.pop()
        try:
            tell(event)
        except Conflict:
            waiting.insert(0, event)
            reconcile(timedelta(minutes=2))
    for _ in range(3):
        reconcile(timedelta(hours=7))
    assert {buyer: balance(buyer) for buyer in people} == due
    assert not Purchase.objects.filter(state=PurchaseState.PENDING).exists()
    assert ledger.check_ledger() == []


@pytest.mark.django_db
def test_notices_go_after_a_quarter(stripe):
    tell(stripe.pay(bought(owner())))
    Notice.objects.update(at=now() - timedelta(days=91))
    reconcile()
    assert not Notice.objects.exists()
