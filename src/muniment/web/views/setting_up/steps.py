"""
The steps of the first set-up after the operator's account: the name of the registry, and its first list.

Further steps can follow: brand, words, legal pages, fields, mail. Each is a part of what the console offers anyway: a
part of the form of /operate/registry, the import, the test message of /operate/mail, or a link to another page. Each is
saved on its own, can be left out, and is remembered.
"""

from typing import Any, Final, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy
from msgspec.structs import replace

from muniment import config
from muniment.accounts.first_run import mark_step, steps_taken
from muniment.accounts.job_actions import send_test_message
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict, NotFound, Problem
from muniment.languages.translated import told
from muniment.masking import masked
from muniment.registry.imports import uploads
from muniment.registry.models import Company
from muniment.registry.settings import versions
from muniment.registry_toml.document import DEFAULT, RegistrySettings
from muniment.registry_toml.reading import InvalidSettings
from muniment.web.branding import branding, legal_links
from muniment.web.requests.access import account_of, actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Words, manage_page, problems_shown, show_problem
from muniment.web.requests.pagination import whole_number
from muniment.web.setting_up import legal_texts
from muniment.web.setting_up.presets import PRESETS, find_preset
from muniment.web.views.operate import imports
from muniment.web.views.operate.fields import HOME as FIELDS
from muniment.web.views.operate.registry_settings import (
    SettingsForm,
    brand_context,
    form_values,
    proposed_settings,
    show_faults,
)
from muniment.web.wording.process_settings import settings_path

HOME: Final = "/operate/setup"
_MAIL_SETTINGS: Final = (
    "MUNIMENT_MAIL_URL=smtp+tls://user:password@mail.example:587\nMUNIMENT_MAIL_FROM=registry@example.org"
)


class SetupPage(NamedTuple):
    """
    A step.

    Args:
        fields: those of the form of /operate/registry that it shows.
    """

    name: str
    title: Words
    lead: Words
    fields: tuple[str, ...] = ()


PAGES: Final = (
    SetupPage("account", gettext_lazy("Account"), ""),
    SetupPage(
        "name",
        gettext_lazy("Name"),
        gettext_lazy("Three questions. Everything else can be set later."),
        ("registry__name", "registry__contact", "registry__languages"),
    ),
    SetupPage(
        "import",
        gettext_lazy("Import"),
        gettext_lazy("Import your list: a spreadsheet, a CSV or JSON file, or the web address of one."),
    ),
    SetupPage(
        "brand",
        gettext_lazy("Brand"),
        gettext_lazy("Logo, colors and fonts. The preview shows both themes; links and buttons must be readable."),
        (
            *("logo_file", "mark_file", "brand__accent", "brand__accent_dark"),
            *("brand__typeface", "font_text_file", "font_headings_file"),
        ),
    ),
    SetupPage(
        "words",
        gettext_lazy("Words"),
        gettext_lazy("What a listing is called, which values forms suggest, and which sections listings have."),
        (
            *("words__company", "words__companies"),
            *("vocabulary__types", "vocabulary__industries", "vocabulary__kinds", "vocabulary__themes"),
            *("sections__token", "sections__proposals", "sections__cap_table"),
        ),
    ),
    SetupPage(
        "legal",
        gettext_lazy("Legal pages"),
        gettext_lazy("A page exists as soon as it has a text. The starting texts are not legal advice."),
        ("legal__imprint", "legal__privacy", "legal__terms"),
    ),
    SetupPage(
        "fields",
        gettext_lazy("Fields"),
        gettext_lazy("Fields that the built-in form doesn't have, such as a membership number."),
    ),
    SetupPage(
        "mail",
        gettext_lazy("Mail"),
        gettext_lazy("Sign-in codes, invitations and decisions are sent by mail."),
    ),
    SetupPage("done", gettext_lazy("Done"), ""),
)
_FIRST: Final = ("account", "name", "import", "done")
"""The steps that lead from one to the next."""
_STARTS: Final = tuple((f"legal__{page}", page) for page in legal_texts.PAGES)


class SetupEntry(NamedTuple):
    """A step in the list above the page."""

    title: Words
    address: str
    done: bool
    here: bool


@operator("GET", "HEAD")
def home(_: HttpRequest) -> HttpResponse:
    """Lead to the first step that was neither taken nor left out."""
    taken = steps_taken()
    open_steps = [name for name in _FIRST[1:] if name not in taken]
    following = open_steps[0] if open_steps else _FIRST[-1]
    return HttpResponseRedirect(f"{HOME}/{following}")


def _page_named(name: str) -> SetupPage:
    for page in PAGES[1:]:  # the account has a page of its own
        if page.name == name:
            return page
    raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))


@operator()
@once
def step(request: HttpRequest, name: str) -> HttpResponse:
    """Show a step, save it, or leave it out."""
    page = _page_named(name)
    do = request.POST.get("do", "")
    if do in {"skip", "next"}:
        mark_step(name, is_skipped=do == "skip")
        return _next(name)
    if page.fields:
        return _settings(request, page, do)
    if name == "import" and do == "upload":
        return _upload(request, page)
    if name == "mail" and do == "test":
        with problems_shown(request, Problem):
            send_test_message(actor_of(request))
            text = gettext("A test message to %(email)s is on its way.")
            messages.success(request, text % {"email": account_of(request).email})
        return HttpResponseRedirect(f"{HOME}/mail")
    if name == "done":
        mark_step("done")
    return _page(request, page, _facts(request, name))


def _settings(request: HttpRequest, page: SetupPage, do: str) -> HttpResponse:
    """Show a part of the settings; insert a preset or a text, preview, or apply it and continue."""
    latest = versions.latest_version()
    values = form_values(latest.settings)
    if not do:
        return _form(request, page, SettingsForm(initial=values, only=page.fields), latest.settings, latest.number)
    number = whole_number(request.POST.get("version", ""))
    if number is None:
        number = latest.number
    inserted = _inserted(do)
    if inserted is not None:
        entered = {name: request.POST[name] for name in page.fields if name in request.POST}
        form = SettingsForm(initial={**values, **entered, **inserted}, only=page.fields)
        messages.info(request, gettext("Nothing is saved yet. Change what you like, then save."))
        return _form(request, page, form, latest.settings, number)
    form = SettingsForm(request.POST, request.FILES, only=page.fields)
    try:
        proposed = proposed_settings(form, request, latest.settings)
        if proposed is None:
            return _form(request, page, form, latest.settings, number)
        if do == "preview":
            return _form(request, page, form, proposed, number, is_preview=True)
        versions.apply_settings(actor_of(request), proposed, expected_number=number)
    except InvalidSettings as refusal:
        show_faults(form, refusal)
    except Conflict as refusal:
        show_problem(request, refusal)
    else:
        mark_step(page.name)
        messages.success(request, gettext("Saved."))
        return _next(page.name)
    return _form(request, page, form, latest.settings, number)


def _upload(request: HttpRequest, page: SetupPage) -> HttpResponse:
    """Store what was decided about logos, and let the file be read: the pages of the import follow."""
    actor = actor_of(request)
    latest = versions.latest_version()
    fetches = "fetch_logos" in request.POST
    try:
        upload = uploads.begin_import(actor, **imports.sent_table(request))
    except Problem as refusal:
        facts = _facts(request, page.name) | {"fault": told(refusal), "fetches_logos": fetches}
        return _page(request, page, facts, status=422)
    if fetches != latest.settings.registry.fetch_logos:
        registry = replace(latest.settings.registry, fetch_logos=fetches)
        versions.apply_settings(actor, replace(latest.settings, registry=registry))
    mark_step(page.name)
    return HttpResponseRedirect(f"{imports.HOME}/{upload.pk}")


def _inserted(do: str) -> dict[str, object] | None:
    """Return the values that a button inserts into the form; None for other buttons."""
    kind, _, name = do.partition("-")
    if kind == "preset":
        preset = find_preset(name)
        return preset.values() if preset is not None else None
    if kind == "start" and name in legal_texts.PAGES:
        return {f"legal__{name}": legal_texts.starting_text(name)}
    return None


def _next(name: str) -> HttpResponse:
    """Lead to the next of the first steps; from a further step, to the end, which lists what is left."""
    following = _FIRST[-1]
    if name in _FIRST[:-1]:
        following = _FIRST[_FIRST.index(name) + 1]
    return HttpResponseRedirect(f"{HOME}/{following}")


def _form(
    request: HttpRequest,
    page: SetupPage,
    form: SettingsForm,
    shown: RegistrySettings,
    number: int,
    *,
    is_preview: bool = False,
) -> HttpResponse:
    context: dict[str, Any] = {
        **brand_context(shown, is_preview=is_preview),
        "form": form,
        "number": number,
        "presets": (),
        "starts": (),
        "legal_texts": [(link.label, getattr(shown.legal, link.address[1:])) for link in legal_links(shown)],
    }
    if page.name == "words":
        context["presets"] = PRESETS
    elif page.name == "legal":
        context["starts"] = _STARTS
    return _page(request, page, context)


def _facts(request: HttpRequest, name: str) -> JSONObject:
    """Return what a step without a form shows."""
    settings = config.current()
    if name == "mail":
        return {
            "server": masked(settings.mail_url),
            "sender": settings.mail_from,
            "folder": settings.data / "mail",
            "address": account_of(request).email,
            "lines": _MAIL_SETTINGS,
            "file": settings_path(settings),
        }
    if name in {"import", "done"}:
        latest = versions.latest_version().settings
        taken = steps_taken()
        filled = _filled(latest)
        left = []
        for step in PAGES[1:-1]:
            # A step that was skipped is true in what was taken; mail and import have their own place on the page.
            is_left = taken.get(step.name, True) and step.name not in filled
            if is_left and step.name not in {"mail", "import"}:
                left.append((step.title, f"{HOME}/{step.name}"))
        return {
            "listings": Company.objects.count(),
            "accept": imports.ACCEPT,
            "max_mb": min(imports.MAX_UPLOAD_MB, settings.import_max_mb),
            "fetches_logos": latest.registry.fetch_logos,
            "logos_fixed": settings.origins["fetch_logos"] != "default",
            "currency": settings.currency,
            "left": left,
            "legal": branding().legal,
            "has_server": bool(settings.mail_url),
            "base_url": settings.base_url,
            "is_local": "//127.0.0.1" in settings.base_url or "//localhost" in settings.base_url,
        }
    tables = versions.latest_version().settings.fields
    return {"declared": [table["label"] for table in tables], "fields_page": FIELDS}


def _filled(latest: RegistrySettings) -> set[str]:
    """Return the steps whose content exists, wherever it was entered."""
    registry = latest.registry
    facts = {
        "name": bool(registry.name or registry.contact or registry.licence),
        "brand": latest.brand != DEFAULT.brand,
        "words": any(getattr(latest, part) != getattr(DEFAULT, part) for part in ("words", "vocabulary", "sections")),
        "legal": latest.legal != DEFAULT.legal,
        "fields": bool(latest.fields),
        "mail": bool(config.current().mail_url),
        "import": Company.objects.exists(),
    }
    return {name for name, is_filled in facts.items() if is_filled}


def _page(request: HttpRequest, page: SetupPage, context: JSONObject, status: int = 0) -> HttpResponse:
    filled = _filled(versions.latest_version().settings)
    done = {"account", *filled}
    done.update(name for name, is_skipped in steps_taken().items() if not is_skipped)
    entries = []
    for step in PAGES:
        # The further steps are listed on their own pages alone.
        if step.name in _FIRST or page.name not in _FIRST:
            address = f"{HOME}/{step.name}" if step.name != "account" else ""
            entries.append(SetupEntry(step.title, address, step.name in done, step is page))
    shown = {
        "is_filled": page.name in filled,
        "steps": entries,
        "step": page.name,
        "step_title": page.title,
        "lead": page.lead,
        **context,
    }
    template = "settings" if page.fields else page.name
    return manage_page(request, f"setup/{template}.html", shown, status=status)
