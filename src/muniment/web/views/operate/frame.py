"""
The shared parts of the operator's pages: their navigation and their rendering.

To add a page: an entry in :data:`ENTRIES`, beside those of its group, its path in
:mod:`muniment.web.views.operate.addresses`, a view decorated with ``@operator(…)``, and a template that extends
``operate/frame.html``.
"""

from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy, pgettext_lazy

from muniment import config
from muniment.accounts.first_run import is_unfinished
from muniment.kernel.json import JSONObject
from muniment.web.requests.pages import Words, manage_page


class Entry(NamedTuple):
    """An entry of the navigation; *tab* names it in the views, *group* is the heading above it and its neighbors."""

    tab: str
    label: Words
    address: str
    group: Words = ""


_REGISTRY: Final = pgettext_lazy("group of pages", "Registry")
_PEOPLE: Final = pgettext_lazy("group of pages", "Accounts")
_WORK: Final = pgettext_lazy("group of pages", "Work")
_INSTANCE: Final = pgettext_lazy("group of pages", "Instance")
ENTRIES: Final = (
    Entry("overview", gettext_lazy("Overview"), "/operate"),
    Entry("listings", gettext_lazy("Listings"), "/operate/listings", _REGISTRY),
    Entry("import", gettext_lazy("Import"), "/operate/import", _REGISTRY),
    Entry("fields", gettext_lazy("Fields"), "/operate/fields", _REGISTRY),
    Entry("queries", gettext_lazy("Saved queries"), "/operate/queries", _REGISTRY),
    Entry("registry", gettext_lazy("Registry settings"), "/operate/registry", _REGISTRY),
    Entry("accounts", gettext_lazy("Accounts"), "/operate/accounts", _PEOPLE),
    Entry("credits", gettext_lazy("Credits"), "/operate/credits", _PEOPLE),
    Entry("subscriptions", gettext_lazy("Email subscriptions"), "/operate/subscriptions", _PEOPLE),
    Entry("audit", gettext_lazy("Audit log"), "/operate/audit", _PEOPLE),
    Entry("jobs", gettext_lazy("Jobs"), "/operate/jobs", _WORK),
    Entry("mail", gettext_lazy("Mail"), "/operate/mail", _WORK),
    Entry("webhooks", gettext_lazy("Webhooks"), "/operate/webhooks", _WORK),
    Entry("maintenance", gettext_lazy("Maintenance"), "/operate/maintenance", _WORK),
    Entry("storage", gettext_lazy("Storage"), "/operate/storage", _INSTANCE),
    Entry("backups", gettext_lazy("Backups"), "/operate/backups", _INSTANCE),
    Entry("settings", gettext_lazy("Server settings"), "/operate/settings", _INSTANCE),
)


def operate_page(
    request: HttpRequest, tab: str, template: str, context: JSONObject, *, status: int = 0
) -> HttpResponse:
    """
    Render a page of the console, with *tab* as the current entry of the navigation.

    While the first set-up is unfinished, each page leads back to it.
    """
    settings = config.current()
    shown = {
        "tab": tab,
        "entries": ENTRIES,
        "is_setting_up": is_unfinished(),
        "mail_folder": "" if settings.mail_url else settings.data.absolute() / "mail",
        **context,
    }
    return manage_page(request, template, shown, status=status)
