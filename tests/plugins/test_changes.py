"""Plugins check changes on every way in, and fail closed."""

import pytest

from make.registry import draft, lines, owner, published, reviewer
from muniment.kernel.actor import COMMAND
from muniment.plugins import Refusal, hook
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange, PluginFailed
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, Person
from muniment.registry.people import moderation, profiles
from muniment.registry.people.profiles import ProfileChange, publish_profile
from muniment.registry.review import claims, workflow
from services.plugins import plugged, steward

pytestmark = pytest.mark.django_db
PLAIN = {"website": "http://harbour.example"}


@pytest.fixture(autouse=True)
def plugin():
    with plugged(steward=steward()):
        yield


class Noting:
    """Notes every change that it is asked about."""

    def __init__(self, *refused):
        self.seen = []
        self.refused = refused

    @hook
    def validate_change(self, change):
        self.seen.append(change)
        return [Refusal(field="name", message="is refused")] if change.after.get("name") in self.refused else None


def test_an_owner_a_draft_and_a_dry_run_are_refused_at_the_field():
    me = owner()
    with pytest.raises(BadFields, match="website must begin with https://"):
        draft(me, **PLAIN)
    mine = draft(me)
    for dry_run in (False, True):
        with pytest.raises(BadFields) as refused:
            listings.update_company(me, mine.slug, CompanyChange(PLAIN), dry_run=dry_run)
        assert [fault.field for fault in refused.value.faults] == ["website"]
    assert not Company.objects.get(slug=mine.slug).website
    listings.update_company(me, mine.slug, CompanyChange(website="https://harbour.example"))


def test_a_change_that_waits_for_review_is_refused_before_it_waits_and_again_when_it_is_approved():
    me, noting = owner(), Noting("Tide")
    mine = published(me)
    with plugged(noting=noting), pytest.raises(BadFields, match="name is refused"):
        listings.update_company(me, mine.slug, CompanyChange(name="Tide"))
    listings.update_company(me, mine.slug, CompanyChange(name="Tide"))
    pending = Company.objects.get(slug=mine.slug).pending_changes.get(decision="")
    with plugged(noting=noting), pytest.raises(BadFields, match="name is refused"):
        workflow.decide_change(reviewer(), pending.pk, approve=True)
    assert Company.objects.get(slug=mine.slug).name == mine.name


def test_a_suggestion_and_a_submission_are_refused(monkeypatch):
    me = owner()
    mine = published(me)
    with pytest.raises(BadFields, match="website must begin"):
        claims.suggest_edit(owner(), mine.slug, CompanyChange(PLAIN), "")
    monkeypatch.setenv("STEWARD_NEEDS_LEI", "cooperative")
    unfinished = draft(me, type="cooperative")  # a draft may lack it
    with pytest.raises(BadFields, match="lei must be set for companies of the type cooperative"):
        workflow.submit_company(me, unfinished.slug)


def test_a_plugin_sees_the_change_before_and_after_in_wire_form_and_cannot_reach_the_rows():
    me, noting = owner(), Noting()
    mine = published(me, website="https://one.example", socials={"twitter": "@a"})
    with plugged(noting=noting):
        change = CompanyChange(
            website="https://two.example", positions=[{"person": {"name": "Ines"}, "title": "Chair"}]
        )
        listings.update_company(me, mine.slug, change)
        [seen] = noting.seen
        assert (seen.kind, seen.id, seen.is_public, seen.via, seen.is_import) == (
            "company",
            mine.slug,
            True,
            "web",
            False,
        )
        assert seen.fields == {"website", "positions"}
        assert (seen.before["website"], seen.after["website"]) == ("https://one.example", "https://two.example")
        assert [each["title"] for each in seen.after["positions"]] == ["Chair"]
        with pytest.raises(TypeError):
            seen.after["website"] = "https://three.example"
        seen.after["socials"]["twitter"] = "@b"
    assert Company.objects.get(slug=mine.slug).socials["twitter"] == "@a"


def test_people_are_checked_when_they_are_created_edited_corrected_and_published():
    me, noting = owner(), Noting("Nobody")
    with plugged(noting=noting):
        with pytest.raises(BadFields, match="name is refused"):
            profiles.create_profile(me, ProfileChange(name="Nobody"))
        person = profiles.create_profile(me, ProfileChange(name="Ines"))
        with pytest.raises(BadFields):
            profiles.update_profile(me, ProfileChange(name="Nobody"))
        with pytest.raises(BadFields):
            moderation.correct_person(reviewer(), person.slug, ProfileChange(name="Nobody"))
        publish_profile(me)
        last = noting.seen[-1]
        assert (last.kind, last.is_public, last.fields) == ("person", True, frozenset())
    Person.objects.filter(pk=person.pk).update(name="Nobody", listed=False, published=False)
    with plugged(noting=noting), pytest.raises(BadFields):
        publish_profile(me)


def test_an_import_reports_refused_rows_and_takes_the_others(tmp_path):
    rows = [
        {"company": {"id": "one", "name": "One", **PLAIN}},
        {"company": {"id": "two", "name": "Two", "website": "https://two.example", "lei": "529900T8BM49AURSDO55"}},
        {"company": {"id": "three", "name": "Three", "lei": "529900T8BM49AURSDO56"}},
    ]
    faults = []
    done = import_registry(lines(tmp_path / "companies.jsonl", *rows), tell=lambda fault: faults.append(str(fault)))
    assert faults == [
        "companies.jsonl:1: company.website must begin with https://",
        "companies.jsonl:3: company.lei has wrong check digits",
    ]
    assert (done.counts["companies"].new, done.bad) == (1, 2)
    assert list(Company.objects.values_list("slug", flat=True)) == ["two"]
    rows[1]["company"]["website"] = "http://two.example"
    again = import_registry(lines(tmp_path / "companies.jsonl", rows[1]), tell=lambda fault: faults.append(str(fault)))
    assert (again.counts["companies"].changed, again.bad) == (0, 1)
    assert Company.objects.get(slug="two").website == "https://two.example"


def test_an_import_of_people_reports_refused_rows(tmp_path):
    file = lines(tmp_path / "people.jsonl", {"slug": "ines", "name": "Ines"}, {"slug": "odo", "name": "Odo"})
    with plugged(noting=Noting("Odo")):
        first = import_registry(file)
        assert (first.counts["people"].new, first.bad) == (1, 1)
        changed = lines(tmp_path / "people.jsonl", {"slug": "ines", "name": "Odo"})
        assert import_registry(changed).bad == 1
    assert list(Person.objects.values_list("slug", "name")) == [("ines", "Ines")]


class Broken:
    @hook
    def validate_change(self):
        raise KeyError("secret detail")


@pytest.mark.parametrize("plugin", [Broken(), ImportError("gone")], ids=["raises", "not loaded"])
def test_without_a_working_plugin_nothing_is_saved_and_the_operator_is_told(plugin, tmp_path, caplog):
    me = owner()
    mine = draft(me)
    file = lines(tmp_path / "companies.jsonl", {"company": {"id": "two", "name": "Two"}})
    with plugged(lei_check=plugin):
        with pytest.raises(PluginFailed, match="The plugin lei_check of this registry does not work") as refused:
            listings.update_company(me, mine.slug, CompanyChange(description="New."))
        assert "secret detail" not in refused.value.message + refused.value.hint
        assert "muniment plugins" in refused.value.hint
        with pytest.raises(PluginFailed):
            import_registry(file, actor=COMMAND)
    assert "lei_check" in caplog.text
    assert not Company.objects.filter(slug="two").exists()
    assert not Company.objects.get(slug=mine.slug).description
