"""A skewed registry: one person on every board, one listing with every holder, one account with rows of everything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from make.registry import bring, lines
from make.reports import finished
from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.security.models import SecurityEvent
from muniment.assessments.models import Report, ReportRun
from muniment.credits.models import LedgerAccount, Transfer
from muniment.credits.operations import get_balance
from muniment.documents.models import Document
from muniment.jobs.models import Job
from muniment.kernel.ids import new_id, now
from muniment.registry.models import Company, HistoryEntry, Ownership, Petition
from muniment.searches.models import SavedSearch
from muniment.searches.saved_searches import MAX_SEARCHES

CITIES = ("Zug", "Tarnwick", "Oxmoor", "Lisle", "Harrow")
THEMES = ("energy", "coast", "community", "lending", "water", "seeds")


def _companies(first: int, end: int) -> Iterator[dict[str, Any]]:
    """Yield the listings from number *first* to *end* in the import form; number 0 always, with *end* holders."""
    for number in sorted({0, *range(first, end)}):
        boards = dict.fromkeys((f"person-{1 + number // 2}", "person-0" if number != 1 else "person-1"))
        row: dict[str, Any] = {
            "company": {
                "id": f"company-{number}",
                "name": f"{CITIES[number % 5]} {THEMES[number % 6]} {number}",
                "type": ("DAO", "nonprofit", "corporation")[number % 3],
                "industry": ("Energy", "Finance", "Water")[number % 3],
                "themes": [THEMES[number % 6], THEMES[(number + 1) % 6]],
                "status": "active",
                "listedAt": f"202{number % 6}-{1 + number % 12:02}-{1 + number % 28:02}",
                "treasury": f"${number % 900}K",
                "teamSize": number % 50,
                "description": f"Keeps {THEMES[number % 6]} for {CITIES[number % 5]} since its founding.",
                "website": f"https://company-{number}.example",
                "address": [{"address_1": f"{number} Slack Water Lane", "city": CITIES[number % 5], "country": "CH"}],
            },
            "positions": [
                {"title": "Director", "person": {"name": slug.replace("-", " ").title(), "slug": slug}}
                for slug in boards
            ],
        }
        if number == 0:
            row["capTable"] = [{"name": f"Holder {holder}", "quantity": str(1 + holder)} for holder in range(end)]
        yield row


def _people(first: int, end: int) -> Iterator[dict[str, Any]]:
    for number in range(first, end):
        yield {"documentId": f"{number:024x}", "name": f"Person {number}", "slug": f"person-{number}"}


def grow(folder: Path, busy: Account, first: int, end: int) -> None:
    """Let the registry, and what belongs to the account *busy*, grow from *first* to *end* rows of everything."""
    lines(folder / "companies.jsonl", *_companies(first, end))
    lines(folder / "people.jsonl", *_people(first, end))
    lines(folder / "frameworks.jsonl")
    _, bad, _ = bring(folder)
    assert not bad
    grow_account(busy, first, end)


def rename(folder: Path, name: str) -> None:
    """Import company 1 alone, under another name, which its person's page shows too."""
    (row,) = [row for row in _companies(1, 2) if row["company"]["id"] == "company-1"]
    row["company"]["name"] = name
    _, bad, _ = bring(lines(folder / "companies.jsonl", row).parent)
    assert not bad


def grow_account(busy: Account, first: int, end: int, *, listings: int | None = None, are_stored: bool = False) -> None:
    """
    Let what belongs to the account *busy*, and to the listing company-1, grow by rows *first* to *end*.

    Args:
        listings: the number of listings that the account owns then, instead of one for each row.
        are_stored: its documents use storage, although they have no files, which a scrub would miss.
    """
    numbers = range(first, end)
    owned = list(Company.objects.order_by("pk")[first : end if listings is None else listings])
    Ownership.objects.bulk_create(Ownership(account=busy, company=listing) for listing in owned)
    listing = Company.objects.get(slug="company-1")
    report = Report.objects.order_by("pk").first()
    if report is None:
        get_balance(busy.actor("web"))
        report = finished(busy.actor("web"), listing.slug)
    specification = report.run.specification
    Document.objects.bulk_create(
        Document(
            company=listing,
            account=busy,
            via="web",
            filename=f"Minutes {number}.txt",
            content_type="text/plain",
            size_bytes=1000,
            state="ready" if are_stored else "rejected",
            text_state="none",
            blob_key=f"minutes/{number}" if are_stored else "",
        )
        for number in numbers
    )
    runs = ReportRun.objects.bulk_create(
        ReportRun(
            company=listing,
            framework=specification.framework,
            specification=specification,
            account=busy,
            via="web",
            cost=1,
            state="succeeded",
            expires_at=now(),
        )
        for _ in numbers
    )
    Report.objects.bulk_create(Report(run=run, document=report.document) for run in runs)
    PersonalToken.objects.bulk_create(
        PersonalToken(account=busy, name=f"Script {number}", digest=f"{number:064x}", scopes="", revoked_at=now())
        for number in numbers
    )
    SavedSearch.objects.bulk_create(
        SavedSearch(account=busy, name=f"Search {number}", list="companies", query=f"q=water+{number}")
        for number in range(first, min(end, MAX_SEARCHES))
    )
    SecurityEvent.objects.bulk_create(
        SecurityEvent(event="signed_in", account=busy, actor=busy, via="web", is_audited=True) for _ in numbers
    )
    HistoryEntry.objects.bulk_create(
        HistoryEntry(
            company=listing,
            action="updated",
            account=busy,
            via="web",
            before={"teamSize": number},
            after={"teamSize": number + 1},
            changed=["teamSize"],
        )
        for number in numbers
    )
    mine = LedgerAccount.objects.get(account=busy)
    theirs = LedgerAccount.objects.exclude(pk=mine.pk).filter(may_go_negative=True).order_by("pk")[0]
    Transfer.objects.bulk_create(
        Transfer(id=new_id(), debit=theirs, credit=mine, amount=1, kind="grant") for _ in numbers
    )
    Petition.objects.bulk_create(
        Petition(kind="suggestion", account=busy, company=each, text="The city is another.") for each in owned
    )
    Job.objects.bulk_create(Job(id=new_id(), kind="jobs.grown_old", state="succeeded", payload={}) for _ in numbers)
