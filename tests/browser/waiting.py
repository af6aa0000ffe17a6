"""What stands open after a day's work: requests for the reviewers, an invitation, a document, runs and a report."""

from collections.abc import Callable
from re import search
from typing import Any, NamedTuple

from browser.tour import COMPANY, REVIEWER, origin
from make import files
from services.product import Product


class Waiting(NamedTuple):
    """The pages of the owner, those of the reviewer, and the one of whoever has a report's link."""

    owner: list[str]
    reviewer: list[str]
    public: list[str]


def a_days_work(page: Any, product: Product, framework: str, letter: Callable[[str], str]) -> Waiting:
    """
    Do on *page*, where the owner is signed in, what leaves something to look at.

    Args:
        page: a browser's page.
        product: the stand.
        framework: what the report is about.
        letter: gives the text of the last mail to an address.
    """
    there = origin(product)
    page.goto(f"{there}/manage/companies/{COMPANY}/edit/basics")
    page.get_by_label("Name", exact=True).fill("Tarnwick Tidal United")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("status").first.wait_for()
    page.goto(f"{there}/manage/companies/{COMPANY}")
    page.get_by_label("Email address of a new owner").fill(REVIEWER)
    page.get_by_role("button", name="Send invitation").click()
    page.get_by_text("Invitation sent").wait_for()
    invitation = search(r"/manage/invitations/\S+", letter(REVIEWER))
    assert invitation
    listed = (item["id"] for item in product.data_of("/api/v1/companies?pageSize=100"))
    other = next(slug for slug in listed if slug != COMPANY)
    page.goto(f"{there}/companies/{other}/claim")
    page.get_by_label("How can we verify this?").fill("We are named on its page of contacts.")
    page.get_by_role("button", name="Submit for review").click()
    page.get_by_text("Submitted. We'll email you").wait_for()  # on the proof of the domain, or in the account
    page.goto(f"{there}/companies/{other}/suggest")
    page.get_by_label("Summary").fill("Ferrymen who own their boats together.")
    page.get_by_role("button", name="Submit for review").click()
    page.wait_for_url("**/manage")
    page.goto(f"{there}/manage/documents")
    paper = {"name": "accounts.pdf", "mimeType": "application/pdf", "buffer": files.pdf("The annual accounts.")}
    page.set_input_files("#files", [paper])
    page.get_by_role("button", name="Upload").click()
    page.locator("tr[data-state=ready]").wait_for()
    runs = [_prepared(page, there, framework)]
    page.get_by_role("button", name="Run for").click()
    page.get_by_role("button", name="Create share link").click(timeout=60_000)  # when the report is there
    shared = search(r"/reports/shared/[\w-]+", page.content())
    assert shared
    page.get_by_role("link", name="Publish score").click()
    page.get_by_role("button", name="Publish score").click()
    runs.append(_prepared(page, there, framework))
    return Waiting(
        ["/manage/documents", "/manage/credits", "/manage/reports", *runs],
        [f"/review/frameworks/{framework}", invitation[0]],
        [shared[0]],
    )


def in_the_queue(page: Any, product: Product) -> list[str]:
    """Return the reviewers' pages of what was asked for; *page* is where one of them is signed in."""
    page.goto(f"{origin(product)}/review")
    links = page.locator("main table a").evaluate_all("all => all.map(each => each.getAttribute('href'))")
    return [link for link in links if link.startswith(("/review/changes/", "/review/requests/"))]


def _prepared(page: Any, there: str, framework: str) -> str:
    page.goto(f"{there}/manage/reports?framework={framework}&company={COMPANY}")
    page.get_by_role("button", name="Prepare run").click()
    page.get_by_role("button", name="Run for").wait_for()
    return str(page.url.removeprefix(there))
