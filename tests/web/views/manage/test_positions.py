"""Positions on the pages: a person answers them, reviewers link names, owners see who waits."""

import re

import pytest

from make.accounts import Letters, account, signed_in
from make.registry import document, published
from make.registry import owner as actor_of
from make.registry import reviewer as reviewer_actor
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Person
from muniment.registry.people import positions, profiles
from muniment.registry.people.profiles import ProfileChange

pytestmark = pytest.mark.django_db
TITLE = "Convicted fraudster"


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account("owner@tidal.example")


@pytest.fixture
def reviewer():
    return account("reviewer@harbour.example", "reviewer")


@pytest.fixture
def ada():
    """Return the account of a public profile that a listing names."""
    published(actor_of(), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    who = account("ada@moss.example")
    profiles.join_person(reviewer_actor(), "ada-moss", who.pk)
    return who


@pytest.fixture
def tidal(owner, ada):
    """Return the slug of a listing that names Ada and Bo without a link."""
    slug = published(owner.actor("web"), name="Tidal").slug
    rows = [{"title": TITLE, "person": {"slug": "ada-moss"}}, {"title": "Cook", "person": {"name": "Bo Reef"}}]
    listings.update_company(owner.actor("web"), slug, CompanyChange(positions=rows))
    return slug


def team(slug):
    return [(each.get("title"), each["person"]) for each in document("company", slug)["positions"]]


def page(client, path="/manage/profile"):
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def ids(text):
    return re.findall(r'name="position" value="([^"]+)"', text)


def post(client, path, **fields):
    answer = client.post(path, fields)
    assert answer.status_code == 302, answer.content.decode()[:2000]
    return answer.headers["Location"]


@pytest.mark.parametrize(
    ("answer", "shown", "left"),
    [
        ("confirm", "Position confirmed.", [{"name": "Ada Moss", "slug": "ada-moss"}, {"name": "Bo Reef"}]),
        ("decline", "Position declined.", [{"name": "Bo Reef"}]),
        ("end", "Position ended.", [{"name": "Bo Reef"}]),
    ],
)
def test_a_person_answers_on_their_profile(tidal, ada, answer, shown, left):
    client = signed_in(ada)
    text = page(client)
    assert TITLE in text
    assert "Listings ask you to confirm" in text
    request, chair = ids(text)
    assert post(client, "/manage/profile/positions", position=request, do=answer) == "/manage/profile#positions"
    text = page(client)
    assert shown in text
    assert request not in ids(text)
    assert chair in ids(text)
    assert [person for _, person in team(tidal)] == left


def test_a_stranger_and_a_visitor_answer_nothing(tidal, ada, owner, client):
    request, chair = ids(page(signed_in(ada)))
    other = account("other@harbour.example")
    profiles.create_profile(other.actor("web"), ProfileChange(name="Other"))
    for who in (other, owner):
        stranger = signed_in(who)
        assert TITLE not in page(stranger)
        for each in (request, chair):
            post(stranger, "/manage/profile/positions", position=each, do="end")
            text = page(stranger)
            assert "You have no position with the id" in text or "This account has no profile" in text
    assert "/accounts/login/" in post(client, "/manage/profile/positions", position=request, do="confirm")
    assert len(positions.list_positions(ada.actor("web"))) == 2
    assert len(team(tidal)) == 2


def test_an_unknown_answer_is_refused(tidal, ada):
    client = signed_in(ada)
    answer = client.post("/manage/profile/positions", {"position": ids(page(client))[0], "do": "promote"})
    assert answer.status_code == 400


def test_an_answer_to_a_changed_position_is_explained(tidal, ada, owner):
    client = signed_in(ada)
    request = ids(page(client))[0]
    row = document("company", tidal)["positions"][0]
    change = CompanyChange(positions={"set": [{"id": row["id"], "title": "Adviser"}]})
    listings.update_company(owner.actor("web"), tidal, change)
    post(client, "/manage/profile/positions", position=request, do="confirm")
    assert "was changed, answered or withdrawn since" in page(client)
    assert team(tidal)[0] == ("Adviser", {"name": "Ada Moss"})


def test_an_owner_sees_who_was_asked(tidal, owner):
    text = page(signed_in(owner), f"/manage/companies/{tidal}")
    assert "Names without a profile" in text
    assert "Requested" in text


def test_a_reviewer_confirms_for_a_person_and_adds_a_name(tidal, reviewer, owner, ada):
    client = signed_in(reviewer)
    text = page(client, f"/review/companies/{tidal}")
    assert "Confirm for the person" in text
    assert "Add as a new person" in text
    first, second = re.findall(r'name="item" value="([^"]+)"', text)
    address = f"/review/companies/{tidal}/people"
    for who in (owner, ada):
        assert signed_in(who).post(address, {"item": first}).status_code in {302, 403, 404}
    assert team(tidal)[0][1] == {"name": "Ada Moss"}
    for item in (first, second):
        assert post(client, address, item=item) == f"/review/companies/{tidal}#names"
    assert [person.get("slug") for _, person in team(tidal)] == ["ada-moss", "bo-reef"]
    assert "Linked to Bo Reef." in page(client, f"/review/companies/{tidal}")
    assert document("person", "bo-reef")["positions"][0]["title"] == "Cook"
    post(client, address, item=first)
    assert "shows no name without a profile" in page(client, "/review")


def test_a_reviewer_links_a_name_to_an_existing_person_and_never_publishes_a_private_profile(reviewer, owner):
    published(actor_of(), name="Harbour", positions=[{"person": {"name": "Bo Reef"}}])
    profiles.create_profile(actor_of(), ProfileChange(name="Tia Reef"))
    slug = published(owner.actor("web"), name="Tidal", positions=[{"person": {"name": "Bo Reef", "isNew": True}}]).slug
    assert team(slug) == [(None, {"name": "Bo Reef"})]
    client = signed_in(reviewer)
    text = page(client, f"/review/companies/{slug}")
    assert re.search(r'name="person" value="bo-reef"', text)
    (item,) = re.findall(r'name="item" value="([^"]+)"', text)
    post(client, f"/review/companies/{slug}/people", item=item, person="tia-reef")
    assert "No person has the slug" in page(client, "/review")
    assert document("person", "tia-reef") is None
    post(client, f"/review/companies/{slug}/people", item=item, person="bo-reef")
    assert team(slug) == [(None, {"name": "Bo Reef", "slug": "bo-reef"})]
    assert Person.objects.filter(name="Bo Reef").count() == 1


def test_a_reviewer_does_not_override_a_refusal(tidal, reviewer, ada, owner, django_capture_on_commit_callbacks):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        positions.answer_positions(ada.actor("web"), decline=[positions.list_positions(ada.actor("web"))[0].id])
    assert "declined" in letters.to(owner.email)[-1][0]
    client = signed_in(reviewer)
    (item,) = re.findall(r'name="item" value="([^"]+)"', page(client, f"/review/companies/{tidal}"))
    post(client, f"/review/companies/{tidal}/people", item=item, person="ada-moss")
    assert "declined a position in this listing" in page(client, "/review")
    assert team(tidal) == [("Cook", {"name": "Bo Reef"})]


@pytest.mark.parametrize(
    ("choice", "person"),
    [
        ("ada-moss", {"name": "Ada Moss"}),
        ("?new", {"name": "Ada Moss"}),
        ("bo-reef", {"name": "Bo Reef", "slug": "bo-reef"}),
    ],
)
def test_a_name_that_exists_is_offered_for_choice(owner, ada, choice, person):
    published(actor_of(), name="Quay", positions=[{"person": {"name": "Bo Reef"}}])
    slug, client = published(owner.actor("web"), name="Tidal").slug, signed_in(owner)
    typed = {"positions-0-name": "Bo Reef" if choice == "bo-reef" else "Ada Moss", "positions-0-title": "Adviser"}
    answer = client.post(f"/manage/companies/{slug}/edit/team", typed)
    text = answer.content.decode()
    assert answer.status_code == 422
    assert "choose one, or add a new person" in text
    assert re.search(r'<select name="positions-0-choice"', text)
    assert f'<option value="{choice}">' in text
    assert not document("company", slug)["positions"]
    post(client, f"/manage/companies/{slug}/edit/team", **typed, **{"positions-0-choice": choice})
    assert team(slug) == [("Adviser", person)]
    said = "Asked to confirm their position: ada-moss." in page(client, f"/manage/companies/{slug}")
    assert said is (choice == "ada-moss")
    asked = [each.company.slug for each in positions.list_positions(ada.actor("web")) if each.state == "requested"]
    assert asked == ([slug] if choice == "ada-moss" else [])
