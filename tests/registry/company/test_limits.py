"""An account prepares a bounded number of listings and writes a bounded number of bytes; others are not affected."""

import base64
import random

import pytest

from make.registry import agent_of, draft, owner, published, reviewer
from muniment.kernel import fairness
from muniment.kernel.fairness import BURST_BYTES, MAX_DRAFTS, Fairness
from muniment.kernel.problems import Conflict, TooMany
from muniment.registry.company import operations
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.company.owners import add_owner
from muniment.registry.models import Company, HistoryEntry, Ownership, Person, Petition
from muniment.registry.people import profiles
from muniment.registry.review import claims, decisions, withdrawal

pytestmark = pytest.mark.django_db


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
    decisions.submit_company(me, slugs[0])
    with pytest.raises(Conflict, match="20 listings that are not published yet; at most 20 are allowed") as refusal:
        draft(agent_of(me))
    assert "Delete drafts" in refusal.value.hint
    assert Company.objects.count() == MAX_DRAFTS
    assert draft(owner()).state == "draft"
    withdrawal.delete_draft(me, slugs[1])
    draft(me)
    with pytest.raises(Conflict):
        draft(me)
    decisions.approve_company(reviewer(), slugs[0])
    draft(me)


def test_drafts_beyond_the_limit_stay_and_can_be_edited(me):
    slugs = [draft(owner()).slug for _ in range(MAX_DRAFTS + 2)]
    for slug in slugs:
        add_owner(reviewer(), slug, me.account_id)
    with pytest.raises(Conflict, match="22 listings"):
        draft(me)
    operations.update_company(me, slugs[-1], CompanyChange(description="Still mine."))
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
            operations.update_company(me, mine.slug, CompanyChange(distribution={"details": noise(draw, 250_000)}))
        except TooMany as refusal:
            refusals.append(refusal)
    company = Company.objects.get(slug=mine.slug)
    assert len(refusals) >= 15
    assert all("changed too much text" in each.message and each.retry_after_s > 0 for each in refusals)
    assert len(company.distribution["details"]) == 250_000
    assert stored_bytes(mine.slug) <= BURST_BYTES + 10_000
    assert limits.refused["written_bytes"] == len(refusals)
    stranger = owner()
    operations.update_company(
        stranger, draft(stranger).slug, CompanyChange(distribution={"details": noise(draw, 250_000)})
    )


def test_a_list_of_ten_thousand_rows_is_saved_and_replaced(me, limits):
    draw, mine = random.Random(18), draft(me)
    for _ in range(2):
        rows = [{"name": noise(draw, 30), "address": f"0x{noise(draw, 40)}"} for _ in range(10_000)]
        totals = {"capTable": len(operations.get_company(me, mine.slug).bundle["capTable"])}
        operations.update_company(me, mine.slug, CompanyChange(capTable=rows), expected_totals=totals)
    assert Company.objects.get(slug=mine.slug).cap_table.count() == 10_000


def test_a_change_larger_than_the_limit_needs_all_of_it(me, limits):
    draw, mine = random.Random(18), draft(me)
    for clock_s, prefix in ((0.0, "a"), (1e6, "b")):
        limits.written_bytes._clock = lambda clock_s=clock_s: clock_s
        rows = [{"id": f"{prefix}{n}", "title": noise(draw, 1_100)} for n in range(2_000)]
        totals = {"proposals": len(operations.get_company(me, mine.slug).bundle["proposals"])}
        operations.update_company(me, mine.slug, CompanyChange(proposals=rows), expected_totals=totals)
    with pytest.raises(TooMany):
        operations.update_company(me, mine.slug, CompanyChange(description="x" * 2_000))


def test_a_dry_run_and_a_refused_change_cost_nothing(me, limits):
    mine = draft(me)
    before = limits.written_bytes.peek(str(me.account_id)).remaining
    big = "x" * 200_000
    operations.update_company(me, mine.slug, CompanyChange(distribution={"details": big}), dry_run=True)
    with pytest.raises(BadFields):
        operations.update_company(me, mine.slug, CompanyChange(distribution={"details": big * 2}))
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
    before = operations.get_company(me, mine.slug).bundle
    with pytest.raises(BadFields, match="at most"):
        operations.update_company(me, mine.slug, CompanyChange(change))
    with pytest.raises(BadFields, match="at most"):
        claims.suggest_edit(owner(), mine.slug, CompanyChange(change), "")
    assert operations.get_company(me, mine.slug).bundle == before


def test_a_revert_does_not_let_a_listing_grow_beyond_its_size(me):
    mine = draft(me, distribution={"details": "x" * 150_000})
    operations.update_company(me, mine.slug, CompanyChange(distribution={"details": "Short."}))
    entry = HistoryEntry.objects.latest("pk")
    operations.update_company(me, mine.slug, CompanyChange(distribution={"schedule": "y" * 200_000}))
    operations.revert_company(me, mine.slug, entry.pk, overwrite=True)
    operations.update_company(me, mine.slug, CompanyChange(distribution={"details": "Short."}))
    entry = HistoryEntry.objects.latest("pk")
    Company.objects.filter(slug=mine.slug).update(extra={"more": "z" * 200_000})
    with pytest.raises(BadFields, match="at most 262,144 are allowed"):
        operations.revert_company(me, mine.slug, entry.pk)


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
