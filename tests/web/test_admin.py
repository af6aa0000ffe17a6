"""The operators' back office: every table is there, found and read; nothing goes past the operations."""

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib import admin

from make.accounts import account, signed_in
from muniment.accounts.models import FormerDefault
from muniment.config import Config
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry
from services.product import DEMO

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("django_admin")]


def test_every_table_of_ours_is_listed_with_search_or_filters():
    from muniment.web import urls  # noqa: F401 - registers them

    for label in ("accounts", "registry", "oauth", "credits", "searches"):
        for model in apps.get_app_config(label).get_models():
            page = admin.site._registry[model]
            assert page.search_fields, model
            assert list(page.list_display) != ["__str__"], model


def test_every_table_opens_searches_and_shows_its_rows():
    import_registry(DEMO)
    client = signed_in(account("operator@harbour.example", "operator"))
    for label in ("accounts", "registry", "oauth", "credits", "searches"):
        for model in apps.get_app_config(label).get_models():
            base = f"/admin/{label}/{model._meta.model_name}/"
            assert client.get(f"{base}?q=tarn").status_code == 200, base
            row = model.objects.order_by("pk").first()
            if row is not None:
                assert client.get(f"{base}{row.pk}/change/").status_code == 200, base
    assert b"tarnwick-tidal" in client.get("/admin/registry/company/?q=tarnwick").content


def test_nothing_of_the_registry_changes_past_the_operations():
    import_registry(DEMO)
    client = signed_in(account("operator@harbour.example", "operator"))
    company, entry = Company.objects.first(), HistoryEntry.objects.first()
    for path, row in (
        (f"/admin/registry/company/{company.pk}", company),
        (f"/admin/registry/historyentry/{entry.pk}", entry),
    ):
        before = type(row).objects.filter(pk=row.pk).values().get()
        assert client.post(f"{path}/change/", {"name": "Taken over", "action": "x"}).status_code == 403
        assert client.post(f"{path}/delete/", {"post": "yes"}).status_code == 403
        assert type(row).objects.filter(pk=row.pk).values().get() == before
    assert client.get("/admin/registry/company/add/").status_code == 403


def test_an_instance_of_this_version_serves_no_admin_site_unless_it_is_turned_on(monkeypatch):
    operator = signed_in(account("operator@harbour.example", "operator"))
    pages = ("/admin/", "/admin/login/", "/admin/registry/company/", "/admin/jobs/job/")
    FormerDefault.objects.all().delete()
    for path in pages:
        assert operator.get(path).status_code == 404, path
    monkeypatch.setattr("muniment.config.current", lambda: Config({}, django_admin="on"))
    assert operator.get("/admin/").status_code == 200
    FormerDefault.objects.create(name="django_admin")
    monkeypatch.setattr("muniment.config.current", lambda: Config({}, django_admin="off"))
    for path in pages:
        assert operator.get(path).status_code == 404, path


@pytest.mark.parametrize("is_used", [False, True])
def test_an_instance_that_has_accounts_keeps_the_admin_site_when_it_is_upgraded(is_used):
    FormerDefault.objects.all().delete()
    if is_used:
        account("operator@harbour.example", "operator")
    import_module("muniment.accounts.migrations.0009_former_defaults").keep_admin(apps, None)
    assert FormerDefault.objects.filter(name="django_admin").exists() == is_used
