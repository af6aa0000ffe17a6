"""The charts of a company's page show the numbers that the API answers, whatever they are."""

import json
import random
import re
from decimal import Decimal

import html5lib
import pytest
from django.test import Client

from make.published import Publisher, company
from muniment.store.reader import Reader
from muniment.web.requests import page_cache

LARGEST = {"pools": 5, "capTable": 4}
"""How many shares a chart names; one more is named rather than called others."""
MANY_HOLDERS = 20
"""Of more holders, a chart shows the ten largest together."""


@pytest.fixture
def visitor(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    client = Client()
    client.publish, client.reader = publisher.publish, reader
    yield client
    page_cache.use(None)
    reader.close()
    publisher.close()


def with_shares(number, pools, holders):
    made = company(number, f"shares-{number}", capTable=holders)
    bundle = json.loads(made.body)
    bundle["data"]["distribution"] = {"pools": pools}
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    return type(made)(**{**fields, "body": json.dumps(bundle).encode()})


def charts_of(visitor, number):
    """Return the numbers of each chart on the page, by title and label, and the notes."""
    tree = html5lib.parse(
        visitor.get(f"/companies/shares-{number}").content.decode(), treebuilder="etree", namespaceHTMLElements=False
    )
    found = {}
    for figure in tree.iter("figure"):
        rows = [
            ["".join(cell.itertext()) for cell in row]
            for row in figure.find("table").iter("tr")
            if row.get("aria-hidden") is None and row.find("td") is not None
        ]
        notes = ["".join(each.itertext()) for each in figure.findall("p")]
        found["".join(figure.find("table").find("caption").itertext())] = (rows, figure.get("class"), notes)
    return found


def wire(visitor, number):
    """Return the shares as the API answers them, with every digit."""
    body = visitor.reader.document("company", f"shares-{number}").body
    data = json.loads(body, parse_float=Decimal, parse_int=Decimal)["data"]
    return {"Token distribution": data["distribution"]["pools"], "Token holders": data["capTable"]}


def random_shares(chance, most):
    """Return rows with random shares: some of nothing, some unknown; sums below, at and above the whole."""
    rows = []
    left = chance.choice([30.0, 90.0, 100.0, 100.0, 130.0, 160.0])
    for n in range(chance.randint(1, most)):
        share = chance.choice([0, round(left * chance.random(), chance.choice([0, 1, 4, 12])), chance.randint(0, 3)])
        share = min(share, left, 100)
        left -= share
        row = {"name": f"Row {n}", "percentage": int(share) if share == int(share) else share}
        if chance.random() < 0.05:
            del row["percentage"]
        rows.append(row)
    return rows


def expected(rows, largest):
    """Return what a chart of *rows* says, computed from the wire alone."""
    shares = sorted((Decimal(row.get("percentage", 0)) for row in rows), reverse=True)
    if len(shares) <= largest + 1:
        return shares, None, ""
    kept = [share for share in shares[:largest] if share >= 1]
    rest = shares[len(kept) :]
    return kept, rounded(sum(rest)), f"{len(rest)} others" if kept else f"{len(rest)} with less than 1% each"


def rounded(share):
    """Return a computed share as charts show it."""
    return round(share, 2) or share


def ten_and_others(rows):
    """Return what the chart of many holders says."""
    shares = sorted((Decimal(row["percentage"]) for row in rows if "percentage" in row), reverse=True)
    others = f"{len(rows) - 10} other listed holder{'s' if len(rows) > 11 else ''}"
    return {"The ten largest": round(sum(shares[:10]), 2), others: rounded(sum(shares[10:]))}


@pytest.mark.whole(keeps=0)
def test_the_numbers_of_200_random_distributions_and_cap_tables_are_those_of_the_wire(visitor):
    chance = random.Random(17)
    visitor.publish(*(with_shares(n, random_shares(chance, 12), random_shares(chance, 60)) for n in range(1, 201)))
    seen = {"donut": 0, "bar": 0, "missing": 0, "others": 0, "many": 0}
    for number in range(1, 201):
        drawn = charts_of(visitor, number)
        for (title, rows), largest in zip(wire(visitor, number).items(), LARGEST.values(), strict=True):
            total = sum(Decimal(row.get("percentage", 0)) for row in rows)
            if not total:
                assert title not in drawn
                continue
            shown, kind, notes = drawn[title]
            named, others, label = expected(rows, largest)
            numbers = {label: Decimal(text.removesuffix("%").replace(",", "")) for label, text in shown if "%" in text}
            missing = numbers.pop("Not specified", numbers.pop("Holders that are not listed", None))
            if title == "Token holders" and len(rows) > MANY_HOLDERS and "chart-bar" not in kind:
                assert numbers == ten_and_others(rows)
                assert missing == (rounded(100 - total) if Decimal("0.05") < 100 - total else None)
                seen["many"] += 1
                continue
            assert numbers.pop(label, None) == others
            assert sorted(numbers.values(), reverse=True) == named[: len(numbers)]
            assert not any(named[len(numbers) :])
            by_name = {row["name"]: row.get("percentage") for row in rows}
            assert {label: by_name[label] for label in numbers} == numbers
            if total > Decimal("100.5"):
                assert ("chart-bar" in kind, missing) == (True, None)
                assert f"{total.normalize():f}%" in notes[0]
            else:
                assert missing == (rounded(100 - total) if 100 - total > Decimal("0.05") else None)
                assert total + (missing or 0) - 100 <= Decimal("0.5")
            seen["bar" if "chart-bar" in kind else "donut"] += 1
            seen["missing"] += missing is not None
            seen["others"] += bool(label)
    assert min(seen.values()) > 30, seen


def test_pools_that_are_less_than_the_whole_leave_the_rest_unspecified(visitor):
    visitor.publish(with_shares(1, [{"name": "Members", "percentage": 60}, {"name": "Towns", "percentage": 30}], []))
    rows, kind, notes = charts_of(visitor, 1)["Token distribution"]
    assert rows == [["Members", "60%"], ["Towns", "30%"], ["Not specified", "10%"]]
    assert ("chart-donut" in kind, notes) == (True, [])


def test_shares_beyond_the_whole_are_bars_with_a_note(visitor):
    visitor.publish(with_shares(1, [{"name": "A", "percentage": 80}, {"name": "B", "percentage": 80}], []))
    rows, kind, notes = charts_of(visitor, 1)["Token distribution"]
    assert rows == [["A", "80%"], ["B", "80%"]]
    assert "chart-bar" in kind
    assert notes == ["These shares add up to 160%, so they are not parts of a whole."]
    page = visitor.get("/companies/shares-1").content.decode()
    assert re.findall(r'class="tint0"[^>]* width="([\d.]+)"', page) == ["80.00", "80.00"]


def test_holders_of_nothing_are_counted(visitor):
    holders = [{"name": f"H{n}", "percentage": share} for n, share in enumerate([40, 20, 10, 5, *[1] * 10, *[0] * 22])]
    visitor.publish(with_shares(1, [], [*holders, {"name": "Silent"}]))
    rows, _, _ = charts_of(visitor, 1)["Token holders"]
    assert rows == [
        ["The ten largest", "81%"], ["27 other listed holders", "4%"], ["Holders that are not listed", "15%"]
    ]  # fmt: skip
    assert ">37<" in visitor.get("/companies/shares-1").content.decode()


@pytest.mark.parametrize(
    ("share", "shown"),
    [(-3, "-3%"), (250, "250%"), (1e308, "1e+308%"), pytest.param(10**400, "1.797693135e+308%", id="beyond")],
)
def test_a_stored_share_that_cannot_be_true_is_shown_and_breaks_no_page(visitor, share, shown):
    visitor.publish(with_shares(1, [{"name": "A", "percentage": share}, {"name": "B", "percentage": 10}], []))
    rows, kind, _ = charts_of(visitor, 1)["Token distribution"]
    assert "chart-bar" in kind
    assert dict(rows) == {"A": shown, "B": "10%"}


def test_votes_are_shown_with_all_their_digits_also_where_they_cannot_be_true(visitor):
    made = with_shares(1, [], [])
    bundle = json.loads(made.body)
    bundle["data"]["proposals"] = [
        {"id": "1", "title": "Piers", "votes": {"for": 97118903.526799, "against": 12}},
        {"id": "2", "title": "Dykes", "votes": {"for": -5, "against": 10}},
    ]
    fields = {name: getattr(made, name) for name in made.__struct_fields__}
    visitor.publish(type(made)(**{**fields, "body": json.dumps(bundle).encode()}))
    drawn = charts_of(visitor, 1)
    assert drawn["Votes on Piers"][0] == [["For", "97,118,903.526799 (100%)"], ["Against", "12 (0%)"]]
    assert drawn["Votes on Dykes"][0] == [["For", "-5"], ["Against", "10"]]
