"""Pages in the visitor's language: negotiation, the choice, what caches keep, and the language of mail."""

import re

import pytest
from django.test import Client
from django.utils.translation import gettext

from make.accounts import account, signed_in
from make.declared import declared
from make.published import Publisher, company
from muniment.accounts.models import Account
from muniment.languages import writing
from muniment.languages.offered import default, offered
from muniment.languages.speaking import language, speaking
from muniment.mail.receivers import in_language_of
from muniment.store.reader import Reader
from muniment.web.presenters.charts import percent
from muniment.web.presenters.company_lists import amount
from muniment.web.requests import page_cache
from muniment.web.wording.guidance import guidance
from muniment.web.wording.places import country_names, month_or_text
from muniment.web.wording.states import happened, outcome, state, transferred

GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de-CH,de;q=0.9,en;q=0.5"}


@pytest.fixture
def visitor(tmp_path):
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1, "harbour"))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client()
    page_cache.use(None)
    reader.close()
    publisher.close()


def test_a_page_is_in_the_language_that_the_browser_prefers_and_says_so(visitor):
    english, german = visitor.get("/companies"), visitor.get("/companies", **GERMAN)
    assert '<html lang="en">' in english.content.decode()
    assert '<html lang="de">' in german.content.decode()
    assert "Organisationen" in german.content.decode()
    for answer, code in ((english, "en"), (german, "de")):
        assert answer["Content-Language"] == code
        assert answer["Vary"] == "Accept-Encoding, Accept-Language, Cookie"
    assert english["ETag"] != german["ETag"]


def test_a_kept_page_never_answers_a_visitor_of_another_language(visitor):
    first = {code: visitor.get("/companies", HTTP_ACCEPT_LANGUAGE=code).content for code in ("en", "de")}
    for code in ("de", "en", "fr", "de"):
        answer = visitor.get("/companies", HTTP_ACCEPT_LANGUAGE=code)
        assert answer.content == first[code if code == "de" else "en"]


def test_languages_that_are_not_offered_make_no_copy_of_a_page(visitor):
    for code in ("en", "fr", "tlh", "xx-YY", "de", "de-AT", "../..", ""):
        visitor.get("/companies", HTTP_ACCEPT_LANGUAGE=code, HTTP_COOKIE=f"language={code}")
    assert len([key for key in page_cache.pages if "/companies?" in key]) == 2


def test_an_unchanged_page_is_unchanged_in_its_own_language_alone(visitor):
    german = visitor.get("/companies", **GERMAN)
    again = visitor.get("/companies", HTTP_IF_NONE_MATCH=german["ETag"], **GERMAN)
    assert (again.status_code, again["Content-Language"], again["Vary"]) == (304, "de", german["Vary"])
    assert visitor.get("/companies", HTTP_IF_NONE_MATCH=german["ETag"]).status_code == 200


def test_with_one_language_nothing_depends_on_the_visitor(visitor):
    with declared(registry={"languages": ["en"]}):
        english, german = visitor.get("/companies"), visitor.get("/companies", **GERMAN)
        assert english.content == german.content
        assert english["Vary"] == "Accept-Encoding"
        assert "Content-Language" not in english
        assert 'action="/language"' not in english.content.decode()
    with declared(registry={"languages": ["de"]}):
        assert '<html lang="de">' in visitor.get("/companies", HTTP_ACCEPT_LANGUAGE="en").content.decode()


def test_the_first_declared_language_is_the_default(visitor):
    with declared(registry={"languages": ["de", "en"]}):
        assert (offered(), default()) == (("de", "en"), "de")
        assert visitor.get("/companies")["Content-Language"] == "de"
        assert visitor.get("/companies", HTTP_ACCEPT_LANGUAGE="en-GB")["Content-Language"] == "en"
    assert (offered(), default()) == (("en", "de"), "en")


def test_declared_languages_without_a_catalogue_are_not_offered():
    with declared(registry={"languages": ["fr", "de"]}):
        assert offered() == ("de",)
    with declared(registry={"languages": ["fr"]}):
        assert offered() == ("en", "de")


@pytest.mark.parametrize("path", ["/feed.atom", "/companies.atom", "/opensearch.xml", "/sitemap.xml", "/robots.txt"])
def test_documents_for_programs_are_the_same_for_everyone(visitor, path):
    english, german = visitor.get(path), visitor.get(path, **GERMAN)
    assert english.content == german.content
    assert german["Vary"] == "Accept-Encoding"
    assert "Content-Language" not in german


@pytest.mark.django_db
def test_a_choice_is_kept_and_leads_back_to_the_page(visitor):
    answer = visitor.post("/language", {"to": "de"}, HTTP_REFERER="http://testserver/companies?q=tide")
    assert (answer.status_code, answer["Location"]) == (303, "http://testserver/companies?q=tide")
    kept = answer.cookies["language"]
    assert (kept.value, kept["path"], kept["samesite"], kept["httponly"]) == ("de", "/", "Lax", True)
    assert visitor.get("/companies")["Content-Language"] == "de"
    assert visitor.get("/companies", HTTP_ACCEPT_LANGUAGE="en")["Content-Language"] == "de"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"to": "fr"}, {}),
        ({"to": "de\r\nSet-Cookie: x=1"}, {}),
        ({}, {}),
        ({"to": "de"}, {"HTTP_SEC_FETCH_SITE": "cross-site"}),
    ],
)
def test_a_choice_that_is_not_offered_or_comes_from_another_site_changes_nothing(visitor, fields, headers):
    answer = visitor.post("/language", fields, **headers)
    assert answer.status_code == 303
    assert "language" not in answer.cookies


@pytest.mark.django_db
@pytest.mark.parametrize("back", ["https://evil.example/x", "//evil.example", "javascript:alert(1)", "http://[", ""])
def test_a_choice_leads_to_no_other_site(visitor, back):
    assert visitor.post("/language", {"to": "de"}, HTTP_REFERER=back)["Location"] == "/"


@pytest.mark.django_db
def test_a_choice_is_a_form_that_is_sent(visitor):
    assert visitor.get("/language").status_code == 405


@pytest.mark.django_db
def test_a_choice_is_remembered_for_the_account_that_makes_it_and_for_no_other():
    owner, stranger = account("owner@harbour.example"), account("stranger@harbour.example")
    signed_in(owner).post("/language", {"to": "de"})
    assert [Account.objects.get(pk=each.pk).language for each in (owner, stranger)] == ["de", ""]


@pytest.mark.django_db
def test_texts_for_an_account_are_in_its_language_if_it_is_offered():
    owner = account("owner@harbour.example")
    for code, spoken in (("de", "de"), ("", "en"), ("fr", "en"), ("../x", "en")):
        owner.language = code
        with speaking("de"), in_language_of(owner):
            assert language() == spoken
    owner.language = "de"
    with declared(registry={"languages": ["en"]}), in_language_of(owner):
        assert language() == "en"


def test_a_block_ends_with_the_language_before_it_even_by_an_error():
    with speaking("de"):
        assert gettext("Sign in") == "Anmelden"
    with pytest.raises(ZeroDivisionError), speaking("de"):
        raise ZeroDivisionError
    assert (language(), gettext("Sign in")) == ("en", "Sign in")


def test_days_and_numbers_are_written_as_the_language_writes_them():
    from datetime import UTC, datetime

    at = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    assert (writing.day(at), writing.month(at), writing.moment(at), writing.number(1234567)) == (
        "21 November 2026",
        "November 2026",
        "21 November 2026, 09:30",
        "1,234,567",
    )
    with speaking("de"):
        march = at.replace(month=3)
        assert (writing.day(march), writing.month(march), writing.moment(march), writing.number(1234567)) == (
            "21. März 2026",
            "März 2026",
            "21. März 2026, 09:30",
            "1.234.567",
        )
        assert writing.digits("1,234.5") == "1.234,5"


def test_codes_have_words_in_the_language_and_unknown_ones_stay():
    with speaking("de"):
        assert (state("published"), happened("owner left"), state("some_new_state")) == (
            "Veröffentlicht",
            "Inhaber ausgeschieden",
            "Some new state",
        )
        assert country_names()["AT"] == "Österreich"
        assert next(iter(country_names().values())) == "Afghanistan"
        assert (month_or_text("March 2024"), month_or_text("early 2024"), month_or_text(None)) == (
            "März 2024",
            "early 2024",
            "",
        )
    assert (country_names()["AT"], month_or_text("March 2024")) == ("Austria", "March 2024")


@pytest.mark.parametrize(
    ("english", "german"),
    [
        (
            'No company matches "tide". Use fewer or other words.',
            "Kein Treffer für „tide“. Nehmen Sie weniger oder andere Wörter.",
        ),
        ('The name is similar to "tide".', "Der Name ähnelt „tide“."),
        (
            'The name is similar to "tide". The filters leave it out.',
            "Der Name ähnelt „tide“, passt aber nicht zu den Filtern.",
        ),
        ('No company matches "tiede". Did you mean "tide"?', "Kein Treffer für „tiede“. Meinten Sie „tide“?"),
        ("The company tide has no listed people.", "Für tide ist nichts eingetragen."),
        ('There is no company "tiede". Did you mean tide?', "„tiede“ gibt es nicht. Meinten Sie tide?"),
        ("No company matches teamMin. Leave out teamMin.", "Kein Treffer für teamMin."),
        (
            "No company matches listedFrom and listedTo. Leave out listedFrom or listedTo.",
            "Nichts passt zu allem davon: listedFrom and listedTo.",
        ),
        (
            'No company has the theme "x" or "y". Values in use: a (2), b (1).',
            "Kein Treffer hat „x“ oder „y“ als Wert von theme. Vorhandene Werte: a (2), b (1).",
        ),
        ("A sentence of a later version.", "A sentence of a later version."),
    ],
)
def test_what_a_search_says_is_in_the_language_of_the_page(english, german):
    assert guidance(english) == re.sub('"([^"]*)"', r"“\1”", english)
    with speaking("de"):
        assert guidance(english) == german


def test_a_search_names_a_filter_as_the_page_does():
    with speaking("de"):
        found = guidance('No company has the theme "x".', {"theme": "Thema"})
    assert found == "Kein Treffer hat „x“ als Wert von Thema."


def test_a_proposal_fails_in_another_word_than_a_job():
    with speaking("de"):
        assert (outcome("failed"), state("failed")) == ("Abgelehnt", "Fehlgeschlagen")
        assert (outcome("passed"), state("private"), state("hidden")) == ("Angenommen", "Privat", "Verborgen")
        assert (transferred("start"), transferred("of a plugin")) == ("Startguthaben", "of a plugin")


def test_numbers_in_percent_and_of_tokens_are_written_as_the_language_writes_them():
    assert (percent(50.16), amount("3,575,513"), amount("about 12")) == ("50.16%", "3,575,513", "about 12")
    with speaking("de"):
        assert (percent(50.16), amount("3,575,513"), amount("about 12")) == ("50,16\u00a0%", "3.575.513", "about 12")


def test_the_menu_names_each_language_in_itself_and_marks_the_present_one(visitor):
    page = visitor.get("/companies", **GERMAN).content.decode()
    menu = re.search(r'<form[^>]*action="/language".*?</form>', page, re.DOTALL)[0]
    assert 'lang="en">English</button>' in menu
    assert 'lang="de" aria-current="true">Deutsch</button>' in menu
