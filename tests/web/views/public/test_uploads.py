"""The page of an upload link: no account, no cookie, no traces of the address, and clear about what happens."""

from datetime import timedelta

import pytest
from django.test import Client

from make import registry as make
from make.documents import begin, send, token_of
from muniment.documents.http import OUTCOME
from muniment.documents.models import Document
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest
from muniment.registry.models import Company

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner():
    return make.owner()


@pytest.fixture
def upload(owner):
    draft = make.draft(owner)
    Company.objects.filter(slug=draft.slug).update(name="<b>Harbour</b> & Sons")
    return begin(owner, draft.slug, sha256="a" * 64)


def show(upload, outcome=None, **more):
    path = f"/uploads/{upload if isinstance(upload, str) else token_of(upload)}"
    scope = {"state": {OUTCOME: outcome} if outcome else {}}
    return Client().get(path, **{"asgi.scope": scope}, **more)


def test_the_page_says_what_will_happen_and_for_which_organization(upload):
    page = show(upload)
    text = page.content.decode()
    assert page.status_code == 200
    assert "<title>Upload minutes.txt to &lt;b&gt;Harbour&lt;/b&gt; &amp; Sons ·" in text
    assert 'enctype="multipart/form-data"' in text
    assert 'accept=".txt"' in text
    assert "SHA-256" in text


def test_the_page_sets_no_cookie_and_does_not_give_its_address_away(upload):
    for page in (show(upload), show("invented")):
        assert not page.cookies
        assert page["Referrer-Policy"] == "no-referrer"
        assert page["X-Robots-Tag"] == "noindex"
        assert "no-store" in page["Cache-Control"]
        assert "script-src 'self'" in page["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in page["Content-Security-Policy"]


def test_a_used_link_an_expired_and_an_unknown_one_say_so(owner, upload):
    assert "not valid" in show("invented").content.decode()
    Document.objects.update(expires_at=now() - timedelta(seconds=1))
    page = show(upload)
    assert page.status_code == 404
    assert "has expired" in page.content.decode()
    assert "<form method=" not in page.content.decode().partition("<main")[2]


@pytest.mark.django_db(transaction=True)
def test_a_used_link_tells_nothing_more_about_the_file(owner):
    upload = begin(owner, make.draft(owner).slug)
    send(upload)
    text = show(upload).content.decode()
    assert "was used" in text
    assert "minutes.txt" not in text


def test_after_the_form_the_page_says_what_became_of_the_file(upload):
    page = show(upload, {"filename": "minutes.txt", "state": "uploaded"})
    assert page.status_code == 201
    assert "scanned for viruses" in page.content.decode()
    page = show(upload, BadRequest("The file is <empty>.", "Send one."))
    assert page.status_code == 400
    assert "The file is &lt;empty&gt;." in page.content.decode()
    assert 'id="upload"' in page.content.decode()
    page = show("invented", BadRequest("It was rejected.", "Send another."))
    assert page.status_code == 400
    assert "It was rejected." in page.content.decode()


def test_the_page_has_no_other_methods(upload):
    assert Client().delete(f"/uploads/{token_of(upload)}").status_code == 405
