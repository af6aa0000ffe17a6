"""Lists of an account with much of everything: no statement of a page reads or sorts all of its rows."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from make.accounts import account, signed_in
from make.reports import framework
from muniment.accounts.models import Account
from muniment.assessments import operations as assessments
from muniment.assessments.comparison import outcomes
from muniment.assessments.models import ReportRun
from muniment.credits import operations as credits_
from muniment.documents import operations as documents
from muniment.documents import records
from muniment.documents.models import Document
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.models import Company, FrameworkSpecification, Ownership, Person, Position
from muniment.registry.people import moderation
from muniment.web.views.manage import documents as documents_page

DOCUMENTS, RUNS = "documents_document", "assessments_reportrun"

pytestmark = pytest.mark.django_db(transaction=True)
# PostgreSQL reads small tables whole, whatever their indexes: tests/growth counts its rows.
ON_SQLITE = pytest.mark.sqlite


@pytest.fixture
def who():
    return account("busy@harbour.example")


@pytest.fixture
def owner(who):
    return who.actor("web")


def _listings(who: Account, count: int) -> list[Company]:
    made = Company.objects.bulk_create(
        Company(slug=f"quay-{number:03}", name=f"Quay {number:03}") for number in range(count)
    )
    Ownership.objects.bulk_create(Ownership(account=who, company=each) for each in made)
    return made


def _documents(who: Account, company: Company, count: int, **more: object) -> list[Document]:
    return Document.objects.bulk_create(
        Document(
            company=company,
            account=who,
            via="web",
            filename=f"Minutes {number}.txt",
            content_type="text/plain",
            size_bytes=10,
            **{"state": "ready", "blob_key": f"blobs/{company.pk}/{number}", **more},
        )
        for number in range(count)
    )


def _runs(who: Account, company: Company, count: int) -> list[ReportRun]:
    specification = FrameworkSpecification.objects.get(framework__slug=framework())
    return ReportRun.objects.bulk_create(
        ReportRun(
            company=company,
            framework=specification.framework,
            specification=specification,
            account=who,
            via="web",
            cost=1,
            state="succeeded",
            expires_at=now(),
            finished_at=now(),
        )
        for _ in range(count)
    )


def _plans(work: Callable[[], object], table: str) -> list[str]:
    """Return how SQLite answers each statement of *work* that reads a table, one line for each."""
    asked: list[tuple[str, Any]] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("SELECT", "WITH")) and f'FROM "{table}"' in sql:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        work()
    assert asked
    plans = []
    with connection.cursor() as cursor:
        for sql, params in asked:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            plans.append("; ".join(row[3] for row in cursor.fetchall()))
    return plans


@pytest.mark.parametrize("counts", [(5, 5, 5), (13, 1, 1), (1, 0, 14), (0, 15, 0)])
def test_pages_of_documents_are_newest_first_over_all_listings(who, owner, counts):
    for company, count in zip(_listings(who, 3), counts, strict=True):
        _documents(who, company, count)
    _documents(account("other@harbour.example"), Company.objects.create(slug="other", name="Other"), 3)
    # What is listed is not in the order in which it was stored, and some of it was created in the same moment.
    for number, document in enumerate(Document.objects.order_by("pk")):
        created_at = now() - timedelta(minutes=number * 7 % 11)
        Document.objects.filter(pk=document.pk).update(created_at=created_at.replace(second=0, microsecond=0))
    newest = list(Document.objects.filter(account=who).order_by("-created_at", "-pk").values_list("pk", flat=True))
    pages = [documents.list_documents(owner, page=page, page_size=4) for page in (1, 2, 3, 4, 5)]
    assert [each.pk for page in pages for each in page.items] == newest
    assert {page.total for page in pages} == {15}
    assert len(documents.list_documents(owner, "quay-001").items) == counts[1]


@ON_SQLITE
def test_a_page_of_documents_reads_no_more_of_a_listing_than_its_index(who, owner):
    (company,) = _listings(who, 1)
    _documents(who, company, 60)
    _documents(who, company, 5, deleted_at=now())
    of_listing = {"company_slug": company.slug}
    for asked in ({}, of_listing, {**of_listing, "ready": True}):
        total, page = _plans(lambda asked=asked: documents.page_of_documents(owner, **asked), DOCUMENTS)[:2]
        assert "INDEX document_listed" in total
        assert "INDEX document_listed" in page
        assert "SCAN documents_document" not in page
    total, page = _plans(lambda: documents.page_of_documents(owner, deleted=True), DOCUMENTS)[:2]
    assert "INDEX document_deleted" in total
    (_, of_listing) = _plans(lambda: documents.page_of_documents(owner, company.slug, deleted=True), DOCUMENTS)[:2]
    assert "TEMP B-TREE" not in of_listing


@ON_SQLITE
def test_the_storage_of_an_account_is_summed_from_an_index(who, owner):
    _documents(who, _listings(who, 1)[0], 3)
    kept, _waiting = _plans(lambda: documents.quota(owner), DOCUMENTS)
    assert "COVERING INDEX document_quota" in kept


def test_the_storage_of_an_account_has_its_stored_files_and_its_open_links(who, owner):
    company = _listings(who, 1)[0]
    first, *_ = _documents(who, company, 3)
    waiting = {"state": "pending", "blob_key": ""}
    _documents(who, company, 2, **waiting, expires_at=now() + timedelta(minutes=5))
    _documents(who, company, 1, **waiting, receiving_until=now() + timedelta(minutes=5))
    _documents(who, company, 4, **waiting, expires_at=now() - timedelta(minutes=5))
    _documents(who, company, 8, state="rejected", blob_key="")
    quota = documents.quota(owner)
    assert (quota.used_bytes, quota.reserved_bytes) == (30, 30)
    assert records.quota_of(who.pk, without=first.pk).used_bytes == 20


def test_pages_of_runs_are_newest_first_over_all_listings(who, owner):
    runs = [run for company in _listings(who, 2) for run in _runs(who, company, 3)]
    newest = [run.pk for run in sorted(runs, key=lambda run: (run.created_at, run.pk), reverse=True)]
    pages = [assessments.list_runs(owner, page=page, page_size=4) for page in (1, 2)]
    assert [run.row.pk for page in pages for run in page.items] == newest
    assert assessments.last_assessed(owner) == "quay-001"
    assert assessments.last_assessed(account("new@harbour.example").actor("web")) == ""


@ON_SQLITE
@pytest.mark.parametrize("state", [None, "failed"])
def test_a_page_of_runs_reads_no_more_than_an_index(who, owner, state):
    (company,) = _listings(who, 1)
    _runs(who, company, 60)
    for slug in (None, company.slug):
        plans = _plans(lambda slug=slug: assessments.list_runs(owner, slug, state=state), RUNS)
        assert "COVERING INDEX" in plans[0]  # the total
        assert all("INDEX report_run_listed" in plan for plan in plans[1:2])
    (last,) = _plans(lambda: assessments.last_assessed(owner), RUNS)
    assert "INDEX report_run_account" in last
    assert "SCAN assessments_reportrun" not in last


@ON_SQLITE
def test_the_run_before_each_of_a_page_is_found_in_an_index(who):
    (company,) = _listings(who, 1)
    runs = _runs(who, company, 3)
    (plan,) = _plans(lambda: outcomes([run.pk for run in runs]), RUNS)
    previous = plan.partition("CORRELATED SCALAR SUBQUERY")[2]
    assert "COVERING INDEX report_run_finished" in previous
    assert "TEMP B-TREE" not in previous


@ON_SQLITE
def test_the_latest_entries_of_a_ledger_account_are_not_sorted_out_of_all(who, owner):
    credits_.get_balance(owner)
    plans = _plans(lambda: credits_.get_balance(owner), "credits_transfer")
    assert [plan for plan in plans if "INDEX transfer_debit" in plan]
    assert [plan for plan in plans if "INDEX transfer_credit" in plan]
    assert not [plan for plan in plans if "TEMP B-TREE FOR ORDER BY" in plan]


def test_listings_are_last_changed_first_however_many_an_account_has(who, owner):
    mine = _listings(who, 7)
    others = Company.objects.bulk_create(Company(slug=f"other-{number}", name="Other") for number in range(4))
    for place, company in enumerate([mine[2], others[0], mine[5], others[1], mine[0], *others[2:]]):
        Company.objects.filter(pk=company.pk).update(updated_at=now() + timedelta(minutes=place))
    newest = Company.objects.filter(owners=who).order_by("-updated_at", "pk").values_list("slug", flat=True)
    pages = [listings.list_companies(owner, page=page, page_size=3) for page in (1, 2, 3, 4)]
    assert [each.slug for page in pages for each in page.items] == list(newest)
    assert {page.total for page in pages} == {7}


@pytest.mark.parametrize("path", ["/manage/documents", "/manage/reports"])
def test_a_form_offers_the_last_changed_of_many_listings_and_finds_the_others(who, monkeypatch, path):
    framework()
    monkeypatch.setattr(documents_page, "CHOICES", 5)
    _listings(who, 30)
    browser = signed_in(who)

    def offered(query: str = "") -> list[str]:
        page = browser.get(path + query)
        assert page.status_code == 200
        select = page.content.decode().partition('<select id="company"')[2].partition("</select>")[0]
        return [each.partition('"')[0] for each in select.split('<option value="')[1:]]

    assert "Find a listing" in browser.get(path).content.decode()
    assert len(offered()) == 5
    assert offered("?listing=quay+01") == [f"quay-01{number}" for number in range(5)]
    assert offered("?listing=024") == ["quay-024"]
    assert offered("?listing=nothing") == []
    missing = next(slug for slug in (f"quay-{number:03}" for number in range(30)) if slug not in offered())
    asked = offered(f"?company={missing}")
    assert len(asked) == 6
    assert missing in asked
    Company.objects.create(slug="strange", name="Strange")
    assert len(offered("?company=strange")) == 5


def test_a_form_offers_all_of_a_few_listings_by_name(who):
    _listings(who, 3)
    Company.objects.filter(slug="quay-001").update(name="amber quay")
    page = signed_in(who).get("/manage/documents").content.decode()
    assert page.index("amber quay") < page.index("Quay 000") < page.index("Quay 002")
    assert "Find a listing" not in page
    assert listings.choose_companies(COMMAND, limit=5) == ([], False)


def test_the_people_of_a_page_are_shown_with_one_company_and_the_number_of_the_others(who):
    busy = Person.objects.create(slug="busy", name="Busy")
    idle = Person.objects.create(slug="idle", name="Idle")
    for company in _listings(who, 30):
        for rank in (0, 1):
            Position.objects.create(company=company, person=busy, rank=rank)
    assert moderation.organizations_of([busy, idle]) == {busy.pk: ("Quay 000", 29), idle.pk: ("", 0)}


@ON_SQLITE
def test_the_companies_of_a_page_of_people_are_counted_in_an_index(who):
    busy = Person.objects.create(slug="busy", name="Busy")
    (plan,) = _plans(lambda: moderation.organizations_of([busy]), "registry_position")
    assert "COVERING INDEX position_person" in plan
