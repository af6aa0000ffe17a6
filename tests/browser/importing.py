"""The pages of an import in the browser, one after the other: for checks and for pictures."""

from collections.abc import Iterator
from typing import Any

from browser.tour import origin
from services.product import Product

TABLE = (
    "Company;Website;Members;Member since;Board;Notes\n"
    "Alder House;alder.example;1.200;03.09.1998;Ida Alder (Chair), Joe Birch;call back\n"
    "Birch House;birch house;10-49;31.12.2004;Kim Cedar;\n"
)


def stages(page: Any, product: Product) -> Iterator[str]:
    """Lead *page*, where an operator is signed in, through an import and its undo; give the name of each page."""
    page.goto(f"{origin(product)}/operate/import")
    page.get_by_role("button", name="Read file").click()
    page.get_by_role("alert").wait_for()
    yield "no-file"
    table = {"name": "members.csv", "mimeType": "text/csv", "buffer": TABLE.encode()}
    page.set_input_files("#file", [table])
    page.get_by_role("button", name="Read file").click()
    page.get_by_role("button", name="Preview import").wait_for()
    yield "columns"
    page.get_by_role("button", name="Preview import").click()
    page.get_by_role("button", name="Import", exact=True).wait_for()
    yield "preview"
    page.get_by_role("link", name="Alder House").click()
    page.wait_for_load_state()
    yield "sample"
    page.go_back()
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_role("button", name="Undo").wait_for()
    yield "result"
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("is undone.").wait_for()
    yield "undone"
