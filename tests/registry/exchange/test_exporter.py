"""Export: one consistent snapshot of what is public, in the import form."""

import json
import os

import pytest

from make.registry import SPECIFICATION, draft, owner, published
from muniment.kernel.actor import COMMAND
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange import exporter
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.frameworks import authoring as frameworks
from services.items import without_ids

pytestmark = pytest.mark.django_db


def rows(folder, kind):
    return [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]


@pytest.fixture
def filled():
    """Publish two listings with a person each, and two frameworks; leave a third listing a draft."""
    me = owner()
    first = published(
        me,
        name="Tidal Works",
        teamSize=7,
        treasury="$1,234.56",
        positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}],
    )
    listings.open_funding_round(me, first.slug, name="Seed", target="$2M", opened="2024-05-01")
    second = published(me, name="Harbour Fund", positions=[{"person": {"name": "Bo Reef"}}])
    draft(me, name="Not Yet Known", positions=[{"person": {"name": "Cy Vale"}}])
    frameworks.create_framework(COMMAND, name="Score", kind="score")
    frameworks.update_framework(COMMAND, "score", run_cost=5)
    frameworks.author_framework(COMMAND, "score", SPECIFICATION)
    frameworks.create_framework(COMMAND, name="Program", kind="program", company=second.slug)
    return first, second


def test_what_is_public_is_exported_oldest_publication_first(filled, tmp_path):
    told = []
    counts = export_registry(tmp_path / "new" / "folder", progress=lambda kind, done: told.append((kind, done)))
    folder = tmp_path / "new" / "folder"
    assert counts == {"companies": 2, "people": 2, "frameworks": 2}
    assert told == list(counts.items())
    first, second = rows(folder, "companies")
    assert [first["company"]["id"], second["company"]["id"]] == ["tidal-works", "harbour-fund"]
    assert (first["company"]["teamSize"], first["company"]["treasury"]) == (7, "$1234.56")
    assert first["company"]["treasuryAmount"] == {"amount": "1234.56", "currency": "USD"}
    assert first["company"]["listedAt"]
    assert without_ids(first["fundingRounds"]) == [{"name": "Seed", "target": "$2M", "opened": "2024-05-01"}]
    assert first["positions"][0]["person"]["slug"] == "ada-moss"
    assert not {"raising", "updatedAt"} & first["company"].keys()
    assert not {"teamSize", "treasury"} & second["company"].keys()
    assert first["updatedAt"].endswith("Z")
    assert [each["slug"] for each in rows(folder, "people")] == ["ada-moss", "bo-reef"]


@pytest.mark.parametrize("private", [False, True])
def test_specifications_and_prices_leave_only_with_private(filled, tmp_path, private):
    export_registry(tmp_path, private=private)
    score, program = rows(tmp_path, "frameworks")
    assert ("specification" in score, "runCost" in score) == (private, private)
    if private:
        assert (score["specification"], score["runCost"]) == (SPECIFICATION, 5)
    assert not {"specification", "runCost"} & program.keys()
    assert (score["framework"]["isOpen"], program["framework"]["isOpen"]) == (True, False)
    assert (score["framework"]["company"], program["framework"]["company"]["slug"]) == (None, "harbour-fund")


def test_an_import_of_an_export_changes_nothing(filled, tmp_path):
    export_registry(tmp_path, private=True)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    summary = import_registry(tmp_path)
    for counts in summary.counts.values():
        assert (counts.new, counts.changed, counts.unchanged) == (0, 0, 2)
    export_registry(tmp_path, private=True)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_progress_is_reported_every_chunk(filled, tmp_path, monkeypatch):
    monkeypatch.setattr(exporter, "CHUNK", 1)
    told = []
    export_registry(tmp_path, progress=lambda kind, done: told.append((kind, done)))
    assert told[:3] == [("companies", 1), ("companies", 2), ("companies", 2)]
    assert [row["slug"] for row in rows(tmp_path, "people")] == ["ada-moss", "bo-reef"]


def test_an_export_that_fails_leaves_the_former_files(filled, tmp_path, monkeypatch):
    export_registry(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    listings.update_company(COMMAND, "tidal-works", CompanyChange(description="Later."))
    monkeypatch.setattr(os, "fsync", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        export_registry(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
