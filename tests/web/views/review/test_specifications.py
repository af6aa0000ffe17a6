"""A reviewer writes a specification by form, previews the report and publishes; strangers find nothing."""

import json
import re
from html import unescape

import html5lib
import pytest
from django.test import Client

from make.accounts import account, signed_in
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest, Conflict, Forbidden
from muniment.registry.company import listings as companies
from muniment.registry.company.changes import CompanyChange
from muniment.registry.frameworks import authoring
from muniment.registry.models import Framework, FrameworkSpecification, Person, SpecificationDraft
from muniment.registry.review import workflow
from services.submitted import unedited
from web.authoring.test_specification_form import FULL, demo

pytestmark = pytest.mark.django_db
PAGE = "/review/frameworks/care/specification"


@pytest.fixture
def page():
    authoring.create_framework(COMMAND, name="Care", kind="score", framework_id="care")
    return signed_in(account("judge@harbour.example", "reviewer"))


def published(document):
    authoring.author_framework(COMMAND, "care", document)


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
    workflow.submit_company(owner.actor("web"), slug)
    workflow.approve_company(COMMAND, slug)
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
        authoring.author_framework(COMMAND, "care", {**FULL, "note": "third"}, expected_version=0)
    for version in ("", "x", "9"):
        assert page.post(PAGE, {**form, "version": version}).status_code == 400


def of_size(criteria, **more):
    every = [{"id": f"c{n}", "title": f"C{n}", "weight": 1, "requirement": "R."} for n in range(criteria)]
    return {**FULL, "sections": [{"id": "s", "title": "S", "weight": 1, "criteria": every}], **more}


def test_a_form_has_more_fields_than_other_requests(page):
    """Django's own limit is 1,000."""
    levels = [{"level": n, "descriptor": "D"} for n in range(40)]
    many = of_size(25, scale={"min": 0, "max": 40})
    many["sections"][0]["criteria"] = [{**each, "levels": levels} for each in many["sections"][0]["criteria"]]
    published(many)
    form = unedited(page.get(PAGE).content.decode())
    assert len(form) > 1_000
    form |= {"s.0.c.24.title": "The last", "do": "publish"}
    assert page.post(PAGE, form)["Location"] == "/review/frameworks/care"
    made = FrameworkSpecification.objects.latest("version").document["sections"][0]["criteria"]
    assert [each["title"] for each in made[23:]] == ["C23", "The last"]


@pytest.mark.parametrize("act", ["add-criterion:0", "add-section"])
def test_a_form_that_is_full_goes_on_by_section_and_keeps_what_was_typed(page, act):
    published(of_size(25))
    form = form_of(page.get(PAGE))
    assert page.post(PAGE, {**form, "s.0.c.1.title": "Typed <now>", "do": act})["Location"] == PAGE
    assert "You have a draft" in text_of(page.get(PAGE))
    assert part(page.get(f"{PAGE}?section=0"))["s.0.c.1.title"] == ["Typed <now>"]
    document = SpecificationDraft.objects.get().document
    assert [len(each["criteria"]) for each in document["sections"]] == ([26] if act != "add-section" else [25, 1])
    assert FrameworkSpecification.objects.count() == 1


def part(response):
    html = response.content.decode()
    html5lib.HTMLParser(strict=True).parse(html)
    return unedited(html, "revision")


def saved(page, address, do="save", **typed):
    fields = {name.replace("__", "."): value for name, value in typed.items()}
    answer = page.post(address, {**part(page.get(address)), **fields, "do": do})
    assert answer.status_code == 302, text_of(answer)
    return answer["Location"]


def test_a_large_specification_is_edited_by_section_in_bounded_pages_and_published_at_once(page):
    document = of_size(60)
    money = [{**each, "id": f"m{n}"} for n, each in enumerate(of_size(3)["sections"][0]["criteria"])]
    document["sections"].append({"id": "t", "title": "Money", "weight": 1, "criteria": money})
    published(document)
    whole = page.get(PAGE)
    assert "63 criteria" in text_of(whole)
    assert "s.0.c.0.title" not in part(whole)
    opened = page.get(f"{PAGE}?section=0&page=3")
    assert "Criteria 51 to 60 of 60." in text_of(opened)
    assert 'class="notice' not in opened.content.decode().partition("<main")[2]
    third, second, first = (f"{PAGE}?section=0&page={number}" for number in (3, 2, 1))
    assert saved(page, third, s__0__title="Care", s__0__c__9__title="The last") == third
    assert saved(page, third, "up-criterion:0") == f"{second}#s.0.c.24"
    assert saved(page, second, "remove-criterion:0") == f"{second}#s.0.c.0"
    assert saved(page, first, "next") == f"{PAGE}?section=1"
    added = saved(page, f"{PAGE}?section=1", "add-criterion")
    refused = page.post(PAGE, {**part(page.get(PAGE)), "do": "publish"})
    assert refused.status_code == 422
    assert f'href="{PAGE}?section=1#s.0.c.3"' in refused.content.decode()
    typed = {"s__0__c__3__title": "Books", "s__0__c__3__requirement": "Keeps books."}
    assert saved(page, added.partition("#")[0], "back", **typed) == PAGE
    saved(page, PAGE, "up-section:1", band__0__label="Best")
    assert FrameworkSpecification.objects.count() == 1
    assert saved(page, PAGE, "publish") == "/review/frameworks/care"
    made = FrameworkSpecification.objects.latest("version").document
    assert [each["title"] for each in made["sections"]] == ["Money", "Care"]
    titles = [each["title"] for each in made["sections"][1]["criteria"]]
    moved = [*range(25), *range(26, 49), 50, 49, *range(51, 59)]
    assert titles == [*(f"C{n}" for n in moved), "The last"]
    assert made["sections"][0]["criteria"][3]["title"] == "Books"
    assert made["overall"]["bands"][0]["label"] == "Best"
    assert made["note"] == "kept"
    assert not SpecificationDraft.objects.exists()


def test_a_draft_is_its_reviewers_own_and_is_not_overwritten_from_another_tab(page):
    published(of_size(30))
    other_tab = part(page.get(f"{PAGE}?section=0"))
    saved(page, f"{PAGE}?section=0", s__0__title="Mine")
    refused = page.post(f"{PAGE}?section=0", {**other_tab, "s.0.title": "Typed", "do": "save"})
    assert "changed in another tab" in text_of(refused)
    assert part(refused)["s.0.title"] == ["Typed"]
    refused = page.post(PAGE, {**part(page.get(PAGE)), "revision": "0", "band.0.label": "Typed", "do": "publish"})
    assert "changed in another tab" in text_of(refused)
    assert part(refused)["band.0.label"] == ["Typed"]
    colleague = signed_in(account("colleague@harbour.example", "reviewer"))
    assert part(colleague.get(f"{PAGE}?section=0"))["s.0.title"] == ["S"]
    published({**of_size(30), "note": "other"})
    refused = page.post(PAGE, {**part(page.get(PAGE)), "do": "publish"})
    assert "was published in the meantime" in text_of(refused)
    assert saved(page, PAGE, "discard") == "/review/frameworks/care"
    assert part(page.get(f"{PAGE}?section=0"))["s.0.title"] == ["S"]
    for section in ("1", "x", "-1", "9" * 9):
        assert page.get(f"{PAGE}?section={section}").status_code == 404
    assert "The form has no section." in text_of(page.post(f"{PAGE}?section=0", {"revision": "0", "do": "save"}))
    assert signed_in(account()).get(f"{PAGE}?section=0").status_code == 404


def test_a_large_preview_shows_sections_alone(page):
    published(of_size(101))
    shown = page.post(PAGE, {**part(page.get(PAGE)), "do": "preview"})
    assert "Preview: Tarnwick Tidal Cooperative" in text_of(shown)
    assert "C100" not in text_of(shown)


def test_a_draft_has_a_size_and_a_revision(page):
    published(FULL)
    framework, judge = Framework.objects.get(), Account.objects.get().actor("web")
    kept = authoring.save_draft(judge, framework, FULL, version=1, revision=0)
    assert kept.revision == 1
    with pytest.raises(Conflict):
        authoring.save_draft(judge, framework, FULL, version=1, revision=0)
    with pytest.raises(BadRequest):
        authoring.save_draft(judge, framework, {**FULL, "note": "x" * authoring.MAX_DRAFT_BYTES}, version=1, revision=1)
    stranger = account("owner@harbour.example").actor("web")
    for act in (authoring.find_draft, authoring.discard_draft):
        with pytest.raises(Forbidden):
            act(stranger, framework)


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
