"""Storage, backups, health and settings of the instance."""

import os
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment import config
from muniment.documents.cleanup import totals_by_state
from muniment.kernel.problems import Conflict, NotFound
from muniment.masking import masked
from muniment.scrub import checks, health, instance
from muniment.shown_settings import shown_settings
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown
from muniment.web.views.operate import contributed
from muniment.web.views.operate.frame import operate_page

BACKUPS: Final = "/operate/backups"


@operator("POST")
def check_health(_: HttpRequest) -> HttpResponse:
    """Enqueue the checks of `muniment doctor`, at most once in a minute."""
    health.ask_for_health()
    return HttpResponseRedirect("/operate")


@operator("GET", "HEAD")
def storage(request: HttpRequest) -> HttpResponse:
    """Show where data is, how much there is, and what the scrub has found."""
    current, progress = config.current(), instance.stored()
    disk = os.statvfs(current.data)
    context = {
        "database": "PostgreSQL" if current.on_postgresql else str(current.database_file),
        "data": current.data.absolute(),
        "store": masked(current.storage_url) or str((current.data / "blobs").absolute()),
        "free_bytes": disk.f_bavail * disk.f_frsize,
        "totals": totals_by_state(),
        "progress": progress,
        "share": round(100 * progress.examined / progress.total) if progress.total else 0,
        "finished_at": instance.moment(progress.finished_at),
        "damages": progress.open(checks.checks()),
        "days": current.scrub_days,
    }
    return operate_page(request, "storage", "operate/storage.html", context)


@operator()
@once
def backups(request: HttpRequest) -> HttpResponse:
    """List backups, and ask for one more."""
    if contributed.backups is None:
        raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))
    read, ask = contributed.backups
    if request.method == "POST":
        with problems_shown(request, Conflict):
            ask(actor_of(request))
            messages.success(request, gettext("A backup is being made. It appears in the list when it is verified."))
        return HttpResponseRedirect(BACKUPS)
    current = config.current()
    kept = ", ".join(f"{number} {name}" for name, number in current.backup_keep.items())
    context = {"found": read(), "interval_min": round(current.backup_interval_s / 60), "kept": kept}
    return operate_page(request, "backups", "operate/backups.html", context)


@operator("GET", "HEAD")
def settings(request: HttpRequest) -> HttpResponse:
    """Show every setting; a secret says only whether it is set."""
    current = config.current()
    context = {"settings": list(shown_settings(current)), "unknown": current.unknown}
    return operate_page(request, "settings", "operate/settings.html", context)
