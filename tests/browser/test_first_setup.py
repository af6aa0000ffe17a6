"""From an empty data folder to a branded registry of 300 members, in a browser: no file is edited."""

import io
import os
import re
from typing import Any

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from services.ports import wait_until
from services.product import Product

EMAIL, PASSWORD = "office@guild.example", "four harbours, one tide"
MEMBERS = 300
FIELD, KEY = "Membership number", "membershipNumber"
LINK = re.compile(r"http://\S+/setup/\S+")
PLACES = ("Tarnwick", "Saltmarsh", "Quillmere", "Harrowgate", "Mistle Bay")


@pytest.fixture
def product(tmp_path):
    with Product(tmp_path / "data") as served:
        served.wait_ready()
        yield served


def set_up_link(product: Product) -> str:
    wait_until(lambda: LINK.search(product.output()), within_s=60, what="the printed set-up link")
    found = LINK.search(product.output())
    assert found
    return found[0]


def logo() -> dict[str, Any]:
    picture = Image.new("RGBA", (480, 120), (0, 0, 0, 0))
    ImageDraw.Draw(picture).rounded_rectangle((4, 4, 475, 115), 24, fill="#0b5d3b")
    out = io.BytesIO()
    picture.save(out, "PNG")
    return {"name": "logo.png", "mimeType": "image/png", "buffer": out.getvalue()}


def members() -> dict[str, Any]:
    """Return a table of fictional members, with a column that no listing has until it is declared."""
    lines = ["Company;Website;City;Member since;Membership number;Board"]
    for number in range(1, MEMBERS + 1):
        day = f"{1 + number % 28:02}.{1 + number % 12:02}.{1980 + number % 40}"
        place = PLACES[number % len(PLACES)]
        lines.append(
            f"{place} Clocks {number};clocks-{number}.example;{place};{day};M-{number:04};Ada Alder{number} (Chair)"
        )
    return {"name": "members.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}


class Walk:
    """A page whose steps are counted: clicks, and fields that are filled in or chosen."""

    def __init__(self, page: Any) -> None:
        self.page, self.clicks, self.fields = page, 0, 0
        self.faults: list[str] = []

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).last.click()
        self.clicks += 1

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)
        self.fields += 1

    def choose(self, label: str, file: dict[str, Any]) -> None:
        self.page.get_by_label(label, exact=True).set_input_files(file)
        self.fields += 1

    def pick(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).select_option(label=option)
        self.fields += 1

    def look(self) -> None:
        """
        Check that everybody can use the page as it is now: axe, both themes, and a narrow phone.

        Only what the walk alone shows is looked at: the tours of an operator visit each page of the set-up.
        """
        self.faults += [f"{self.page.url}: {each}" for each in violations(self.page)]
        self.faults += in_the_dark(self.page)
        self.page.emulate_media(color_scheme="light")
        self.page.set_viewport_size({"width": 360, "height": 740})
        if self.page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            self.faults.append(f"{self.page.url}: runs over on a phone")
        self.page.set_viewport_size({"width": 1280, "height": 900})


def test_an_empty_folder_becomes_a_branded_registry_of_300_members(browser, product):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    page = context.new_page()
    walk = Walk(page)
    page.goto(set_up_link(product))
    assert page.url.endswith("/setup")
    name_and_brand(walk)
    words_and_legal_pages(walk)
    declare_field(walk)
    mail_and_import(walk, product)
    look_at_the_registry(walk, product)
    assert walk.faults == []
    # A quarter of a minute for each is less than ten minutes.
    assert walk.clicks + walk.fields <= 40, f"{walk.clicks} clicks, {walk.fields} fields"
    context.close()


def name_and_brand(walk: Walk) -> None:
    walk.look()
    walk.fill("Email", EMAIL)
    walk.fill("Password", PASSWORD)
    walk.click("Create account and continue")
    walk.page.wait_for_url("**/operate/setup/name")
    walk.fill("Name", "Guild of Clockmakers")
    walk.fill("Contact", EMAIL)
    walk.click("Save and continue")
    walk.page.wait_for_url("**/operate/setup/import")
    walk.page.goto(f"{walk.page.url.rpartition('/')[0]}/done")
    walk.click("Brand", "link")
    walk.choose("Logo", logo())
    walk.fill("Accent color", "#0b5d3b")
    expect(walk.page.locator("input[type=color]").first).to_have_value("#0b5d3b")
    walk.page.locator("input[type=color]").first.fill("#0b5d3c")
    expect(walk.page.get_by_label("Accent color", exact=True).first).to_have_value("#0b5d3c")
    walk.click("Preview")
    expect(walk.page.get_by_role("heading", name="Preview")).to_be_visible()
    expect(walk.page.locator("main")).to_contain_text("Contrast of the accent color: ")
    walk.look()
    walk.click("Save and continue")


def words_and_legal_pages(walk: Walk) -> None:
    walk.page.wait_for_url("**/operate/setup/done")
    walk.click("Words", "link")
    walk.click("Association of members")
    expect(walk.page.get_by_label("What a listing is called", exact=True)).to_have_value("member")
    walk.click("Save and continue")
    walk.page.wait_for_url("**/operate/setup/done")
    walk.click("Legal pages", "link")
    walk.fill("Imprint", "Guild of Clockmakers  \nHourglass Lane 1  \nTarnwick")
    walk.click("Save and continue")


def mail_and_import(walk: Walk, product: Product) -> None:
    page = walk.page
    page.wait_for_url("**/operate/setup/done")
    page.goto(f"{product.url}/operate/setup/mail")
    walk.click("Continue")
    page.goto(f"{product.url}/operate/setup/import")
    walk.choose("File", members())
    walk.click("Read file")
    page.get_by_role("button", name="Preview import").wait_for(timeout=60_000)
    find_membership_number(walk)
    walk.click("Preview import")
    page.get_by_role("button", name="Import", exact=True).wait_for(timeout=60_000)
    walk.click("Import")
    page.wait_for_url("**/operate/import/runs/*", timeout=120_000)
    page.get_by_role("button", name="Undo import").wait_for(timeout=120_000)
    page.goto(f"{product.url}/operate/setup/done")
    walk.look()


def look_at_the_registry(walk: Walk, product: Product) -> None:
    page = walk.page
    walk.click("Open the registry", "link")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("header img")).to_have_attribute("alt", "Guild of Clockmakers")
    walk.look()
    last = "/api/v1/companies?pageSize=100&page=3"
    wait_until(lambda: len(product.data_of(last)) == MEMBERS - 200, within_s=60, what="all members published")
    page.goto(f"{product.url}/companies")
    expect(page.locator("main")).to_contain_text(str(MEMBERS))
    page.goto(f"{product.url}/companies/tarnwick-clocks-5")
    expect(page.locator(".facts dt", has_text=FIELD).locator("+ dd")).to_have_text("M-0005")
    page.goto(f"{product.url}/companies?{KEY}=M-0005")
    expect(page.locator("#results .listing")).to_have_count(1)
    expect(page.locator("#results")).to_contain_text("Tarnwick Clocks 5")
    assert product.data_of(f"/api/v1/companies?{KEY}=M-0006")[0]["name"] == "Saltmarsh Clocks 6"
    page.goto(f"{product.url}/imprint")
    expect(page.locator("main")).to_contain_text("Hourglass Lane 1")
    page.goto(f"{product.url}/accounts/logout/")
    page.locator("main").get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{product.url}/")
    assert product.data_of("/api/v1/companies?q=Tarnwick+Clocks+5")[0]["name"] == "Tarnwick Clocks 5"


def declare_field(walk: Walk) -> None:
    """Declare a field of the registry's own, and come back to the set-up by what the page offers."""
    page = walk.page
    page.wait_for_url("**/operate/setup/done")
    walk.click("Fields", "link")
    page.wait_for_url("**/operate/setup/fields")
    walk.click("Declare fields", "link")
    page.wait_for_url("**/operate/fields")
    page.locator("a[href='/operate/fields/company']").click()
    walk.clicks += 1
    walk.fill("Label", FIELD)
    walk.pick("Kind of value", "Identifier")
    walk.look()
    walk.click("Add field")
    page.wait_for_url("**/operate/fields")
    expect(page.get_by_role("link", name=FIELD, exact=True)).to_be_visible()
    expect(page.get_by_text("in use since")).to_be_visible()
    page.goto(page.url.replace("/operate/fields", "/operate/setup/fields"))
    expect(page.locator("main")).to_contain_text(f"Declared: {FIELD}")
    walk.click("Continue")


def find_membership_number(walk: Walk) -> None:
    """The column of that name is mapped to the declared field without a hand."""
    assert walk.page.get_by_label(f"Field of {FIELD}").input_value() == KEY


WORDS = {
    "en": {
        "email": "Email",
        "password": "Password",
        "create": "Create account and continue",
        "name": "Name",
        "contact": "Contact",
        "save": "Save and continue",
        "file": "File",
        "read": "Read file",
        "preview": "Preview import",
        "import": "Import",
        "undo": "Undo import",
        "continue": "Continue set-up",
        "open": "Open the registry",
    },
    "de": {
        "email": "E-Mail",
        "password": "Passwort",
        "create": "Konto anlegen und weiter",
        "name": "Name",
        "contact": "Kontakt",
        "save": "Speichern und weiter",
        "file": "Datei",
        "read": "Datei einlesen",
        "preview": "Vorschau anzeigen",
        "import": "Import",
        "undo": "Import rückgängig machen",
        "continue": "Einrichtung fortsetzen",
        "open": "Register öffnen",
    },
}


@pytest.mark.whole(keeps=0)
@pytest.mark.parametrize(("language", "width"), [("en", 1280), ("de", 390)])
def test_a_stranger_sets_up_a_registry_from_a_table_in_twelve_clicks(browser, product, language, width):
    context = browser.new_context(
        locale=language, viewport={"width": width, "height": 900}, reduced_motion="reduce", color_scheme="light"
    )
    page, words = context.new_page(), WORDS[language]
    walk = Walk(page)
    page.goto(set_up_link(product))
    picture(page, f"1-{language}")
    walk.fill(words["email"], EMAIL)
    walk.fill(words["password"], PASSWORD)
    walk.click(words["create"])
    page.wait_for_url("**/operate/setup/name")
    picture(page, f"2-{language}")
    walk.fill(words["name"], "Guild of Clockmakers")
    walk.fill(words["contact"], EMAIL)
    walk.click(words["save"])
    page.wait_for_url("**/operate/setup/import")
    picture(page, f"3-{language}")
    walk.choose(words["file"], members())
    walk.clicks += 2  # the button that opens the list of files, and the one that takes the file
    walk.click(words["read"])
    page.get_by_role("button", name=words["preview"]).wait_for(timeout=60_000)
    picture(page, f"4-{language}")
    walk.click(words["preview"])
    page.get_by_role("button", name=words["import"], exact=True).wait_for(timeout=60_000)
    picture(page, f"5-{language}")
    walk.click(words["import"])
    page.wait_for_url("**/operate/import/runs/*", timeout=120_000)
    page.get_by_role("button", name=words["undo"]).wait_for(timeout=120_000)
    picture(page, f"6-{language}")
    walk.click(words["continue"], "link")
    page.wait_for_url("**/operate/setup/done")
    picture(page, f"7-{language}")
    walk.click(words["open"], "link")
    last = "/api/v1/companies?pageSize=100&page=3"
    wait_until(lambda: len(product.data_of(last)) == MEMBERS - 200, within_s=60, what="all members published")
    assert walk.clicks <= 12
    context.close()


def picture(page: Any, name: str) -> None:
    """Keep a picture of the page, if a folder for pictures is named."""
    if folder := os.environ.get("SETUP_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_the_set_up_continues_after_a_restart_and_without_scripts(browser, product):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(set_up_link(product))
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/operate/setup/name")
    page.get_by_label("Name", exact=True).fill("Guild")
    page.keyboard.press("Enter")
    page.wait_for_url("**/operate/setup/import")
    product.stop()
    product.start()
    product.wait_ready()
    page.goto(f"{product.url}/operate/setup")
    assert page.url.endswith("/operate/setup/import")
    assert len(LINK.findall(product.output())) == 1  # the second start printed none
    context.close()
