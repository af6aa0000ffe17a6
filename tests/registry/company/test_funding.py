"""Funding rounds: public, open by their dates, and private where they are older than that."""

from datetime import UTC, datetime, timedelta

import pytest

from make.registry import changes, document, draft, owner, published
from muniment.kernel.problems import NotFound
from muniment.registry.company import funding, listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import Company, FundingRound, HistoryEntry

pytestmark = pytest.mark.django_db
TODAY = datetime.now(UTC).date()


def day(offset):
    return (TODAY + timedelta(days=offset)).isoformat()


def with_rounds(me, *rounds):
    return published(me, fundingRounds=[{"name": f"Round {n}", **each} for n, each in enumerate(rounds)])


def rounds(mine):
    return document("company", mine.slug)["fundingRounds"]


def raising(mine):
    return document("company", mine.slug)["company"]["raising"]


def test_a_round_is_public_with_its_exact_target_and_dates():
    mine = with_rounds(owner(), {"target": "$1249999.99", "opened": day(-3)})
    (found,) = rounds(mine)
    assert found == {"id": found["id"], "name": "Round 0", "target": "$1249999.99", "opened": day(-3)}


@pytest.mark.parametrize(
    ("opened", "closed", "is_raising"),
    [
        (day(-1), None, True),
        (day(0), None, True),
        (day(1), None, False),
        ("2099-01-01", None, False),
        (day(-9), day(1), True),
        (day(-9), day(0), False),
        (None, None, True),
        (None, day(-1), False),
    ],
)
def test_raising_follows_the_dates(opened, closed, is_raising):
    given = {name: value for name, value in (("opened", opened), ("closed", closed)) if value}
    assert raising(with_rounds(owner(), given)) is is_raising


@pytest.fixture
def on_day(monkeypatch):
    def travel(offset):
        moment = datetime.now(UTC) + timedelta(days=offset)
        for module in ("company.funding", "publishing.documents", "company.listings"):
            monkeypatch.setattr(f"muniment.registry.{module}.now", lambda: moment)

    return travel


def test_the_listing_is_published_on_the_day_the_round_opens_and_again_when_it_closes(on_day):
    mine = with_rounds(owner(), {"opened": day(2), "closed": day(5)})
    entries = HistoryEntry.objects.count()
    seen = []
    for offset in range(7):
        on_day(offset)
        before = len(changes())
        seen.append((funding.publish_by_date(), raising(mine), len(changes()) - before))
        assert funding.publish_by_date() == 0
    assert seen == [
        (0, False, 0), (0, False, 0), (1, True, 1), (0, True, 0), (0, True, 0), (1, False, 1), (0, False, 0),
    ]  # fmt: skip
    assert HistoryEntry.objects.count() == entries


def test_a_round_that_an_owner_opens_today_is_not_published_twice():
    me = owner()
    mine = published(me)
    listings.open_funding_round(me, mine.slug, name="Seed")
    assert raising(mine) is True
    assert funding.publish_by_date() == 0


def test_a_listing_that_an_owner_edits_before_it_is_locked_is_not_turned_back():
    me = owner()
    mine = with_rounds(me, {"opened": day(-3)})
    before = len(changes())
    assert funding.publish_due([Company.objects.get(slug=mine.slug).pk]) == 0
    assert Company.objects.get(slug=mine.slug).raising is True
    assert len(changes()) == before


def test_drafts_are_left_alone_by_the_dates(on_day):
    draft(owner(), fundingRounds=[{"name": "Seed", "opened": day(1)}])
    on_day(2)
    assert funding.publish_by_date() == 0


def private(mine):
    FundingRound.objects.filter(company__slug=mine.slug).update(public=False)
    listings.update_company(owner_of[mine.slug], mine.slug, CompanyChange(description="Shown again."))
    (found,) = rounds(mine)
    return found


owner_of = {}


def private_listing():
    me = owner()
    mine = with_rounds(me, {"target": "$2M", "opened": day(-3)})
    owner_of[mine.slug] = me
    return me, mine, private(mine)


def test_of_an_older_round_only_the_dates_are_public_until_its_owner_publishes_it():
    me, mine, found = private_listing()
    assert found == {"id": found["id"], "opened": day(-3), "public": False}
    assert raising(mine) is True
    (own,) = listings.get_company(me, mine.slug).bundle["fundingRounds"]
    assert (own["name"], own["target"], own["public"]) == ("Round 0", "$2M", False)
    listings.publish_funding_round(me, mine.slug, found["id"])
    assert rounds(mine) == [{"id": found["id"], "name": "Round 0", "target": "$2M", "opened": day(-3)}]


def test_an_older_round_stays_private_when_its_list_is_written_back_or_it_is_closed():
    me, mine, found = private_listing()
    own = listings.get_company(me, mine.slug).bundle["fundingRounds"]
    without = [{name: value for name, value in each.items() if name != "public"} for each in own]
    assert listings.update_company(me, mine.slug, CompanyChange(fundingRounds=without)).applied == []
    listings.close_funding_round(me, mine.slug)
    assert rounds(mine) == [{"id": found["id"], "opened": day(-3), "closed": day(0), "public": False}]


def test_a_stranger_publishes_no_round():
    _, mine, found = private_listing()
    with pytest.raises(NotFound):
        listings.publish_funding_round(owner(), mine.slug, found["id"])
    assert "name" not in rounds(mine)[0]


def test_rounds_are_edited_by_id_and_reverted():
    me = owner()
    mine = with_rounds(me, {"opened": day(-9), "closed": day(-5)}, {"opened": day(-3)})
    first, second = rounds(mine)
    change = {"set": [{"id": first["id"], "closed": day(-4)}], "remove": [second["id"]], "add": [{"name": "Series A"}]}
    listings.update_company(me, mine.slug, CompanyChange(fundingRounds=change))
    assert [each["name"] for each in rounds(mine)] == ["Round 0", "Series A"]
    assert rounds(mine)[0]["closed"] == day(-4)
    listings.revert_company(me, mine.slug, listings.company_history(me, mine.slug).items[0].pk)
    assert rounds(mine) == [first, second]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ([{"name": "a"}, {"name": "b"}], "fundingRounds has more than one round without a closing date"),
        (
            [{"name": "a", "opened": "2024-05-02", "closed": "2024-05-01"}],
            r"fundingRounds\[0\].closed is before opened",
        ),
        ([{"name": "a", "opened": "next week"}], r"fundingRounds\[0\].opened"),
        ([{"name": "a", "amount": 5}], r"fundingRounds\[0\].amount is not one of"),
    ],
)
def test_rounds_that_cannot_be_are_refused(given, fault):
    me = owner()
    mine = draft(me)
    with pytest.raises(BadFields, match=fault):
        listings.update_company(me, mine.slug, CompanyChange(fundingRounds=given))


def test_another_round_opens_only_after_a_planned_end():
    me = owner()
    mine = with_rounds(me, {"opened": day(-3), "closed": day(3)})
    with pytest.raises(Exception, match="already open"):
        listings.open_funding_round(me, mine.slug, name="Next")
    listings.close_funding_round(me, mine.slug)
    listings.open_funding_round(me, mine.slug, name="Next")
    assert [each["name"] for each in rounds(mine)] == ["Round 0", "Next"]
