"""The reviewers' pages of people: find, correct, merge and erase; closed to other accounts."""

import pytest

from make.accounts import account, signed_in
from make.registry import document, owner, published
from muniment.registry.models import Person

pytestmark = pytest.mark.django_db
SLUG = "ada-moss"


@pytest.fixture
def page():
    """Return a reviewer's browser, with a person at a company whose description names them."""
    positions = [{"title": "Chair", "person": {"name": "Ada Moss"}}, {"person": {"name": "A. Moss"}}]
    published(owner(), name="Harbour Board", description="Led by Ada Moss.", positions=positions)
    return signed_in(account("reviewer@harbour.example", "reviewer"))


PATHS = ("/review/people", f"/review/people/{SLUG}", f"/review/people/{SLUG}/erase")


@pytest.mark.parametrize("path", PATHS)
def test_the_pages_are_closed_to_owners_and_visitors(page, client, path):
    assert signed_in(account("other@harbour.example")).get(path).status_code == 404
    assert client.get(path).status_code == 302


@pytest.mark.parametrize("action", ["", "/unlist", "/merge", "/erase"])
def test_the_forms_are_closed_to_owners(page, action):
    fields = {"name": "Bo", "note": "No.", "into": "a-moss", "confirm": SLUG}
    assert signed_in(account("other@harbour.example")).post(f"/review/people/{SLUG}{action}", fields).status_code == 404
    assert document("person", SLUG)["name"] == "Ada Moss"


def test_people_are_found_by_a_part_of_the_name_or_the_slug(page):
    html = page.get("/review/people?q=ada-m").content.decode()
    assert f'href="/review/people/{SLUG}"' in html
    assert 'href="/review/people/a-moss"' not in html
    assert "No people found" in page.get("/review/people?q=unmatched").content.decode()
    Person.objects.bulk_create([Person(slug=f"p{n}", name=f"Person {n:02}") for n in range(40)])
    assert "Person 39" in page.get("/review/people?page=2").content.decode()


def test_the_list_tells_namesakes_apart_by_their_organizations_and_names_who_is_not_public(page):
    Person.objects.create(slug="ada-moss-2", name="Ada Moss", published=False)
    html = page.get("/review/people?q=Ada+Moss").content.decode()
    public, hidden = html.partition(f'href="/review/people/{SLUG}-2"')[::2]
    assert "2 people" in public
    assert "<bdi>Harbour Board</bdi>" in public
    assert "Not public" not in public
    assert "Not public" in hidden


def test_a_profile_is_corrected(page):
    html = page.get(f"/review/people/{SLUG}").content.decode()
    assert 'href="/review/companies/harbour-board"' in html
    assert page.post(f"/review/people/{SLUG}", {"name": " ", "bio": ""}).status_code == 422
    answer = page.post(f"/review/people/{SLUG}", {"name": "Ada M. Moss", "bio": "Sails."}, follow=True)
    assert "Profile corrected." in answer.content.decode()
    assert document("person", SLUG)["bio"] == "Sails."
    assert page.get("/review/people/missing").status_code == 404


def test_a_profile_is_unlisted_with_a_note_and_published_again(page):
    refused = page.post(f"/review/people/{SLUG}/unlist", {"do": "unlist", "note": ""}, follow=True)
    assert "Write a note first." in refused.content.decode()
    page.post(f"/review/people/{SLUG}/unlist", {"do": "unlist", "note": "Wrong person."})
    assert document("person", SLUG) is None
    assert "Publish again" in page.get(f"/review/people/{SLUG}").content.decode()
    page.post(f"/review/people/{SLUG}/unlist", {"do": "relist"})
    assert document("person", SLUG) is not None


def test_two_people_are_merged_and_an_unknown_one_is_named(page):
    refused = page.post(f"/review/people/{SLUG}/merge", {"into": "missing"}, follow=True)
    assert "No person has the slug" in refused.content.decode()
    merged = page.post("/review/people/a-moss/merge", {"into": SLUG}, follow=True)
    assert merged.redirect_chain == [(f"/review/people/{SLUG}", 302)]
    assert document("person", "a-moss") is None


def test_a_person_is_erased_once_the_slug_is_typed_and_the_remaining_texts_are_listed(page):
    html = page.get(f"/review/people/{SLUG}/erase").content.decode()
    assert "Company, description" in html
    assert page.post(f"/review/people/{SLUG}/erase", {"confirm": "ada"}).status_code == 422
    assert document("person", SLUG) is not None
    erased = page.post(f"/review/people/{SLUG}/erase", {"confirm": SLUG})
    assert erased.status_code == 200
    assert "The person is erased" in erased.content.decode()
    assert 'href="/review/companies/harbour-board"' in erased.content.decode()
    assert document("person", SLUG) is None
    assert page.get(f"/review/people/{SLUG}").status_code == 404
