"""People for reviewers: find, correct, unlist, merge and erase."""

from collections.abc import Iterable
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.languages.translated import stated
from muniment.registry.company.changes import BadFields
from muniment.registry.models import Company, Position
from muniment.registry.people import erasing, moderation, positions
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager
from muniment.web.views.manage.profile import ProfileForm


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """List people by name; search by name or slug."""
    query = request.GET.get("q", "").strip()[:200]
    found = moderation.list_people(actor_of(request), query, page=asked_page(request.GET), page_size=PAGE_SIZE)
    organizations = moderation.organizations_of(found.items)
    context = {
        "tab": "people",
        "people": [(each, *organizations[each.pk]) for each in found.items],
        "found": found,
        "query": query,
        "pager": pager(request, ("q", "page"), found),
    }
    return manage_page(request, "review/people.html", context)


@reviewer()
@once
def person(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a person to a reviewer, and correct the profile."""
    found = erasing.find_person(slug)
    initial = {"name": found.name, "bio": found.bio}
    form = ProfileForm(request.POST, initial=initial) if request.method == "POST" else ProfileForm(initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            moderation.correct_person(actor_of(request), slug, form.to_change())
        except BadFields as refusal:
            for fault in refusal.faults:
                field = fault.field if fault.field in form.fields else None
                form.add_error(field, stated(fault.reason))
        else:
            messages.success(request, gettext("Profile corrected."))
            return HttpResponseRedirect(_address(slug))
    positions = Position.objects.filter(person=found).select_related("company").order_by("company__name", "rank")
    context: JSONObject = {
        **_frame(found.name),
        "person": found,
        "form": form,
        "positions": positions,
        "history": moderation.person_history(actor_of(request), slug),
    }
    return manage_page(request, "review/person.html", context)


@reviewer("POST")
@once
def link_position(request: HttpRequest, slug: str) -> HttpResponse:
    """Link a name on a listing: to the person who was asked, to another person, or to a new public person."""
    post = request.POST
    with problems_shown(request, Conflict, NotFound):
        linked = positions.link_position(actor_of(request), slug, post.get("item", ""), post.get("person", "").strip())
        messages.success(request, gettext("Linked to %(name)s.") % {"name": linked.name})
    return HttpResponseRedirect(f"/review/companies/{quote(slug, safe='')}#names")


@reviewer("POST")
@once
def unlist(request: HttpRequest, slug: str) -> HttpResponse:
    """Unlist a profile, or publish it again."""
    actor, note = actor_of(request), request.POST.get("note", "")
    with problems_shown(request, BadRequest, Conflict):
        if request.POST.get("do") == "relist":
            moderation.relist_person(actor, slug, note)
            messages.success(request, gettext("Profile published again."))
        else:
            moderation.unlist_person(actor, slug, note)
            messages.success(request, gettext("Profile unlisted. It is no longer public."))
    return HttpResponseRedirect(_address(slug))


@reviewer("POST")
@once
def merge(request: HttpRequest, slug: str) -> HttpResponse:
    """Merge a person into another."""
    with problems_shown(request, BadRequest, Conflict, NotFound):
        kept = moderation.merge_people(actor_of(request), slug, request.POST.get("into", "").strip())
        messages.success(request, gettext("Merged. This person has the positions and the history of both."))
        return HttpResponseRedirect(_address(kept.slug))
    return HttpResponseRedirect(_address(slug))


@reviewer()
@once
def erase(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what erasing a person removes and leaves, and erase them once the slug is typed."""
    found = erasing.find_person(slug)
    name, fault = found.name, ""
    if request.method == "POST":
        if request.POST.get("confirm", "").strip() == slug:
            erased = erasing.erase_person(actor_of(request), slug)
            context: JSONObject = {**_frame(gettext("Erased")), "erased": erased, "name": name}
            return manage_page(request, "review/erased.html", context)
        fault = gettext("Type the slug exactly as shown.")
    dry = erasing.erase_person(actor_of(request), slug, dry_run=True)
    context = {**_frame(name), "person": found, "erased": dry, "companies": _named(dry.companies), "fault": fault}
    return manage_page(request, "review/erase.html", context, status=422 if fault else 200)


def _named(slugs: Iterable[str]) -> list[tuple[str, str]]:
    """Return the slugs of companies with their names."""
    names = dict(Company.objects.filter(slug__in=slugs).values_list("slug", "name"))
    return [(slug, names.get(slug, slug)) for slug in slugs]


def _address(slug: str) -> str:
    return f"/review/people/{slug}"


def _frame(name: str) -> JSONObject:
    return {"tab": "people", "crumbs": [(gettext("People"), "/review/people"), (name, "")]}
