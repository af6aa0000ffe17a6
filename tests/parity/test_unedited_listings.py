"""A listing that is opened in every step of the form and saved, or read and written back by a tool, stays the same."""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from make.accounts import account, signed_in
from make.registry import bodies, changes, document, lines
from muniment.accounts import tokens
from muniment.accounts.models import Account
from muniment.kernel.actor import SCOPES
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import CapTableEntry, Company, HistoryEntry, Ownership, PendingChange, Position, Proposal
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.company_parts import ADDRESS, SOCIALS
from services.manage import Manage, manage
from services.product import DEMO
from services.submitted import unedited

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("owners.exact")]
STEPS = ("basics", "about", "links", "team", "token")
PLAIN = {
    "company": {"id": "odd", "name": "Odd"},
    "positions": [{"title": "Chair", "person": {"name": f"Odd {n}", "slug": f"odd-{n}"}} for n in range(3)],
    "proposals": [{"id": str(n), "title": "Go"} for n in range(3)],
    "capTable": [{"address": f"0x{n}"} for n in range(3)],
    "fundingRounds": [{"name": "Seed", "target": "$1,000,000.01", "opened": "2024-05-01"}],
}
ODD_COLUMNS = {
    "name": " Odd & <Sons> ",
    "symbol": '"O"',
    "type": "something else",
    "status": "upcoming",
    "website": "no address",
    "themes": ["a, b", 'the "first"', " c ", "d\ne", "d\ne", ""],
    "description": "one\ntwo\r\nthree\rfour ",
    "body": "\n\nfirst\r\n\r\nlast\n\n",
    "team_size": 435,
    "treasury_minor": 124_999_999,
    "listed_on": date(2024, 3, 1),
    "listed_month_only": True,
    "socials": dict.fromkeys(SOCIALS.by_name) | {"email": "nope", "twitter": " @odd "},
    "address": [
        dict.fromkeys(ADDRESS.by_name) | {"id": row, "address_1": "1 Quay; left\ndoor", "country": "NO"} for row in "ab"
    ],
    "distribution": {
        "method": "sale",
        "details": "\nfirst\nlast\r\n",
        "pools": [
            {"id": "a", "name": "a;b", "percentage": 60.1, "note": 1},
            {"id": "b", "name": "a;b", "percentage": 90},
            {"id": "c", "percentage": 1e-7},
        ],
        "bonus": True,
    },
    "extra": {"unknown": {"a": [1.0, None]}},
}
"""What was stored before the rules about values."""
ODD_TITLES = ("Chair; and\nclerk ", "Chair; and\nclerk ", None)
ODD_PROPOSALS = (
    {"id": "1", "title": "Go\non", "status": "passed", "votes": {"for": 0.1234567890123, "against": 10**24}},
    {"id": "2", "endDate": "2025-02-31", "votes": {"for": -5}},
    {"id": "3", "createdAt": "long ago"},
)
ODD_HOLDERS = (
    {"id": "a", "address": "0x1", "name": "Smith; Sons", "tokens": "1\n000", "percentage": 133.333333333333336},
    {"id": "b", "address": "0x1", "name": "Smith; Sons", "tokens": " 2", "rank": 7},
    {"id": "c", "name": ""},
)


def store_odd_listing() -> None:
    odd = Company.objects.filter(slug="odd")
    odd.update(**ODD_COLUMNS)
    for rank, (title, proposal, holder) in enumerate(zip(ODD_TITLES, ODD_PROPOSALS, ODD_HOLDERS, strict=True)):
        row = {"company__slug": "odd", "rank": rank}
        Position.objects.filter(**row).update(title=title, extra={"since": 2020})
        Proposal.objects.filter(**row).update(document=proposal)
        CapTableEntry.objects.filter(**row).update(document=holder)
    publish(AffectedRows().company(odd.get().pk))


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.proof)])
def test_every_step_of_the_form_saves_the_demo_and_an_odd_listing_unchanged(tmp_path, every):
    owner, slugs = owned(tmp_path)
    browser = signed_in(owner)
    before = state()
    assert len(slugs) > 40
    chosen = [*slugs[:-1:every], "odd"]
    for step in STEPS:
        save_unedited(browser, chosen, step)
    assert state() == before


def test_a_tool_writes_back_what_it_read_of_the_demo_and_an_odd_listing(tmp_path):
    owner, slugs = owned(tmp_path)
    before = state()
    with manage() as server:
        write_back(server, owner, slugs)
    assert state() == before


def test_an_edit_of_one_field_leaves_the_others_of_an_odd_listing(tmp_path):
    browser = signed_in(owned(tmp_path)[0])
    for step, name, field in (("about", "description", "description"), ("links", "socials_youtube", "socials")):
        address = f"/manage/companies/odd/edit/{step}"
        sent = unedited(browser.get(address).content.decode()) | {name: ["new"]}
        assert browser.post(address, sent).status_code == 302
        entry = HistoryEntry.objects.filter(company__slug="odd").latest("pk")
        assert [*entry.after] == [field]


def test_an_amount_typed_into_the_form_is_meant_exactly(tmp_path):
    """By a tool the same text means the amount that pages show so."""
    browser = signed_in(owned(tmp_path)[0])
    address = "/manage/companies/odd/edit/about"
    sent = unedited(browser.get(address).content.decode())
    assert sent["treasury"] == ["$1249999.99"]
    assert "teamSize" not in sent
    assert browser.post(address, sent | {"treasury": ["$1.2M"]}).status_code == 302
    assert document("company", "odd")["company"]["treasuryAmount"]["amount"] == "1200000.00"
    sent = unedited(browser.get(address).content.decode())
    refused = browser.post(address, sent | {"treasury": ["plenty"]})
    assert (refused.status_code, b"Must be an amount such as $1.2M" in refused.content) == (422, True)


@pytest.mark.proof
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_of_the_form_saves_every_real_listing_unchanged(sample_data, step):
    owner, slugs = owned(sample_data)
    before = state()
    save_unedited(signed_in(owner), slugs, step)
    assert state() == before


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_a_tool_writes_back_what_it_read_of_every_real_listing(sample_data):
    owner, slugs = owned(sample_data)
    before = state()
    with manage() as server:
        write_back(server, owner, slugs)
    assert state() == before


def owned(folder: Path) -> tuple[Account, list[str]]:
    """Import a registry, without one the demo's with an odd listing; return the owner of all listings, and slugs."""
    if not any(folder.iterdir()):
        import_registry(DEMO)
        import_registry(lines(folder / "companies.jsonl", PLAIN))
        store_odd_listing()
    else:
        import_registry(folder)
    owner = account()
    keys = Company.objects.order_by("pk").values_list("pk", flat=True)
    Ownership.objects.bulk_create([Ownership(company_id=key, account=owner) for key in keys])
    return owner, list(Company.objects.order_by("pk").values_list("slug", flat=True))


def state() -> dict[str, Any]:
    """Return what a change would alter: versions, history, requests, the feed, and every published byte."""
    return {
        "versions": dict(Company.objects.values_list("slug", "version")),
        "history": HistoryEntry.objects.count(),
        "requests": PendingChange.objects.count(),
        "changes": changes()[-1:],
        "documents": bodies(),
    }


def save_unedited(browser: Any, slugs: list[str], step: str) -> None:
    """Open *step* of every listing, with every page of its lists, and save it as it is."""
    for slug in slugs:
        for address in pages(browser, slug, step):
            opened = browser.get(address)
            assert opened.status_code == 200, address
            saved = browser.post(address, unedited(opened.content.decode()))
            assert saved.status_code == 302, (address, saved.content.decode())


def pages(browser: Any, slug: str, step: str) -> Iterator[str]:
    address = f"/manage/companies/{slug}/edit/{step}"
    yield address
    counts = (
        re.findall(r"Page 1 of ([\d,]+)", browser.get(address).content.decode()) if step in {"team", "token"} else []
    )
    for number in range(2, max((int(each.replace(",", "")) for each in counts), default=1) + 1):
        yield f"{address}?" + "&".join(
            f"{name}-page={number}" for name in ("positions", "proposals", "capTable", "pools")
        )


def write_back(server: Manage, owner: Account, slugs: list[str]) -> None:
    """Read every listing with all its rows, and send every field that can be changed and was not truncated."""
    token = tokens.create_token(owner.actor("web"), "agent", permitted=SCOPES).text
    for slug in slugs:
        shown = server.data(token, "get_my_company", slug=slug)
        for name, note in shown.get("notShown", {}).items():
            following = note.get("next")
            while following:
                more = server.data(token, "get_my_company", slug=slug, **following)
                shown.setdefault(name, []).extend(more[name])
                following = more["notShown"][name].get("next")
            assert len(shown[name]) == shown[f"{name}Total"], (slug, name)
        given = {**shown["company"], **shown}
        given = {name: given[name] for name in settings.SCHEMA.company_change.by_name if is_whole(given, name)}
        done = server.data(token, "update_my_company", slug=slug, changes=given, expectedVersion=shown["version"])
        assert (done["applied"], done["awaitingReview"], done["version"]) == ([], [], shown["version"]), slug


def is_whole(given: dict[str, Any], name: str) -> bool:
    value = given.get(name)
    cut = isinstance(value, dict) and any(member.endswith("Truncated") for member in value)
    return name in given and f"{name}Truncated" not in given and not cut
