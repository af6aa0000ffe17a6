"""Stored values of declared fields: nothing is lost when a declaration is removed, retired or changed."""

import json

import pytest
from click.testing import CliRunner

from make.registry import document, owner, published
from muniment import config, declared_fields
from muniment.cli.fields import fields
from muniment.config import Config
from muniment.kernel.actor import COMMAND
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.declared.current import refresh
from muniment.registry.declared.stored import mark_of, stored_values
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company
from muniment.registry.publishing import publisher
from muniment.registry.publishing.upgrade import bring_up_to_date
from muniment.registry.settings.versions import apply_settings, follow
from muniment.registry_toml import applied
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.document import RegistrySettings
from muniment.registry_toml.reading import InvalidSettings
from muniment.schema.declared.declarations import read_declarations
from muniment.schema.objects import registry_schema
from muniment.store.published import mark_in

pytestmark = pytest.mark.django_db
BUILT_IN = registry_schema("USD")
TEXT = {"key": "berth", "label": "Berth", "kind": "text"}


@pytest.fixture
def declared(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "_current", Config({}, data=tmp_path))
    settings.DECLARED_FIELDS, settings.SCHEMA = (), BUILT_IN

    def apply(*tables):
        apply_settings(COMMAND, RegistrySettings(fields=tables))
        follow()
        refresh()

    return apply


def shown(slug):
    return document("company", slug)["company"]


def test_documents_are_rendered_again_when_the_declared_fields_change_and_only_then(declared):
    published(owner(), name="Harbour")
    assert bring_up_to_date().renewed is False
    declared(TEXT)
    assert bring_up_to_date().renewed is True
    assert mark_in(publisher.head()[1]) == mark_of(read_declarations([TEXT], BUILT_IN))
    assert bring_up_to_date().renewed is False
    declared({**TEXT, "label": "Place", "help": "On the quay."})
    assert bring_up_to_date().renewed is False
    publisher.renew_identity()
    publisher.rebuild()
    assert bring_up_to_date().renewed is False
    declared()
    assert bring_up_to_date().renewed is True
    assert mark_in(publisher.head()[1]) == ""


def test_a_value_survives_the_end_of_its_declaration_and_is_back_with_it(declared, tmp_path):
    declared(TEXT)
    me = owner()
    made = published(me, berth="Quay 7")
    declared()
    with pytest.raises(BadFields):
        update_company(me, made.slug, CompanyChange(berth="Quay 8"))
    update_company(me, made.slug, CompanyChange(industry="Water"))
    assert Company.objects.get(slug=made.slug).extra == {"berth": "Quay 7"}
    declared(TEXT)
    update_company(me, made.slug, CompanyChange(industry="Energy"))
    assert shown(made.slug)["berth"] == "Quay 7"


def test_a_retired_field_is_kept_and_exported_but_neither_shown_nor_edited_nor_found(declared, tmp_path):
    declared(TEXT)
    me = owner()
    made = published(me, berth="Quay 7")
    declared({**TEXT, "retired": True})
    bring_up_to_date()
    assert "berth" not in shown(made.slug)
    with pytest.raises(BadFields):
        update_company(me, made.slug, CompanyChange(berth="Quay 8"))
    export_registry(tmp_path / "out")
    line = json.loads((tmp_path / "out" / "companies.jsonl").read_text())
    assert line["company"]["berth"] == "Quay 7"
    import_registry(tmp_path / "out")
    assert Company.objects.get(slug=made.slug).extra == {"berth": "Quay 7"}
    declared(TEXT)
    bring_up_to_date()
    assert shown(made.slug)["berth"] == "Quay 7"


def test_a_changed_kind_that_stored_values_do_not_fit_is_refused_and_changes_nothing(declared):
    declared(TEXT)
    made = published(owner(), name="Harbour", berth="Quay 7")
    published(owner(), name="Mole", berth="2020-01-31")
    bring_up_to_date()
    before = publisher.head()
    with pytest.raises(InvalidSettings) as refusal:
        declared({**TEXT, "kind": "date"})
    text = refusal.value.faults["fields"]
    assert "berth (date): 1 of 2 stored values: harbour: must be a date such as 2024-03-31, not 'Quay 7'" in text
    assert "Declare the field as before or under another key, or correct the values first." in text
    assert bring_up_to_date().renewed is False
    assert publisher.head() == before
    assert shown(made.slug)["berth"] == "Quay 7"


def test_a_declaration_with_faults_is_refused_and_every_fault_is_named(declared):
    with pytest.raises(InvalidSettings) as refusal:
        declared({"key": "berth", "kind": "land"}, {"preset": "fax"})
    text = refusal.value.faults["fields"]
    assert "field 1 (berth): label is missing. field 1 (berth): kind must be one of text" in text
    assert "field 2 (fax): preset must be one of lei" in text


def test_fields_that_a_later_version_declares_are_not_used(declared, caplog):
    applied.keep(Applied(7, "", RegistrySettings(fields=({**TEXT, "kind": "hologram"},))))
    assert declared_fields.declarations() == ()
    assert "field 1 (berth): kind must be one of text" in caplog.text


def test_a_process_that_began_with_other_fields_publishes_with_those_of_the_others(declared, settings):
    declared(TEXT)
    bring_up_to_date()
    settings.DECLARED_FIELDS, settings.SCHEMA = (), BUILT_IN
    me = owner()
    made = published(me, name="Harbour")
    assert [each.key for each in settings.DECLARED_FIELDS] == ["berth"]
    update_company(me, made.slug, CompanyChange(berth="Quay 7"))
    assert shown(made.slug)["berth"] == "Quay 7"


def test_a_changed_kind_that_all_stored_values_fit_is_taken(declared):
    declared(TEXT)
    made = published(owner(), berth="Deep water")
    declared({**TEXT, "kind": "choice", "choices": ["Deep water", "Shallow"]})
    assert bring_up_to_date().renewed is True
    assert shown(made.slug)["berth"] == "Deep water"


def test_the_command_lists_the_fields_and_what_does_not_fit(declared, settings):
    assert "No fields are declared." in CliRunner().invoke(fields, []).output
    declared({"preset": "lei"}, {**TEXT, "of": "person", "retired": True})
    Company.objects.filter(slug=published(owner(), name="Harbour").slug).update(extra={"lei": "unknown"})
    assert [(each.n, each.unfit) for each in stored_values(settings.DECLARED_FIELDS)] == [(1, 1), (0, 0)]
    told = CliRunner().invoke(fields, [])
    assert told.exit_code == 1
    assert "company.lei: LEI, identifier: 1 values" in told.output
    assert "person.berth: Berth, text, retired: 0 values" in told.output
    assert "FAIL  lei (identifier): 1 of 1 stored values: harbour: must be an LEI" in told.output
    assert "telegram: Telegram, link" in CliRunner().invoke(fields, ["--presets"]).output
