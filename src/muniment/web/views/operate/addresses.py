"""Addresses of the operator's pages."""

from typing import Final

from django.urls import path, re_path

from muniment.web.views import webhooks
from muniment.web.views.operate import (
    accounts,
    audit,
    credits_page,
    fields,
    import_reports,
    imports,
    instance_pages,
    jobs,
    listings,
    maintenance,
    overview,
    queries,
    registry_settings,
)
from muniment.web.views.setting_up import invitations, steps

OPERATE: Final = [
    path("operate", overview.overview, name="operate"),
    path("operate/setup", steps.home),
    path("operate/setup/<str:name>", steps.step),
    path("operate/accounts", accounts.accounts),
    path("operate/accounts/<int:number>", accounts.account),
    path("operate/accounts/<int:number>/role", accounts.change_role),
    re_path(
        r"^operate/accounts/(?P<number>[0-9]{1,15})/(?P<action>disable|enable|factors|sign-out|tokens|delete)$",
        accounts.act,
    ),
    path("operate/accounts/<int:number>/listing", accounts.give_listing),
    path("operate/maintenance", maintenance.maintenance),
    re_path(r"^operate/maintenance/(?P<action>renew-feed|retry-logos|remove-logos)$", maintenance.act),
    path("operate/invitations", invitations.invitations),
    re_path(r"^operate/invitations/(?P<number>[0-9]{1,15})/(?P<action>resend|revoke)$", invitations.act),
    path("operate/listings", listings.listings),
    path("operate/listings/several", listings.several),
    path("operate/credits", credits_page.credit_lists),
    path("operate/jobs", jobs.jobs),
    re_path(r"^operate/jobs/(?P<job_id>[0-9a-z]{26})/(?P<action>retry|cancel)$", jobs.act),
    path("operate/mail", jobs.mail),
    *webhooks.addresses(of_registry=True),
    path("operate/health", instance_pages.check_health),
    path("operate/storage", instance_pages.storage),
    path("operate/backups", instance_pages.backups),
    path("operate/audit", audit.audit),
    re_path(r"^operate/audit/log\.(?P<form>csv|jsonl)$", audit.download),
    path("operate/settings", instance_pages.settings),
    path("operate/registry", registry_settings.settings),
    path("operate/registry/preview.css", registry_settings.preview_colors),
    path("operate/registry/<int:number>/restore", registry_settings.restore),
    path("operate/fields", fields.fields),
    re_path(r"^operate/fields/(?P<of>company|person)$", fields.add),
    re_path(r"^operate/fields/(?P<of>company|person)/(?P<key>[A-Za-z0-9]{2,40})$", fields.edit),
    re_path(r"^operate/fields/(?P<of>company|person)/(?P<key>[A-Za-z0-9]{2,40})/remove$", fields.remove),
    re_path(
        r"^operate/fields/(?P<of>company|person)/(?P<key>[A-Za-z0-9]{2,40})/(?P<action>up|down|retire|use)$",
        fields.move,
    ),
    path("operate/queries", queries.queries),
    path("operate/queries/new", queries.add),
    path("operate/queries/<slug:slug>/edit", queries.edit),
    path("operate/queries/<slug:slug>/delete", queries.delete),
    path("operate/import", imports.home),
    path("operate/import/runs/<int:key>", imports.result),
    path("operate/import/runs/<int:key>/report.csv", import_reports.of_run),
    path("operate/import/<str:key>", imports.step),
    path("operate/import/<str:key>/mapping.toml", imports.mapping_file),
    path("operate/import/<str:key>/report.csv", import_reports.of_preview),
    path("operate/import/<str:key>/pages/<int:number>", imports.sample),
    path("operate/import/<str:key>/pages/<int:number>/<str:part>", imports.sample),
]
