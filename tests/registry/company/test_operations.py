"""Owners create, change and revert their listings; strangers reach nothing."""

import pytest

from make.registry import agent_of, changes, document, draft, item, owner, published, reviewer
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import operations, owners
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.models import Company, HistoryEntry, PendingChange, Person
from muniment.registry.review import decisions
from services.crowd import at_once

pytestmark = pytest.mark.django_db


def test_a_draft_is_nowhere_public_and_its_owner_sees_it():
    me = owner()
    made = draft(me, description="Boats for all.")
    assert document("company", made.slug) is None
    seen = operations.get_company(me, made.slug)
    assert (seen.state, seen.version, seen.role, seen.published) == ("draft", 1, "owner", False)
    assert seen.bundle["company"]["description"] == "Boats for all."
    assert [item.slug for item in operations.list_companies(me).items] == [made.slug]


def test_a_slug_is_made_from_the_name_and_never_given_again():
    me = owner()
    first, second = draft(me, name="Tidal Works"), draft(me, name="Tidal Works")
    assert (first.slug, second.slug) == ("tidal-works", "tidal-works-2")
    Company.objects.filter(slug=second.slug).delete()
    assert draft(me, name="Tidal Works").slug == "tidal-works-3"
    with pytest.raises(BadFields, match="is taken"):
        operations.create_company(me, CompanyChange(name="Other"), slug="tidal-works-2")


def test_only_an_account_creates_a_listing():
    with pytest.raises(Forbidden):
        operations.create_company(VISITOR, CompanyChange(name="Nobody's"))


@pytest.mark.parametrize("stranger", ["visitor", "other owner", "reviewer's token"])
def test_a_stranger_learns_nothing_and_changes_nothing(stranger):
    mine = published(owner())
    actor = {"visitor": lambda: VISITOR, "other owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[
        stranger
    ]()
    missing = "no company with the slug"
    change = CompanyChange(description="Taken over.")
    for attempt in (
        lambda slug: operations.get_company(actor, slug),
        lambda slug: operations.update_company(actor, slug, change),
        lambda slug: operations.company_history(actor, slug).items,
        lambda slug: operations.revert_company(actor, slug, 1),
        lambda slug: operations.open_funding_round(actor, slug, name="Seed"),
        lambda slug: operations.close_funding_round(actor, slug),
        lambda slug: operations.set_icon(actor, slug, "https://elsewhere.example/logo.webp"),
        lambda slug: owners.add_owner(actor, slug, 1),
        lambda slug: owners.leave_company(actor, slug),
        lambda slug: decisions.submit_company(actor, slug),
    ):
        with pytest.raises(NotFound, match=missing) as known:
            attempt(mine.slug)
        with pytest.raises(NotFound, match=missing) as unknown:
            attempt("missing")
        assert known.value.message.replace(mine.slug, "missing") == unknown.value.message
    assert operations.list_companies(actor).items == []
    assert "description" not in document("company", mine.slug)["company"]


def test_an_edit_of_a_published_listing_is_public_at_once_with_history_naming_the_credential():
    me = owner()
    mine = published(me)
    update = operations.update_company(
        agent_of(me), mine.slug, CompanyChange(description="New words.", status="active")
    )
    assert update.applied == ["status", "description"]
    assert update.diff["description"] == {"before": None, "after": "New words."}
    assert document("company", mine.slug)["company"]["description"] == "New words."
    entry = operations.company_history(me, mine.slug).items[0]
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
    assert operations.update_company(me, mine.slug, CompanyChange(name="Renamed")).applied == ["name"]


def test_texts_are_applied_before_other_fields():
    me = owner()
    change = CompanyChange(themes=["maps"], website="https://a.example/", teamSize=3, description="We mend boats.")
    update = operations.update_company(me, draft(me).slug, change)
    assert update.applied == ["description", "website", "teamSize", "themes"]
    assert list(update.diff) == update.applied


def test_a_dry_run_shows_the_difference_and_changes_nothing():
    me = owner()
    mine = published(me)
    before = changes()
    update = operations.update_company(
        me, mine.slug, CompanyChange(positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}]), dry_run=True
    )
    assert update.diff["positions"]["after"][0]["person"]["name"] == "Ada Moss"
    assert changes() == before
    assert operations.get_company(me, mine.slug).version == mine.version + 2  # submitted, approved
    assert document("company", mine.slug)["positions"] == []


def test_a_lost_update_is_refused_with_the_way_out():
    me = owner()
    mine = draft(me)
    operations.update_company(me, mine.slug, CompanyChange(industry="Energy"), expected_version=1)
    with pytest.raises(Conflict, match="version 2, not 1") as problem:
        operations.update_company(me, mine.slug, CompanyChange(industry="Health"), expected_version=1)
    assert "expectedVersion 2" in problem.value.hint


def test_nothing_changed_makes_no_history_and_no_edition():
    me = owner()
    mine = published(me, description="Same.")
    before, count = changes(), HistoryEntry.objects.count()
    update = operations.update_company(me, mine.slug, CompanyChange(description="Same."))
    assert (update.applied, changes(), HistoryEntry.objects.count()) == ([], before, count)


def test_revert_puts_back_what_an_entry_changed():
    me = owner()
    mine = published(me, description="First.", socials={"twitter": "@first"})
    operations.update_company(
        me,
        mine.slug,
        CompanyChange(
            description="Second.", socials={"email": "x@y.example"}, positions=[{"person": {"name": "Ada Moss"}}]
        ),
    )
    entry = operations.company_history(me, mine.slug).items[0]
    operations.revert_company(me, mine.slug, entry.pk)
    data = document("company", mine.slug)
    assert data["company"]["description"] == "First."
    assert (data["company"]["socials"]["twitter"], data["company"]["socials"]["email"]) == ("@first", None)
    assert data["positions"] == []
    assert document("person", "ada-moss") is None
    created = operations.company_history(me, mine.slug).items[-1]
    with pytest.raises(NotFound):
        operations.revert_company(me, mine.slug, created.pk + 10_000)


def test_an_entry_without_field_changes_cannot_be_reverted():
    me = owner()
    mine = published(me)
    approved = next(entry for entry in operations.company_history(me, mine.slug).items if entry.action == "approved")
    with pytest.raises(BadRequest, match="no change that can be reverted"):
        operations.revert_company(me, mine.slug, approved.pk)


def test_an_owner_leaves_and_a_further_owner_stays():
    me, other = owner(), owner()
    mine = draft(me)
    owners.add_owner(me, mine.slug, other.account_id)
    owners.leave_company(me, mine.slug)
    with pytest.raises(NotFound):
        operations.get_company(me, mine.slug)
    assert operations.get_company(other, mine.slug).slug == mine.slug
    left, added = operations.company_history(other, mine.slug).items[:2]
    assert (left.action, left.account_id) == ("owner left", me.account_id)
    assert (left.before, left.after) == ({"owner": me.account_id}, {})
    assert (added.action, added.account_id) == ("owner added", me.account_id)
    assert (added.before, added.after) == ({}, {"owner": other.account_id})


def test_a_reviewer_who_owns_no_listing_leaves_none():
    me = owner()
    mine = draft(me)
    with pytest.raises(NotFound):
        owners.leave_company(reviewer(), mine.slug)
    assert Company.objects.get().owners.get().pk == me.account_id
    assert operations.company_history(me, mine.slug).items[0].action == "created"


def test_a_further_owner_is_added_once():
    me, other = owner(), owner()
    mine = draft(me)
    for _ in range(2):
        owners.add_owner(me, mine.slug, other.account_id)
    actions = [entry.action for entry in operations.company_history(me, mine.slug).items]
    assert actions == ["owner added", "created"]


def test_a_listing_is_created_with_a_name():
    with pytest.raises(BadFields) as problem:
        operations.create_company(owner(), CompanyChange(description="Boats."))
    assert [fault.field for fault in problem.value.faults] == ["name"]
    assert not Company.objects.exists()


@pytest.mark.parametrize("slug", ["a b", "..", "x" * 201, "e\u0301"])
def test_a_chosen_slug_must_fit_an_address(slug):
    with pytest.raises(BadFields) as problem:
        operations.create_company(owner(), CompanyChange(name="Tidal Works"), slug=slug)
    assert [fault.field for fault in problem.value.faults] == ["slug"]
    assert not Company.objects.exists()


def test_funding_rounds_open_once_and_close():
    me = owner()
    mine = published(me)
    operations.open_funding_round(me, mine.slug, name="Seed", target="$1M")
    assert document("company", mine.slug)["company"]["raising"] is True
    with pytest.raises(Conflict, match="already open"):
        operations.open_funding_round(me, mine.slug, name="Again")
    operations.close_funding_round(me, mine.slug)
    assert document("company", mine.slug)["company"]["raising"] is False
    with pytest.raises(Conflict, match="No funding round is open"):
        operations.close_funding_round(me, mine.slug)
    operations.open_funding_round(me, mine.slug, name="Second")
    assert len(operations.get_company(me, mine.slug).bundle["fundingRounds"]) == 2


def test_one_field_is_changed_published_and_answered_in_few_statements(django_assert_max_num_queries):
    """Each costs CPU; what was loaded to publish is not loaded again to answer (bench/owner_cost.py)."""
    me = owner()
    mine = published(me)
    with django_assert_max_num_queries(12):
        update = operations.update_company(me, mine.slug, CompanyChange(status="upcoming"))
    assert update.company == operations.get_company(me, mine.slug)


def test_a_funding_round_does_not_close_before_it_opens():
    me = owner()
    mine = draft(me)
    operations.open_funding_round(me, mine.slug, name="Seed", opened="2024-05-02")
    with pytest.raises(BadFields) as problem:
        operations.close_funding_round(me, mine.slug, closed="2024-05-01")
    assert [fault.field for fault in problem.value.faults] == ["fundingRound.closed"]
    assert operations.get_company(me, mine.slug).bundle["company"]["raising"] is True
    operations.close_funding_round(me, mine.slug, closed="2024-05-02")
    assert operations.get_company(me, mine.slug).bundle["company"]["raising"] is False


@pytest.mark.parametrize("slug", ["a\0b", "\ud800"])
def test_a_slug_that_no_database_holds_is_refused(slug):
    with pytest.raises(BadRequest):
        operations.get_company(owner(), slug)


@pytest.mark.django_db(transaction=True)
def test_eight_owners_who_create_the_same_names_at_once_each_get_their_own_slugs():
    actors = [owner() for _ in range(8)]
    named = CompanyChange(name="Tidal Works", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    outcomes = at_once([lambda me=me: operations.create_company(me, named) for me in actors])
    assert sorted(each.slug for each in outcomes) == ["tidal-works", *(f"tidal-works-{n}" for n in range(2, 9))]
    assert not Person.objects.exists()


def test_a_listing_without_owners_is_in_no_list():
    me = owner()
    draft(me)
    owners.leave_company(me, Company.objects.get().slug)
    for actor in (VISITOR, COMMAND, me):
        found = operations.list_companies(actor)
        assert (found.items, found.total) == ([], 0)


def test_a_chosen_slug_is_the_address():
    assert operations.create_company(owner(), CompanyChange(name="Tidal Works"), slug="tides").slug == "tides"


def test_a_declined_change_can_be_requested_again():
    me = owner()
    mine = published(me, name="Old Name")
    for _ in range(2):
        operations.update_company(me, mine.slug, CompanyChange(name="Newer"))
        waiting = PendingChange.objects.get(decision="")
        assert waiting.changes == {"name": "Newer"}
        decisions.decide_change(reviewer(), waiting.pk, approve=False, note="No.")
    assert PendingChange.objects.filter(decision="rejected").count() == 2


def test_a_person_who_is_named_first_in_a_position_has_an_id_and_a_trimmed_name():
    published(owner(), positions=[{"person": {"name": " Ada Moss "}}])
    shown = item("person", "ada-moss")
    assert (shown["name"], len(shown["documentId"]) >= 20) == ("Ada Moss", True)


def test_every_change_of_a_listing_locks_it_first(monkeypatch):
    """On PostgreSQL a change that read the listing without its lock could be lost."""
    me = owner()
    slug, locks, find = draft(me).slug, [], operations.owned

    def noted(actor, slug, *, lock=False):
        locks.append(lock)
        return find(actor, slug, lock=lock)

    for module in (operations, owners):
        monkeypatch.setattr(module, "owned", noted)
    for change in (
        lambda: operations.update_company(me, slug, CompanyChange(industry="Energy")),
        lambda: operations.revert_company(me, slug, HistoryEntry.objects.order_by("-pk")[0].pk),
        lambda: operations.open_funding_round(me, slug, name="Seed"),
        lambda: operations.close_funding_round(me, slug),
        lambda: operations.set_icon(me, slug, "https://registry.example/logo.webp"),
        lambda: owners.add_owner(me, slug, owner().account_id),
        lambda: owners.leave_company(me, slug),
    ):
        locks.clear()
        change()
        assert locks, change
        assert all(locks), change
