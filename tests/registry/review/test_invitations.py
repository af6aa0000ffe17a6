"""Invitations to co-own a listing: sent by an owner, accepted once, within fourteen days."""

from datetime import timedelta
from functools import partial

import pytest

from make.accounts import Letters
from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts import personal_data
from muniment.accounts.models import Account
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden, NotFound, TooMany
from muniment.mail import outgoing
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields
from muniment.registry.models import HistoryEntry, Invitation, Ownership
from muniment.registry.review import invitations
from services.crowd import at_once

pytestmark = pytest.mark.django_db
GUEST = "guest@harbour.example"


@pytest.fixture
def tokens(monkeypatch):
    """Name the tokens of the invitations "token 1", "token 2" and so on."""
    numbers = iter(range(1, 1_000))
    monkeypatch.setattr(invitations.secrets, "token_urlsafe", lambda _: f"token {next(numbers)}")


def invite(actor, slug, email=GUEST):
    return invitations.invite_owner(actor, slug, email, base_url="https://registry.example")


def owns(actor, slug):
    return Ownership.objects.filter(account_id=actor.account_id, company__slug=slug).exists()


def test_an_invited_account_becomes_an_owner_and_the_history_says_so(tokens):
    me, guest = owner(), owner(GUEST)
    slug = draft(me).slug
    invite(me, slug)
    assert not owns(guest, slug)
    assert invitations.accept_invitation(guest, "token 1").slug == slug
    assert owns(guest, slug)
    newest, before = listings.company_history(me, slug).items[:2]
    assert (newest.action, newest.account_id, newest.after) == (
        "owner added",
        guest.account_id,
        {"owner": guest.account_id},
    )
    assert (before.action, before.account_id, before.after) == ("owner invited", me.account_id, {"email": GUEST})


def test_the_mail_has_the_link_and_the_database_only_its_digest(tokens, settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me = Letters(), owner()
    with django_capture_on_commit_callbacks(execute=True):
        made = invite(me, draft(me).slug, " Guest@Harbour.example ")
    [(_, text)] = letters.to(GUEST)
    assert "https://registry.example/manage/invitations/token 1" in text
    assert made.email == GUEST
    assert "token 1" not in str(Invitation.objects.values_list().get())


def test_an_invitation_is_accepted_once(tokens):
    me, guest, other = owner(), owner(), owner()
    slug = draft(me).slug
    invite(me, slug)
    invitations.accept_invitation(guest, "token 1")
    for attempt in (partial(invitations.accept_invitation, other), invitations.find_invitation):
        with pytest.raises(NotFound):
            attempt("token 1")
    assert not owns(other, slug)


@pytest.mark.parametrize(("days", "good"), [(13.9, True), (14.1, False)])
def test_an_invitation_is_good_for_fourteen_days(tokens, days, good):
    me, guest = owner(), owner()
    slug = draft(me).slug
    invite(me, slug)
    Ownership.objects.update(since=now() - timedelta(days=20))
    Invitation.objects.update(invited_at=now() - timedelta(days=days))
    if not good:
        for attempt in (partial(invitations.accept_invitation, guest), invitations.find_invitation):
            with pytest.raises(NotFound):
                attempt("token 1")
    else:
        assert invitations.find_invitation("token 1").company.slug == slug
        invitations.accept_invitation(guest, "token 1")
    assert owns(guest, slug) is good


def test_an_unknown_invitation_is_not_found(tokens):
    invite(me := owner(), draft(me).slug)
    for token in ("", "token 2", Invitation.objects.get().token_digest):
        with pytest.raises(NotFound):
            invitations.accept_invitation(owner(), token)
    assert Ownership.objects.count() == 1


def test_a_visitor_accepts_nothing(tokens):
    me = owner()
    invite(me, draft(me).slug)
    with pytest.raises(Forbidden):
        invitations.accept_invitation(VISITOR, "token 1")
    assert Invitation.objects.get().accepted_at is None


def test_a_second_invitation_of_the_same_address_replaces_the_first(tokens):
    me, guest = owner(), owner()
    slug = draft(me).slug
    invite(me, slug)
    invite(me, slug)
    with pytest.raises(NotFound):
        invitations.accept_invitation(guest, "token 1")
    invitations.accept_invitation(guest, "token 2")
    assert (Invitation.objects.count(), owns(guest, slug)) == (1, True)


@pytest.mark.parametrize(
    "end", ["left", "removed", "left and came back", "removed and came back", "deactivated", "deleted"]
)
def test_an_invitation_is_void_when_its_sender_stops_owning_the_listing(tokens, end):
    me, partner, guest = owner(), owner(), owner(GUEST)
    slug = draft(me).slug
    listings.add_owner(me, slug, partner.account_id)
    invite(partner, slug, "alt@harbour.example")
    invite(me, slug)
    held = Ownership.objects.filter(account=partner.account_id)
    if end.startswith("left"):
        listings.leave_company(partner, slug)
    elif end.startswith("removed"):
        held.delete()
    elif end == "deleted":
        personal_data.delete_account(COMMAND, Account.objects.get(pk=partner.account_id).email)
    else:
        Account.objects.filter(pk=partner.account_id).update(is_active=False)
    if end.endswith("back"):
        listings.add_owner(me, slug, partner.account_id)
    for attempt in (partial(invitations.accept_invitation, partner), invitations.find_invitation):
        with pytest.raises(NotFound, match="used or has expired"):
            attempt("token 1")
    assert owns(partner, slug) == (end.endswith("back") or end == "deactivated")
    invitations.accept_invitation(guest, "token 2")  # the other owner's holds
    assert owns(guest, slug)


def test_an_invitation_of_a_reviewer_is_void_with_the_role(tokens):
    slug, judge, guest = draft(owner()).slug, reviewer(), owner(GUEST)
    invite(judge, slug)
    Account.objects.filter(pk=judge.account_id).update(role="owner")
    with pytest.raises(NotFound):
        invitations.accept_invitation(guest, "token 1")
    Account.objects.filter(pk=judge.account_id).update(role="reviewer")
    assert invitations.accept_invitation(guest, "token 1").slug == slug


@pytest.mark.django_db(transaction=True)
def test_an_invitation_that_many_accept_at_once_makes_one_owner(tokens):
    me, guests = owner(), [owner() for _ in range(6)]
    slug = draft(me).slug
    invite(me, slug)
    outcomes = at_once([partial(invitations.accept_invitation, guest, "token 1") for guest in guests])
    assert sum(isinstance(each, NotFound) for each in outcomes) == 5
    assert sum(owns(guest, slug) for guest in guests) == 1


def test_an_owner_who_accepts_stays_an_owner_without_a_second_entry(tokens):
    me = owner()
    slug = draft(me).slug
    invite(me, slug)
    invitations.accept_invitation(me, "token 1")
    assert (Ownership.objects.count(), HistoryEntry.objects.filter(action="owner added").count()) == (1, 0)


@pytest.mark.parametrize("who", ["stranger", "invited", "visitor", "command line"])
def test_only_an_owner_with_an_account_invites(who):
    slug = draft(owner()).slug
    actor = {
        "stranger": owner,
        "invited": lambda: owner(GUEST),
        "visitor": lambda: VISITOR,
        "command line": lambda: COMMAND,
    }[who]()
    with pytest.raises(NotFound if actor.account_id else Forbidden):
        invite(actor, slug)
    assert not Invitation.objects.exists()


@pytest.mark.parametrize("email", ["", "harbour", "a b@harbour.example", "a@harbour.example\nBcc: b@harbour.example"])
def test_only_an_email_address_is_invited(email):
    me = owner()
    with pytest.raises(BadFields) as problem:
        invite(me, draft(me).slug, email)
    assert [fault.field for fault in problem.value.faults] == ["email"]
    assert not Invitation.objects.exists()


def test_twenty_invitations_of_a_listing_may_wait():
    me = owner()
    slug = draft(me).slug
    company = Invitation.objects.create(
        company_id=_key(slug), email="0@a.example", token_digest="0", invited_by_id=me.account_id
    )
    Invitation.objects.bulk_create(
        Invitation(
            company_id=company.company_id, email=f"{n}@a.example", token_digest=str(n), invited_by_id=me.account_id
        )
        for n in range(1, 20)
    )
    with pytest.raises(Conflict):
        invite(me, slug)
    assert Invitation.objects.count() == 20
    invite(me, slug, "7@a.example")  # replaces one that waits
    invite(me, draft(me).slug)  # another listing has a limit of its own
    Invitation.objects.filter(email="1@a.example").update(invited_at=now() - timedelta(days=15))
    assert invite(me, slug).pk  # an expired one counts no more


def _key(slug):
    return listings.owned(COMMAND, slug).pk


def test_an_account_sends_twenty_invitations_an_hour(monkeypatch):
    me, moment = owner(), now()
    slug = published(me).slug
    monkeypatch.setattr(invitations, "now", lambda: moment)  # the hour does not turn meanwhile
    for _ in range(20):
        invite(me, slug)
    kept = Invitation.objects.get().pk
    with pytest.raises(TooMany) as problem:
        invite(me, slug)
    assert problem.value.retry_after_s <= 3_600
    assert Invitation.objects.get().pk == kept
    other = owner()
    invite(other, draft(other).slug)
    monkeypatch.setattr(invitations, "now", lambda: moment + timedelta(hours=1))
    invite(me, slug)


def test_the_mail_names_the_account_that_invites(settings, django_capture_on_commit_callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me = Letters(), owner()
    with django_capture_on_commit_callbacks(execute=True):
        invite(me, published(me, name="Tidal Works").slug)
    [(subject, text)] = letters.to(GUEST)
    assert "Tidal Works" in subject
    assert str(Account.objects.get(pk=me.account_id)) in text


def _letter(me, slug, settings, callbacks):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters = Letters()
    with callbacks(execute=True):
        invite(me, slug)
    [(subject, text)] = letters.to(GUEST)
    return subject, text


def test_the_mail_about_a_draft_repeats_none_of_its_words(settings, django_capture_on_commit_callbacks):
    me = owner()
    slug = draft(me, name="URGENT verify https://evil.example/x now").slug
    subject, text = _letter(me, slug, settings, django_capture_on_commit_callbacks)
    assert "evil" not in subject + text
    assert "URGENT" not in subject + text
    assert subject == "[Muniment] Invitation to co-own a listing"
    assert [word for word in text.split() if "://" in word] == [
        next(word for word in text.split() if word.startswith("https://registry.example/manage/invitations/"))
    ]


def test_the_mail_about_a_published_listing_has_no_link_but_its_own(settings, django_capture_on_commit_callbacks):
    me = owner()
    slug = published(me, name="Tidal.example at https://evil.example/x").slug
    subject, text = _letter(me, slug, settings, django_capture_on_commit_callbacks)
    assert "Tidal . example" in subject
    assert "evil.example" not in subject + text
    assert sum("://" in word for word in text.split()) == 1


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Quillmere Harbour Cooperative", "Quillmere Harbour Cooperative"),
        ("St. Mary & Sons, Ltd.", "St. Mary & Sons, Ltd."),
        ("https://evil.example/x", "https evil . example / x"),
        ("me@evil.example", "me @ evil . example"),
        ("evil\u3002example", "evil \u3002 example"),
        ("a\r\nBcc: b\x1b\u202e", "a Bcc: b"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_words_of_a_user_in_mail_to_others_are_one_short_line_without_links(words, shown):
    assert outgoing.without_links(words) == shown


def test_an_inviter_whose_address_is_a_sentence_is_not_quoted(settings, django_capture_on_commit_callbacks):
    me = owner('"visit https://evil.example/x now"@harbour.example')
    subject, text = _letter(me, draft(me).slug, settings, django_capture_on_commit_callbacks)
    assert "evil.example" not in subject + text
    assert text.startswith("An owner invites you")


def test_an_account_sends_few_invitations_to_drafts_a_day(monkeypatch):
    me, moment = owner(), now()
    slug, reviewed = draft(me).slug, published(me).slug
    monkeypatch.setattr(invitations, "now", lambda: moment)
    for _ in range(invitations.MAX_OF_DRAFTS_PER_DAY):
        invite(me, slug)
    with pytest.raises(TooMany, match="unpublished"):
        invite(me, slug)
    invite(me, reviewed)
    other = owner()
    invite(other, draft(other).slug)


def test_an_account_sends_a_bounded_number_of_invitations_a_day(monkeypatch):
    me = owner()
    slug = published(me).slug
    start = now().replace(hour=1, minute=0)
    for number in range(invitations.MAX_PER_DAY):
        monkeypatch.setattr(invitations, "now", lambda hour=number // 20: start + timedelta(hours=hour))
        invite(me, slug)
    monkeypatch.setattr(invitations, "now", lambda: start + timedelta(hours=5))
    with pytest.raises(TooMany, match="today"):
        invite(me, slug)


def test_ownership_is_in_the_logs_of_everyone_it_concerns(tokens):
    me, partner, guest = owner(), owner(), owner(GUEST)
    slug = draft(me).slug
    listings.add_owner(me, slug, partner.account_id)
    invite(me, slug)
    invitations.accept_invitation(guest, "token 1")
    listings.leave_company(agent_of(guest), slug)
    seen = {
        each.account_id: list(
            SecurityEvent.objects.filter(account=each.account_id).order_by("pk").values_list("event", flat=True)
        )
        for each in (me, partner, guest)
    }
    assert seen[me.account_id] == ["owner_added", "owner_invited", "owner_added", "owner_left"]
    assert seen[partner.account_id] == ["ownership_gained", "owner_added", "owner_left"]
    assert seen[guest.account_id] == ["ownership_gained", "ownership_ended"]
    assert set(SecurityEvent.objects.values_list("subject", flat=True)) == {f"companies/{slug}"}
    ended = SecurityEvent.objects.get(event="ownership_ended")
    assert (ended.via, ended.credential) == ("token", "my token"), "the account sees which of its tokens left"
