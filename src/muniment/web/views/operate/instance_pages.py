"""Storage, backups, health and settings of the instance."""

import os
from typing import Any, Final

import msgspec
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment import config
from muniment.documents.cleanup import totals_by_state
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict, NotFound
from muniment.languages.translated import translated
from muniment.masking import masked
from muniment.registry.settings import versions as registry_operations
from muniment.registry_toml import reading
from muniment.scrub import checks, health, instance
from muniment.setting_values import PERIODS
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown, show_problem
from muniment.web.views.operate import contributed
from muniment.web.views.operate.frame import operate_page
from muniment.web.wording.process_settings import REGISTRY, setting_groups, settings_path

BACKUPS: Final = "/operate/backups"
_RESTORE: Final = "muniment restore %s --at latest --data NEW-FOLDER\nmuniment serve --data NEW-FOLDER"


_KEPT: Final = {
    "recent": gettext_lazy("the newest %(n)s"),
    "hourly": gettext_lazy("%(n)s hourly"),
    "daily": gettext_lazy("%(n)s daily"),
    "weekly": gettext_lazy("%(n)s weekly"),
    "monthly": gettext_lazy("%(n)s monthly"),
}


def _number(label: Any, help_text: Any = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, help_text=help_text, min_value=0, max_value=9_999, required=False)


class ScheduleForm(forms.Form):
    """The schedule of backups, and the numbers of backups to keep."""

    interval_min = forms.IntegerField(
        label=gettext_lazy("Minutes between backups"),
        help_text=gettext_lazy("At least 5. Without changes, none is made. Leave it empty for the default."),
        min_value=5,
        max_value=10_000,
        required=False,
    )
    recent = _number(gettext_lazy("Newest backups to keep"), gettext_lazy("Leave all five empty for the default."))
    hourly = _number(gettext_lazy("Hourly backups to keep"))
    daily = _number(gettext_lazy("Daily backups to keep"))
    weekly = _number(gettext_lazy("Weekly backups to keep"))
    monthly = _number(gettext_lazy("Monthly backups to keep"))

    def __init__(self, data: Any, *, schedule: contributed.BackupSchedule) -> None:
        initial: JSONObject = {"interval_min": schedule.interval_min}
        for rule in schedule.keep.replace(",", " ").split():
            period, number = rule.split("=", 1)
            initial[period] = number
        super().__init__(data, initial=initial)

    def clean(self) -> JSONObject:
        """Put the numbers together as the setting writes them; require one of the newest if there are others."""
        super().clean()
        numbers = {}
        for name in PERIODS:
            numbers[name] = self.cleaned_data.pop(name, None)
        self.cleaned_data["keep"] = ",".join(f"{name}={number}" for name, number in numbers.items() if number)
        if self.cleaned_data["keep"] and not numbers["recent"] and "recent" not in self.errors:
            self.add_error("recent", gettext("Keep at least one of the newest backups."))
        return self.cleaned_data


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
    database = "PostgreSQL" if current.on_postgresql else str(current.database_file)
    percentage = 0
    if progress.total:
        percentage = round(100 * progress.examined / progress.total)
    context = {
        "database": database,
        "data": current.data.absolute(),
        "store": masked(current.storage_url) or str((current.data / "blobs").absolute()),
        "free_bytes": disk.f_bavail * disk.f_frsize,
        "totals": totals_by_state(),
        "progress": progress,
        "share": percentage,
        "finished_at": instance.moment(progress.finished_at),
        "damages": progress.open(checks.checks()),
        "days": instance.PASS_DAYS,
    }
    return operate_page(request, "storage", "operate/storage.html", context)


@operator()
@once
def backups(request: HttpRequest) -> HttpResponse:
    """List backups, and ask for one more."""
    if contributed.backups is None:
        raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))
    read, ask = contributed.backups
    do = request.POST.get("do", "now") if request.method == "POST" else ""
    if do == "now":
        with problems_shown(request, Conflict):
            ask(actor_of(request))
            messages.success(request, gettext("A backup is being made. It appears in the list when it is verified."))
        return HttpResponseRedirect(BACKUPS)
    status = read()
    form = ScheduleForm(request.POST if do else None, schedule=status.schedule)
    if do and form.is_valid() and _apply_schedule(request, form, do):
        return HttpResponseRedirect(BACKUPS)
    # The address of a bucket is shown without its key, so it cannot be part of a command.
    place = "PLACE" if status.place.startswith("s3:") else status.place
    context = {
        "found": status,
        "form": form,
        "kept": _kept(status.schedule.keep),
        "restore_lines": _RESTORE % place,
    }
    return operate_page(request, "backups", "operate/backups.html", context)


def _kept(keep: str) -> list[str]:
    """Return the parts of a rule such as recent=4,hourly=24 in words."""
    lines = []
    for part in keep.split(","):
        name, _, number = part.partition("=")
        if name in _KEPT:
            lines.append(str(_KEPT[name]) % {"n": number})
        else:
            lines.append(f"{name} {number}")
    return lines


def _apply_schedule(request: HttpRequest, form: ScheduleForm, do: str) -> bool:
    """Apply the schedule as a version of the registry's settings; return False with faults in the form."""
    latest = registry_operations.latest_version()
    schedule = msgspec.to_builtins(latest.settings.backups)
    if do == "save":
        schedule |= form.cleaned_data
        schedule["interval_min"] = form.cleaned_data["interval_min"] or 0
    elif do in {"pause", "resume"}:
        schedule["paused"] = do == "pause"
    document = {**msgspec.to_builtins(latest.settings), "backups": schedule}
    try:
        registry_operations.apply_settings(
            actor_of(request), reading.check(document), expected_number=latest.number, note="Backups"
        )
    except reading.InvalidSettings as refusal:
        for place, fault in refusal.faults.items():
            name = place.partition(".")[2]
            field = name if name in form.fields else None
            form.add_error(field, translated(fault))
        return False
    except Conflict as refusal:
        show_problem(request, refusal)
        return True
    words = {"pause": gettext("Backups are paused."), "resume": gettext("Backups are made again.")}
    messages.success(request, words.get(do, gettext("The schedule is changed.")))
    return True


@operator("GET", "HEAD")
def settings(request: HttpRequest) -> HttpResponse:
    """Show every setting; a secret says only whether it is set."""
    current = config.current()
    groups = setting_groups(current)
    changed = []
    for group in groups:
        changed += [row for row in group.rows if row.is_changed]
    context = {
        "groups": groups,
        "changed": changed,
        "unknown": current.unknown,
        "file": settings_path(current),
        "registry_page": REGISTRY,
    }
    return operate_page(request, "settings", "operate/settings.html", context)
