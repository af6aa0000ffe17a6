"""Refusals on pages in the visitor's language, while every other surface says them in the same English as ever."""

import json

import pytest
from click import ClickException
from django.test import RequestFactory

from make.accounts import account, signed_in
from muniment.cli.command import problems_as_errors
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.languages.speaking import speaking
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.searches.saved_searches import MAX_NAME_CHARACTERS, save_search
from muniment.web.requests.errors import problem_page

GERMAN = {"HTTP_ACCEPT_LANGUAGE": "de"}
ENGLISH = {"HTTP_ACCEPT_LANGUAGE": "en"}
LONG = "x" * 20_001


@pytest.fixture
def owner(db):
    return account()


@pytest.fixture
def slug(owner):
    return listings.create_company(owner.actor("web"), CompanyChange(name="Harbour")).slug


def _html(answer):
    return answer.content.decode()


def test_a_form_field_shows_a_refusal_with_its_value_in_german(owner, slug):
    me, where = signed_in(owner), f"/manage/companies/{slug}/edit/about"
    data = {"body": LONG, "description": "", "themes": "", "teamSize": "", "treasury": "a lot"}
    english, german = me.post(where, data, **ENGLISH), me.post(where, data, **GERMAN)
    assert "Must be an amount such as $1.2M, of at most $1000T, not &#x27;a lot&#x27;." in _html(english)
    assert "Muss ein Betrag wie $1.2M sein, höchstens $1000T, nicht &#x27;a lot&#x27;." in _html(german)


def test_a_problem_page_is_in_german_with_its_value(owner):
    me, where = signed_in(owner), "/manage/searches"
    english, german = me.post(where, **ENGLISH), me.post(where, **GERMAN)
    assert (english.status_code, german.status_code) == (405, 405)
    assert "POST is not allowed here." in _html(english)
    assert "POST ist hier nicht möglich." in _html(german)
    assert "Verwenden Sie eine von diesen: GET, HEAD" in _html(german)


def test_a_problem_page_shows_values_of_an_attacker_as_text():
    request = RequestFactory().get("/")
    request.user = None
    value = "<script>alert(1)</script>{0.__class__}%(x)s\u202e"
    with speaking("de"):
        answer = problem_page(request, NotFound(Phrase("No person has the slug {slug!r}.", slug=value), "Hm."))
    assert "<script>alert" not in _html(answer)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{0.__class__}%(x)s\\u202e" in _html(answer)


def test_a_notice_shows_a_refusal_in_german(owner):
    saved = save_search(owner.actor("web"), "companies", "sort=newest", "Newest")
    me, where = signed_in(owner), f"/manage/searches/{saved.pk}/rename"
    english = me.post(where, {"name": "n" * 300}, **ENGLISH, follow=True)
    german = me.post(where, {"name": "n" * 300}, **GERMAN, follow=True)
    assert f"The name of a search must be one line of 1 to {MAX_NAME_CHARACTERS} characters." in _html(english)
    assert f"Der Name einer Suche muss eine Zeile mit 1 bis {MAX_NAME_CHARACTERS} Zeichen sein." in _html(german)
    assert "Benennen Sie sie nach dem, was sie findet" in _html(german)


def test_operations_raise_the_same_english_whatever_the_language(owner):
    actor = owner.actor("token")
    said = []
    for code in ("en", "de"):
        with speaking(code):
            with pytest.raises(NotFound) as unknown:
                listings.get_company(actor, "nowhere")
            with pytest.raises(BadFields) as bad:
                listings.create_company(actor, CompanyChange(name=5, treasury="a lot"))
            said.append([json.dumps(each.value.to_wire()) for each in (unknown, bad)])
    assert said[0] == said[1]
    error = json.loads(said[1][1])["error"]
    assert error["message"].startswith("name must be text, not a number; ")


def test_the_command_line_says_the_same_english():
    with speaking("de"), pytest.raises(ClickException) as told, problems_as_errors():
        raise Conflict(Phrase("{address} already has an account.", address="a@b.example"), "Use user role.")
    assert told.value.message == "a@b.example already has an account. Use user role."
