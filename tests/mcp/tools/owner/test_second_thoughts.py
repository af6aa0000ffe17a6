"""What an owner's agent is told of its later calls: a second rename, a submission of what is public, and slugs."""

import unicodedata

import pytest

from make import registry as make
from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from services.manage import manage

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def text(owner):
    return tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES).text


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_second_rename_says_which_name_no_longer_waits(server, owner, text, dry_run):
    slug = make.published(owner.actor("web"), name="Old Name", type="cooperative").slug
    first = server.data(text, "update_my_company", slug=slug, changes={"name": "New Name", "type": "DAO"})
    same = server.data(text, "update_my_company", slug=slug, changes={"name": "New Name"})
    other = server.data(text, "update_my_company", slug=slug, changes={"name": "Newer Name"}, dryRun=dry_run)
    assert "notes" not in first
    assert "notes" not in same
    (note,) = other["notes"]
    assert note.startswith('The name that waited for a reviewer, "New Name", is replaced')
    waiting = server.data(text, "get_my_company", slug=slug)["pendingChanges"]
    assert waiting == {"name": "New Name" if dry_run else "Newer Name", "type": "DAO"}


def test_a_rename_that_is_taken_back_is_withdrawn_and_not_replaced(server, owner, text):
    slug = make.published(owner.actor("web"), name="Old Name").slug
    server.data(text, "update_my_company", slug=slug, changes={"name": "New Name"})
    back = server.data(text, "update_my_company", slug=slug, changes={"name": "Old Name"})
    assert (back["withdrawn"], "notes" in back) == (["name"], False)


def test_the_submission_of_a_public_listing_is_told_to_be_needless(server, owner, text):
    slug = make.published(owner.actor("web")).slug
    assert "Save your changes without submitting." in server.error(text, "submit_for_review", slug=slug)["hint"]
    draft = make.draft(owner.actor("web"), name="Harbour Draft").slug
    server.data(text, "submit_for_review", slug=draft)
    assert "Reload it" in server.error(text, "submit_for_review", slug=draft)["hint"]


NAMES = ["Žižkov Café", "달빛지도연구소", "Θαλασσινό Αρχείο", "सरोवर लिपि संस्थान", "がくえん"]


@pytest.mark.parametrize("name", NAMES)
def test_a_slug_with_its_characters_taken_apart_is_the_slug(server, owner, text, name):
    slug = make.published(owner.actor("web"), name=name).slug
    make.published(owner.actor("web"), name=name)  # of the same name: only the slug tells them apart
    apart = unicodedata.normalize("NFD", slug)
    assert server.data(text, "get_my_company", slug=apart, fields=["name"])["company"]["id"] == slug
    done = server.data(text, "update_my_company", slug=apart, changes={"description": "Found."})
    assert done["applied"] == ["description"]
    assert server.data(text, "list_my_documents", companySlug=apart) == []
    assert server.data(text, "list_my_runs", companySlug=apart) == []


def test_a_person_is_named_by_a_slug_with_its_characters_taken_apart(server, owner, text):
    slug = make.published(owner.actor("web"), positions=[{"person": {"name": "Zofia Krzemieńska-Bór"}}]).slug
    other = make.published(owner.actor("web"), name="Other").slug
    (person,) = (each["person"] for each in server.data(text, "get_my_company", slug=slug)["positions"])
    apart = {"slug": unicodedata.normalize("NFD", person["slug"])}
    changes = {"positions": {"add": [{"title": "Chair", "person": apart}]}}
    done = server.data(text, "update_my_company", slug=other, changes=changes)
    assert done["diff"]["positions"]["added"][0]["person"]["slug"] == person["slug"]
