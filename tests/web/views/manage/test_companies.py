"""An owner's rooms: a listing from its first step to its history, and everybody else before closed doors."""

import io
import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from make.accounts import Letters, account, sign_in, signed_in
from make.pages import fields_of, valid
from make.pictures import bomb, moving, picture
from make.published import Publisher, company
from make.registry import link_names
from muniment.kernel.ids import now
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company, FundingRound, HistoryEntry, Ownership, Person, Picture
from muniment.registry.people import profiles
from muniment.registry.review import workflow
from muniment.store.reader import Reader
from muniment.web.forms import plain
from muniment.web.requests import page_cache
from services.items import without_ids

pytestmark = pytest.mark.django_db
STEPS = ("leave", "delete", "withdraw", "unlist", "relist")
BASICS = {"name": "Tidal Works", "type": "cooperative", "website": "https://tidal.example", "status": "active"}


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def reviewer():
    return account("reviewer@harbour.example", "reviewer")


@pytest.fixture
def browser_of_owner(owner):
    return signed_in(owner)


@pytest.fixture
def draft(owner):
    change = CompanyChange({**BASICS, "description": "Tidal power.", "body": "# About"})
    return listings.create_company(owner.actor("web"), change).slug


@pytest.fixture
def published(draft, owner, reviewer):
    workflow.submit_company(owner.actor("web"), draft)
    workflow.approve_company(reviewer.actor("web"), draft)
    return draft


def where(answer):
    assert answer.status_code == 302, answer.content.decode()[:3000]
    return answer["Location"]


@pytest.mark.requirement("web.new-listing")
def test_a_listing_goes_from_its_first_step_to_the_public(
    browser_of_owner, reviewer, django_capture_on_commit_callbacks, owner
):
    client, letters = browser_of_owner, Letters()
    step = where(client.post("/manage/companies/new", BASICS))
    assert step == "/manage/companies/tidal-works/edit/about?new=1"
    assert Company.objects.get().state == "draft"
    about = {"description": "Tides.", "body": "# Hi", "themes": "tidal, energy", "treasury": "$1.2M", "teamSize": ""}
    step = where(client.post(step, about))
    step = where(client.post(step, {"socials_email": "hello@tidal.example", "dao_website": ""}))
    team = {"positions-0-name": "Ada Reef", "positions-0-title": "Chair", "address-0-city": "Port Ansel"}
    step = where(client.post(step, team))
    token = {
        "method": "vote",
        "pools-0-name": "Members",
        "pools-0-percentage": "60",
        "proposals-0-title": "A tenth harbour",
        "proposals-0-status": "active",
        "proposals-0-for": "1,200",
        "capTable-0-name": "Ada",
        "capTable-0-address": "0x1",
        "capTable-0-tokens": "100",
        "capTable-0-percentage": "12.5",
        "capTable-1-name": "Bo; and Sons",
    }
    assert where(client.post(step, token)) == "/manage/companies/tidal-works/check"
    assert where(client.post("/manage/companies/tidal-works/submit")) == "/manage/companies/tidal-works"
    with django_capture_on_commit_callbacks(execute=True):
        where(signed_in(reviewer).post("/review/companies/tidal-works/decide", {"do": "approve"}))
    made = listings.get_company(owner.actor("web"), "tidal-works")
    company = made.bundle["company"]
    assert (made.state, company["themes"], company["treasury"]) == ("published", ["tidal", "energy"], "$1.2M")
    assert company["socials"]["email"] == "hello@tidal.example"
    assert company["address"][0]["city"] == "Port Ansel"
    parts = {name: without_ids(plain(made.bundle[name])) for name in ("positions", "proposals", "capTable")}
    assert parts == {
        "positions": [{"title": "Chair", "person": {"name": "Ada Reef", "slug": "ada-reef"}}],
        "proposals": [{"title": "A tenth harbour", "status": "active", "votes": {"for": 1200}}],
        "capTable": [
            {"address": "0x1", "name": "Ada", "tokens": "100", "percentage": 12.5},
            {"name": "Bo; and Sons"},
        ],
    }
    distribution = made.bundle["distribution"]
    assert (distribution["method"], without_ids(distribution["pools"])) == (
        "vote",
        [{"name": "Members", "percentage": 60}],
    )
    assert ("[Muniment] Tidal Works: approved") in [subject for subject, _ in letters.to(owner.email)]


def test_the_input_is_kept_and_the_error_is_shown_beside_its_field(browser_of_owner, draft):
    where_ = f"/manage/companies/{draft}/edit/links"
    answer = browser_of_owner.post(where_, {"dao_website": "not an address", "socials_email": "a@b.example"})
    html = answer.content.decode()
    assert answer.status_code == 422
    tree = valid(html)
    field = next(each for each in tree.iter("input") if each.get("name") == "dao_website")
    assert (field.get("value"), field.get("aria-invalid")) == ("not an address", "true")
    assert (
        "Must be a web address such as https://example.org, not &#x27;not an address&#x27;."
        in html.partition(field.get("aria-describedby").split()[-1])[2]
    )
    assert 'value="a@b.example"' in html


@pytest.mark.parametrize("page", ["/manage/companies/new", "edit/basics"])
def test_every_wrong_value_is_marked_at_once(browser_of_owner, draft, page):
    where_ = page if page.startswith("/") else f"/manage/companies/{draft}/{page}"
    answer = browser_of_owner.post(where_, {"name": "", "website": "not a site"})
    html = answer.content.decode()
    fields = {each.get("name"): each.get("aria-invalid") for each in valid(html).iter("input")}
    assert (answer.status_code, fields["name"], fields["website"]) == (422, "true", "true")
    assert "Enter the name of the organization." in html
    assert "Not saved." in html


def test_a_listing_is_edited_step_by_step_and_is_left_out_of_the_last(browser_of_owner, draft):
    base = f"/manage/companies/{draft}/edit"
    for step, then in (("basics", "about"), ("about", "links"), ("links", "team"), ("team", "token")):
        html = browser_of_owner.get(f"{base}/{step}").content.decode()
        assert "Save and continue" in html, step
        assert where(browser_of_owner.post(f"{base}/{step}", {**fields_of(html), "then": "next"})) == f"{base}/{then}"
    html = browser_of_owner.get(f"{base}/token").content.decode()
    assert "Save and continue" not in html
    assert where(browser_of_owner.post(f"{base}/token", {**fields_of(html), "then": "next"})) == f"{base}/token"


def test_an_error_in_a_row_is_shown_in_that_row(browser_of_owner, draft):
    rows = {"positions-0-name": "Ada", "positions-1-name": "", "positions-2-slug": "no-such-person"}
    html = browser_of_owner.post(f"/manage/companies/{draft}/edit/team", rows).content.decode()
    field = next(each for each in valid(html).iter("input") if each.get("value") == "no-such-person")
    assert "no person has the slug" in html.partition(f'id="{field.get("aria-describedby")}"')[2].partition("</ul>")[0]
    tokens = {"pools-0-name": "Members", "pools-0-percentage": "half"}
    html = browser_of_owner.post(f"/manage/companies/{draft}/edit/token", tokens).content.decode()
    assert 'aria-invalid="true"' in html.partition('id="pools-0-percentage"')[2].partition(">")[0]


def test_saving_a_page_again_changes_nothing(browser_of_owner, draft, owner):
    team = {"positions-0-name": "Ada Reef", "positions-0-title": "Chair", "address-0-city": "Port Ansel"}
    browser_of_owner.post(f"/manage/companies/{draft}/edit/team", team)
    before = listings.get_company(owner.actor("web"), draft)
    for step in ("basics", "about", "links", "team", "token"):
        page = browser_of_owner.get(f"/manage/companies/{draft}/edit/{step}")
        where(browser_of_owner.post(f"/manage/companies/{draft}/edit/{step}", fields_of(page.content.decode())))
    after = listings.get_company(owner.actor("web"), draft)
    assert (after.version, after.bundle) == (before.version, before.bundle)


def test_a_stale_form_shows_both_versions_and_can_be_saved_then(browser_of_owner, draft, owner):
    page = browser_of_owner.get(f"/manage/companies/{draft}/edit/about").content.decode()
    listings.update_company(owner.actor("web"), draft, CompanyChange(description="Theirs, saved meanwhile."))
    answer = browser_of_owner.post(f"/manage/companies/{draft}/edit/about", {**fields_of(page), "description": "Mine."})
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "This listing changed while you were editing." in html
    assert "Theirs, saved meanwhile." in html
    assert "Mine." in html.partition('name="description"')[2].partition("</textarea>")[0]
    discarded = browser_of_owner.get(f"/manage/companies/{draft}/edit/about").content.decode()
    assert "Theirs, saved meanwhile." in discarded.partition('name="description"')[2].partition("</textarea>")[0]
    where(browser_of_owner.post(f"/manage/companies/{draft}/edit/about", fields_of(html)))
    assert Company.objects.get(slug=draft).description == "Mine."


def test_a_form_that_is_sent_twice_acts_once(browser_of_owner):
    form = {**BASICS, "once": "a-token-of-this-form"}
    first = browser_of_owner.post("/manage/companies/new", form)
    second = browser_of_owner.post("/manage/companies/new", form)
    assert where(first) == where(second)
    assert Company.objects.count() == 1


def test_a_form_with_a_fault_may_be_sent_again(browser_of_owner):
    wrong = browser_of_owner.post("/manage/companies/new", {**BASICS, "website": "nothing", "once": "same"})
    assert wrong.status_code == 422
    where(browser_of_owner.post("/manage/companies/new", {**BASICS, "once": "same"}))


@pytest.mark.parametrize("page", ["/manage/companies/new", "edit/basics"])
def test_what_was_refused_is_found_again_until_it_is_saved(browser_of_owner, draft, page):
    address = page if page.startswith("/") else f"/manage/companies/{draft}/{page}"
    wrong = {**BASICS, "name": "Back and forth", "website": "not a site", "different": "yes"}
    browser_of_owner.post(address, wrong)
    assert b'value="not a site"' in browser_of_owner.get(address).content
    assert b'value="not a site"' not in browser_of_owner.get(address).content
    browser_of_owner.post(address, wrong)
    where(browser_of_owner.post(address, {**BASICS, "name": "Back and forth", "different": "yes"}))
    assert b'value="not a site"' not in browser_of_owner.get(address).content


def test_input_survives_an_expired_session(owner, draft):
    client = signed_in(owner)
    path = f"/manage/companies/{draft}/edit/about"
    client.get(path)
    Session.objects.all().delete()
    assert where(client.post(path, {"description": "Typed before the session ended."})) == (
        f"/accounts/login/?next=/manage/companies/{draft}/edit/about".replace("/manage", "%2Fmanage", 1).replace(
            f"/companies/{draft}/edit/about", f"%2Fcompanies%2F{draft}%2Fedit%2Fabout"
        )
    )
    sign_in(client, owner)
    html = client.get(path).content.decode()
    assert "Typed before the session ended." in html
    assert Company.objects.get(slug=draft).description == "Tidal power."
    assert "Typed before" not in client.get(path).content.decode()


def test_a_likely_duplicate_is_shown_before_it_is_made(browser_of_owner, published):
    for form, shared in (
        ({"name": "tidal works"}, "same name"),
        ({"name": "Other", "website": "https://www.tidal.example/about"}, "same website"),
    ):
        html = browser_of_owner.post("/manage/companies/new", form).content.decode()
        assert shared in html
        assert f"/companies/{published}/claim" in html
    assert Company.objects.count() == 1
    where(browser_of_owner.post("/manage/companies/new", {"name": "Tidal Works", "different": "yes"}))
    assert sorted(Company.objects.values_list("slug", flat=True)) == ["tidal-works", "tidal-works-2"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", "x" * 60_000), ("website", f"https://{'x' * 60_000}.example"), ("symbol", "x" * 60_000)],
)
def test_values_beyond_their_limits_are_rejected_before_duplicates_are_looked_for(
    browser_of_owner, published, field, value
):
    answer = browser_of_owner.post("/manage/companies/new", {"name": "Another", field: value})
    assert answer.status_code == 422
    assert "characters; at most" in answer.content.decode()


@pytest.mark.requirement("slug.for-ever")
def test_a_slug_is_suggested_and_a_taken_one_is_refused(browser_of_owner, draft):
    assert b"caf\xc3\xa9" in browser_of_owner.get("/manage/companies/suggest?name=Caf%C3%A9").content
    answer = browser_of_owner.post("/manage/companies/new", {"name": "Another", "slug": draft})
    assert b"is taken" in answer.content


def test_an_incomplete_draft_cannot_be_submitted(browser_of_owner):
    browser_of_owner.post("/manage/companies/new", {"name": "Bare"})
    answer = browser_of_owner.post("/manage/companies/bare/submit")
    assert answer.status_code == 400
    assert b"Missing: type, summary, website." in answer.content
    assert b"Submit for review" not in browser_of_owner.get("/manage/companies/bare").content


def test_name_symbol_and_type_of_a_published_listing_wait(browser_of_owner, published):
    page = browser_of_owner.get(f"/manage/companies/{published}/edit/basics").content.decode()
    fields = {**fields_of(page), "name": "Tidal Works United", "industry": "Energy"}
    answer = browser_of_owner.post(f"/manage/companies/{published}/edit/basics", fields, follow=True)
    assert "Saved. Your new name is pending review." in answer.content.decode()
    company = Company.objects.get(slug=published)
    assert (company.name, company.industry) == ("Tidal Works", "Energy")
    assert "Tidal Works <ins>" in browser_of_owner.get(f"/manage/companies/{published}").content.decode() or (
        "United" in browser_of_owner.get(f"/manage/companies/{published}").content.decode()
    )


def test_a_long_history_can_be_read_to_its_beginning(browser_of_owner, draft):
    company, moment = Company.objects.get(slug=draft), now() + timedelta(hours=1)
    HistoryEntry.objects.bulk_create(
        HistoryEntry(company=company, action="updated", via="web", note=f"note {n:03}", at=moment + timedelta(hours=n))
        for n in range(120)
    )
    room = f"/manage/companies/{draft}/history"
    told = []
    for page in range(1, 6):
        html = browser_of_owner.get(f"{room}?page={page}").content.decode()
        valid(html)
        assert f"Page {page} of 5" in html
        told += re.findall(r"note (\d+)", html)
    assert told == [f"{n:03}" for n in reversed(range(120))]
    assert "Created" in html
    assert "This page doesn't exist" in browser_of_owner.get(f"{room}?page=9").content.decode()


def test_the_history_names_present_owners_alone_as_those_who_came_and_left(browser_of_owner, draft, owner):
    company, second = Company.objects.get(slug=draft), account("second@harbour.example")
    listings.make_owner(owner.actor("web"), company, second.pk)
    room = f"/manage/companies/{draft}/history"
    assert "second@harbour.example" in browser_of_owner.get(room).content.decode()
    listings.leave_company(second.actor("command"), draft)
    html = browser_of_owner.get(room).content.decode()
    assert html.count("<bdi>a former owner</bdi>") == 2
    assert "<bdi>second@harbour.example</bdi> →" not in html


def test_a_change_is_put_back_from_the_history(browser_of_owner, draft, owner):
    listings.update_company(owner.actor("web"), draft, CompanyChange(description="A worse one."))
    entry = HistoryEntry.objects.filter(action="updated").latest("pk")
    html = browser_of_owner.get(f"/manage/companies/{draft}/history").content.decode()
    assert "worse one.</ins>" in html
    where(browser_of_owner.post(f"/manage/companies/{draft}/history/{entry.pk}/revert"))
    assert Company.objects.get(slug=draft).description == "Tidal power."


def test_a_funding_round_opens_once_and_closes(browser_of_owner, draft):
    path = f"/manage/companies/{draft}/funding"
    browser_of_owner.post(path, {"do": "open", "name": "Seed", "target": "$2M"})
    again = browser_of_owner.post(path, {"do": "open", "name": "More"}, follow=True)
    assert b"already open" in again.content
    assert FundingRound.objects.get().target_minor == 200_000_000
    wrong = browser_of_owner.post(path, {"do": "close", "closed": "1999-01-01"}, follow=True)
    assert b"before opened" in wrong.content
    browser_of_owner.post(path, {"do": "close"})
    assert FundingRound.objects.get().closed_on is not None


@pytest.mark.requirement("web.pictures")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_a_logo_is_resized_to_two_sizes_and_hosted_here(browser_of_owner, draft, kind):
    sent = SimpleUploadedFile("../../etc/passwd", picture(kind), content_type="image/svg+xml")
    where(browser_of_owner.post(f"/manage/companies/{draft}/logo", {"picture": sent}))
    icon = Company.objects.get(slug=draft).icon
    assert icon.startswith("/pictures/")
    for path, side in ((icon, 512), (icon.replace("-512", "-144"), 144)):
        answer = Client().get(path)
        assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/webp", "nosniff")
        assert "immutable" in answer["Cache-Control"]
        assert Client().get(path, headers={"If-None-Match": f'"other", W/{answer["ETag"]}'}).status_code == 304
        drawn = Image.open(io.BytesIO(answer.content))
        assert (drawn.format, drawn.size) == ("WEBP", (side, side))
    assert icon.replace("-512", "-144") in browser_of_owner.get(f"/manage/companies/{draft}").content.decode()
    where(browser_of_owner.post(f"/manage/companies/{draft}/logo", {"do": "remove"}))
    assert Company.objects.get(slug=draft).icon == ""


def test_a_logo_loses_what_the_file_carried_beside_its_pixels(browser_of_owner, draft):
    exif = Image.Exif()
    exif[0x010E] = "taken at home"
    sent = SimpleUploadedFile("logo.jpg", picture("JPEG", exif=exif))
    browser_of_owner.post(f"/manage/companies/{draft}/logo", {"picture": sent})
    assert b"taken at home" not in bytes(Picture.objects.get().large)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not a readable image", "not a readable image"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "not a readable image"),
        (picture("GIF"), "not a readable image"),
        (picture("PNG")[:200], "not a readable image"),
        (bomb(), "far more than 16 megapixels"),
        (bomb(5_000), "25 megapixels"),
        (moving("WEBP"), "Animated images are not accepted"),
        (moving("PNG"), "Animated images are not accepted"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * (3 << 20), "3.0 MB"),
        (b"", "No image was uploaded"),
    ],
    ids=["text", "svg", "gif", "cut", "bomb", "too wide", "animated webp", "animated png", "large", "empty"],
)
def test_an_upload_that_is_not_a_still_picture_of_acceptable_size_is_refused(browser_of_owner, draft, content, said):
    sent = {"picture": SimpleUploadedFile("logo.png", content, content_type="image/png")} if content else {}
    answer = browser_of_owner.post(f"/manage/companies/{draft}/logo", sent)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not Picture.objects.exists()


@pytest.mark.requirement("owners.several")
def test_an_invited_owner_gets_in_by_the_mailed_link_once(browser_of_owner, draft, django_capture_on_commit_callbacks):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        where(browser_of_owner.post(f"/manage/companies/{draft}/invite", {"email": "Friend@harbour.example"}))
    link = next(word for word in letters.to("friend@harbour.example")[-1][1].split() if "/invitations/" in word)
    path = link.removeprefix("http://testserver")
    assert "/accounts/login/" in where(Client().get(path))
    friend = signed_in(account("friend@harbour.example"))
    valid(friend.get(path).content.decode())
    assert where(friend.post(path)) == f"/manage/companies/{draft}"
    assert friend.get(f"/manage/companies/{draft}").status_code == 200
    assert signed_in(account("late@harbour.example")).post(path).status_code == 404
    assert where(friend.post(f"/manage/companies/{draft}/leave")) == "/manage"
    assert friend.get(f"/manage/companies/{draft}").status_code == 404
    assert Ownership.objects.count() == 1


def test_an_invitation_is_not_to_be_found_in_the_database(browser_of_owner, draft, django_capture_on_commit_callbacks):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        browser_of_owner.post(f"/manage/companies/{draft}/invite", {"email": "friend@harbour.example"})
    token = letters.to("friend@harbour.example")[-1][1].partition("/invitations/")[2].split()[0]
    assert Company.objects.get(slug=draft).invitations.get().token_digest != token


def test_a_profile_is_made_edited_and_given_a_picture(browser_of_owner, owner):
    where(browser_of_owner.post("/manage/profile", {"name": "Ada Reef", "bio": "Builds **turbines**."}))
    where(browser_of_owner.post("/manage/profile", {"name": "Ada Reef", "bio": "Builds turbines and boats."}))
    where(browser_of_owner.post("/manage/profile/picture", {"picture": SimpleUploadedFile("me.png", picture())}))
    person = profiles.get_profile(owner.actor("web"))
    assert person.bio == "Builds turbines and boats."
    assert person.extra["picture"].startswith("/pictures/")
    refused = browser_of_owner.post("/manage/profile/picture", {"picture": SimpleUploadedFile("me.png", b"no")})
    assert (refused.status_code, b"not a readable image" in refused.content) == (422, True)
    valid(browser_of_owner.get("/manage/profile").content.decode())


def test_a_claim_of_a_profile_joins_it_after_a_reviewer_agrees(
    browser_of_owner, published, owner, reviewer, django_capture_on_commit_callbacks
):
    letters = Letters()
    listings.update_company(owner.actor("web"), published, CompanyChange(positions=[{"person": {"name": "Bo Reef"}}]))
    link_names(published)
    who = signed_in(account("bo@harbour.example"))
    valid(who.get("/people/bo-reef/claim").content.decode())
    where(who.post("/people/bo-reef/claim", {"text": "My address is on the site."}))
    assert b"Your profile claim is pending review." in who.get("/manage/profile").content
    assert b"already requested this" in who.post("/people/bo-reef/claim", {"text": "Again."}).content
    petition = Person.objects.get(slug="bo-reef").petitions.get()
    with django_capture_on_commit_callbacks(execute=True):
        where(signed_in(reviewer).post(f"/review/requests/{petition.pk}/decide", {"do": "approve"}))
    assert Person.objects.get(slug="bo-reef").account.email == "bo@harbour.example"
    assert "approved" in letters.to("bo@harbour.example")[-1][0]


@pytest.mark.requirement("visitors.claim")
def test_a_listing_is_claimed_and_an_edit_suggested(browser_of_owner, published, reviewer):
    who = signed_in(account("visitor@harbour.example"))
    where(who.post(f"/companies/{published}/claim", {"text": "I chair it."}))
    page = who.get(f"/companies/{published}/suggest").content.decode()
    valid(page)
    nothing = who.post(f"/companies/{published}/suggest", fields_of(page))
    assert (nothing.status_code, b"Change at least one field" in nothing.content) == (422, True)
    where(
        who.post(f"/companies/{published}/suggest", {**fields_of(page), "description": "Tidal power for nine towns."})
    )
    at_work = signed_in(reviewer)
    company = Company.objects.get(slug=published)
    for petition in company.petitions.all():
        assert published in at_work.get(f"/review/requests/{petition.pk}").content.decode()
        where(at_work.post(f"/review/requests/{petition.pk}/decide", {"do": "approve"}))
    company.refresh_from_db()
    assert company.description == "Tidal power for nine towns."
    assert company.owners.filter(email="visitor@harbour.example").exists()


def rooms(slug):
    base = f"/manage/companies/{slug}"
    return [
        ("get", base),
        *(("get", f"{base}/edit/{step}") for step in ("basics", "about", "links", "team", "token")),
        *(("post", f"{base}/edit/{step}") for step in ("basics", "about", "links", "team", "token")),
        ("get", f"{base}/history"),
        ("get", f"{base}/logo"),
        ("post", f"{base}/logo"),
        ("post", f"{base}/submit"),
        ("post", f"{base}/history/1/revert"),
        ("post", f"{base}/funding"),
        ("post", f"{base}/invite"),
        ("post", f"{base}/leave"),
        *((method, f"{base}/{step}") for method in ("get", "post") for step in STEPS),
    ]


def test_a_stranger_finds_nothing_of_it_and_changes_nothing(draft, owner):
    stranger = signed_in(account("stranger@harbour.example"))
    before = listings.get_company(owner.actor("web"), draft)
    form = {**BASICS, "do": "open", "email": "s@harbour.example", "description": "Taken over."}
    for method, path in rooms(draft):
        sent = {**form, "picture": SimpleUploadedFile("a.png", picture())} if method == "post" else {}
        answer = getattr(stranger, method)(path, sent)
        assert answer.status_code == 404, (method, path)
        unknown = getattr(stranger, method)(path.replace(draft, "no-such-listing"), form if method == "post" else {})
        assert unknown.status_code == 404
        assert unknown.content == answer.content, path
    assert listings.get_company(owner.actor("web"), draft) == before
    assert draft not in stranger.get("/manage").content.decode()


def test_a_visitor_is_sent_to_sign_in_everywhere(draft):
    public = [
        ("get", "/manage"),
        ("get", "/manage/profile"),
        ("get", "/manage/companies/new"),
        ("get", f"/companies/{draft}/claim"),
    ]
    for method, path in [*rooms(draft), *public]:
        assert where(getattr(Client(), method)(path)).startswith("/accounts/login/?next="), path


def test_every_form_without_its_token_is_refused(draft, owner):
    client = signed_in(owner, enforce_csrf_checks=True)
    posts = [path for method, path in rooms(draft) if method == "post"]
    for path in [*posts, "/manage/companies/new", "/manage/profile", "/manage/profile/picture", "/review/take"]:
        assert client.post(path, BASICS).status_code == 403, path


def test_every_page_of_an_owner_is_valid_html(browser_of_owner, draft):
    for method, path in rooms(draft):
        if method == "get":
            answer = browser_of_owner.get(path)
            assert answer.status_code == 200, path
            assert answer["Cache-Control"] == "private, no-store"
            valid(answer.content.decode())
    for path in ("/manage", "/manage/companies/new", "/manage/profile"):
        valid(browser_of_owner.get(path).content.decode())


@pytest.mark.parametrize(
    ("path", "tabs"),
    [
        ("/manage", ["/manage"]),
        ("/manage/reports", ["/manage/reports"]),
        ("/manage/documents", ["/manage/documents"]),
        ("/manage/applications", ["/manage/applications"]),
        ("/manage/credits", ["/manage/credits"]),
        ("/manage/profile", ["/manage/profile", "/manage/profile"]),
        ("/manage/tokens", ["/manage/profile", "/manage/tokens"]),
        ("/accounts/sessions/", ["/manage/profile", "/accounts/sessions/"]),
    ],
)
def test_every_owner_page_links_to_the_others_and_marks_the_current_one(browser_of_owner, path, tabs):
    tree = valid(browser_of_owner.get(path).content.decode())
    links = [link for nav in tree.findall(".//main//nav") for link in nav.iter("a")]
    rooms = {"/manage", "/manage/reports", "/manage/documents", "/manage/applications", "/manage/credits"}
    assert rooms <= {link.get("href") for link in links}
    assert [link.get("href") for link in links if link.get("aria-current")] == tabs
    assert "/review" not in {link.get("href") for link in links}
    assert [menu.get("title") for menu in tree.iter("summary") if menu.get("title")] == ["owner@harbour.example"]


def test_a_reviewer_finds_the_queue_in_the_menu_even_when_it_is_empty(reviewer):
    assert 'href="/review"' in signed_in(reviewer).get("/manage").content.decode()


def test_a_field_suggests_what_public_listings_have(browser_of_owner, owner, tmp_path):
    made = Publisher(tmp_path / "published.sqlite3")
    made.publish(company(1, type="kelp farm"), company(2, type="kelp farm"), company(3, type="DAO"))
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    try:
        page = valid(browser_of_owner.get("/manage/companies/new").content.decode())
    finally:
        page_cache._reader = None
        reader.close()
        made.close()
    values = [each.get("value") for each in page.iter("option")]
    assert values.count("kelp farm") == 1
    assert values.count("DAO") == 1
