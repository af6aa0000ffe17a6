"""A report in Chromium: its progress, with and without scripts, then read, shared, shown, compared and submitted."""

import json
import re

import pytest
from playwright.sync_api import expect

from browser.eyes import violations
from browser.keys import Keys
from browser.tour import COMPANY, OWNER, REVIEWER, origin, sign_in, stand
from make.reports import specification
from services.product import run

pytestmark = [pytest.mark.requirement("runs.lifecycle")]
CRITERIA = 2500


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with stand(tmp_path_factory.mktemp("site")) as product:
        yield product


def authored(site, folder, program, criteria):
    file = folder / f"{program}.json"
    file.write_text(json.dumps(specification(criteria, reports="remediation")))
    run("framework", "author", program, str(file), data=site.data)
    return program


@pytest.fixture(scope="module")
def program(site, tmp_path_factory):
    """Author a program of so many criteria that its runs can be watched; give its id."""
    return authored(site, tmp_path_factory.mktemp("long"), "harrow-bay-works-2027", CRITERIA)


@pytest.fixture(scope="module")
def short(site, tmp_path_factory):
    """Author a program whose reports are read at once; give its id."""
    return authored(site, tmp_path_factory.mktemp("short"), "millstone-first-kitchen", 12)


@pytest.fixture
def owner(browser, site):
    """Yield a page where the owner is signed in, and check it against what a page must not say."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = sign_in(context, site, OWNER)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert faults == []


def prepare(page, site, program):
    page.goto(f"{origin(site)}/manage/reports?framework={program}&company={COMPANY}")
    page.get_by_role("button", name="Prepare run").click()
    page.get_by_role("button", name="Run for").click()


def watch(page):
    """Stay until the report is there; give what the page's bar has shown, and what the server would have shown."""
    seen, told = set(), set()
    while page.locator("#first").count() == 0:
        if page.locator("progress").count():
            seen.add(page.evaluate("document.querySelector('progress')?.value ?? 0"))
        # The page looks every second, by when a quick machine may be done: what it would see is asked for too.
        told.update(re.findall(r'<progress[^>]* value="(\d+)"', page.context.request.get(page.url).text()))
    return seen, told


def well(page):
    assert violations(page) == []


def test_a_run_shows_its_progress_until_its_report_replaces_it(owner, site, program):
    page = owner
    prepare(page, site, program)
    page.evaluate("window.unmoved = true")
    seen, told = watch(page)
    assert page.evaluate("window.unmoved"), "the page was loaded anew"
    assert seen, "no progress was shown"
    assert any(0 < int(done) < CRITERIA for done in told), told
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator("#standing")).to_have_count(0)
    expect(page.get_by_text("of 100").first).to_be_visible()


def test_a_report_is_read_shared_shown_compared_and_submitted(browser, owner, site, short):
    page = owner
    prepare(page, site, short)
    page.locator("#first").wait_for(timeout=60_000)
    first = page.url

    page.get_by_role("button", name="Create share link").click()
    link = re.search(r"/reports/shared/\w+", page.get_by_label("Share link", exact=True).inner_text())[0]
    visitor = browser.new_context().new_page()
    visitor.goto(origin(site) + link)
    expect(visitor.get_by_text("Team size").first).to_be_visible()
    expect(visitor.get_by_role("button", name="Create share link")).to_have_count(0)
    visitor.context.close()

    prepare(page, site, short)
    page.locator("#first").wait_for(timeout=60_000)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_text("No criterion changed.")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("UTC")).first).to_have_attribute("href", first[len(origin(site)) :])

    page.goto(first)
    page.get_by_role("button", name="Submit to").click()
    expect(page.get_by_role("button", name="Withdraw application")).to_be_visible()
    page.goto(f"{origin(site)}/manage/applications")
    well(page)
    reviewer = sign_in(browser.new_context(), site, REVIEWER)
    reviewer.goto(f"{origin(site)}/manage/applications")
    reviewer.locator("#received ~ div a").first.click()
    expect(reviewer.get_by_text("Team size").first).to_be_visible()
    reviewer.get_by_label("Note").fill("Welcome.")
    reviewer.get_by_role("button", name="Accept").click()
    expect(reviewer.get_by_text("Accepted", exact=True)).to_be_visible()
    reviewer.context.close()
    page.reload()
    expect(page.get_by_text("Welcome.")).to_be_visible()


def test_an_owner_gets_reads_publishes_and_withdraws_an_assessment(browser, owner, site, short):
    """The fifth journey, by keyboard: eight steps to a score that visitors see, and one to end it."""
    page, keys, company, framework = owner, Keys(owner), f"/companies/{COMPANY}", f"/frameworks/{short}"
    page.goto(origin(site) + framework)
    keys.press(page.get_by_role("link", name="Apply", exact=True))
    keys.choose(page.get_by_label("Listing"), "Tarnwick Tidal")
    expect(page.get_by_label("Listing")).to_have_value(COMPANY)
    keys.press(page.get_by_role("button", name="Prepare run"))
    keys.press(page.get_by_role("button", name="Run for"))
    page.locator("#first").wait_for(timeout=60_000)
    well(page)
    report = page.url
    keys.press(page.get_by_role("link", name="Publish score"))
    page.get_by_label("Publish the score of each section too").wait_for()
    well(page)
    keys.press(page.get_by_label("Publish the score of each section too"), "Space")
    keys.press(page.get_by_role("button", name="Publish score"))
    expect(page.get_by_role("status")).to_contain_text("Score published.")
    well(page)
    code = page.get_by_label("HTML code of the badge").text_content()  # folded
    keys.press(page.get_by_role("status").get_by_role("link", name="View the published summary"))
    expect(page.get_by_role("heading", name="Score by section")).to_be_visible()

    visitor = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    visitor.goto(origin(site) + company)
    visitor.locator("#assessments").get_by_role("link").click()
    assert visitor.url.endswith(f"{company}/assessments/{short}")
    assert f'href="{site.url}{company}/assessments/{short}"' in code
    visitor.locator('img[src$="badge.svg"]').evaluate("image => image.decode()")
    well(visitor)
    visitor.goto(origin(site) + framework)
    row = visitor.locator("#scores").get_by_role("row").nth(1)
    expect(row.get_by_role("link").first).to_have_attribute("href", company)
    well(visitor)
    visitor.goto(f"{origin(site)}{framework}/scores")
    expect(visitor.get_by_role("row")).to_have_count(2)
    well(visitor)

    page.goto(report)
    keys.press(page.get_by_role("button", name="Withdraw score"))
    expect(page.get_by_role("status")).to_contain_text("Score withdrawn.")
    for path in (company, framework):
        visitor.goto(origin(site) + path)
        expect(visitor.locator(f"a[href='{company}/assessments/{short}']")).to_have_count(0)
    assert visitor.goto(f"{origin(site)}{company}/assessments/{short}").status == 404
    visitor.context.close()


def test_without_scripts_the_page_shows_the_report_by_itself(browser, site, program):
    context = browser.new_context(java_script_enabled=False)
    page = sign_in(context, site, OWNER)
    prepare(page, site, program)
    expect(page.locator("progress")).to_be_visible()
    page.locator("#first").wait_for(timeout=60_000)
    context.close()


def test_the_documents_to_quote_follow_the_listing_with_and_without_scripts(browser, site, program, tmp_path):
    other = next(each["id"] for each in site.data_of("/api/v1/companies?pageSize=2") if each["id"] != COMPANY)
    run("own", OWNER, other, data=site.data)
    for scripted in (True, False):
        context = browser.new_context(java_script_enabled=scripted)
        page = sign_in(context, site, OWNER)
        for slug in (COMPANY, other):
            paper = tmp_path / f"{scripted}-of-{slug}.txt"
            paper.write_text("The annual accounts stand open.")
            page.goto(f"{origin(site)}/manage/documents?company={slug}")
            page.set_input_files("#files", str(paper))
            page.click("#upload button[type=submit]")
            page.get_by_role("row", name=paper.name).wait_for()
        page.goto(f"{origin(site)}/manage/reports?company={COMPANY}&framework={program}")
        expect(page.get_by_label(f"{scripted}-of-{COMPANY}.txt")).to_be_visible()
        page.get_by_label("Listing").select_option(other)
        if not scripted:
            page.get_by_role("button", name="Show documents").click()
        expect(page.get_by_label(f"{scripted}-of-{other}.txt")).to_be_visible()
        expect(page.get_by_label(f"{scripted}-of-{COMPANY}.txt")).to_have_count(0)
        expect(page.get_by_label("Framework", exact=True)).to_have_value(program)
        if scripted:
            expect(page.get_by_role("button", name="Show documents")).to_be_hidden()
            well(page)
        page.get_by_label(f"{scripted}-of-{other}.txt").check()
        page.get_by_role("button", name="Prepare run").click()
        expect(page.get_by_role("button", name="Run for")).to_be_visible()
        context.close()
