"""In a real browser: an owner edits a long list in pages, with and without JavaScript, at a desk and on a phone."""

import json

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, violations
from browser.tour import OWNER, origin, sign_in
from services.owner import owned_registry
from services.prepared import copied
from services.product import Product, run

SLUG = "kelp-exchange"
TEAM, TOKEN = (f"/manage/companies/{SLUG}/edit/{step}" for step in ("team", "token"))
STATUSES = ("active", "passed", "failed", "pending")


def _with_long_lists(data, **settings):
    owned_registry(data, **settings)
    listing = {
        "company": {
            "id": SLUG,
            "name": "Kelp Exchange",
            "address": [{"address_1": "12 Net Lane", "city": "Port Ansel", "zip": "0042"}],
        },
        "distribution": {"method": "vote", "pools": [{"name": "Members", "percentage": 60}]},
        "positions": [{"title": f"Steward {n % 7}", "person": {"name": f"Person {n}"}} for n in range(130)],
        "proposals": [
            {
                "id": str(n),
                "title": f"Dredge harbour {n}",
                "status": STATUSES[n % 4],
                "votes": {"for": 10 * n, "against": n},
                "endDate": "2025-06-30",
            }
            for n in range(60)
        ],
        "capTable": [
            {"name": f"Holder {n}; Sons", "address": f"0x{n:040}", "tokens": f"{1_000 * n}", "percentage": 0.01}
            for n in range(300)
        ],
    }
    path = data.parent / "companies.jsonl"
    path.write_text(json.dumps(listing) + "\n")
    run("import", str(path), data=data, **settings)
    run("own", OWNER, SLUG, data=data, **settings)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Product(copied(_with_long_lists, tmp_path_factory.mktemp("site") / "data")) as product:
        product.wait_ready()
        yield product


def rows_of(site, part):
    return site.data_of(f"/api/v1/companies/{SLUG}")[part]


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_a_long_list_is_searched_edited_and_extended(browser, site, script):
    context = browser.new_context(base_url=origin(site), java_script_enabled=script)
    page = sign_in(context, site, OWNER)
    page.goto(TEAM)
    name = f"Newcomer {script}"
    page.get_by_role("searchbox", name="Search in Team").fill(f"person {77 if script else 88}")
    if script:
        page.keyboard.press("Enter")
    else:
        page.get_by_role("group", name="Team").get_by_role("button", name="Search").click()
    expect(page.get_by_text("Rows 1 to 1 of 1 that match, of 13")).to_be_visible()
    page.get_by_label("Position, ").first.fill(f"Harbour master {script}")
    page.get_by_role("button", name="Show all").click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    page.get_by_role("button", name="Page 2", exact=True).click()
    expect(page.get_by_label("Name, 26", exact=True)).to_be_visible()
    expect(page.get_by_role("status")).to_have_count(0)
    page.get_by_label("Remove row 30").check()
    if script:
        page.get_by_role("group", name="Team").get_by_role("button", name="Add person").click()
    page.get_by_label("Name, New").last.fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_url("**/edit/team?positions-page=6#positions")
    assert page.locator(f'#positions input[value="{name}"]').count() == 1
    titles = [row.get("title") for row in rows_of(site, "positions")]
    assert (len(titles), titles.count(f"Harbour master {script}")) == (130, 1)
    context.close()


def test_a_refused_cell_keeps_what_was_typed_and_has_the_focus(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(f"{TOKEN}?capTable-page=2")
    before = rows_of(site, "capTable")
    page.get_by_label("Percent, 27", exact=True).fill("half")
    page.get_by_label("Name, 28", exact=True).fill("Renamed; and Sons")
    page.get_by_role("navigation", name="Pages of Cap table").get_by_role("button", name="Next page").click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_label("Percent, 27", exact=True)).to_be_focused()
    expect(page.get_by_label("Name, 28", exact=True)).to_have_value("Renamed; and Sons")
    page.get_by_label("Percent, 27", exact=True).fill("0.02")
    page.get_by_role("navigation", name="Pages of Cap table").get_by_role("button", name="Next page").click()
    page.wait_for_url("**/edit/token?capTable-page=3#capTable")
    before[26]["percentage"], before[27]["name"] = 0.02, "Renamed; and Sons"
    assert rows_of(site, "capTable") == before
    context.close()


def unfold(page):
    """Open the lists that are closed because they are long."""
    for summary in page.locator(".rows > details:not([open]) > summary").all()[::-1]:
        summary.click()


def test_a_script_sends_only_the_rows_that_were_changed(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(TOKEN)
    unfold(page)
    page.get_by_label("Votes for, 3", exact=True).fill("77")
    with page.expect_request(lambda request: request.method == "POST") as sent:
        page.get_by_role("button", name="Save", exact=True).click()
    names = [part.partition("=")[0] for part in sent.value.post_data.split("&")]
    rows = {name.rpartition("-")[0] for name in names if name.startswith(("proposals-", "capTable-", "pools-"))}
    assert rows == {"capTable", "proposals", "proposals-2"}, "the searches, and one row"
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    assert rows_of(site, "proposals")[2]["votes"]["for"] == 77
    context.close()


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
def test_rows_to_fill_in_are_there_at_once_only_without_a_script(browser, site, script):
    context = browser.new_context(base_url=origin(site), java_script_enabled=script)
    page = sign_in(context, site, OWNER)
    page.goto(TEAM)
    blank = page.get_by_label("Street, New")
    assert [each.is_visible() for each in blank.all()] == [not script] * 2
    if script:
        page.get_by_role("button", name="Add address").click()
        expect(blank.last).to_be_focused()
        assert [each.is_visible() for each in blank.all()] == [False, False, True]
    context.close()


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("width", [390, 320])
def test_the_buttons_of_a_long_form_stay_in_sight_and_cover_no_field_that_has_the_focus(browser, site, width):
    context = browser.new_context(base_url=origin(site), viewport={"width": width, "height": 740})
    page = sign_in(context, site, OWNER)
    page.goto(f"{TEAM}?positions-page=2")
    save = page.get_by_role("button", name="Save", exact=True).last
    page.get_by_label("Position, 26", exact=True).focus()
    expect(save).to_be_in_viewport(ratio=1)
    assert save.bounding_box()["y"] > 600
    for _ in range(40):
        page.keyboard.press("Tab")
        covered = page.evaluate(
            "() => { const it = document.activeElement, at = it.getBoundingClientRect();"
            " const top = document.querySelector('.stays').getBoundingClientRect().top;"
            " return !it.closest('.stays') && at.bottom > top && at.top < innerHeight && it.tagName === 'INPUT' }"
        )
        assert not covered
    context.close()


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("width", [1280, 390, 320])
@pytest.mark.parametrize("path", [f"{TEAM}?positions-page=2", TOKEN], ids=["team", "token"])
def test_the_editor_fits_and_is_accessible(browser, site, path, width):
    context = browser.new_context(base_url=origin(site), viewport={"width": width, "height": 900})
    page = sign_in(context, site, OWNER)
    page.goto(path)
    unfold(page)
    assert violations(page) == []
    assert in_the_dark(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    context.close()
