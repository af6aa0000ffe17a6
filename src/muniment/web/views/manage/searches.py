"""The searches that an account has saved."""

from typing import Any, cast

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict, Problem
from muniment.languages.translated import told
from muniment.searches import saved_searches
from muniment.searches.models import SavedSearch
from muniment.web.context import address
from muniment.web.lists.search import LISTS, ListName, Search, chips_of, feed_address, joined, registry_list, title_of
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown

HOME = "/manage/searches"


class SearchForm(forms.Form):
    """The name of a search."""

    name = forms.CharField(
        max_length=saved_searches.MAX_NAME_CHARACTERS,
        label=gettext_lazy("Name"),
        help_text=gettext_lazy("Only you see this name."),
    )


@signed_in("GET", "HEAD")
def searches(request: HttpRequest) -> HttpResponse:
    """List the saved searches, each with its Atom feed."""
    mine = [_shown(request, each) for each in saved_searches.list_searches(actor_of(request))]
    return manage_page(request, "manage/searches.html", {"searches": mine, "maximum": saved_searches.MAX_SEARCHES})


@signed_in()
@once
def new(request: HttpRequest) -> HttpResponse:
    """Save the search of the address under a name."""
    search = _search(request.GET.get("list", ""), request.GET)
    form = SearchForm(form_data(request), initial={"name": title_of(search)[: saved_searches.MAX_NAME_CHARACTERS]})
    status = 0
    if request.method == "POST" and form.is_valid():
        try:
            saved = saved_searches.save_search(
                actor_of(request), search.of.name, _query(search), form.cleaned_data["name"]
            )
        except (BadRequest, Conflict) as problem:
            form.add_error(None, told(problem))
            status = problem.status
        else:
            messages.success(request, gettext("Saved as “%(name)s”.") % {"name": saved.name})
            return HttpResponseRedirect(HOME)
    context = {
        "form": form,
        "search": search,
        "chips": chips_of(search),
        "crumbs": [(gettext("Saved searches"), HOME), (gettext("Save search"), "")],
    }
    return manage_page(request, "manage/search.html", context, status=status)


@signed_in("POST")
@once
def rename(request: HttpRequest, number: int) -> HttpResponse:
    with problems_shown(request, BadRequest):
        renamed = saved_searches.rename_search(actor_of(request), number, request.POST.get("name", ""))
        messages.success(request, gettext("Renamed to “%(name)s”.") % {"name": renamed.name})
    return HttpResponseRedirect(HOME)


@signed_in("POST")
@once
def delete(request: HttpRequest, number: int) -> HttpResponse:
    """Delete a search; the notice links to where it can be saved again."""
    deleted = saved_searches.delete_search(actor_of(request), number)
    again = joined(f"{HOME}/new", [("list", deleted.list)])
    if deleted.query:
        again += f"&{deleted.query}"
    words = gettext("“%(name)s” deleted.") % {"name": deleted.name}
    messages.success(request, format_html('{} <a href="{}">{}</a>', words, again, gettext("Save it again")))
    return HttpResponseRedirect(HOME)


def _search(list_name: Any, query: QueryDict) -> Search:
    """Return the filters of an address, in the default order."""
    if list_name not in LISTS:
        raise BadRequest(gettext("There is no such list."), gettext("Save a search from its own page."))
    return Search.read(registry_list(list_name), query).filters


def _query(search: Search) -> str:
    return search.address().partition("?")[2]


def _shown(request: HttpRequest, row: SavedSearch) -> JSONObject:
    """Return a saved search for its row; one whose query is no longer valid is shown by its name alone."""
    of = registry_list(cast("ListName", row.list))
    shown: JSONObject = {"id": row.pk, "name": row.name, "saved_at": row.saved_at, "list": of.label}
    try:
        search = Search.read(of, QueryDict(row.query)).filters
    except Problem:
        return shown
    feed = feed_address(search)
    return {
        **shown,
        "address": search.address(),
        "feed": feed,
        "feed_url": address(request) + feed,
        "texts": [chip.text for chip in chips_of(search)],
    }
