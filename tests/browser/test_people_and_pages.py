"""In a real browser: a newcomer's whole way, passkeys, every page for everyone's eyes, hands and settings."""

import re

import pytest
from playwright.sync_api import expect

from browser.eyes import in_the_dark, look, look_at, violations
from browser.importing import stages
from browser.tour import (
    COMPANY,
    OPERATOR,
    OPERATOR_PATHS,
    OWNER,
    OWNER_PATHS,
    PASSWORD,
    PUBLIC_PATHS,
    REVIEWER,
    REVIEWER_PATHS,
    origin,
    sign_in,
    stand,
)
from browser.waiting import a_days_work, in_the_queue
from browser.wrongly import refusals
from services.mail import Mailbox, text_of
from services.ports import SEEN_WITHIN_S, wait_until


@pytest.fixture(scope="module")
def post():
    with Mailbox() as box:
        yield box


@pytest.fixture(scope="module")
def site(tmp_path_factory, post):
    with stand(tmp_path_factory.mktemp("site"), mail_url=post.url) as product:
        yield product


@pytest.fixture
def visitor(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 1280, "height": 900})
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def room(browser, site):
    """Return a function that gives a page where this account is signed in; each signs in once, and "" does not."""
    pages = {}

    def page_of(email):
        if email not in pages:
            context = browser.new_context(base_url=origin(site), reduced_motion="reduce")
            pages[email] = sign_in(context, site, email) if email else context.new_page()
        return pages[email]

    yield page_of
    for page in pages.values():
        page.context.close()


def code_to(post, email):
    text = text_of(post.wait_for(email))
    return re.search(r"^\s*([A-Z0-9]{3,}(?:-[A-Z0-9]+)*)\s*$", text, re.MULTILINE)[1]


def published(site, path, holds):
    wait_until(lambda: holds(site.get(path)), within_s=SEEN_WITHIN_S, what=f"{path} showing it")


@pytest.mark.requirement("people.sign-in")
@pytest.mark.requirement("listings.states")
def test_a_newcomer_signs_up_lists_a_company_and_sees_it_published(browser, site, post, visitor):
    page, email = visitor, "newcomer@brine.example"
    page.goto("/manage/companies/new")
    page.get_by_role("link", name="Create account").click()
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password (again)").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.get_by_label("Code").fill(code_to(post, email))
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url("**/manage/companies/new")
    page.get_by_label("Name", exact=True).press_sequentially("Brine & Bramble")
    expect(page.locator("#suggested")).to_contain_text("/companies/brine-bramble")
    page.get_by_label("Type (needed to publish)", exact=True).fill("cooperative")
    page.get_by_label("Website").fill("https://brine.example")
    page.get_by_role("button", name="Save and continue").click()
    page.get_by_label("Summary").fill("Salt-marsh farmers who share a cold store.")
    for _ in range(4):
        page.get_by_role("button", name="Save and continue").click()
        page.wait_for_load_state()
    page.wait_for_url("**/manage/companies/brine-bramble/check")
    page.get_by_role("button", name="Submit for review").click()
    expect(page.locator("h1 + .pill")).to_have_text("Submitted")
    assert site.get("/api/v1/companies/brine-bramble").status == 404

    at_work = browser.new_context()
    desk = sign_in(at_work, site, REVIEWER)
    desk.goto(f"{origin(site)}/review")
    desk.get_by_role("link", name="Brine & Bramble").click()
    desk.get_by_role("button", name="Approve and publish").click()
    expect(desk.get_by_role("status").first).to_contain_text("Listing published.")
    at_work.close()
    published(site, "/api/v1/companies/brine-bramble", lambda answer: answer.status == 200)
    for path in ("/api/v1/companies?q=bramble", "/companies?q=bramble", "/feed.atom", "/sitemap-companies-1.xml"):
        published(site, path, lambda answer: b"brine-bramble" in answer.body)
    assert "published" in text_of(post.wait_for(email, subject="approved"))

    page.goto("/manage/companies/brine-bramble/edit/about")
    page.get_by_label("Summary").fill("Something much worse.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("Saved.")
    published(site, "/companies/brine-bramble", lambda answer: b"much worse" in answer.body)
    page.get_by_role("link", name="History").click()
    page.get_by_role("button", name="Revert").first.click()
    published(site, "/companies/brine-bramble", lambda answer: b"share a cold store" in answer.body)


def test_a_passkey_signs_up_signs_in_and_confirms(browser, site, post):
    context = browser.new_context(base_url=origin(site))
    page = context.new_page()
    device = context.new_cdp_session(page)
    device.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    device.send(
        "WebAuthn.addVirtualAuthenticator",
        {"options": {**options, "isUserVerified": True, "automaticPresenceSimulation": True}},
    )
    email = "keyholder@brine.example"
    page.goto("/accounts/signup/passkey/")
    page.get_by_label("Email").fill(email)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Code").fill(code_to(post, email))
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Name").fill("This laptop")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**/manage")
    page.goto("/accounts/logout/")
    page.get_by_role("button", name="Sign out").click()
    page.goto("/accounts/login/")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url("**/manage")
    assert email in page.content()
    page.goto("/accounts/reauthenticate/?next=/manage/tokens")
    page.get_by_role("button", name="Use a passkey or security key").click()
    page.wait_for_url("**/manage/tokens")
    context.close()


def test_the_eyes_of_these_tests_are_open(visitor):
    visitor.goto("/")
    visitor.evaluate(
        "document.querySelector('main').innerHTML ="
        ' \'<img src="/x.png"><p><font color="#eee">pale</font></p><input>\''
    )
    for _ in ("at first", "again, because a look with a fault is not proven"):
        assert {"image-alt", "color-contrast", "label"} <= {rule for rule, _ in violations(visitor)}
    visitor.evaluate("document.querySelector('font').color = '#222'")
    assert "color-contrast" not in {rule for rule, _ in violations(visitor)}
    visitor.evaluate("document.querySelector('main').style.background = '#444'")
    assert "color-contrast" in {rule for rule, _ in violations(visitor)}, "it was proven on another background"
    visitor.evaluate("document.querySelector('main').style.background = ''")
    assert "color-contrast" not in {rule for rule, _ in violations(visitor)}
    assert {rule for rule, _ in in_the_dark(visitor)} == {"color-contrast"}


@pytest.mark.whole(keeps=12)
@pytest.mark.parametrize("path", PUBLIC_PATHS)
def test_every_public_page_is_accessible(room, site, path):
    look_at(room(""), site, [path])


@pytest.mark.whole(keeps=3)
@pytest.mark.parametrize("path", OWNER_PATHS)
def test_every_page_of_an_owner_is_accessible(room, site, path):
    look_at(room(OWNER), site, [path])


@pytest.mark.whole(keeps=3)
@pytest.mark.parametrize("path", REVIEWER_PATHS)
def test_every_page_of_a_reviewer_is_accessible(room, site, path):
    look_at(room(REVIEWER), site, [path])


@pytest.mark.whole(keeps=3)
@pytest.mark.parametrize("path", OPERATOR_PATHS)
def test_every_page_of_an_operator_is_accessible(room, site, path):
    look_at(room(OPERATOR), site, [path])


@pytest.mark.whole(keeps=0)
def test_every_page_of_an_import_is_accessible(browser, site):
    context = browser.new_context(base_url=origin(site), reduced_motion="reduce")
    page = sign_in(context, site, OPERATOR)
    assert [fault for name in stages(page, site) for fault in look(page, name)] == []
    context.close()


def test_the_page_of_an_invitation_is_accessible_and_works_by_keyboard(browser, site, post):
    at_work, at_home = (browser.new_context(base_url=origin(site), reduced_motion="reduce") for _ in range(2))
    desk = sign_in(at_work, site, OPERATOR)
    desk.goto("/operate/invitations")
    desk.get_by_label("Email").fill("guest@brine.example")
    desk.get_by_role("button", name="Send invitation").click()
    desk.get_by_text("Invitation sent to").wait_for()
    link = re.search(r"/invitations/\S+", text_of(post.wait_for("guest@brine.example")))[0]
    page = at_home.new_page()
    look_at(page, site, [link])
    page.get_by_label("Password").fill("short")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Password")).to_have_attribute("aria-invalid", "true")
    assert look(page, "a weak password") == []
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Create account")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/manage")
    at_work.close()
    at_home.close()


@pytest.mark.whole(keeps=0)
def test_every_refused_form_is_accessible(browser, site):
    context = browser.new_context(base_url=origin(site), reduced_motion="reduce")
    page = sign_in(context, site, OWNER)
    faults = []
    for name in refusals(page, site):
        expect(page.locator("[aria-invalid=true], [role=alert], .notice.bad, .pasted .wrong").first).to_be_visible()
        faults += look(page, name)
    assert faults == []
    context.close()


@pytest.mark.whole(keeps=0)
def test_a_full_queue_is_accessible(browser, site, post):
    framework = site.data_of("/api/v1/frameworks")[0]["frameworkId"]
    at_home, at_work, passing = (
        browser.new_context(base_url=origin(site), reduced_motion="reduce") for _ in ("owner", "reviewer", "visitor")
    )
    mine = sign_in(at_home, site, OWNER)
    paths = a_days_work(mine, site, framework, lambda email: text_of(post.wait_for(email, subject="o-own")))
    desk = sign_in(at_work, site, REVIEWER)
    asked = in_the_queue(desk, site)
    assert len(asked) >= 3, asked
    look_at(mine, site, paths.owner)
    look_at(desk, site, [*paths.reviewer, *asked])
    look_at(passing.new_page(), site, paths.public)
    read = passing.new_page()
    mails = {str(each["Subject"]): each.get_body(("html",)).get_content() for each in post.messages}
    assert len(mails) >= 3
    for subject, html in mails.items():
        read.set_content(html)
        assert (violations(read), in_the_dark(read)) == ([], []), subject
        read.emulate_media(color_scheme="light")
    for context in (at_home, at_work, passing):
        context.close()


def test_a_search_narrows_while_one_types_and_its_address_can_be_shared(visitor):
    visitor.goto("/companies")
    visitor.locator("#q").press_sequentially("tarnwick", delay=20)
    expect(visitor.locator("#results .listing")).to_have_count(1)
    visitor.wait_for_url("**/companies?q=tarnwick**")
    expect(visitor.locator("#q")).to_be_focused()


def test_everything_works_without_javascript(browser, site):
    context = browser.new_context(base_url=origin(site), java_script_enabled=False)
    page = sign_in(context, site, OWNER)
    page.goto("/companies")
    page.locator("#q").fill("tarnwick")
    page.locator("#search").get_by_role("button", name="Search").click()
    expect(page.locator("#results .listing")).to_have_count(1)
    page.goto("/manage/companies/new")
    page.get_by_label("Name", exact=True).fill("Plain Forms")
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/manage/companies/plain-forms/edit/about?new=1")
    context.close()


def test_a_name_of_one_long_word_stays_within_a_small_page(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 320, "height": 640})
    page = sign_in(context, site, OWNER)
    page.goto("/manage/companies/new")
    page.get_by_label("Name", exact=True).fill("Donaudampfschiff" * 6)
    page.get_by_role("button", name="Save and continue").click()
    page.wait_for_url("**/edit/about?new=1")
    for path in (page.url, page.url.split("/edit/")[0], "/manage", "/manage/documents", "/manage/reports"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") == 320, path
    context.close()


def test_on_a_phone_the_open_tab_is_in_sight_and_an_anchor_stays_where_it_leads(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 360, "height": 640})
    page = sign_in(context, site, OWNER)
    page.goto("/manage/credits")
    expect(page.get_by_role("navigation", name="Manage").get_by_role("link", name="Credits")).to_be_in_viewport(ratio=1)
    page.goto("/manage/tokens#make")
    expect(page.get_by_role("heading", name="Create token")).to_be_in_viewport()
    context.close()
    context = browser.new_context(base_url=origin(site), viewport={"width": 360, "height": 640})
    page = sign_in(context, site, OPERATOR)
    page.goto("/operate/audit")
    tabs = page.get_by_role("navigation", name="Operate")
    expect(tabs.get_by_role("link", name="Audit log")).to_be_in_viewport(ratio=1)
    context.close()


def test_on_a_phone_the_number_of_companies_of_a_person_is_said_in_words(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 360, "height": 640})
    page = context.new_page()
    page.goto("/people")
    expect(page.get_by_role("row", name="Rafe Silverdyke").get_by_text("3 companies")).to_be_visible()
    expect(page.locator("#results thead")).to_be_hidden()
    page.goto("/companies")
    expect(page.locator("#results thead")).to_be_hidden()
    context.close()


def test_a_refusal_is_shown_at_the_top_and_has_the_focus(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(f"/manage/companies/{COMPANY}/edit/basics")
    page.get_by_label("Website").fill("not a site")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Not saved.")
    expect(page.get_by_label("Website")).to_be_focused()
    expect(page.get_by_label("Website")).to_have_value("not a site")
    context.close()


@pytest.mark.parametrize("path", ["/manage/companies/new", f"/manage/companies/{COMPANY}/edit/basics"])
def test_going_back_to_a_refused_form_finds_what_was_typed(browser, site, path):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto(path)
    page.get_by_label("Name", exact=True).fill("Back and forth")
    page.get_by_label("Website").fill("not a site")
    page.get_by_role("button", name=re.compile("^Save( and continue)?$")).click()
    expect(page.get_by_label("Website")).to_be_focused()
    page.goto("/connect")
    page.go_back()
    expect(page.get_by_label("Website")).to_have_value("not a site")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Back and forth")
    context.close()


def test_the_keyboard_reaches_the_content_and_the_theme(visitor):
    visitor.goto(f"/companies/{COMPANY}")
    visitor.keyboard.press("Tab")
    expect(visitor.get_by_role("link", name="Skip to content")).to_be_focused()
    visitor.keyboard.press("Enter")
    expect(visitor.locator("#main")).to_be_focused()
    visitor.locator(".theme").focus()
    visitor.keyboard.press("Enter")
    assert visitor.evaluate("document.documentElement.dataset.theme") == "dark"
    visitor.reload()
    assert visitor.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_form_that_is_sent_twice_in_one_breath_acts_once(browser, site):
    context = browser.new_context(base_url=origin(site))
    page = sign_in(context, site, OWNER)
    page.goto("/manage/companies/new")
    page.get_by_label("Name", exact=True).fill("Twice Pressed")
    page.evaluate("const f = document.querySelector('main form'); f.submit(); f.submit();")
    page.wait_for_url("**/edit/about?new=1**")
    page.goto("/manage")
    expect(page.get_by_role("link", name="Twice Pressed").first).to_be_visible()
    assert "twice-pressed-2" not in page.content()
    context.close()


def test_a_public_page_offers_sign_in_to_visitors_and_manage_to_owners(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/connect")
    account = page.locator("header .account")
    expect(account.get_by_role("link")).to_have_text(["List your organization", "Sign in"])
    page.close()
    page = sign_in(context, site, OWNER)
    page.goto("/connect")
    account = page.locator("header .account")
    expect(account.get_by_role("link")).to_have_count(0)
    account.get_by_text("Account menu").locator("..").click()
    expect(account.get_by_text(f"Signed in as {OWNER}")).to_be_visible()
    expect(account.get_by_role("link", name="Your listings")).to_be_visible()
    page.keyboard.press("Escape")
    page.goto("/accounts/logout/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/")
    expect(account.get_by_role("link")).to_have_text(["List your organization", "Sign in"])
    context.close()


def test_the_buttons_of_a_listing_are_on_the_line_of_its_name(browser, site):
    context = browser.new_context(base_url=origin(site), viewport={"width": 1280, "height": 800})
    page = sign_in(context, site, OWNER)
    page.goto("/manage")
    middles = page.evaluate(
        "[...document.querySelectorAll('tbody tr')].map(row => ['td:first-child a', '.actions .button'].map(each => {"
        " const [line] = row.querySelector(each).getClientRects(); return (line.top + line.bottom) / 2 }))"
    )
    assert middles
    assert [(name, button) for name, button in middles if abs(name - button) >= 6] == []
    context.close()
