"""A reviewer writes a specification by form, previews the report and publishes; strangers find nothing."""

import json
import re
from html import unescape

import html5lib
import pytest
from django.test import Client

from make.accounts import account, signed_in
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import Conflict
from muniment.registry.company import operations as companies
from muniment.registry.company.company_change import CompanyChange
from muniment.registry.frameworks import operations
from muniment.registry.models import FrameworkSpecification, Person
from muniment.registry.review import decisions
from muniment.web.authoring import specification_form
from services.submitted import unedited
from web.authoring.test_specification_form import FULL, demo

pytestmark = pytest.mark.django_db
PAGE = "/review/frameworks/care/specification"


@pytest.fixture
def page():
    operations.create_framework(COMMAND, name="Care", kind="score", framework_id="care")
    return signed_in(account("judge@harbour.example", "reviewer"))


def published(document):
    operations.author_framework(COMMAND, "care", document)


def form_of(response):
    assert response.status_code in {200, 422}
    html = response.content.decode()
    html5lib.HTMLParser(strict=True).parse(html)
    return unedited(html)


def text_of(response):
    html = response.content.decode()
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<main")[2])))


@pytest.mark.parametrize("document", [FULL, *demo()])
def test_the_form_sent_as_it_was_opened_publishes_nothing_new(page, document):
    published(document)
    before = FrameworkSpecification.objects.get()
    sent = page.post(PAGE, {**form_of(page.get(PAGE)), "do": "publish"})
    assert sent["Location"] == "/review/frameworks/care"
    assert FrameworkSpecification.objects.get().document == before.document


def test_a_first_specification_is_written_previewed_and_published(page):
    form = form_of(page.post(PAGE, {**form_of(page.get(PAGE)), "do": "add-section"}))
    assert form["s.0.c.0.title"] == [""]
    refused = page.post(PAGE, {**form, "do": "publish"})
    assert refused.status_code == 422
    assert "sections[0].title is not text" in text_of(refused)
    form |= {"s.0.title": "Governance", "s.0.c.0.title": "A team", "s.0.c.0.requirement": "Names a <team>."}
    form |= {"s.0.c.0.level.4": "named", "s.0.c.0.sources": ["positions"]}
    form = form_of(page.post(PAGE, {**form, "do": "add-criterion:0"}))
    form |= {"s.0.c.1.title": "A charter", "s.0.c.1.requirement": "Publishes it.", "s.0.c.1.weight": "2"}
    form = form_of(page.post(PAGE, {**form, "do": "up-criterion:0.1"}))
    shown = page.post(PAGE, {**form, "do": "preview"})
    told = text_of(shown)
    assert "Preview: Tarnwick Tidal Cooperative" in told
    assert not FrameworkSpecification.objects.exists()
    page.post(PAGE, {**form_of(shown), "do": "publish"})
    document = FrameworkSpecification.objects.get().document
    assert [each["title"] for each in document["sections"][0]["criteria"]] == ["A charter", "A team"]
    assert document["sections"][0]["criteria"][1]["levels"] == [{"level": 4, "descriptor": "named"}]
    assert document["sections"][0]["criteria"][1]["evidence"] == {"sources": ["positions"]}
    assert document["sections"][0]["criteria"][1]["requirement"] == "Names a <team>."


def test_parts_are_added_moved_and_removed_without_saving(page):
    published(FULL)
    form = form_of(page.get(PAGE))
    for do, name, value in (
        ("add-band", "band.2.min", [""]),
        ("remove-band:0", "band.0.label", ["B"]),
        ("up-section:1", "s.0.title", ["Money"]),
        ("remove-section:0", "s.0.title", ["Money"]),
        ("remove-criterion:0.0", "s.0.c.0.title", ["Plain"]),
    ):
        assert form_of(page.post(PAGE, {**form, "do": do}))[name] == value, do
    fields = {name: form[name] for name in form if "." in name}
    for do in ("remove-section:9", "remove-criterion:9.0", "remove-criterion:0.9", "up-band:9", "add-criterion:9"):
        again = form_of(page.post(PAGE, {**form, "do": do}))
        assert {name: again[name] for name in again if "." in name} == fields, do
    assert FrameworkSpecification.objects.count() == 1


def test_a_listing_is_chosen_for_the_preview(page):
    owner = account()
    fields = {"name": "Harbour Fund", "positions": [{"title": "Chair", "person": {"name": "Ottoline Brand"}}]}
    slug = companies.create_company(owner.actor("web"), CompanyChange(fields)).slug
    published(demo()[0])
    form = form_of(page.get(PAGE))
    draft = page.post(PAGE, {**form, "do": "preview", "listing": slug})
    assert "There is no such listing." in text_of(draft)
    decisions.submit_company(owner.actor("web"), slug)
    decisions.approve_company(COMMAND, slug)
    assert "Preview: Harbour Fund" in text_of(page.post(PAGE, {**form, "do": "preview", "listing": slug}))
    assert Person.objects.count() == 1


def test_a_form_of_a_former_version_is_refused_and_keeps_what_was_typed(page):
    published(FULL)
    form = form_of(page.get(PAGE))
    published({**FULL, "note": "other"})
    refused = page.post(PAGE, {**form, "s.0.title": "Typed", "do": "publish"})
    assert "Version 4 was published in the meantime." in text_of(refused)
    assert form_of(refused)["s.0.title"] == ["Typed"]
    with pytest.raises(Conflict):
        operations.author_framework(COMMAND, "care", {**FULL, "note": "third"}, expected_version=0)
    for version in ("", "x", "9"):
        assert page.post(PAGE, {**form, "version": version}).status_code == 400


def of_size(criteria, **more):
    every = [{"id": f"c{n}", "title": f"C{n}", "weight": 1, "requirement": "R."} for n in range(criteria)]
    return {**FULL, "sections": [{"id": "s", "title": "S", "weight": 1, "criteria": every}], **more}


def test_a_form_has_more_fields_than_other_requests(page):
    """Django's own limit is 1,000."""
    published(of_size(60))
    form = unedited(page.get(PAGE).content.decode())
    assert len(form) > 1_000
    form |= {"s.0.c.59.title": "The last", "do": "publish"}
    assert page.post(PAGE, form)["Location"] == "/review/frameworks/care"
    made = FrameworkSpecification.objects.latest("version").document["sections"][0]["criteria"]
    assert [each["title"] for each in made[58:]] == ["C58", "The last"]


def test_a_form_that_can_grow_no_more_keeps_what_was_typed(page, monkeypatch):
    monkeypatch.setattr(specification_form, "MAX_CRITERIA", 2)
    published(of_size(2))
    form = form_of(page.get(PAGE))
    for act in ("add-criterion:0", "add-section"):
        answer = page.post(PAGE, {**form, "s.0.c.1.title": "Typed <now>", "do": act})
        assert "Publish this version, then add more as JSON." in text_of(answer)
        kept = form_of(answer)
        assert kept["s.0.c.1.title"] == ["Typed <now>"]
        assert "s.0.c.2.title" not in kept
        assert "s.1.title" not in kept


def test_a_specification_that_no_form_can_hold_is_left_to_json(page):
    published(of_size(301))
    assert "The form holds up to 300 criteria" in text_of(page.get(PAGE))
    levels = [{"level": n / 10, "descriptor": "D"} for n in range(40)]
    many = of_size(200)
    many["sections"][0]["criteria"] = [{**each, "levels": levels} for each in many["sections"][0]["criteria"]]
    assert specification_form.fields_of(many).is_large


def test_what_the_form_and_the_json_publish_is_the_same(page):
    published(FULL)
    form = form_of(page.get(PAGE)) | {"s.1.weight": "71"}
    page.post(PAGE, {**form, "do": "publish"})
    by_form = FrameworkSpecification.objects.latest("version").document
    text = json.dumps({**by_form, "note": "by JSON"})
    page.post("/review/frameworks/care/author", {"specification": text})
    assert form_of(page.get(PAGE))["s.1.weight"] == ["71"]
    assert by_form["sections"][1]["weight"] == 71
    assert by_form["note"] == "kept"


def test_the_form_is_closed_to_strangers(page):
    published(FULL)
    for client, method in ((signed_in(account()), "get"), (signed_in(account("b@harbour.example")), "post")):
        assert getattr(client, method)(PAGE).status_code == 404
    assert Client().get(PAGE)["Location"].startswith("/accounts/login/")
    assert page.get("/review/frameworks/other/specification").status_code == 404
