"""Three accounts: an owner names people, a person answers, and a stranger can do neither."""

from contextlib import contextmanager
from datetime import timedelta

import pytest

from make.accounts import Letters
from make.registry import changes, document, draft, item, keys, lines, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.models import Company, HistoryEntry, Person, PositionRequest
from muniment.registry.people import moderation, naming, positions, profiles
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import workflow

pytestmark = pytest.mark.django_db
TITLE = "Convicted fraudster"


@pytest.fixture(autouse=True)
def _mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"  # the test runner puts another in its place


@pytest.fixture
def ada():
    """Return the account of a public, claimed profile."""
    me = owner("ada@moss.example")
    published(owner(), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    return me


@pytest.fixture
def mine():
    return owner("owner@tidal.example")


@pytest.fixture
def tidal(mine):
    """Return the slug of a published listing of another owner."""
    return published(mine, name="Tidal", positions=[{"title": "Chair", "person": {"name": "Bo"}}]).slug


def name(actor, slug, *rows, **options):
    change = CompanyChange(positions={"add": [{"title": title, "person": person} for title, person in rows]})
    return listings.update_company(actor, slug, change, **options)


def ask(actor, slug, title=TITLE):
    """Name Ada in a listing, and return the id of her request."""
    done = name(actor, slug, (title, {"slug": "ada-moss"}))
    assert done.awaiting_people == ["ada-moss"]
    return f"request-{PositionRequest.objects.latest('pk').pk}"


def held(actor):
    return [(each.id, each.title, each.company.slug, each.state) for each in positions.list_positions(actor)]


def team(slug):
    return [(each.get("title"), each["person"]) for each in document("company", slug)["positions"]]


def titles(slug):
    return [each.get("title") for each in document("person", slug)["positions"]]


@contextmanager
def later(days, monkeypatch):
    moment = now() + timedelta(days=days)
    with monkeypatch.context() as patched:
        patched.setattr("muniment.registry.people.naming.now", lambda: moment)
        yield


def test_a_position_of_a_claimed_profile_is_requested_and_the_listing_shows_the_name_alone(ada, mine, tidal):
    ask(mine, tidal)
    assert team(tidal)[1] == (TITLE, {"name": "Ada Moss"})
    assert document("company", tidal)["company"]["teamSize"] == 2
    assert titles("ada-moss") == ["Chair"]
    assert item("person", "ada-moss")["companyCount"] == 1
    assert [each[1:] for each in held(ada)] == [(TITLE, "tidal", "requested"), ("Chair", "harbour", "confirmed")]


def test_the_person_is_mailed_once_and_the_owner_about_the_answer(ada, mine, tidal, django_capture_on_commit_callbacks):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        request = ask(mine, tidal, "Adviser")
        name(mine, tidal, ("Cook", {"name": "Cy"}))
    ((subject, text),) = letters.to("ada@moss.example")
    assert subject == "[Muniment] Tidal: confirm your position"
    assert "- Adviser" in text
    assert "/manage/profile#positions" in text
    with django_capture_on_commit_callbacks(execute=True):
        positions.answer_positions(ada, confirm=[request])
    assert letters.to("owner@tidal.example")[-1][0] == "[Muniment] Tidal: position confirmed"


def test_a_confirmed_position_is_linked_on_both_sides_and_in_both_histories(ada, mine, tidal):
    request = ask(mine, tidal, "Adviser")
    assert positions.answer_positions(ada, confirm=[request]) == 1
    assert team(tidal)[1] == ("Adviser", {"name": "Ada Moss", "slug": "ada-moss"})
    assert sorted(titles("ada-moss")) == ["Adviser", "Chair"]
    assert item("person", "ada-moss")["companyCount"] == 2
    assert [each[1:] for each in held(ada)] == [("Chair", "harbour", "confirmed"), ("Adviser", "tidal", "confirmed")]
    of_company = HistoryEntry.objects.filter(company__slug=tidal).latest("pk")
    assert (of_company.action, of_company.account_id) == ("position confirmed", None)
    of_person = HistoryEntry.objects.filter(person__slug="ada-moss").latest("pk")
    assert (of_person.action, of_person.account_id) == ("position confirmed", ada.account_id)
    assert of_person.after == {"positions": [{"company": tidal, "title": "Adviser"}]}


def test_a_declined_position_leaves_the_listing(ada, mine, tidal, django_capture_on_commit_callbacks):
    letters = Letters()
    request = ask(mine, tidal)
    with django_capture_on_commit_callbacks(execute=True):
        positions.answer_positions(ada, decline=[request])
    assert team(tidal) == [("Chair", {"name": "Bo", "slug": "bo"})]
    assert document("company", tidal)["company"]["teamSize"] == 1
    assert (titles("ada-moss"), len(held(ada))) == (["Chair"], 1)
    assert letters.to("owner@tidal.example")[-1][0] == "[Muniment] Tidal: position declined"


def test_a_position_is_ended_whatever_linked_it(ada):
    ((each, *_),) = held(ada)
    positions.answer_positions(ada, end=[each])
    assert (team("harbour"), titles("ada-moss")) == ([], [])
    with pytest.raises(NotFound):
        positions.answer_positions(ada, end=[each])


@pytest.mark.parametrize("answer", ["decline", "end"])
@pytest.mark.parametrize("person", [{"slug": "ada-moss"}, {"name": "Ada Moss"}, {"name": "ada  MOSS"}])
def test_the_listing_cannot_ask_again_for_90_days(ada, mine, answer, person, monkeypatch):
    tidal = published(mine, name="Tidal").slug
    request = ask(mine, tidal)
    positions.answer_positions(ada, **{answer: [request]})
    with pytest.raises(BadFields, match=r"is ada-moss, who declined a position here; you can ask again on "):
        name(mine, tidal, ("Adviser", person))
    ask(mine, published(mine, name="Other").slug)  # another listing can
    with later(91, monkeypatch):
        if person == {"slug": "ada-moss"}:
            ask(mine, tidal)
        else:
            with pytest.raises(BadFields, match="is the name of ada-moss"):
                name(mine, tidal, ("Adviser", person))


@pytest.mark.parametrize("answers", [["decline"], ["confirm", "end"]])
def test_a_position_that_is_asked_for_again_has_another_id(ada, mine, tidal, answers, monkeypatch):
    ask(mine, tidal)
    first = PositionRequest.objects.latest("pk").item
    for answer in answers:
        [position_id] = [each for each, _, slug, _ in held(ada) if slug == tidal]
        positions.answer_positions(ada, **{answer: [position_id]})
    with later(91, monkeypatch):
        ask(mine, tidal)
    assert PositionRequest.objects.latest("pk").item != first, "people may have linked to the position that left"


def test_a_refusal_counts_for_exactly_90_days(ada, mine, tidal, monkeypatch):
    positions.answer_positions(ada, decline=[ask(mine, tidal)])
    decided_at = PositionRequest.objects.latest("pk").decided_at
    [refusal] = naming.recent_refusals(Company.objects.get(slug=tidal))
    assert refusal.until == decided_at + timedelta(days=90)
    with later(89.99, monkeypatch), pytest.raises(BadFields, match=f"ask again on {refusal.until:%Y-%m-%d}"):
        ask(mine, tidal)
    with later(90.01, monkeypatch):
        ask(mine, tidal)


def test_a_person_who_confirmed_a_position_or_was_asked_no_longer_has_refused_nothing(ada, mine, tidal):
    positions.answer_positions(ada, confirm=[ask(mine, tidal, "Chair")])
    ask(mine, tidal, "Adviser")
    withdrawn = PositionRequest.objects.latest("pk").item
    listings.update_company(mine, tidal, CompanyChange(positions={"remove": [withdrawn]}))
    assert set(PositionRequest.objects.values_list("decision", flat=True)) == {"confirmed", "withdrawn"}
    assert naming.recent_refusals(Company.objects.get(slug=tidal)) == []


def test_requests_count_for_exactly_24_hours(ada, mine, tidal, monkeypatch):
    name(mine, tidal, *((f"Title {number}", {"slug": "ada-moss"}) for number in range(10)))
    with later(23.9 / 24, monkeypatch), pytest.raises(TooMany):
        ask(mine, tidal)
    with later(24.1 / 24, monkeypatch):
        ask(mine, tidal)


def test_the_history_does_not_bring_a_declined_position_back(ada, mine, tidal):
    positions.answer_positions(ada, decline=[ask(mine, tidal)])
    entry = HistoryEntry.objects.filter(company__slug=tidal).latest("pk")
    assert entry.action == "position declined"
    with pytest.raises(BadFields, match="who declined a position here"):
        listings.revert_company(mine, tidal, entry.pk)
    assert len(team(tidal)) == 1


def test_an_account_asks_ten_times_a_day(ada, mine, monkeypatch):
    slug = published(mine, name="Tidal").slug
    name(mine, slug, *((f"Title {n}", {"slug": "ada-moss"}) for n in range(9)))
    with pytest.raises(TooMany):
        name(mine, slug, ("Tenth", {"slug": "ada-moss"}), ("Eleventh", {"slug": "ada-moss"}))
    name(mine, slug, ("Tenth", {"slug": "ada-moss"}))
    with pytest.raises(TooMany):
        ask(mine, slug)
    listings.update_company(mine, slug, CompanyChange(positions=None), expected_totals={"positions": 10})
    with pytest.raises(TooMany):  # withdrawn requests count too
        ask(mine, slug)
    with later(1.1, monkeypatch):
        ask(mine, slug)


def test_a_change_of_a_confirmed_position_is_a_new_request(ada, mine, tidal):
    positions.answer_positions(ada, confirm=[ask(mine, tidal, "Adviser")])
    row = document("company", tidal)["positions"][1]
    change = CompanyChange(positions={"set": [{"id": row["id"], "title": TITLE}]})
    assert listings.update_company(mine, tidal, change).awaiting_people == ["ada-moss"]
    assert team(tidal)[1] == (TITLE, {"name": "Ada Moss"})
    assert titles("ada-moss") == ["Chair"]


def test_an_answer_is_about_the_title_that_was_seen(ada, mine, tidal):
    request = ask(mine, tidal, "Adviser")
    row = document("company", tidal)["positions"][1]
    listings.update_company(mine, tidal, CompanyChange(positions={"set": [{"id": row["id"], "title": TITLE}]}))
    with pytest.raises(Conflict, match="was changed, answered or withdrawn"):
        positions.answer_positions(ada, confirm=[request])
    assert titles("ada-moss") == ["Chair"]
    ((now_asked, title, *_), _) = held(ada)
    assert (title, now_asked == request) == (TITLE, False)


def test_a_removed_position_withdraws_its_request(ada, mine, tidal):
    request = ask(mine, tidal)
    row = document("company", tidal)["positions"][1]
    listings.update_company(mine, tidal, CompanyChange(positions={"remove": [row["id"]]}))
    assert len(held(ada)) == 1
    with pytest.raises(Conflict):
        positions.answer_positions(ada, confirm=[request])


@pytest.mark.parametrize("form", ["as read", "with slugs"])
def test_a_write_back_neither_asks_again_nor_withdraws(ada, mine, tidal, form):
    ask(mine, tidal)
    read = listings.get_company(mine, tidal).bundle["positions"]
    if form == "with slugs":
        read[1]["person"]["slug"] = "ada-moss"
    done = listings.update_company(mine, tidal, CompanyChange(positions=read))
    assert (done.applied, done.awaiting_people) == ([], [])
    cut = [{**row, "title": "Head"} if row["title"] == "Chair" else row for row in read]
    assert listings.update_company(mine, tidal, CompanyChange(positions=cut)).applied == ["positions"]
    assert PositionRequest.objects.count() == 1
    assert len(held(ada)) == 2


def test_owners_name_themselves_at_once(ada):
    slug = published(ada, name="Moss Works").slug
    assert name(ada, slug, ("Founder", {"slug": "ada-moss"})).awaiting_people == []
    assert team(slug) == [("Founder", {"name": "Ada Moss", "slug": "ada-moss"})]
    assert "Founder" in titles("ada-moss")


def test_an_owner_s_own_private_profile_is_published_by_naming_it(mine, tidal):
    slug = profiles.create_profile(mine, ProfileChange(name="Tia Reef")).slug
    name(mine, tidal, ("Founder", {"slug": slug}))
    assert titles(slug) == ["Founder"]


@pytest.mark.parametrize("row", [{"slug": "tia-reef"}, {"slug": "tia-reef", "name": "Tia Reef"}])
def test_another_account_s_private_profile_cannot_be_named(mine, tidal, row):
    profiles.create_profile(owner(), ProfileChange(name="Tia Reef", bio="Private."))
    with pytest.raises(BadFields, match="no person has the slug 'tia-reef'"):
        name(mine, tidal, (TITLE, row))
    name(mine, tidal, (TITLE, {"name": "Tia Reef"}))  # a name alone says nothing of the profile
    assert document("person", "tia-reef") is None
    assert team(tidal)[1] == (TITLE, {"name": "Tia Reef"})


def test_an_invented_person_is_a_name_until_a_reviewer_approves_the_listing(mine, tidal):
    before = keys("person")
    name(mine, tidal, *(("Member", {"name": f"Invented {n}"}) for n in range(30)))
    assert keys("person") == before
    assert team(tidal)[30] == ("Member", {"name": "Invented 29"})
    assert document("company", tidal)["company"]["teamSize"] == 31
    assert not [change for change in changes() if change[1].startswith("invented")]
    twice = [{"title": title, "person": {"name": "Cy Weir"}} for title in ("Cook", "Mate")]
    approved = published(mine, positions=twice)
    assert team(approved.slug)[1] == ("Mate", {"name": "Cy Weir", "slug": "cy-weir"})
    assert keys("person") == ["cy-weir", *before]


def test_an_approval_does_not_confirm_for_a_claimed_profile_but_asks_then(
    ada, mine, django_capture_on_commit_callbacks
):
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        slug = draft(mine, name="Tidal", positions=[{"title": "Adviser", "person": {"slug": "ada-moss"}}]).slug
    assert (letters.to("ada@moss.example"), len(held(ada))) == ([], 1)
    workflow.submit_company(mine, slug)
    with django_capture_on_commit_callbacks(execute=True):
        workflow.approve_company(reviewer(), slug)
    assert len(letters.to("ada@moss.example")) == 1
    assert team(slug) == [("Adviser", {"name": "Ada Moss"})]
    assert len(held(ada)) == 2


def test_a_name_that_exists_is_offered_for_choice(ada, mine, tidal):
    for given in ("Ada Moss", "ADA  moss"):
        with pytest.raises(
            BadFields, match=r"positions\.add\[0\].person.name is the name of ada-moss: choose one"
        ) as refusal:
            name(mine, tidal, ("Adviser", {"name": given}))
        assert "isNew true" in refusal.value.hint
    name(mine, tidal, ("Adviser", {"name": "Ada Moss", "isNew": True}))
    assert team(tidal)[1] == ("Adviser", {"name": "Ada Moss"})
    assert (held(ada)[0][1], Person.objects.filter(name="Ada Moss").count()) == ("Chair", 1)


def test_an_approval_does_not_double_a_name_that_came_to_exist(mine):
    slug = draft(mine, name="Tidal", positions=[{"person": {"name": "Ada Moss"}}]).slug
    published(owner(), positions=[{"person": {"name": "Ada Moss"}}])
    workflow.submit_company(mine, slug)
    workflow.approve_company(reviewer(), slug)
    assert team(slug) == [(None, {"name": "Ada Moss"})]
    assert keys("person") == ["ada-moss"]


@pytest.mark.parametrize("stranger", ["visitor", "other person", "owner of the listing", "reviewer"])
@pytest.mark.parametrize("answer", ["confirm", "decline", "end"])
def test_only_the_person_answers(ada, mine, tidal, stranger, answer):
    request = ask(mine, tidal)
    other = owner()
    profiles.create_profile(other, ProfileChange(name="Other"))
    actor = {
        "visitor": VISITOR,
        "other person": other,
        "owner of the listing": mine,
        "reviewer": reviewer(),
    }[stranger]
    assert not held(actor)
    for each in (request, held(ada)[1][0]):
        with pytest.raises((NotFound, BadRequest)):
            positions.answer_positions(actor, **{answer: [each]})
    assert (len(team(tidal)), len(held(ada))) == (2, 2)


@pytest.mark.parametrize(
    "each", ["", "request-", "request-0", "request-x", "request-99999999999999999999", "a/b", "tidal/"]
)
def test_an_unknown_position_is_not_found(ada, tidal, each):
    with pytest.raises(NotFound):
        positions.answer_positions(ada, end=[each])


def test_a_position_is_answered_once_in_a_call(ada, mine, tidal):
    request = ask(mine, tidal)
    with pytest.raises(BadRequest, match="can be answered once"):
        positions.answer_positions(ada, confirm=[request], decline=[request])
    with pytest.raises(NotFound):  # a shown position needs no confirmation
        positions.answer_positions(ada, confirm=[held(ada)[1][0]])


def test_nothing_is_written_when_one_of_the_answers_fails(ada, mine, tidal):
    request = ask(mine, tidal)
    with pytest.raises(NotFound):
        positions.answer_positions(ada, decline=[request], end=["harbour/unknown"])
    assert len(team(tidal)) == 2


def test_a_request_of_an_unlisted_listing_waits_for_its_return(ada, mine, tidal):
    ask(mine, tidal)
    workflow.unlist_company(reviewer(), tidal, "Closed.")
    assert len(held(ada)) == 1
    workflow.relist_company(reviewer(), tidal)
    assert len(held(ada)) == 2


def test_an_unlisted_profile_cannot_be_named_by_others(ada, mine, tidal):
    profiles.unlist_profile(ada)
    with pytest.raises(BadFields, match="no person has the slug"):
        name(mine, tidal, (TITLE, {"slug": "ada-moss"}))


def test_a_dry_run_sends_no_request(ada, mine, tidal):
    done = name(mine, tidal, (TITLE, {"slug": "ada-moss"}), dry_run=True)
    assert done.awaiting_people == ["ada-moss"]
    assert not PositionRequest.objects.exists()


def test_a_revert_restores_names_that_public_people_have_by_now(mine):
    slug = published(mine, name="Tidal").slug
    name(mine, slug, ("Cook", {"name": "Cy Weir"}))
    listings.update_company(mine, slug, CompanyChange(positions=None), expected_totals={"positions": 1})
    published(owner(), positions=[{"person": {"name": "Cy Weir"}}])
    entry = HistoryEntry.objects.filter(company__slug=slug, action="updated").latest("pk")
    listings.revert_company(mine, slug, entry.pk)
    assert team(slug) == [("Cook", {"name": "Cy Weir"})]


def test_a_draft_names_no_person_who_is_not_public(mine, tmp_path):
    file = lines(tmp_path / "people.jsonl", {"slug": "cy-weir", "name": "Cy Weir", "bio": "Not public yet."})
    import_registry(file, ImportOptions(draft=True))
    with pytest.raises(BadFields, match="no person has the slug 'cy-weir'"):
        draft(mine, positions=[{"person": {"slug": "cy-weir"}}])
    assert document("person", "cy-weir") is None


def test_the_slug_of_a_merged_person_means_the_one_who_was_kept(mine, ada, tidal):
    published(owner(), positions=[{"person": {"name": "Ada M. Moss"}}])
    moderation.merge_people(reviewer(), "ada-m-moss", "ada-moss")
    done = name(mine, tidal, ("Adviser", {"slug": "ada-m-moss"}))
    assert done.awaiting_people == ["ada-moss"]


def test_an_erased_person_leaves_requested_positions_too(ada, mine, tidal):
    ask(mine, tidal)
    erase_person(reviewer(), "ada-moss")
    assert team(tidal) == [("Chair", {"name": "Bo", "slug": "bo"})]
    assert not PositionRequest.objects.exists()


def test_an_inactive_account_gets_no_mail(ada, mine, tidal, django_capture_on_commit_callbacks):
    Account.objects.filter(pk=ada.account_id).update(is_active=False)
    letters = Letters()
    with django_capture_on_commit_callbacks(execute=True):
        ask(mine, tidal)
    assert letters.to("ada@moss.example") == []


def test_500_positions_are_answered_in_one_call_and_no_more():
    ids = [f"request-{number}" for number in range(1, 502)]
    with pytest.raises(BadRequest, match="has no profile"):
        positions.answer_positions(owner(), confirm=ids[:500])
    with pytest.raises(BadRequest, match="at most 500"):
        positions.answer_positions(owner(), confirm=ids)
