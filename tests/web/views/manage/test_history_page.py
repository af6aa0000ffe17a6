"""The history page: its size and its work are bounded, whatever an owner saved."""

import random
import re

import pytest

from make.accounts import account, signed_in
from make.registry import draft
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.history import MAX_READ
from muniment.registry.models import Company, HistoryEntry
from muniment.web.presenters import differences

pytestmark = pytest.mark.django_db


@pytest.fixture
def me():
    return account()


def edit(me, slug, **change):
    listings.update_company(me.actor("web"), slug, CompanyChange(change))


def page_of(me, slug):
    response = signed_in(me).get(f"/manage/companies/{slug}/history")
    assert response.status_code == 200
    return response.content.decode()


def test_the_page_of_the_worst_edits_stays_within_its_budget(me, monkeypatch):
    draw = random.Random(18)
    mine = draft(me.actor("web")).slug

    def text(size):
        return "".join(draw.choice(("a ", "b ")) for _ in range(size // 2)).strip()

    for _ in range(24):
        edit(me, mine, body=text(6_000), description=text(2_000))
    budgets = []
    made = differences.Room

    def room():
        budgets.append(made())
        return budgets[-1]

    monkeypatch.setattr(differences, "Room", room)
    html = page_of(me, mine)
    assert len(budgets) == 1
    assert 0 < budgets[0].budget.spent <= differences.STEPS
    assert html.count("<details") == 24 + 1  # and the account menu; what was created is short
    assert len(html) < 3 * differences.PAGE_CHARACTERS


def test_the_page_of_large_values_is_small(me):
    mine = draft(me.actor("web")).slug
    for n in range(24):
        edit(me, mine, distribution={f"note{n % 4}": f"{n} " * 20_000})
    assert len(page_of(me, mine)) < 3 * differences.PAGE_CHARACTERS


def test_an_entry_that_is_too_large_is_named_and_not_read(me):
    mine = draft(me.actor("web"), description="Keeps the quay.").slug
    company = Company.objects.get(slug=mine)
    rows = [{"id": f"h{n}", "name": "x" * 4_000} for n in range(MAX_READ // 4_000 + 1)]
    HistoryEntry.objects.create(
        company=company,
        action="updated",
        via="web",
        before={"capTable": []},
        after={"capTable": rows},
        changed=["capTable"],
    )
    html = page_of(me, mine)
    assert "Cap table. This change is too large to show here." in html
    assert "x" * 100 not in html
    assert "Keeps the quay." in html
    (revert,) = re.findall(rf"/manage/companies/{mine}/history/(\d+)/revert", html)
    assert signed_in(me).post(f"/manage/companies/{mine}/history/{revert}/revert").status_code == 302
    shown = listings.company_history(me.actor("web"), mine, with_values=False).items
    assert [entry.changed for entry in shown] == [["capTable"], ["name", "description"]]
