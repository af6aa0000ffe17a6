"""The form of a listing: create it, edit it in short steps, choose people, submit it."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.actor import Actor
from muniment.kernel.ids import slug_from_name
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company import listings
from muniment.registry.company.access import owned
from muniment.registry.company.changes import BadFields, CompanyChange, read_change
from muniment.registry.company.listings import OwnedCompany, compare
from muniment.registry.review import workflow
from muniment.registry.review.duplicates import likely_duplicates
from muniment.store.queries import ListQuery
from muniment.web import form_pages
from muniment.web.authoring.checks import missing_of
from muniment.web.forms import About, Basics, FormStep, Links
from muniment.web.presenters import differences
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import forget_form, form_data, keep_form, tell
from muniment.web.requests.once import once
from muniment.web.requests.page_cache import reader
from muniment.web.requests.pages import Words, manage_page
from muniment.web.requests.pagination import pager
from muniment.web.views.manage.companies import asked_version, frame, say, version_of

STEPS: Final[dict[str, type[FormStep]]] = {"basics": Basics, "about": About, "links": Links}
TITLES: Final = {
    "basics": gettext_lazy("Basics"),
    "about": gettext_lazy("About"),
    "links": gettext_lazy("Links"),
    "team": gettext_lazy("Team and addresses"),
    "token": gettext_lazy("Token, governance and funding"),
    "review": gettext_lazy("Check and submit"),
}
ORDER: Final = tuple(TITLES)
PEOPLE_SUGGESTED: Final = 6
MIN_NAME_CHARACTERS: Final = 2
MAX_NAME_CHARACTERS: Final = 100
_decode: Any = msgspec.json.decode


@signed_in()
@once
def new(request: HttpRequest) -> HttpResponse:
    """Create a draft: the first step. Warn about likely duplicates."""
    actor = actor_of(request)
    if request.method != "POST":
        # Told before the form is filled in. A form that is sent beyond the limit is kept on the page of the refusal.
        listings.refuse_draft_beyond_limit(actor)
    typed = form_data(request)
    form = Basics(typed)
    slug = ""
    if typed is not None:
        slug = str(typed.get("slug", "")).strip()
    duplicates: list[Any] = []
    if request.method == "POST" and form.is_valid():
        draft, duplicates = _created(request, actor, form, slug)
        if draft is not None:
            messages.success(request, gettext("%(name)s saved as a draft.") % {"name": draft.name})
            forget_form(request, request.path, author=str(request.user.pk))
            return HttpResponseRedirect(f"/manage/companies/{draft.slug}/edit/about?new=1")
    elif request.method == "POST":
        _refuse_more(form)
    context = {
        "form": form,
        "slug": slug,
        "suggested": slug_from_name(str(form["name"].value() or "")[:200]),
        "slug_faults": [error for error in form.non_field_errors() if str(error).startswith("slug")],
        "duplicates": duplicates,
        "steps": steps_of("basics", ""),
    }
    if request.method == "POST":
        return _kept(request, manage_page(request, "manage/new.html", context, status=422))
    return manage_page(request, "manage/new.html", context, status=200)


def _created(
    request: HttpRequest, actor: Actor, form: FormStep, slug: str
) -> tuple[listings.OwnedCompany | None, list[Any]]:
    """Create the draft; None with listings that may be the same one, or with faults in the form."""
    change = CompanyChange(form.to_wire())
    duplicates: list[Any] = []
    try:
        duplicates = _duplicates_of(actor, change)
        if not duplicates or request.POST.get("different") == "yes":
            return listings.create_company(actor, change, slug=slug), duplicates
    except BadFields as refusal:
        form.put(refusal.faults)
    return None, duplicates


def _kept(request: HttpRequest, page: HttpResponse) -> HttpResponse:
    """Keep a form that was refused: an owner who leaves the page and comes back finds what they typed."""
    keep_form(request, request.path, author=str(request.user.pk))
    return tell(page)


def _duplicates_of(actor: Actor, change: CompanyChange) -> list[Any]:
    """Return listings that may be the one that the change creates; raise BadFields if its values are invalid."""
    # Values are read before the search: a text that is too long makes the search fail in the database.
    edit = read_change(change, settings.SCHEMA, is_new=True)
    return likely_duplicates(actor, edit.get("name") or "", edit.get("website") or "", edit.get("symbol") or "")


def _refuse_more(form: FormStep) -> None:
    """Show what the rules say of the values that an invalid form accepts, so that all is mended at once."""
    try:
        read_change(form.to_wire(), settings.SCHEMA, is_new=True)
    except BadFields as refusal:
        form.put(fault for fault in refusal.faults if fault.field not in form.errors)


@signed_in("GET", "HEAD")
def suggest_slug(request: HttpRequest) -> HttpResponse:
    """Return the suggested slug and likely duplicates while the name is typed."""
    name = request.GET.get("name", "")[:200]
    website, symbol = request.GET.get("website", "")[:500], request.GET.get("symbol", "")[:32]
    duplicates = likely_duplicates(actor_of(request), name, website, symbol)
    context = {"suggested": slug_from_name(name), "duplicates": duplicates}
    return render(request, "manage/suggested.html", context)


@signed_in()
@once
def edit(request: HttpRequest, slug: str, step: str) -> HttpResponse:
    """Edit one page of a listing; for a new listing, continue with the next step."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    page = page_of(actor, mine, step, request.GET)
    stale: list[differences.DiffLine] = []
    typed = form_data(request)
    version: int | None = mine.version
    if typed is not None:
        version = version_of(typed)
        page.read(typed)
    if request.method == "POST" and page.is_valid():
        try:
            update = _save(actor, slug, page, version)
        except BadFields as refusal:
            page.put(refusal.faults)
        except Conflict:
            # The form is read again beside the values that were saved meanwhile, and saved over them if the owner
            # sends it once more after seeing what differs.
            mine = listings.get_company(actor, slug)
            page = page_of(actor, mine, step, request.GET)
            page.read(request.POST)
            stale = _stale(actor, slug, page)
            if stale:
                version = mine.version
        else:
            forget_form(request, request.path, author=str(request.user.pk))
            return HttpResponseRedirect(_after(request, slug, step, page, update))
    elif request.method == "POST":
        _refuse_the_rest(actor, slug, page)
    if page.form is not None:
        page.form.note_pending(_pending_notes(actor, mine))
    shown = _edit_page(request, mine, step, page, version, stale)
    # A form that is stale is not kept: its page offers to discard the changes by loading it again.
    if request.method == "POST" and not stale:
        return _kept(request, shown)
    return shown


def _save(actor: Actor, slug: str, page: form_pages.FormPage, version: int | None) -> listings.CompanyUpdate | None:
    """Save what was changed on a page; None if nothing was."""
    change = CompanyChange(page.to_wire())
    if not change:
        return None
    totals = page.totals(change)
    return listings.update_company(actor, slug, change, expected_version=version, expected_totals=totals)


def _edit_page(  # noqa: PLR0917 - what is edited, and how far
    request: HttpRequest,
    mine: OwnedCompany,
    step: str,
    page: form_pages.FormPage,
    version: int | None,
    stale: list[differences.DiffLine],
) -> HttpResponse:
    """Show one page of a listing; *stale* are the differences from what another owner has saved meanwhile."""
    if version is None:
        version = mine.version
    is_new = "new" in request.GET
    lists = []
    for editor in page.editors:
        lists.append((editor, pager(request, page.parameters, editor.found, name=editor.page_parameter)))
    next_title: Words = ""
    if step != ORDER[-2]:
        next_title = TITLES[ORDER[ORDER.index(step) + 1]]
    context = {
        **frame(mine, "edit"),
        "step": step,
        "preview_address": f"/manage/companies/{quote(mine.slug, safe='')}/preview",
        "step_title": TITLES[step],
        "next_title": next_title,
        "page": page,
        "lists": lists,
        "version": version,
        "stale": stale,
        "is_new": is_new,
        "steps": steps_of(step, mine.slug, new=is_new),
    }
    status = 200
    if stale:
        status = 409
    elif page.has_faults:
        status = 422
    return manage_page(request, "manage/edit.html", context, status=status)


@signed_in("POST")
@once
def submit(request: HttpRequest, slug: str) -> HttpResponse:
    mine = listings.get_company(actor_of(request), slug)
    missing = missing_of(mine.bundle["company"])
    if missing:
        raise BadRequest(
            gettext("The listing is incomplete. Missing: %(fields)s.") % {"fields": ", ".join(missing)},
            gettext("Complete these fields, then submit."),
        )
    workflow.submit_company(actor_of(request), slug, expected_version=asked_version(request))
    messages.success(request, gettext("Submitted. We'll email you when a reviewer decides."))
    return HttpResponseRedirect(f"/manage/companies/{slug}")


def _refuse_the_rest(actor: Actor, slug: str, page: form_pages.FormPage) -> None:
    """Show what the rules say of the values that the form itself accepts, so that all is mended at once."""
    change = CompanyChange(page.to_wire())
    if not change:
        return
    try:
        listings.update_company(actor, slug, change, dry_run=True, expected_totals=page.totals(change))
    except BadFields as refusal:
        page.put(refusal.faults)
    except Conflict:
        return


def _pending_notes(actor: Actor, mine: OwnedCompany) -> dict[str, str]:
    """Return by field what waits for a reviewer: owners see their new value in the form, reviewers the current one."""
    facts, notes = mine.bundle["company"], {}
    for name, value in mine.pending_changes.items():
        if actor.is_reviewer:
            notes[name] = gettext("Requested: %(value)s. Pending review.") % {"value": value or gettext("empty")}
        else:
            current = facts.get(name) or gettext("empty")
            notes[name] = gettext("Pending review. Until then the public page shows: %(value)s") % {"value": current}
    return notes


def steps_of(current: str, slug: str, *, new: bool = True) -> list[JSONObject]:
    """Return the steps of the form, with addresses once the listing has a slug; only a new one ends with a check."""
    place = ORDER.index(current)
    order, mark = ORDER[:-1], ""
    if new:
        order, mark = ORDER, "?new=1"
    steps = []
    for number, step in enumerate(order):
        address = step_address(slug, step, mark) if slug else ""
        is_done = new and number < place
        steps.append({"title": TITLES[step], "here": step == current, "done": is_done, "address": address})
    return steps


def step_address(slug: str, step: str, mark: str) -> str:
    if step == "review":
        return f"/manage/companies/{slug}/check"
    return f"/manage/companies/{slug}/edit/{step}{mark}"


def _after(
    request: HttpRequest, slug: str, step: str, page: form_pages.FormPage, update: listings.CompanyUpdate | None
) -> str:
    """Add a message about what was saved, and return the next address: of a button, a next step, or this page."""
    page_of_list = request.POST.get("go")  # of one of the lists, by one of its buttons
    is_new = "new" in request.GET
    is_continued = is_new or "then" in request.POST
    here = request.GET if page_of_list is None else QueryDict(page_of_list.partition("?")[2])
    query, anchor = page.next_query(here, shows_added=page_of_list is None and not is_continued)
    is_whole_page = page_of_list is None and not anchor
    # To turn the page of a list saves what was typed; without a change, no message says that there was none.
    if update or is_whole_page:
        say(request, update)
    # The last step of the form leads on to the check of a new listing only.
    has_next = is_new or step != ORDER[-2]
    if is_whole_page and is_continued and has_next:
        mark = "?new=1" if is_new else ""
        return step_address(slug, ORDER[ORDER.index(step) + 1], mark)
    return _with_rows(step_address(slug, step, ""), query, anchor)


def _with_rows(address: str, query: Mapping[str, str], anchor: str) -> str:
    """Return the address of a page of the form that shows the rows of *query*, at *anchor*."""
    if query:
        address += f"?{urlencode(query)}"
    if anchor:
        address += f"#{anchor}"
    return address


def page_of(actor: Actor, mine: OwnedCompany, step: str, query: Mapping[str, str]) -> form_pages.FormPage:
    """Return a page of the form; with pending values, since one with the published values would withdraw them."""
    pending = {} if actor.is_reviewer else mine.pending_changes
    facts = {**mine.bundle["company"], **pending}
    return form_pages.page_of(step, STEPS.get(step), {**mine.bundle, "company": facts}, query)


def _stale(actor: Actor, slug: str, page: form_pages.FormPage) -> list[differences.DiffLine]:
    """Return the differences between the submitted values and those saved in the meantime; none if one is invalid."""
    if not page.is_valid():
        return []
    try:
        difference = compare(owned(actor, slug), read_change(page.to_wire(), settings.SCHEMA))
    except BadFields as refusal:
        page.put(refusal.faults)
        return []
    return differences.lines_of(difference.to_wire()) or [differences.line(gettext("No differences left"), "", "")]


@signed_in("GET", "HEAD")
def suggest_people(request: HttpRequest) -> HttpResponse:
    """Return the options of the people picker, as items of a list box."""
    text = " ".join(request.GET.get("q", "")[:MAX_NAME_CHARACTERS].split())
    source = reader()
    source.refresh()
    options = []
    if len(text) >= MIN_NAME_CHARACTERS or text > "\u02ff":  # one letter of a script without spaces is a word
        matches = source.people(ListQuery(q=text, page_size=PEOPLE_SUGGESTED)).items
        keys = [("person", _decode(item)["slug"]) for item in matches]
        documents = source.documents(keys)
        for key in keys:
            if key in documents:
                person = _decode(documents[key].body)["data"]
                option = {"slug": person["slug"], "name": person["name"], "picture": person.get("picture")}
                options.append({**option, "place": _position_of(person)})
    return render(request, "manage/people_options.html", {"options": options})


def _position_of(person: Any) -> str:
    """Return the first position of a person: title and organization."""
    for position in person.get("positions") or ():
        company = position.get("company")
        if company:
            return ", ".join(filter(None, (position.get("title"), company["name"])))
    return ""
