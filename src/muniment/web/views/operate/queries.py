"""The operator's pages of saved queries: list, add, try, edit, delete, each change as a version of the settings."""

from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.html import format_html
from django.utils.text import slugify
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined
from muniment.kernel.problems import Conflict
from muniment.languages.translated import sentence, translated
from muniment.registry.settings import console_queries
from muniment.registry.settings.versions import fault_of_statement, latest_version
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.document import Query
from muniment.registry_toml.reading import MAX_QUERIES, MAX_STATEMENT, InvalidSettings
from muniment.store.tables.outcome import QUERY, SAVED
from muniment.store.tables.statements import parameters_in
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask, problems_shown
from muniment.web.requests.pagination import whole_number
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.public.queries import shown

HOME: Final = "/operate/queries"
_ORIGINS: Final[dict[str, Words]] = {
    console_queries.FILE: "registry.toml",
    console_queries.CONSOLE: gettext_lazy("This page"),
    console_queries.BUILT_IN: gettext_lazy("Built in"),
}
_CHARTS: Final = (
    ("", gettext_lazy("What suits the answer")),
    ("none", gettext_lazy("None")),
    ("bar", gettext_lazy("Bars")),
    ("line", gettext_lazy("Line")),
    ("scatter", gettext_lazy("Points")),
)


class QueryRow(NamedTuple):
    """
    A saved query in the list.

    Args:
        address: begins its pages here; empty where it is changed elsewhere.
        copy: the page that adds a query in place of a built-in one.
    """

    query: Query
    origin: Words
    page: str
    address: str
    copy: str
    is_hidden: bool


class QueryForm(forms.Form):
    """A saved query; the rules of ``registry.toml`` judge it."""

    use_required_attribute = False

    title = forms.CharField(
        label=gettext_lazy("Title"),
        error_messages={"required": gettext_lazy("The title is missing.")},
        widget=forms.TextInput({"maxlength": 100}),
    )
    text = forms.CharField(
        label=gettext_lazy("Description"),
        help_text=gettext_lazy("A sentence about the answer."),
        required=False,
        widget=forms.TextInput({"maxlength": 500}),
    )
    sql = forms.CharField(
        label=gettext_lazy("Statement"),
        help_text=gettext_lazy(
            "One SELECT in the SQL of SQLite, about the public tables, of at most 8,000 characters. It may take half"
            " a second of computing time and shows up to 1,000 rows. Write :name for a value that visitors enter."
        ),
        error_messages={"required": gettext_lazy("The statement is missing.")},
        widget=forms.Textarea(
            {
                "rows": 10,
                "maxlength": MAX_STATEMENT,
                "class": "mono",
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
                "dir": "ltr",
            }
        ),
    )
    chart = forms.ChoiceField(label=gettext_lazy("Chart"), choices=_CHARTS, required=False)
    slug = forms.CharField(
        label=gettext_lazy("Name in addresses"),
        help_text=gettext_lazy(
            "Lower-case letters, digits and hyphens. Left empty, it is made of the title. It can't be changed later."
        ),
        required=False,
        widget=forms.TextInput({"maxlength": 60, "autocapitalize": "none", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, slug: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        if slug:
            self.fields["slug"].disabled = True
            self.fields["slug"].help_text = gettext("It stays as it is, so that links to the query stay.")
            self.initial["slug"] = slug

    def clean(self) -> JSONObject:
        """Make the name in addresses of the title, where none is given."""
        super().clean()
        found = self.cleaned_data
        if "title" in found and not found.get("slug"):
            found["slug"] = slugify(found["title"])[:60].strip("-")
            if not found["slug"]:
                self.add_error("slug", gettext("Enter a name: the title has no letters to make one of."))
        return found

    def to_query(self) -> Query:
        return Query(**{name: str(value).strip() for name, value in self.cleaned_data.items()})


@operator("GET", "HEAD")
def queries(request: HttpRequest) -> HttpResponse:
    """List the saved queries, with where each is changed."""
    latest = latest_version()
    listed = console_queries.list_queries(latest)
    own = len(latest.settings.console_queries)
    is_full = own >= MAX_QUERIES
    context = {
        "number": latest.number,
        "rows": [_row(query, is_full=is_full) for query in listed],
        "own": own,
        "most": MAX_QUERIES,
        "is_full": is_full,
    }
    return operate_page(request, "queries", "operate/queries.html", context)


def _row(listed: console_queries.ListedQuery, *, is_full: bool) -> QueryRow:
    slug = listed.query.slug
    address = f"{HOME}/{slug}/" if listed.origin == console_queries.CONSOLE else ""
    can_be_replaced = listed.origin == console_queries.BUILT_IN and not listed.is_hidden and not is_full
    copy = f"{HOME}/new?copy={slug}" if can_be_replaced else ""
    return QueryRow(shown(listed.query), _ORIGINS[listed.origin], f"{SAVED}{slug}", address, copy, listed.is_hidden)


@operator()
@once
def add(request: HttpRequest) -> HttpResponse:
    """Add a query; the query page leads here with a statement, and the list with a built-in query to replace."""
    latest = latest_version()
    copied = request.GET.get("copy")
    for listed in console_queries.list_queries(latest):
        if listed.origin == console_queries.BUILT_IN and listed.query.slug == copied:
            return _form_page(request, latest, initial=msgspec.structs.asdict(shown(listed.query)))
    return _form_page(request, latest, initial={"sql": request.GET.get("sql", "")[:MAX_STATEMENT]})


@operator()
@once
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a query of the console."""
    latest = latest_version()
    found = console_queries.get_query(latest, slug)
    return _form_page(request, latest, slug=slug, initial=msgspec.structs.asdict(found))


@operator()
@once
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """Delete a query of the console, after a question that says what ends with it."""
    latest = latest_version()
    found = console_queries.get_query(latest, slug)
    if request.method == "POST":
        with problems_shown(request):
            console_queries.delete_query(actor_of(request), slug)
            messages.success(request, gettext("The query was deleted."))
        return HttpResponseRedirect(HOME)
    question = Question(
        gettext("Delete the saved query “%(title)s”?") % {"title": found.title},
        [
            gettext("Its page, its feed and its frames on other websites end."),
            gettext("The versions of the registry settings keep it, so that it can be restored."),
        ],
        gettext("Delete saved query"),
    )
    crumbs = [(gettext("Saved queries"), HOME), (found.title, f"{HOME}/{slug}/edit"), (str(question.button), "")]
    return ask(request, question, back=HOME, crumbs=crumbs)


# ---------------------------------------------------------------------- the form


def _form_page(request: HttpRequest, latest: Applied, *, initial: JSONObject, slug: str = "") -> HttpResponse:
    if request.method != "POST":
        return _page(request, QueryForm(initial=initial, slug=slug), slug, latest.number)
    number = whole_number(request.POST.get("version", ""))
    if number is None:
        number = latest.number
    form = QueryForm(request.POST, initial=initial, slug=slug)
    if not form.is_valid() or not _can_be_asked(form, latest):
        return _page(request, form, slug, number)
    if request.POST.get("do") == "try":
        return _page(request, form, slug, number, tried=form.cleaned_data["sql"])
    query = form.to_query()
    try:
        with problems_shown(request, Conflict):
            console_queries.save_query(actor_of(request), query, slug=slug, expected_number=number)
            messages.success(request, gettext("The query was saved."))
            return HttpResponseRedirect(HOME)
    except InvalidSettings as refusal:
        _show_faults(form, refusal)
    return _page(request, form, slug, number)


def _can_be_asked(form: QueryForm, latest: Applied) -> bool:
    """Return whether the statement fits the tables; show why if it does not."""
    refused = fault_of_statement(form.cleaned_data["sql"], latest.settings)
    if refused is None:
        return True
    # What SQLite says of a statement is English, as the statement is.
    form.add_error("sql", format_html('<span lang="en">{} {}</span>', refused.message, refused.hint))
    return False


def _show_faults(form: QueryForm, refusal: InvalidSettings) -> None:
    for member, fault in refusal.faults.items():
        # A fault begins with its place in the settings, which says nothing to those who see a form.
        text = sentence(fault.parts[1]) if isinstance(fault, Joined) else translated(fault)
        field = member if member in form.fields else None
        form.add_error(field, text)


def _page(request: HttpRequest, form: QueryForm, slug: str, number: int, *, tried: str | None = None) -> HttpResponse:
    title = gettext("Edit saved query") if slug else gettext("Add saved query")
    answer_address = ""
    if tried is not None:
        answer_address = f"{QUERY}?{urlencode({'sql': tried})}"
    context = {
        "form": form,
        "title": title,
        "slug": slug,
        "number": number,
        "answer_address": answer_address,
        "parameters": parameters_in(tried or ""),
        "crumbs": [(gettext("Saved queries"), HOME), (title, "")],
    }
    return operate_page(request, "queries", "operate/query.html", context, status=422 if form.errors else 200)
