"""The page of one's own data: an archive to download, and a deletion that can be canceled for 14 days."""

import io
import zipfile
from datetime import timedelta

import pytest

from make import registry
from make.accounts import account, signed_in
from make.instances import without_blobs
from muniment.accounts.operations import find_account
from muniment.documents import downloading
from muniment.documents.records import storage
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden, NotFound, TooMany
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange

pytestmark = pytest.mark.django_db
EMAIL, HOME = "ottoline@harbour.example", "/accounts/data/"


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    yield
    without_blobs()
    downloading.remove_archives(at=now() + timedelta(hours=2))


@pytest.fixture
def who():
    made = account(EMAIL)
    registry.published(made.actor("web"), name="Harbour Board")
    registry.draft(made.actor("web"), name="Not Yet Known")
    return made


def test_a_visitor_is_sent_to_sign_in(client):
    assert client.get(HOME).status_code == 302
    assert client.post(HOME + "archive").status_code == 302


def test_the_page_says_what_a_deletion_means(who):
    profiles.create_profile(who.actor("web"), ProfileChange(name="Ottoline"))
    html = signed_in(who).get(HOME).content.decode()
    assert "Your profile is not public and is erased." in html
    assert html.index("have no other owner and are deleted") < html.index("Not Yet Known")
    assert html.index("of which you are the last owner") < html.index("Harbour Board")


def test_the_deletion_is_asked_for_with_the_address_and_can_be_canceled(who):
    page = signed_in(who)
    assert page.post(HOME, {"do": "delete", "confirm": "someone@harbour.example"}).status_code == 422
    assert find_account(EMAIL).delete_at is None
    html = page.post(HOME, {"do": "delete", "confirm": f" {EMAIL.upper()} "}, follow=True).content.decode()
    day = f"{now() + timedelta(days=14):%-d %B %Y}"
    assert html.count(f"Your account will be deleted on {day}") == 1
    assert f"Your account will be deleted on {day}" in page.get("/manage").content.decode()
    assert "Your account stays." in page.post(HOME, {"do": "keep"}, follow=True).content.decode()
    assert find_account(EMAIL).delete_at is None
    assert page.post(HOME, {"do": "other"}).status_code == 400


def test_the_only_operator_is_told_why_not():
    page = signed_in(account("operator@harbour.example", "operator"))
    html = page.post(HOME, {"do": "delete", "confirm": "operator@harbour.example"}, follow=True).content.decode()
    assert "This is the only operator." in html


def test_the_archive_is_downloaded_by_a_link(who):
    answer = signed_in(who).post(HOME + "archive")
    assert answer.status_code == 302
    found = downloading.find_download(answer["Location"].removeprefix("/downloads/"))
    assert found.filename == f"account-{who.pk}.zip"
    content = b"".join(storage().stream(found.key))
    assert len(content) == found.size_bytes
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert "listings/harbour-board.json" in archive.namelist()


def test_the_link_of_an_archive_ends_with_the_account_and_the_archive_after_an_hour(who):
    path = downloading.create_archive(who.actor("web"))
    assert downloading.remove_archives(at=now() + timedelta(minutes=59)) == 0
    who.is_active = False
    who.save()
    with pytest.raises(NotFound):
        downloading.find_download(path.removeprefix("/downloads/"))
    assert downloading.remove_archives(at=now() + timedelta(minutes=61)) == 1
    assert list(storage().blobs(downloading.ARCHIVES)) == []


def test_no_token_exports_an_account_and_the_website_does_so_five_times_an_hour(who):
    with pytest.raises(Forbidden):
        downloading.create_archive(who.actor("token"))
    for _ in range(downloading.MADE_AN_HOUR):
        downloading.create_archive(who.actor("web"))
    with pytest.raises(TooMany):
        downloading.create_archive(who.actor("web"))
    html = signed_in(who).post(HOME + "archive", follow=True).content.decode()
    assert "archives were created within this hour" in html
