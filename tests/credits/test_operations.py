"""The ledger: what moves, what is held, and that no race and no repetition makes a credit."""

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F

from make.registry import owner
from muniment.accounts.models import Account
from muniment.credits import operations as ledger
from muniment.credits.models import Hold, LedgerAccount, Transfer
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from services.crowd import at_once


@pytest.fixture(autouse=True)
def _starting(settings):
    settings.STARTING_CREDITS = 100


def numbers(actor):
    seen = ledger.get_balance(actor)
    return seen.balance, seen.held, seen.available


@pytest.mark.django_db
def test_the_first_look_opens_an_account_with_the_starting_credits_once():
    me = owner()
    assert numbers(me) == numbers(me) == (100, 0, 100)
    assert [(entry.amount, entry.kind) for entry in ledger.get_balance(me).entries] == [(100, "start")]
    assert ledger.check_ledger() == []


@pytest.mark.django_db
def test_a_registry_may_start_accounts_with_nothing(settings):
    settings.STARTING_CREDITS = 0
    me = owner()
    assert numbers(me) == (0, 0, 0)
    assert not Transfer.objects.exists()


@pytest.mark.django_db
def test_a_hold_sets_aside_a_capture_takes_once_and_a_release_gives_back_once():
    me = owner()
    ledger.hold(me, "one", 30)
    ledger.hold(me, "one", 30)
    ledger.hold(me, "two", 20)
    assert numbers(me) == (100, 50, 50)
    assert [each.pk for each in ledger.get_balance(me).holds] == ["one", "two"]
    assert [ledger.capture("one"), ledger.capture("one"), ledger.release("one")] == [True, False, False]
    assert [ledger.release("two"), ledger.release("two"), ledger.capture("two")] == [True, False, False]
    assert numbers(me) == (70, 0, 70)
    entry = ledger.get_balance(me).entries[0].to_wire()
    assert (entry["amount"], entry["kind"], entry["runId"], entry["balance"]) == (-30, "run", "one", 70)
    assert ledger.check_ledger() == []


@pytest.mark.django_db
def test_nothing_is_held_beyond_what_is_available_and_the_refusal_says_what_is():
    me = owner()
    ledger.hold(me, "one", 95)
    with pytest.raises(Conflict, match="costs 10 credits, but only 5 are available") as refused:
        ledger.hold(me, "two", 10)
    assert "/manage/credits" in refused.value.hint
    assert numbers(me) == (100, 95, 5)
    assert not Hold.objects.filter(pk="two").exists()


@pytest.mark.django_db
def test_a_free_run_is_settled_without_a_transfer():
    me = owner()
    ledger.hold(me, "free", 0)
    assert ledger.capture("free")
    assert numbers(me) == (100, 0, 100)
    assert ledger.check_ledger() == []


@pytest.mark.django_db
def test_a_grant_with_a_key_is_given_once():
    me = owner("paid@example.org")
    for _ in range(2):
        assert ledger.grant(COMMAND, "PAID@example.org", 40, note="thanks", key="march").balance == 140
    granted = ledger.grant(COMMAND, "paid@example.org", 1, note="a tip")
    assert (granted.balance, [(entry.amount, entry.note) for entry in granted.entries]) == (141, [(1, "a tip")])
    with pytest.raises(Conflict, match="used for another"):
        ledger.grant(COMMAND, "paid@example.org", 41, key="march")
    assert numbers(me) == (141, 0, 141)
    assert ledger.check_ledger() == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    "more", [{"note": "a\0b"}, {"note": "\ud800"}, {"key": "x" * 101}], ids=["NUL", "surrogate", "key"]
)
def test_a_grant_with_a_note_or_key_that_cannot_be_kept_is_refused(more):
    me = owner("me@example.org")
    with pytest.raises(BadRequest):
        ledger.grant(COMMAND, "me@example.org", 10, **more)
    assert numbers(me) == (100, 0, 100)
    assert ledger.grant(COMMAND, "me@example.org", 10, key="x" * 100).balance == 110


@pytest.mark.django_db
def test_a_transfer_never_overdraws_an_account():
    me = owner()
    account = ledger.own_account(me)
    with pytest.raises(IntegrityError):
        ledger.move("too much", account, ledger.system(ledger.REVENUE), 101, kind="test")
    assert (numbers(me), Transfer.objects.filter(kind="test").count()) == ((100, 0, 100), 0)
    assert ledger.move("all", account, ledger.system(ledger.REVENUE), 100, kind="test")
    assert numbers(me) == (0, 0, 0)
    assert ledger.check_ledger() == []


@pytest.mark.django_db
def test_an_account_that_was_deleted_has_no_credits_to_open():
    LedgerAccount.objects.create(name="account:4711")
    with pytest.raises(NotFound):
        ledger.ledger_account_of(4_711)
    assert not Transfer.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("who", "email", "amount", "refusal"),
    [
        ("owner", "me@example.org", 10, Forbidden),
        ("token", "me@example.org", 10, Forbidden),
        ("operator", "unknown@example.org", 10, NotFound),
        ("operator", "me@example.org", 0, BadRequest),
        ("operator", "me@example.org", -5, BadRequest),
        ("operator", "me@example.org", 10**9 + 1, BadRequest),
    ],
)
def test_a_grant_that_cannot_be_leaves_the_ledger_alone(who, email, amount, refusal):
    me = owner("me@example.org")
    operator = Account.objects.create_user("operator@example.org", role="operator")
    actor = {"owner": me, "token": operator.actor("token"), "operator": COMMAND}[who]
    with pytest.raises(refusal):
        ledger.grant(actor, email, amount)
    assert not Transfer.objects.exists()


@pytest.mark.django_db
def test_strangers_see_their_own_account_and_visitors_none():
    me, stranger = owner(), owner()
    ledger.hold(me, "mine", 60)
    assert numbers(stranger) == (100, 0, 100)
    with pytest.raises(Forbidden):
        ledger.get_balance(VISITOR)


@pytest.mark.django_db
def test_the_database_itself_refuses_an_overdraft():
    me = owner()
    numbers(me)
    for change in ({"posted": F("posted") - 101}, {"held": F("held") + 101}, {"held": -1}):
        with pytest.raises(IntegrityError), transaction.atomic():
            LedgerAccount.objects.filter(account_id=me.account_id).update(**change)


@pytest.mark.django_db
def test_the_proof_finds_a_balance_that_was_tampered_with():
    me = owner()
    ledger.hold(me, "one", 10)
    ledger.capture("one")
    LedgerAccount.objects.filter(account_id=me.account_id).update(posted=F("posted") + 7)
    LedgerAccount.objects.filter(name=ledger.REVENUE).update(held=3, may_go_negative=True)
    faults = ledger.check_ledger()
    assert any("has a balance of 97, but its transfers add up to 90" in fault for fault in faults)
    assert any("holds 3, but its open holds add up to 0" in fault for fault in faults)
    assert any("all accounts add up to 7" in fault for fault in faults)


@pytest.mark.requirement("credits.ledger")
@pytest.mark.django_db(transaction=True)
def test_of_24_that_hold_under_8_keys_with_credit_for_5_exactly_5_hold(settings):
    settings.STARTING_CREDITS = 50
    me = owner()
    outcomes = at_once([lambda key=f"run{n % 8}": ledger.hold(me, key, 10) for n in range(24)])
    assert {type(each) for each in outcomes} <= {type(None), Conflict}, outcomes
    assert Hold.objects.count() == 5
    assert numbers(me) == (50, 50, 0)
    assert ledger.check_ledger() == []
    settled = at_once(
        [
            lambda key=key, act=act: act(key)
            for key in Hold.objects.values_list("pk", flat=True)
            for act in (ledger.capture, ledger.release)
        ]
    )
    assert settled.count(True) == 5
    assert ledger.check_ledger() == []
    taken = Hold.objects.filter(state="captured").count()
    assert numbers(me) == (50 - 10 * taken, 0, 50 - 10 * taken)


@pytest.mark.django_db(transaction=True)
def test_an_account_that_is_opened_12_times_at_once_starts_once():
    me = owner()
    outcomes = at_once([lambda: numbers(me) for _ in range(12)])
    assert outcomes == [(100, 0, 100)] * 12
    assert ledger.check_ledger() == []


@pytest.mark.django_db(transaction=True)
def test_a_ledger_agrees_with_itself_while_others_spend():
    me = owner()
    ledger.hold(me, "one", 10)
    spent = []

    def spend_once(execute, sql, params, many, context):
        result = execute(sql, params, many, context)
        if "credits_ledgeraccount" in sql and not spent:
            spent.append(True)
            assert at_once([lambda: ledger.capture("one")]) == [True]
        return result

    with connection.execute_wrapper(spend_once):
        assert ledger.check_ledger() == []
    assert spent
    assert numbers(me) == (90, 0, 90)


@pytest.mark.django_db
def test_the_proof_finds_charges_without_a_hold_and_purchases_that_do_not_exist():
    me = owner()
    account = ledger.own_account(me)
    ledger.move("run:ghost", account, ledger.system(ledger.REVENUE), 5, kind="run", reference="ghost")
    ledger.move("purchase:ghost", ledger.system(ledger.SOLD), account, 7, kind="purchase", reference="ghost")
    ledger.hold(me, "paid", 10)
    ledger.capture("paid")
    Hold.objects.filter(pk="paid").update(amount=11)
    faults = ledger.check_ledger()
    assert len(faults) == 3
    for said in ("run ghost", "a purchase of 7 refers to purchase ghost", "hold paid was captured for 11"):
        assert any(said in fault for fault in faults), said


@pytest.mark.django_db
def test_an_empty_ledger_agrees_and_so_does_one_with_open_holds():
    assert ledger.totals() == (0, 0, True)
    one, two = owner(), owner()
    ledger.hold(one, "kept", 30)
    ledger.hold(two, "paid", 20)
    ledger.capture("paid")
    assert ledger.totals() == (180, 30, True)


@pytest.mark.django_db
@pytest.mark.parametrize("column", ["posted", "held"])
def test_a_ledger_that_was_tampered_with_does_not_balance(column):
    me = owner()
    ledger.hold(me, "kept", 30)
    LedgerAccount.objects.filter(account_id=me.account_id).update(**{column: F(column) + 1})
    assert not ledger.totals().agrees
