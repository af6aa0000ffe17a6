"""Owners create, change and revert their listings; strangers reach nothing."""

import base64
import random

import pytest

from make.registry import agent_of, changes, document, draft, item, owner, published, reviewer
from muniment.kernel import fairness
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.fairness import BURST_BYTES, MAX_DRAFTS, Fairness
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import add_owner
from muniment.registry.models import Company, HistoryEntry, Ownership, PendingChange, Person, Petition
from muniment.registry.people import profiles
from muniment.registry.review import claims, workflow
from services.crowd import at_once

pytestmark = pytest.mark.django_db


def test_a_draft_is_nowhere_public_and_its_owner_sees_it():
    me = owner()
    made = draft(me, description="Boats for all.")
    assert document("company", made.slug) is None
    seen = listings.get_company(me, made.slug)
    assert (seen.state, seen.version, seen.role, seen.published) == ("draft", 1, "owner", False)
    assert seen.bundle["company"]["description"] == "Boats for all."
    assert [item.slug for item in listings.list_companies(me).items] == [made.slug]


def test_a_slug_is_made_from_the_name_and_never_given_again():
    me = owner()
    first, second = draft(me, name="Tidal Works"), draft(me, name="Tidal Works")
    assert (first.slug, second.slug) == ("tidal-works", "tidal-works-2")
    Company.objects.filter(slug=second.slug).delete()
    assert draft(me, name="Tidal Works").slug == "tidal-works-3"
    with pytest.raises(BadFields, match="is taken"):
        listings.create_company(me, CompanyChange(name="Other"), slug="tidal-works-2")


def test_only_an_account_creates_a_listing():
    with pytest.raises(Forbidden):
        listings.create_company(VISITOR, CompanyChange(name="Visitor's listing"))


@pytest.mark.parametrize("stranger", ["visitor", "other owner", "reviewer's token"])
def test_a_stranger_learns_nothing_and_changes_nothing(stranger):
    mine = published(owner())
    actor = {"visitor": lambda: VISITOR, "other owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[
        stranger
    ]()
    missing = "no company with the slug"
    change = CompanyChange(description="Taken over.")
    for attempt in (
        lambda slug: listings.get_company(actor, slug),
        lambda slug: listings.update_company(actor, slug, change),
        lambda slug: listings.company_history(actor, slug).items,
        lambda slug: listings.revert_company(actor, slug, 1),
        lambda slug: listings.open_funding_round(actor, slug, name="Seed"),
        lambda slug: listings.close_funding_round(actor, slug),
        lambda slug: listings.set_icon(actor, slug, "https://elsewhere.example/logo.webp"),
        lambda slug: listings.add_owner(actor, slug, 1),
        lambda slug: listings.leave_company(actor, slug),
        lambda slug: workflow.submit_company(actor, slug),
    ):
        with pytest.raises(NotFound, match=missing) as known:
            attempt(mine.slug)
        with pytest.raises(NotFound, match=missing) as unknown:
            attempt("missing")
        assert known.value.message.replace(mine.slug, "missing") == unknown.value.message
    assert listings.list_companies(actor).items == []
    assert "description" not in document("company", mine.slug)["company"]


def test_a_reviewer_learns_that_a_listing_does_not_exist_and_which_one_is_near():
    published(owner(), name="Tidal Works")
    with pytest.raises(NotFound, match="No listing has the slug 'tidal-work'") as fault:
        listings.get_company(reviewer(), "tidal-work")
    assert "tidal-works" in str(fault.value.hint)


def test_an_edit_of_a_published_listing_is_public_at_once_with_history_naming_the_credential():
    me = owner()
    mine = published(me)
    update = listings.update_company(agent_of(me), mine.slug, CompanyChange(description="New words.", status="active"))
    assert update.applied == ["status", "description"]
    assert update.diff["description"] == {"before": None, "after": "New words."}
    assert document("company", mine.slug)["company"]["description"] == "New words."
    entry = listings.company_history(me, mine.slug).items[0]
    assert (entry.action, entry.via, entry.credential, entry.account_id) == (
        "updated",
        "token",
        "my token",
        me.account_id,
    )
    assert (entry.before["status"], entry.after["status"]) == (None, "active")


def test_a_draft_is_renamed_without_a_reviewer():
    me = owner()
    mine = draft(me)
    assert listings.update_company(me, mine.slug, CompanyChange(name="Renamed")).applied == ["name"]


def test_texts_are_applied_before_other_fields():
    me = owner()
    change = CompanyChange(themes=["maps"], website="https://a.example/", teamSize=3, description="We mend boats.")
    update = listings.update_company(me, draft(me).slug, change)
    assert update.applied == ["description", "website", "teamSize", "themes"]
    assert list(update.diff) == update.applied


def test_a_dry_run_shows_the_difference_and_changes_nothing():
    me = owner()
    mine = published(me)
    before = changes()
    update = listings.update_company(
        me, mine.slug, CompanyChange(positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}]), dry_run=True
    )
    assert update.diff["positions"]["after"][0]["person"]["name"] == "Ada Moss"
    assert changes() == before
    assert listings.get_company(me, mine.slug).version == mine.version + 2  # submitted, approved
    assert document("company", mine.slug)["positions"] == []


def test_a_lost_update_is_refused_with_the_way_out():
    me = owner()
    mine = draft(me)
    listings.update_company(me, mine.slug, CompanyChange(industry="Energy"), expected_version=1)
    with pytest.raises(Conflict, match="version 2, not 1") as problem:
        listings.update_company(me, mine.slug, CompanyChange(industry="Health"), expected_version=1)
    assert "expectedVersion 2" in problem.value.hint


def test_nothing_changed_makes_no_history_and_no_edition():
    me = owner()
    mine = published(me, description="Same.")
    before, count = changes(), HistoryEntry.objects.count()
    update = listings.update_company(me, mine.slug, CompanyChange(description="Same."))
    assert (update.applied, changes(), HistoryEntry.objects.count()) == ([], before, count)


def test_revert_puts_back_what_an_entry_changed():
    me = owner()
    mine = published(me, description="First.", socials={"twitter": "@first"})
    listings.update_company(
        me,
        mine.slug,
        CompanyChange(
            description="Second.", socials={"email": "x@y.example"}, positions=[{"person": {"name": "Ada Moss"}}]
        ),
    )
    entry = listings.company_history(me, mine.slug).items[0]
    listings.revert_company(me, mine.slug, entry.pk)
    data = document("company", mine.slug)
    assert data["company"]["description"] == "First."
    assert (data["company"]["socials"]["twitter"], data["company"]["socials"]["email"]) == ("@first", None)
    assert data["positions"] == []
    assert document("person", "ada-moss") is None
    created = listings.company_history(me, mine.slug).items[-1]
    with pytest.raises(NotFound):
        listings.revert_company(me, mine.slug, created.pk + 10_000)


def test_an_entry_without_field_changes_cannot_be_reverted():
    me = owner()
    mine = published(me)
    approved = next(entry for entry in listings.company_history(me, mine.slug).items if entry.action == "approved")
    with pytest.raises(BadRequest, match="no change that can be reverted"):
        listings.revert_company(me, mine.slug, approved.pk)


def test_an_owner_leaves_and_a_further_owner_stays():
    me, other = owner(), owner()
    mine = draft(me)
    listings.add_owner(me, mine.slug, other.account_id)
    listings.leave_company(me, mine.slug)
    with pytest.raises(NotFound):
        listings.get_company(me, mine.slug)
    assert listings.get_company(other, mine.slug).slug == mine.slug
    left, added = listings.company_history(other, mine.slug).items[:2]
    assert (left.action, left.account_id) == ("owner left", me.account_id)
    assert (left.before, left.after) == ({"owner": me.account_id}, {})
    assert (added.action, added.account_id) == ("owner added", me.account_id)
    assert (added.before, added.after) == ({}, {"owner": other.account_id})


def test_a_reviewer_who_owns_no_listing_leaves_none():
    me = owner()
    mine = draft(me)
    with pytest.raises(NotFound):
        listings.leave_company(reviewer(), mine.slug)
    assert Company.objects.get().owners.get().pk == me.account_id
    assert listings.company_history(me, mine.slug).items[0].action == "created"


def test_a_further_owner_is_added_once():
    me, other = owner(), owner()
    mine = draft(me)
    for _ in range(2):
        listings.add_owner(me, mine.slug, other.account_id)
    actions = [entry.action for entry in listings.company_history(me, mine.slug).items]
    assert actions == ["owner added", "created"]


def test_a_listing_is_created_with_a_name():
    with pytest.raises(BadFields) as problem:
        listings.create_company(owner(), CompanyChange(description="Boats."))
    assert [fault.field for fault in problem.value.faults] == ["name"]
    assert not Company.objects.exists()


@pytest.mark.parametrize("slug", ["a b", "..", "x" * 201, "e\u0301"])
def test_a_chosen_slug_must_fit_an_address(slug):
    with pytest.raises(BadFields) as problem:
        listings.create_company(owner(), CompanyChange(name="Tidal Works"), slug=slug)
    assert [fault.field for fault in problem.value.faults] == ["slug"]
    assert not Company.objects.exists()


def test_funding_rounds_open_once_and_close():
    me = owner()
    mine = published(me)
    listings.open_funding_round(me, mine.slug, name="Seed", target="$1M")
    assert document("company", mine.slug)["company"]["raising"] is True
    with pytest.raises(Conflict, match="already open"):
        listings.open_funding_round(me, mine.slug, name="Again")
    listings.close_funding_round(me, mine.slug)
    assert document("company", mine.slug)["company"]["raising"] is False
    with pytest.raises(Conflict, match="No funding round is open"):
        listings.close_funding_round(me, mine.slug)
    listings.open_funding_round(me, mine.slug, name="Second")
    assert len(listings.get_company(me, mine.slug).bundle["fundingRounds"]) == 2


def test_one_field_is_changed_published_and_answered_in_few_statements(django_assert_max_num_queries):
    """Each costs CPU; what was loaded to publish is not loaded again to answer (bench/owner_cost.py)."""
    me = owner()
    mine = published(me)
    with django_assert_max_num_queries(12):
        update = listings.update_company(me, mine.slug, CompanyChange(status="upcoming"))
    found = listings.get_company(me, mine.slug)
    assert update.company == found
    assert update.company.bundle == found.bundle


def test_a_funding_round_does_not_close_before_it_opens():
    me = owner()
    mine = draft(me)
    listings.open_funding_round(me, mine.slug, name="Seed", opened="2024-05-02")
    with pytest.raises(BadFields) as problem:
        listings.close_funding_round(me, mine.slug, closed="2024-05-01")
    assert [fault.field for fault in problem.value.faults] == ["fundingRound.closed"]
    assert listings.get_company(me, mine.slug).bundle["company"]["raising"] is True
    listings.close_funding_round(me, mine.slug, closed="2024-05-02")
    assert listings.get_company(me, mine.slug).bundle["company"]["raising"] is False


@pytest.mark.parametrize("slug", ["a\0b", "\ud800"])
def test_a_slug_that_no_database_holds_is_refused(slug):
    with pytest.raises(BadRequest):
        listings.get_company(owner(), slug)


@pytest.mark.django_db(transaction=True)
def test_eight_owners_who_create_the_same_names_at_once_each_get_their_own_slugs():
    actors = [owner() for _ in range(8)]
    named = CompanyChange(name="Tidal Works", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    outcomes = at_once([lambda me=me: listings.create_company(me, named) for me in actors])
    assert sorted(each.slug for each in outcomes) == ["tidal-works", *(f"tidal-works-{n}" for n in range(2, 9))]
    assert not Person.objects.exists()


def test_a_listing_without_owners_is_in_no_list():
    me = owner()
    draft(me)
    listings.leave_company(me, Company.objects.get().slug)
    for actor in (VISITOR, COMMAND, me):
        found = listings.list_companies(actor)
        assert (found.items, found.total) == ([], 0)


def test_a_chosen_slug_is_the_address():
    assert listings.create_company(owner(), CompanyChange(name="Tidal Works"), slug="tides").slug == "tides"


def test_a_declined_change_can_be_requested_again():
    me = owner()
    mine = published(me, name="Old Name")
    for _ in range(2):
        listings.update_company(me, mine.slug, CompanyChange(name="Newer"))
        waiting = PendingChange.objects.get(decision="")
        assert waiting.changes == {"name": "Newer"}
        workflow.decide_change(reviewer(), waiting.pk, approve=False, note="No.")
    assert PendingChange.objects.filter(decision="rejected").count() == 2


def test_a_person_who_is_named_first_in_a_position_has_an_id_and_a_trimmed_name():
    published(owner(), positions=[{"person": {"name": " Ada Moss "}}])
    shown = item("person", "ada-moss")
    assert (shown["name"], len(shown["documentId"]) >= 20) == ("Ada Moss", True)


def test_every_change_of_a_listing_locks_it_first(monkeypatch):
    """On PostgreSQL a change that read the listing without its lock could be lost."""
    me = owner()
    slug, locks, find = draft(me).slug, [], listings.owned

    def noted(actor, slug, *, lock=False, **rest):
        locks.append(lock)
        return find(actor, slug, lock=lock, **rest)

    for module in (listings, listings):
        monkeypatch.setattr(module, "owned", noted)
    for change in (
        lambda: listings.update_company(me, slug, CompanyChange(industry="Energy")),
        lambda: listings.revert_company(me, slug, HistoryEntry.objects.order_by("-pk")[0].pk),
        lambda: listings.open_funding_round(me, slug, name="Seed"),
        lambda: listings.close_funding_round(me, slug),
        lambda: listings.set_icon(me, slug, "https://registry.example/logo.webp"),
        lambda: listings.add_owner(me, slug, owner().account_id),
        lambda: listings.leave_company(me, slug),
    ):
        locks.clear()
        change()
        assert locks, change
        assert all(locks), change


@pytest.fixture
def me():
    return owner()


@pytest.fixture
def limits(monkeypatch):
    """Return the limits of a server, whose clock does not go on."""
    found = Fairness(writes=60)
    found.written_bytes._clock = lambda: 0.0
    monkeypatch.setattr(fairness, "_current", found)
    return found


def noise(draw, size):
    return base64.b64encode(draw.randbytes(size), altchars=b"xy").decode()[:size]  # letters and digits


def stored_bytes(of):
    return sum(len(f"{e.before}{e.after}{e.parts}") for e in HistoryEntry.objects.filter(company__slug=of))


def test_an_account_prepares_a_bounded_number_of_listings(me):
    slugs = [draft(me).slug for _ in range(MAX_DRAFTS)]
    workflow.submit_company(me, slugs[0])
    with pytest.raises(Conflict, match="20 listings that are not published yet; at most 20 are allowed") as refusal:
        draft(agent_of(me))
    assert "Delete drafts" in refusal.value.hint
    assert Company.objects.count() == MAX_DRAFTS
    assert draft(owner()).state == "draft"
    workflow.delete_draft(me, slugs[1])
    draft(me)
    with pytest.raises(Conflict):
        draft(me)
    workflow.approve_company(reviewer(), slugs[0])
    draft(me)


def test_drafts_beyond_the_limit_stay_and_can_be_edited(me):
    slugs = [draft(owner()).slug for _ in range(MAX_DRAFTS + 2)]
    for slug in slugs:
        add_owner(reviewer(), slug, me.account_id)
    with pytest.raises(Conflict, match="22 listings"):
        draft(me)
    listings.update_company(me, slugs[-1], CompanyChange(description="Still mine."))
    assert Ownership.objects.filter(account_id=me.account_id).count() == MAX_DRAFTS + 2


def test_a_reviewer_prepares_any_number_of_listings():
    judge = reviewer()
    for _ in range(MAX_DRAFTS + 1):
        draft(judge)


@pytest.mark.parametrize("make", [draft, published])
def test_an_account_writes_a_bounded_number_of_bytes(me, limits, make):
    draw, mine = random.Random(18), make(me)
    refusals = []
    for _ in range(25):
        try:
            listings.update_company(me, mine.slug, CompanyChange(distribution={"details": noise(draw, 250_000)}))
        except TooMany as refusal:
            refusals.append(refusal)
    company = Company.objects.get(slug=mine.slug)
    assert len(refusals) >= 15
    assert all("changed too much text" in each.message and each.retry_after_s > 0 for each in refusals)
    assert len(company.distribution["details"]) == 250_000
    assert stored_bytes(mine.slug) <= BURST_BYTES + 10_000
    assert limits.refused["written_bytes"] == len(refusals)
    stranger = owner()
    listings.update_company(
        stranger, draft(stranger).slug, CompanyChange(distribution={"details": noise(draw, 250_000)})
    )


def test_a_list_of_ten_thousand_rows_is_saved_and_replaced(me, limits):
    draw, mine = random.Random(18), draft(me)
    for _ in range(2):
        rows = [{"name": noise(draw, 30), "address": f"0x{noise(draw, 40)}"} for _ in range(10_000)]
        totals = {"capTable": len(listings.get_company(me, mine.slug).bundle["capTable"])}
        listings.update_company(me, mine.slug, CompanyChange(capTable=rows), expected_totals=totals)
    assert Company.objects.get(slug=mine.slug).cap_table.count() == 10_000


def test_a_change_larger_than_the_limit_needs_all_of_it(me, limits):
    draw, mine = random.Random(18), draft(me)
    for clock_s, prefix in ((0.0, "a"), (1e6, "b")):
        limits.written_bytes._clock = lambda clock_s=clock_s: clock_s
        rows = [{"id": f"{prefix}{n}", "title": noise(draw, 1_100)} for n in range(2_000)]
        totals = {"proposals": len(listings.get_company(me, mine.slug).bundle["proposals"])}
        listings.update_company(me, mine.slug, CompanyChange(proposals=rows), expected_totals=totals)
    with pytest.raises(TooMany):
        listings.update_company(me, mine.slug, CompanyChange(description="x" * 2_000))


def test_a_dry_run_and_a_refused_change_cost_nothing(me, limits):
    mine = draft(me)
    before = limits.written_bytes.peek(str(me.account_id)).remaining
    big = "x" * 200_000
    listings.update_company(me, mine.slug, CompanyChange(distribution={"details": big}), dry_run=True)
    with pytest.raises(BadFields):
        listings.update_company(me, mine.slug, CompanyChange(distribution={"details": big * 2}))
    assert limits.written_bytes.peek(str(me.account_id)).remaining == before


BIG = "x" * 900_000
DEEP = [[[[[[[[[1]]]]]]]]]


@pytest.mark.parametrize(
    "change",
    [
        *({name: BIG} for name in ("description", "body", "industry", "orgKind")),
        {"website": f"https://tidal.example/{BIG}"},
        {"themes": [BIG]},
        {"socials": {"twitter": BIG}},
        {"address": [{"city": BIG}]},
        {"fundingRound": {"name": BIG}},
        {"fundingRounds": [{"name": BIG}]},
        {"proposals": [{"title": BIG}]},
        {"positions": [{"title": BIG, "person": {"name": "Ada"}}]},
        {"positions": [{"person": {"name": BIG}}]},
        {"capTable": [{"name": BIG}]},
        {"distribution": {"details": BIG}},
        {"distribution": {"pools": [{"name": BIG}]}},
        {"distribution": {BIG: 1}},
        {"distribution": {"more": {"and": [BIG]}}},
        {"distribution": {"more": DEEP}},
        {"distribution": {"pools": [{"name": "A", "more": DEEP}]}},
        {"proposals": [{"title": "A", "more": DEEP}]},
        {"proposals": [{"title": "A", "votes": {"more": DEEP}}]},
        {"positions": [{"person": {"name": "Ada", "more": DEEP}}]},
        {"capTable": [{"name": "A", "more": DEEP}]},
    ],
    ids=lambda change: str(change)[:50],
)
def test_no_value_is_large_or_deep_whether_edited_or_suggested(me, change):
    mine = published(me)
    before = listings.get_company(me, mine.slug).bundle
    with pytest.raises(BadFields, match="at most"):
        listings.update_company(me, mine.slug, CompanyChange(change))
    with pytest.raises(BadFields, match="at most"):
        claims.suggest_edit(owner(), mine.slug, CompanyChange(change), "")
    assert listings.get_company(me, mine.slug).bundle == before


def test_a_revert_does_not_let_a_listing_grow_beyond_its_size(me):
    mine = draft(me, distribution={"details": "x" * 150_000})
    listings.update_company(me, mine.slug, CompanyChange(distribution={"details": "Short."}))
    entry = HistoryEntry.objects.latest("pk")
    listings.update_company(me, mine.slug, CompanyChange(distribution={"schedule": "y" * 200_000}))
    listings.revert_company(me, mine.slug, entry.pk, overwrite=True)
    listings.update_company(me, mine.slug, CompanyChange(distribution={"details": "Short."}))
    entry = HistoryEntry.objects.latest("pk")
    Company.objects.filter(slug=mine.slug).update(extra={"more": "z" * 200_000})
    with pytest.raises(BadFields, match="at most 262,144 are allowed"):
        listings.revert_company(me, mine.slug, entry.pk)


def test_profiles_and_suggestions_count_too(me, limits):
    mine, other = published(owner()), owner()
    profiles.create_profile(me, profiles.ProfileChange(name="Ada Moss"))
    limits.written_bytes.charge(str(me.account_id), BURST_BYTES)
    with pytest.raises(TooMany):
        profiles.update_profile(me, profiles.ProfileChange(bio="Builds dykes. " * 100))
    with pytest.raises(TooMany):
        claims.suggest_edit(me, mine.slug, CompanyChange(description="Another."), "")
    assert not Petition.objects.exists()
    assert not Person.objects.get(account_id=me.account_id).bio
    claims.suggest_edit(other, mine.slug, CompanyChange(description="Another."), "")
