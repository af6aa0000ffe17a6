"""An account is exported in one archive, and deleted 14 days after its owner asks for it."""

import io
import json
import zipfile
from datetime import timedelta

import pytest

from make import documents, registry, reports
from make.accounts import Letters, account, deliver_mail, signed_in
from make.instances import tables_with, without_blobs
from muniment.accounts import personal_data
from muniment.accounts.models import Account, PersonalToken
from muniment.accounts.operations import find_account, list_accounts
from muniment.accounts.tokens import create_token
from muniment.assessments import scores, sharing
from muniment.assessments.models import Report, ShareLink
from muniment.credits.models import LedgerAccount, Transfer
from muniment.credits.operations import check_ledger
from muniment.documents.models import Document
from muniment.documents.records import storage
from muniment.kernel.actor import COMMAND, SCOPES, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.mail import outgoing
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner
from muniment.registry.models import Company, HistoryEntry, Ownership, Person, Petition
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import claims

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL = "ottoline@harbour.example"


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    yield
    without_blobs()


@pytest.fixture
def owner():
    """Return an account with data in every feature."""
    made = account(EMAIL)
    actor = made.actor("web")
    mine = registry.published(actor, name="Harbour Board", description="Keeps the harbour.")
    registry.draft(actor, name="Not Yet Known")
    documents.uploaded(actor, mine.slug, b"Minutes of the board.")
    documents.uploaded(actor, "not-yet-known", b"Draft of a plan.")
    run_id = reports.finished(actor, mine.slug).run_id
    scores.publish_score(actor, run_id)
    sharing.share_report(actor, run_id, name="For the bank")
    create_token(COMMAND, "Ottoline's laptop", permitted=SCOPES, days=30, account=made)
    profiles.create_profile(actor, ProfileChange(name="Ottoline Ferrisbrook", bio="Sails."))
    other = registry.published(registry.owner(), name="Quay Trust")
    claims.claim_company(actor, other.slug, "I keep the quay.")
    listings.update_company(
        made.actor("token", "Ottoline's laptop"), mine.slug, CompanyChange(description="Keeps the harbour well.")
    )
    return made


def archive(who):
    """Return the files of an account's archive."""
    out = io.BytesIO()
    personal_data.write_archive(who, out)
    with zipfile.ZipFile(out) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def test_every_feature_has_a_part():
    parts = ["accounts", "webhooks", "registry", "credits", "oauth", "searches", "documents", "assessments"]
    assert personal_data.names() == parts


def test_every_reference_to_an_account_is_in_a_feature_with_a_part():
    features = {field.related_model._meta.app_label for field in Account._meta.related_objects}
    ours = {name for name in features if name in {*personal_data.names(), "jobs"}}
    assert ours == {*personal_data.names()} & features
    assert features - ours <= {"account", "mfa", "socialaccount", "usersessions"}


def test_the_archive_holds_everything_and_no_secret(owner):
    files = archive(owner)
    found = {name: json.loads(content) for name, content in files.items() if name.endswith(".json")}
    assert found["archive.json"]["account"] == EMAIL
    assert found["account.json"]["emailAddresses"] == [{"email": EMAIL, "verified": True, "primary": True}]
    assert [token["name"] for token in found["tokens.json"]] == ["Ottoline's laptop"]
    assert found["profile.json"]["bio"] == "Sails."
    assert found["listings/harbour-board.json"]["company"]["description"] == "Keeps the harbour well."
    assert found["listings/not-yet-known.json"]["state"] == "draft"
    assert {"created", "updated", "submitted"} <= {entry["action"] for entry in found["changes.json"]}
    [asked] = found["requests.json"]
    assert (asked["subject"], asked["text"]) == ("quay-trust", "I keep the quay.")
    assert {each["companySlug"] for each in found["documents.json"]} == {"harbour-board", "not-yet-known"}
    assert found["credits.json"]["balance"] == 90
    (run,) = found["report-runs.json"]
    assert found[f"reports/{run['runId']}.json"] == Report.objects.get().document
    assert b"Minutes of the board." in files.values()
    (score,) = found["published-scores.json"]
    assert (score["company"], score["score"]) == ("harbour-board", Report.objects.get().document["overall"]["score"])
    assert [each["name"] for each in found["share-links.json"]] == ["For the bank"]
    everything = b"".join(files.values())
    (link,) = sharing.list_links(owner.actor("web"), run["runId"])
    for secret in (
        owner.password,
        link.token,
        ShareLink.objects.get().sealed,
        PersonalToken.objects.get(account=owner).digest,
    ):
        assert secret.encode() not in everything


def test_the_archive_of_one_account_says_nothing_of_another(owner):
    other = account("other@harbour.example")
    everything = b"".join(archive(other).values())
    for text in (EMAIL, "harbour-board", "Ottoline", "Minutes"):
        assert text.encode() not in everything


def test_only_the_owner_on_the_website_asks_for_the_deletion(owner):
    for actor in (VISITOR, owner.actor("token", "laptop"), owner.actor("app", "agent")):
        with pytest.raises(Forbidden):
            personal_data.request_deletion(actor)
        with pytest.raises(Forbidden):
            personal_data.cancel_deletion(actor)
    with pytest.raises(Forbidden):
        personal_data.delete_account(account("other@harbour.example").actor("web"), EMAIL)
    assert find_account(EMAIL).delete_at is None


def test_the_account_works_for_14_days_and_the_owner_can_keep_it(owner):
    letters = Letters()
    asked = personal_data.request_deletion(owner.actor("web"))
    assert abs(asked.delete_at - now() - timedelta(days=14)) < timedelta(minutes=1)
    assert personal_data.request_deletion(owner.actor("web")).delete_at == asked.delete_at
    assert personal_data.delete_due_accounts(at=now() + timedelta(days=13)) == 0
    assert find_account(EMAIL).is_active
    personal_data.cancel_deletion(owner.actor("web"))
    assert personal_data.delete_due_accounts(at=now() + timedelta(days=15)) == 0
    assert [subject for subject, _ in letters.to(EMAIL)] == [
        "[Muniment] Your account will be deleted",
        "[Muniment] Your account stays",
    ]


def test_a_deleted_account_leaves_its_number_and_what_belongs_to_others(owner):
    browser = signed_in(owner)
    assert browser.get("/manage").status_code == 200
    letters = Letters()
    balance = LedgerAccount.objects.get(account=owner).posted
    transfers = Transfer.objects.count()
    personal_data.request_deletion(owner.actor("web"))
    assert personal_data.delete_due_accounts(at=now() + timedelta(days=15)) == 1
    assert [subject for subject, _ in letters.to(EMAIL)][-1] == "[Muniment] Your account was deleted"
    assert browser.get("/manage").status_code == 302
    left = Account.objects.get(pk=owner.pk)
    assert (str(left), left.is_active, left.name, left.last_login) == ("former account", False, "", None)
    with pytest.raises(NotFound):
        find_account(EMAIL)
    assert owner.pk not in [each.pk for each in list_accounts(COMMAND)]
    assert not PersonalToken.objects.filter(account=owner).exists()
    assert not Petition.objects.filter(account=owner).exists()
    assert not Ownership.objects.filter(account=owner).exists()
    assert not Person.objects.filter(name="Ottoline Ferrisbrook").exists()
    ledger = LedgerAccount.objects.get(account=owner)
    assert (ledger.posted, Transfer.objects.count(), check_ledger()) == (balance, transfers, [])
    assert account(EMAIL).pk != owner.pk, "the address is free again"


@pytest.mark.parametrize("is_shared", [True, False], ids=["a listing with another owner", "a listing without"])
def test_share_links_end_with_the_last_owner_who_can_revoke_them_and_the_score_stays(owner, is_shared):
    if is_shared:
        add_owner(owner.actor("web"), "harbour-board", registry.owner().account_id)
    personal_data.delete_account(COMMAND, EMAIL)
    assert ShareLink.objects.count() == is_shared
    assert registry.document("company", "harbour-board")["company"]["assessments"]


def test_a_listing_whose_last_owner_leaves_stays_published_and_can_be_claimed(owner):
    personal_data.delete_account(COMMAND, EMAIL)
    assert registry.document("company", "harbour-board") is not None
    assert not Company.objects.filter(slug="not-yet-known").exists(), "an unpublished draft goes with its only owner"
    assert [each.company.slug for each in Document.objects.all()] == ["harbour-board"]
    assert [b"".join(storage().stream(key)) for key in documents.blob_keys()] == [b"Minutes of the board."]
    claimant, judge = registry.owner(), registry.reviewer()
    petition = claims.claim_company(claimant, "harbour-board", "I am the new chair.")
    claims.decide_request(judge, petition.pk, approve=True)
    assert listings.get_company(claimant, "harbour-board").slug == "harbour-board"
    actions = HistoryEntry.objects.filter(company__slug="harbour-board", account=owner)
    assert {(str(each.account), each.credential) for each in actions} == {("former account", "")}
    page = signed_in(Account.objects.get(pk=claimant.account_id)).get("/manage/companies/harbour-board/history")
    assert "by <bdi>former account</bdi>" in page.content.decode()
    assert EMAIL not in page.content.decode()


def test_a_draft_with_another_owner_and_a_public_profile_stay(owner):
    other = registry.owner()
    add_owner(owner.actor("web"), "not-yet-known", other.account_id)
    profiles.join_person(registry.reviewer(), "ottoline-ferrisbrook", owner.pk)
    personal_data.delete_account(COMMAND, EMAIL)
    assert listings.get_company(other, "not-yet-known").state == "draft"
    assert registry.document("person", "ottoline-ferrisbrook")["bio"] == "Sails."
    assert Person.objects.get(slug="ottoline-ferrisbrook").account is None


def test_the_only_operator_stays():
    operator = account("operator@harbour.example", "operator")
    with pytest.raises(Conflict):
        personal_data.request_deletion(operator.actor("web"))
    with pytest.raises(Conflict):
        personal_data.delete_account(COMMAND, operator.email)
    second = account("second@harbour.example", "operator")
    personal_data.request_deletion(operator.actor("web"))
    second.role = "owner"
    second.save()
    assert personal_data.delete_due_accounts(at=now() + timedelta(days=15)) == 0
    assert find_account(operator.email).is_active


def test_a_deleted_account_gets_no_mail(owner):
    personal_data.delete_account(COMMAND, EMAIL)
    letters = Letters()
    outgoing.send(Account.objects.get(pk=owner.pk).email, "Your report is ready", "Read it.")
    assert letters.to("former-") == []


def test_nothing_in_the_database_names_a_deleted_account(owner):
    letters = Letters()
    outgoing.send(EMAIL, "Your report is ready", "Read it.")
    deliver_mail()
    personal_data.delete_account(COMMAND, EMAIL)
    assert len(letters.to(EMAIL)) == 2
    assert tables_with(EMAIL, "Ottoline") == []
