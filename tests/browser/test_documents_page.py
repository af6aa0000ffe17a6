"""The page of documents in Chromium: several files at once, each with its bar, and a reload in between."""

import pytest

from make import files
from services.prepared import new_instance
from services.product import Product
from services.uploads import Owner

PASSWORD = "four harbours, one tide"


@pytest.mark.requirement("web.large-files")
def test_uploads_show_their_progress_and_continue_after_a_reload(browser, tmp_path):
    for name in ("one.pdf", "two.pdf"):
        (tmp_path / name).write_bytes(files.pdf(name, size_bytes=1 << 20))
    with Product(new_instance(tmp_path / "data")) as product:
        product.wait_ready()
        owner = Owner(product, password=PASSWORD)
        page = browser.new_page()
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text) if "Content Security" in line.text else None)
        page.goto(f"{product.url}/accounts/login/?next=/manage/documents")
        page.fill("input[name=login]", owner.email)
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        page.wait_for_selector("#upload")
        page.route("**/uploads/*", lambda route: route.abort())
        page.set_input_files("#files", [str(tmp_path / "one.pdf"), str(tmp_path / "two.pdf")])
        page.click("#upload button[type=submit]")
        page.wait_for_selector("#sending .bad >> nth=1")
        page.unroute("**/uploads/*")
        page.reload()
        assert page.locator("#sending").inner_text().count("same file again") == 2
        page.set_input_files("#files", [str(tmp_path / "one.pdf"), str(tmp_path / "two.pdf")])
        page.click("#upload button[type=submit]")
        page.wait_for_selector("tr[data-state=ready] >> nth=1")
        assert page.locator("tr[data-document]").count() == 2  # the same links went on; nothing was announced anew
        (tmp_path / "virus.exe").write_bytes(b"MZ" + bytes(100))
        page.set_input_files("#files", [str(tmp_path / "virus.exe")])
        page.click("#upload button[type=submit]")
        page.wait_for_selector("#sending .bad")
        assert page.locator("#sending .bad button").count() == 0, "the same file would be refused again"
        page.close()
    assert faults == []
