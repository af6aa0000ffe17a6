"""
In a real browser: every page in a right-to-left pseudo-language, in which a text that escaped translation stands out.

The pseudo-catalogue is an operator's: no code knows it.
"""

import json
import re
from pathlib import Path

import pytest

from browser.eyes import violations
from browser.importing import TABLE, stages
from browser.tour import (
    FURTHER_OPERATOR_PATHS,
    FURTHER_OWNER_PATHS,
    FURTHER_PUBLIC_PATHS,
    FURTHER_REVIEWER_PATHS,
    OPERATOR,
    OPERATOR_PATHS,
    OWNER,
    OWNER_PATHS,
    PUBLIC_PATHS,
    REVIEWER,
    REVIEWER_PATHS,
    origin,
    sign_in,
    stand,
)
from make.languages import CODE, OPEN, write_pseudo

TEXTS = """() => {
  const found = [document.title.split(" · ")[0]];
  const data = "bdi, code, pre, kbd, .mono, [lang]:not(html), [dir=auto], svg, script, style, template, textarea";
  const others = ".brand, .mark, .on-paper, noscript, datalist";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());)
    if (!node.parentElement.closest(`${data}, ${others}`)) found.push(node.data);
  const spoken = ["aria-label", "title", "placeholder", "alt", "data-label", "data-done", "data-failed"];
  for (const each of document.querySelectorAll(spoken.map((name) => `[${name}]`).join()))
    if (!each.closest("[lang]:not(html), [dir=auto]:not(input, textarea)"))
      found.push(...spoken.map((name) => each.getAttribute(name) ?? ""));
  return found.map((text) => text.trim().replace(/\\s+/g, " ")).filter((text) => /[A-Za-z]{2}/.test(text));
}"""
"""The texts of a page that people read or hear, without the data."""
WIDTHS = (1280, 390)
RUNS_OVER = "() => document.documentElement.scrollWidth > innerWidth"
NAMES = {
    *("OpenAPI", "llms.txt", "X (Twitter)", "LinkedIn", "YouTube", "Instagram", "Facebook", "TikTok", "LEI", "curl"),
    *("GitHub", "Discord", "Telegram", "JSON Lines", "CSV", "SQLite"),
    *("Claude", "Claude Code", "ChatGPT", "Codex", "Cursor", "VS Code", "Gemini CLI", "LM Studio", "Goose", "UTC"),
    *("Lisbon", "tide", "nothing-of-this-name", "blue-river-trust", "Name"),
    *("name@example.org", "/companies/", "/manage", "/manage/tokens", "Türkiye", "registry.toml", "Muniment"),
}
"""Names, addresses and words of the demo, and a label that django-allauth lacks in Arabic."""
NO_TEXT = re.compile(
    r"[\w.+-]+@[\w.-]+|https?://\S+|[^A-Za-z]+ UTC|Mozilla/\S+ .*|[\w-]+\.(?:example|toml|json)\S*|MUNIMENT_\w+"
)
DEMO = Path(__file__).parents[2] / "src" / "muniment" / "demo"
ROOMS = {
    "public": ("", PUBLIC_PATHS + FURTHER_PUBLIC_PATHS),
    "owner": (OWNER, OWNER_PATHS + FURTHER_OWNER_PATHS),
    "reviewer": (REVIEWER, REVIEWER_PATHS + FURTHER_REVIEWER_PATHS),
    "operator": (OPERATOR, OPERATOR_PATHS + FURTHER_OPERATOR_PATHS),
}
EXAMPLES = ("Ada Reef", "Bo Marsh", "Founders 300,000")
"""Of tables to paste, in placeholders."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("languages")
    write_pseudo(place / "site")
    declared = place / "registry.toml"
    declared.write_text(f'[registry]\nlanguages = ["en", "de", "{CODE}"]\n', "utf-8")
    with stand(place, site_folder=str(place / "site"), registry_file=str(declared)) as product:
        yield product


@pytest.fixture(scope="module")
def data():
    """The texts of the demo registry: each value, and all of them in one."""
    found = {" ".join(each.split()) for file in sorted(DEMO.glob("*.jsonl")) for each in _texts(file)}
    return found, "\n".join(sorted(found))


def _texts(file):
    def walk(value):
        if isinstance(value, dict | list):
            for each in value.values() if isinstance(value, dict) else value:
                yield from walk(each)
        elif isinstance(value, str):
            yield value

    for line in file.read_text("utf-8").splitlines():
        yield from walk(json.loads(line))


def is_data(text, data):
    values, whole = data
    words = text.removesuffix("…").strip(" ,:·")
    return words in values or words in NAMES or (len(words) > 12 and words in whole) or bool(NO_TEXT.fullmatch(words))


def speak(context, site, code):
    context.add_cookies([{"name": "language", "value": code, "url": origin(site)}])


def faults_of(page, name, data):
    """Return the texts of a page that escaped translation, and the widths at which it runs over."""
    faults = [
        f"{name}: {text[:120]}"
        for text in dict.fromkeys(page.evaluate(TEXTS))
        if OPEN not in text and not is_data(text, data) and not any(each in text for each in EXAMPLES)
    ]
    width = page.viewport_size["width"]
    for each in (width, next(other for other in WIDTHS if other != width)):  # one layout more, from wherever it is
        page.set_viewport_size({"width": each, "height": 844})
        if page.evaluate(RUNS_OVER):
            faults.append(f"{name}: runs over at {each}")
    return faults


@pytest.fixture(scope="module")
def room(browser, site):
    """Return a function that gives a page of this room in the pseudo-language; each signs in once."""
    pages = {}

    def page_of(name):
        if name not in pages:
            context = browser.new_context(viewport={"width": WIDTHS[0], "height": 844})
            email, _ = ROOMS[name]
            pages[name] = sign_in(context, site, email) if email else context.new_page()
            speak(context, site, CODE)
        return pages[name]

    yield page_of
    for page in pages.values():
        page.context.close()


# `make check` finds the unmarked texts of every template; these pages show the texts of code and of data.
@pytest.mark.whole(keeps=32)
@pytest.mark.parametrize(("name", "path"), [(name, path) for name, (_, paths) in ROOMS.items() for path in paths])
def test_no_text_escapes_translation_and_every_page_fits_from_right_to_left(room, site, data, name, path):
    page = room(name)
    faults = _faults_at(page, site, path, data)
    if page.evaluate("document.documentElement.dir") != "rtl":
        faults.append(f"{path}: is not from right to left")
    assert not faults, "\n".join(faults)


@pytest.mark.whole(keeps=0)
def test_no_text_of_an_import_escapes_translation(browser, site, data):
    cells = re.split(r"[;\n]", TABLE)
    known = {*data[0], *cells, "members.csv"}, f"{data[1]}\n{TABLE}"
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page, faults = sign_in(context, site, OPERATOR), []
    for name in stages(page, site):
        speak(context, site, CODE)
        shown = context.new_page()
        shown.goto(page.url)
        shown.wait_for_load_state()
        faults += faults_of(shown, name, known)
        shown.close()
        speak(context, site, "en")
    context.close()
    assert not faults, "\n".join(faults)


def test_no_text_of_an_invitation_escapes_translation(browser, site, data):
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = sign_in(context, site, OPERATOR)
    page.goto(f"{origin(site)}/operate/invitations")
    page.get_by_label("Email").fill("guest@harbour.example")
    page.get_by_role("button", name="Send invitation").click()
    page.get_by_text("Invitation sent to").wait_for()
    speak(context, site, CODE)
    faults = _faults_at(page, site, "/operate/invitations", data)
    context.close()
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    speak(context, site, CODE)
    mails = (mail.read_text("utf-8") for mail in (site.data / "mail").iterdir())
    link = next(found[0] for text in mails if (found := re.search(r"/invitations/[\w-]+", text)))
    faults += _faults_at(context.new_page(), site, link, data)
    faults += _faults_at(context.new_page(), site, "/invitations/none", data)
    context.close()
    assert not faults, "\n".join(faults)


def _faults_at(page, site, path, data):
    page.goto(origin(site) + path)
    page.wait_for_load_state()
    return faults_of(page, path, data)


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize(
    ("who", "path"),
    [
        *(("", each) for each in ("/", "/companies", "/companies/saltmarsh-commons", "/people", "/accounts/login/")),
        *(("", each) for each in ("/frameworks/plain-governance", "/docs", "/companies/saltmarsh-commons/cap-table")),
        *((OWNER, each) for each in (OWNER_PATHS[2], OWNER_PATHS[3])),
        (REVIEWER, "/review"),
        (OPERATOR, "/operate"),
    ],
)
def test_pages_from_right_to_left_are_accessible(browser, site, who, path):
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = sign_in(context, site, who) if who else context.new_page()
    speak(context, site, CODE)
    page.goto(origin(site) + path)
    page.wait_for_load_state()
    assert violations(page) == []
    context.close()


def test_the_language_menu_works_without_scripts_and_returns_to_the_page(browser, site):
    context = browser.new_context(java_script_enabled=False, locale="en-GB")
    page = context.new_page()
    page.goto(f"{origin(site)}/companies?type=DAO")
    page.get_by_role("button", name="Deutsch").click()
    assert page.url == f"{origin(site)}/companies?type=DAO"
    assert page.get_by_role("heading", level=1).inner_text() == "Organisationen"
    page.goto(f"{origin(site)}/people")
    assert page.locator("html").get_attribute("lang") == "de"
    context.close()


def test_arabic_data_reads_from_the_right_on_a_page_from_the_left_and_the_other_way(browser, site):
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    page = context.new_page()
    direction = "(each) => getComputedStyle(each).direction"
    for code, own in (("de", "ltr"), (CODE, "rtl")):
        speak(context, site, code)
        page.goto(f"{origin(site)}/companies?q=BARAN")
        name = page.locator(".listing .name a, .listing a").first
        assert page.locator("body").evaluate(direction) == own
        assert name.evaluate("(each) => getComputedStyle(each.closest('[dir=auto]') ?? each).direction") == "rtl"
        page.goto(f"{origin(site)}/companies/saltmarsh-commons")
        title = page.locator("h1 bdi").first
        assert title.evaluate(direction) == "ltr"
    context.close()
