"""Forms that are refused, one after the other: for checks and for pictures."""

from collections.abc import Iterator
from typing import Any

from browser.tour import COMPANY, origin
from services.product import Product

PASTED = "Holder\tAddress\tTokens\tShare\nMara Solstad\t0x1\tmany\t70\nCaro Vell\t0x2\t200\tall\n"


def refusals(page: Any, product: Product) -> Iterator[str]:
    """Fill in forms wrongly on *page*, where the owner is signed in; give the name of each answer."""
    there = origin(product)

    def send(button: str) -> None:
        page.locator("form").evaluate_all("forms => forms.forEach(each => { each.noValidate = true })")
        page.get_by_role("button", name=button).first.click()
        page.wait_for_load_state()

    page.goto(f"{there}/manage/companies/new")
    send("Save and continue")
    yield "new-listing"
    page.goto(f"{there}/manage/companies/{COMPANY}/edit/basics")
    page.get_by_label("Website").fill("not a site")
    page.get_by_label("Name", exact=True).fill("")
    send("Save")
    yield "basics"
    page.goto(f"{there}/manage/companies/{COMPANY}/paste/capTable")
    page.get_by_role("textbox").first.fill(PASTED)
    page.locator("main form button[type=submit]").first.click()
    page.wait_for_load_state()
    yield "pasted"
    page.goto(f"{there}/companies/saltmarsh-commons/suggest")
    send("Submit for review")
    yield "suggestion"
    page.goto(f"{there}/manage/tokens")
    send("Create token")
    yield "token"
    page.goto(f"{there}/accounts/password/change/")
    page.locator("main form").first.evaluate("form => { form.noValidate = true; form.requestSubmit() }")
    page.wait_for_load_state()
    yield "password"
