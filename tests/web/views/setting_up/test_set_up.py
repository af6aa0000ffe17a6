"""The first set-up in the browser: the link, the account, the steps, and where they are saved."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from make.accounts import PASSWORD, account, signed_in
from make.imports import work
from make.pages import fields_of
from make.registry import draft, owner
from muniment.accounts import first_run
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND
from muniment.masking import masked
from muniment.registry.models import RegistryVersion
from muniment.registry.settings.versions import apply_settings, latest_version
from muniment.registry_toml.reading import check
from muniment.web.views.setting_up.first_account import COOKIE
from muniment.web.views.setting_up.steps import PAGES

pytestmark = pytest.mark.django_db
EMAIL = "office@guild.example"
STEPS = "/operate/setup"


@pytest.fixture
def link() -> str:
    return first_run.make_link(COMMAND)


@pytest.fixture
def operator() -> Client:
    return signed_in(account(EMAIL, "operator"))


def test_the_link_becomes_a_cookie_and_leaves_address_referrer_and_log(link):
    browser = Client()
    answer = browser.get(link)
    assert (answer.status_code, answer["Location"], answer["Referrer-Policy"]) == (302, "/setup", "no-referrer")
    cookie = answer.cookies[COOKIE]
    assert (cookie["httponly"], cookie["path"], cookie["samesite"]) == (True, "/setup", "Lax")
    assert link.rpartition("/")[2] not in masked(f"GET {link} 302")
    assert b"create the operator" in browser.get("/setup").content
    assert Client().get(link).status_code == 404  # it is of the first browser
    assert Client().get("/setup").status_code == 404


def test_a_link_checker_uses_nothing_up(link):
    assert Client().head(link).status_code == 405
    assert Client().get(link).status_code == 302


def test_the_account_is_created_signed_in_and_led_to_the_next_step(link):
    browser = Client()
    browser.get(link)
    weak = browser.post("/setup", {"email": EMAIL, "password": "password"})
    assert weak.status_code == 422
    assert EMAIL.encode() in weak.content  # nothing is lost but the password
    answer = browser.post("/setup", {"email": EMAIL, "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, STEPS)
    assert Account.objects.get().role == "operator"
    assert browser.get(STEPS)["Location"] == f"{STEPS}/name"
    assert browser.get("/setup")["Location"] == STEPS
    assert browser.get(link)["Location"] == STEPS
    assert Client().get("/setup").status_code == 404
    assert b"is not finished" in browser.get("/operate").content


def test_of_two_browsers_one_wins(link):
    first, second = Client(), Client()
    assert first.get(link).status_code == 302
    assert second.get(link).status_code == 404
    assert second.post("/setup", {"email": "second@guild.example", "password": PASSWORD}).status_code == 404
    assert first.post("/setup", {"email": EMAIL, "password": PASSWORD}).status_code == 302
    assert Account.objects.count() == 1


def test_each_step_saves_its_part_and_leaves_the_others(operator):
    apply_settings(COMMAND, check({"texts": {"footer": "Since 1801"}, "sections": {"token": False}}))
    answer = operator.post(f"{STEPS}/brand", {"do": "save", "version": "1", "brand__accent": "#0b5d3b"})
    assert (answer.status_code, answer["Location"]) == (302, f"{STEPS}/done")
    found = latest_version().settings
    assert (found.brand.accent, found.texts.footer, found.sections.token) == ("#0b5d3b", "Since 1801", False)
    assert first_run.steps_taken() == {"brand": False}


def test_a_step_with_a_fault_saves_nothing_and_keeps_what_was_entered(operator):
    answer = operator.post(f"{STEPS}/brand", {"do": "save", "brand__accent": "#7fd0a8"})
    assert answer.status_code == 422
    said = r"<li>Has a contrast of \d\.\d\d:1 on light paper; 4\.5:1 is needed\. Use #[0-9a-f]{6}\.</li>"
    assert re.search(said, answer.content.decode())
    assert b"brand.accent" not in answer.content
    assert b'value="#7fd0a8"' in answer.content
    assert not RegistryVersion.objects.exists()
    assert first_run.steps_taken() == {}


def test_a_preset_is_only_inserted(operator):
    answer = operator.post(f"{STEPS}/words", {"do": "preset-association", "version": "0"})
    assert b'value="members"' in answer.content
    assert b"Nothing is saved yet." in answer.content
    assert not RegistryVersion.objects.exists()


def test_a_legal_page_is_not_published_before_its_text_is_filled_in(operator):
    inserted = operator.post(f"{STEPS}/legal", {"do": "start-imprint", "legal__terms": "Be kind."})
    assert b"[[Street and number]]" in inserted.content
    assert b"Be kind." in inserted.content
    refused = operator.post(f"{STEPS}/legal", {"do": "save", "legal__imprint": "[[Street and number]]"})
    assert refused.status_code == 422
    assert b"double square brackets: Street and number" in refused.content
    preview = operator.post(f"{STEPS}/legal", {"do": "preview", "legal__imprint": "**Hourglass** <script>x</script>"})
    assert b"<strong>Hourglass</strong>" in preview.content
    assert b"<script>x" not in preview.content
    assert latest_version().number == 0
    operator.post(f"{STEPS}/legal", {"do": "save", "version": "0", "legal__imprint": "Hourglass Lane 1"})
    assert latest_version().settings.legal.imprint == "Hourglass Lane 1"


def test_steps_that_are_left_out_are_named_at_the_end_and_can_be_taken_later(operator):
    for page in PAGES[1:-1]:
        assert operator.get(f"{STEPS}/{page.name}").status_code == 200
        assert operator.post(f"{STEPS}/{page.name}", {"do": "skip"}).status_code == 302
    assert operator.get(STEPS)["Location"] == f"{STEPS}/done"
    done = operator.get(f"{STEPS}/done").content
    for page in PAGES[1:-1]:
        assert f'href="{STEPS}/{page.name}"'.encode() in done
    assert operator.get(f"{STEPS}/none").status_code == 404


def test_a_test_message_goes_to_the_operator(operator):
    operator.post(f"{STEPS}/mail", {"do": "test"})
    assert f"A test message to {EMAIL}".encode() in operator.get(f"{STEPS}/mail").content


def test_a_change_by_someone_else_is_not_overwritten(operator):
    apply_settings(COMMAND, check({"registry": {"name": "Guild"}}))
    answer = operator.post(f"{STEPS}/name", {"do": "save", "version": "0", "registry__name": "Mine"})
    assert b"changed by someone else" in answer.content
    assert latest_version().settings.registry.name == "Guild"


def ticked(html: bytes) -> list[str]:
    return re.findall(r'<li class="done"[^>]*>(?:<a [^>]*>)?([^<]+)', html.decode())


def test_steps_are_ticked_by_what_exists_and_only_the_others_are_left(operator):
    assert ticked(operator.get(f"{STEPS}/name").content) == ["Account"]
    apply_settings(COMMAND, check({"legal": {"imprint": "Hourglass Lane 1"}, "brand": {"accent": "#0b5d3b"}}))
    draft(owner())
    operator.post(f"{STEPS}/words", {"do": "skip"})
    assert ticked(operator.get(f"{STEPS}/name").content) == ["Account", "Import"]
    assert ticked(operator.get(f"{STEPS}/brand").content) == ["Account", "Import", "Brand", "Legal pages"]
    done = operator.get(f"{STEPS}/done").content.decode()
    skipped = done.partition("What else you can set up")[2].partition("</section>")[0]
    assert re.findall(r'setup/(\w+)"', skipped) == ["name", "words", "fields"]
    assert "Some steps are still open" in done
    assert "Set up mail" in done


def test_three_questions_are_asked_and_the_languages_have_names(operator):
    page = operator.get(f"{STEPS}/name").content.decode()
    assert re.findall(r'<label for="id_([^"]+)"', page) == [
        "registry__name",
        "registry__contact",
        "registry__languages",
    ]
    assert "(optional)" not in page
    assert "MUNIMENT_" not in page
    languages = re.findall(r'<option value="([^"]*)"[^>]*>([^<]+)', page)
    assert ("", "All, by the preference of each visitor") in languages
    assert ("de", "Only Deutsch") in languages
    assert ("de,en", "Deutsch first, also English") in languages
    sent = {"do": "save", "version": "0", "registry__name": "Guild", "registry__languages": "de,en"}
    assert operator.post(f"{STEPS}/name", sent)["Location"] == f"{STEPS}/import"
    assert latest_version().settings.registry.languages == ("de", "en")
    assert 'value="de,en" selected' in operator.get(f"{STEPS}/name").content.decode()
    bad = operator.post(f"{STEPS}/name", {**sent, "version": "1", "registry__languages": "xx"})
    assert bad.status_code == 422


def test_a_table_is_imported_in_the_set_up_and_logos_are_fetched_if_the_operator_says_so(operator):
    page = operator.get(f"{STEPS}/import").content.decode()
    assert "This registry uses USD: amounts in another currency are left out." in page
    assert "MUNIMENT_" not in page
    refused = operator.post(f"{STEPS}/import", {"do": "upload", "fetch_logos": "on"})
    assert (refused.status_code, latest_version().number) == (422, 0)
    assert "Choose a file, or enter a web address." in refused.content.decode()
    assert 'name="fetch_logos" aria-describedby="fetch_logos_hint" checked' in refused.content.decode()
    file = SimpleUploadedFile("members.csv", b"Company,Website\nAlder,alder.example\n")
    here = operator.post(f"{STEPS}/import", {"do": "upload", "file": file, "fetch_logos": "on"})["Location"]
    assert latest_version().settings.registry.fetch_logos is True
    assert first_run.steps_taken()["import"] is False
    work()
    first_run.mark_step("account")
    assert "Back to set-up" in operator.get(here).content.decode()
    fields = {name: value for name, value in fields_of(operator.get(here).content.decode()).items() if name != "once"}
    operator.post(here, {**fields, "do": "preview"})
    work()
    operator.post(here, {"do": "import"})
    work()
    done = operator.get(operator.get(here)["Location"]).content.decode()
    assert '<a class="button main" href="/operate/setup/done">Continue set-up</a>' in done
    assert "1 listing" in operator.get(f"{STEPS}/import").content.decode()


def test_a_starting_text_is_offered_only_for_an_empty_page(operator):
    apply_settings(COMMAND, check({"legal": {"imprint": "Hourglass Lane 1"}}))
    page = operator.get(f"{STEPS}/legal").content.decode()
    assert re.findall(r'value="start-(\w+)"', page) == ["privacy", "terms"]
