"""`muniment import` of a table whose headings were imported in the browser before."""

import pytest

from make.accounts import account, signed_in
from make.imports import upload, work
from make.pages import fields_of
from muniment.cli import tables
from muniment.registry.exchange.importer import ImportOptions
from muniment.registry.imports.sources import SourceOptions
from muniment.registry.models import Company, ImportUpload
from muniment.schema.objects import registry_schema

pytestmark = pytest.mark.django_db
FORMER = "Company;Ledger;Board\nAlder House;L-4;Ida Alder\n"
LATER = "Company;Ledger;Board\nBirch House;L-9;Kim Cedar\n"


@pytest.fixture
def imported(settings):
    """A finished import in the browser, whose column "Ledger" is kept as an additional field."""
    settings.DECLARED_FIELDS, settings.SCHEMA = (), registry_schema("USD")
    browser = signed_in(account("operator@harbour.example", "operator"))
    here = upload(browser, FORMER)
    fields = {name: value for name, value in fields_of(browser.get(here).content.decode()).items() if name != "once"}
    browser.post(here, {**fields, "t0-c1": "extra:ledger", "do": "preview"})
    work()
    browser.post(here, {"do": "import"})
    work()
    return ImportUpload.objects.get()


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "later.csv"
    found.write_text(LATER)
    return found


def bring(file, **options):
    choices = tables.MappingChoices(None, options.pop("write_mapping", None), **options)
    tables.run(file, ImportOptions(), SourceOptions(), choices, is_preview=False)


def extra_of(name):
    return Company.objects.get(name=name).extra


def test_the_mapping_of_the_browser_is_used(imported, file, capsys):
    bring(file)
    assert "Columns are mapped as in the last import of a file with the same headings" in capsys.readouterr().err
    assert extra_of("Alder House") == {"ledger": "L-4"}
    assert extra_of("Birch House") == {"ledger": "L-9"}


def test_a_mapping_is_proposed_on_request(imported, file, capsys):
    bring(file, proposes=True)
    said = capsys.readouterr()
    assert "# Proposed mapping of later.csv" in said.out
    assert "Columns are mapped as in the last import" not in said.err


def test_a_file_with_other_headings_is_proposed(imported, file, capsys):
    file.write_text(LATER.replace("Ledger", "Folio"))
    bring(file)
    assert "# Proposed mapping of later.csv" in capsys.readouterr().out


def test_a_remembered_mapping_that_is_not_valid_any_more_is_named_and_not_used(imported, file, capsys):
    imported.mapping = imported.mapping.replace('"extra:ledger"', '"gone"')
    imported.save()
    bring(file)
    said = capsys.readouterr()
    assert "The mapping of the last import with these headings is not used." in said.err
    assert "there is no field 'gone' of companies" in said.err
    assert "# Proposed mapping of later.csv" in said.out


def test_a_remembered_mapping_is_written_to_be_edited(imported, file, tmp_path):
    bring(file, write_mapping=tmp_path / "m.toml")
    assert 'field = "extra:ledger"' in (tmp_path / "m.toml").read_text()
