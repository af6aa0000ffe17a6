"""An import confirms for the operator what people did not refuse, and keeps names alone as they are."""

import json

import pytest

from make.registry import document, lines, owner, published, reviewer
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.models import Person, PositionRequest
from muniment.registry.people import positions, profiles

pytestmark = pytest.mark.django_db
ADA = {"name": "Ada Moss", "slug": "ada-moss"}


@pytest.fixture
def ada(tmp_path):
    """Return the account of a claimed profile that an import brought."""
    me = owner()
    lines(tmp_path / "people.jsonl", {"slug": "ada-moss", "name": "Ada Moss"})
    import_registry(tmp_path / "people.jsonl")
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    return me


@pytest.fixture
def load(tmp_path):
    """Return a function that imports a company with positions and returns the warnings."""

    def load(*rows, slug="harbour", overwrite=False):
        line = {"company": {"id": slug, "name": "Harbour"}, "positions": list(rows)}
        warnings = []
        file = lines(tmp_path / "companies.jsonl", line)
        import_registry(file, ImportOptions(overwrite=overwrite), warn=lambda fault: warnings.append(str(fault)))
        return warnings

    return load


def team(slug="harbour"):
    return [(each.get("title"), each["person"]) for each in document("company", slug)["positions"]]


def titles():
    return [each.get("title") for each in document("person", "ada-moss")["positions"]]


def test_an_imported_position_of_a_claimed_profile_is_confirmed_by_the_operator(ada, load):
    load({"title": "Chair", "person": ADA})
    assert (team(), titles()) == ([("Chair", ADA)], ["Chair"])
    assert not PositionRequest.objects.exists()


@pytest.mark.parametrize("person", [ADA, {"name": "Ada Moss"}])
def test_an_import_does_not_bring_back_what_a_person_ended(ada, load, person):
    rows = [{"title": "Chair", "person": ADA}, {"title": "Cook", "person": {"name": "Bo", "slug": "bo"}}]
    load(*rows)
    positions.answer_positions(ada, end=[positions.list_positions(ada)[0].id])
    rows[0]["person"] = person
    for _ in range(2):
        (warning,) = load(*rows)
        assert warning.endswith("positions[0] was declined or ended by the person and is left out")
        assert [title for title, _ in team()] == ["Cook"]
    load({"title": "Treasurer", "person": ADA}, rows[1])  # another position is the operator's word
    assert "Treasurer" in titles()
    assert Person.objects.count() == 2


def test_an_import_does_not_bring_back_what_a_person_declined(ada, load):
    mine = owner()
    slug = published(mine, name="Tidal").slug
    row = {"title": "Adviser", "person": ADA}
    listings.update_company(mine, slug, CompanyChange(positions=[row]))
    positions.answer_positions(ada, decline=[positions.list_positions(ada)[0].id])
    (warning,) = load(row, slug=slug, overwrite=True)
    assert "was declined or ended by the person" in warning
    assert team(slug) == []


def test_an_import_confirms_a_request(ada, load):
    mine = owner()
    slug = published(mine, name="Tidal").slug
    listings.update_company(mine, slug, CompanyChange(positions=[{"title": "Adviser", "person": ADA}]))
    row = document("company", slug)["positions"][0]
    load({**row, "person": ADA}, slug=slug, overwrite=True)
    assert team(slug) == [("Adviser", ADA)]
    assert titles() == ["Adviser"]
    assert PositionRequest.objects.get().decision == "confirmed"


def test_an_import_that_drops_a_requested_position_withdraws_the_request(ada, load):
    mine = owner()
    slug = published(mine, name="Tidal").slug
    listings.update_company(mine, slug, CompanyChange(positions=[{"title": "Adviser", "person": ADA}]))
    load({"title": "Cook", "person": {"name": "Bo", "slug": "bo"}}, slug=slug, overwrite=True)
    assert PositionRequest.objects.get().decision == "withdrawn"
    assert positions.list_positions(ada) == []


def test_an_export_keeps_a_name_alone(ada, load, tmp_path):
    mine = owner()
    slug = published(mine, name="Tidal").slug
    rows = [{"title": "Adviser", "person": ADA}, {"title": "Cook", "person": {"name": "Cy Weir"}}]
    listings.update_company(mine, slug, CompanyChange(positions=rows))
    export_registry(tmp_path / "out")
    (line,) = (tmp_path / "out" / "companies.jsonl").read_text().splitlines()
    assert [each["person"] for each in json.loads(line)["positions"]] == [{"name": "Ada Moss"}, {"name": "Cy Weir"}]
    before = document("company", slug)
    summary = import_registry(tmp_path / "out", actor=COMMAND)
    assert summary.counts["companies"].changed == 0
    assert document("company", slug) == before
    assert [each.state for each in positions.list_positions(ada)] == ["requested"]


def test_a_name_alone_of_an_export_makes_no_person_in_another_instance(load):
    load({"id": "7c2m9xq4", "title": "Cook", "person": {"name": "Cy Weir"}})
    assert team() == [("Cook", {"name": "Cy Weir"})]
    assert not Person.objects.exists()
    assert load({"id": "7c2m9xq4", "title": "Cook", "person": {"name": "Cy Weir"}}) == []
    load({"title": "Cook", "person": {"name": "Cy Weir"}}, slug="other")  # files of others name people so
    assert team("other") == [("Cook", {"name": "Cy Weir", "slug": "cy-weir"})]
