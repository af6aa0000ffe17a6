"""Frameworks for reviewers: create, describe, price, publish specifications with live validation, open, close."""

import json

from django import forms
from django.contrib import messages
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONError, JSONObject, read_json
from muniment.kernel.pagination import Page
from muniment.kernel.problems import NotFound
from muniment.kernel.wire import UNSET, Unset
from muniment.languages.translated import sentence, translated
from muniment.languages.writing import number
from muniment.registry.company.changes import BadFields
from muniment.registry.frameworks import authoring
from muniment.registry.frameworks.specification import faults_of
from muniment.registry.models import Framework, FrameworkSpecification
from muniment.schema.validation import Fault
from muniment.web.form_fields import DayInput, TextField
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager

MAX_CHARACTERS = 500_000
STARTER = {
    "schema": "assessment-spec/1",
    "version": 1,
    "scale": {"min": 0, "max": 4},
    "reports": "scores",
    "overall": {"method": "weighted_mean", "bands": [{"min": 80, "label": "A"}, {"min": 0, "label": "B"}]},
    "sections": [
        {
            "id": "governance",
            "title": "Governance",
            "weight": 1,
            "criteria": [
                {
                    "id": "governance.board",
                    "title": "An accountable board",
                    "weight": 1,
                    "requirement": "The organization names a board and publishes how it is elected.",
                }
            ],
        }
    ],
}


class FrameworkForm(forms.Form):
    """Name, summary and price of a framework."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=200)
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=50_000,
        help_text=gettext_lazy("Public. You can use Markdown. The specification stays private."),
        widget=forms.Textarea(attrs={"rows": 8}),
    )
    runCost = forms.IntegerField(  # noqa: N815 - the wire's name
        label=gettext_lazy("Price per run"),
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text=gettext_lazy("In credits. Leave empty to use the default price."),
    )


class ProgramForm(FrameworkForm):
    """A program has days on which it opens and closes, too."""

    opensOn = TextField(  # noqa: N815 - the wire's name
        label=gettext_lazy("Opens"),
        required=False,
        help_text=gettext_lazy("The first day on which companies can apply, if there is one."),
        widget=DayInput(),
    )
    closesOn = TextField(  # noqa: N815 - the wire's name
        label=gettext_lazy("Closes"),
        required=False,
        help_text=gettext_lazy("The last day. Runs stay possible until you close the program."),
        widget=DayInput(),
    )


class NewFrameworkForm(FrameworkForm):
    """Fields that are set only at creation."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Type"),
        choices=[
            ("score", gettext_lazy("Score: measures any company")),
            ("program", gettext_lazy("Program: run by a company, accepts applications")),
        ],
        widget=forms.RadioSelect,
        initial="score",
    )
    company = forms.CharField(
        label=gettext_lazy("Company"),
        required=False,
        max_length=200,
        help_text=gettext_lazy(
            "Only for a program, which needs one. The last part of the address of its page, such as harbour-guild."
        ),
    )
    frameworkId = forms.CharField(  # noqa: N815 - the wire's name
        label=gettext_lazy("Permanent address"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("The last part of the permanent address. Leave empty to derive it from the name."),
    )
    field_order = ("name", "kind", "company", "frameworkId", "description", "runCost")


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """List every framework, by name."""
    authored = Exists(FrameworkSpecification.objects.filter(framework=OuterRef("pk")))
    frameworks = Framework.objects.select_related("company").annotate(authored=authored).order_by("name", "pk")
    found = Page.of(frameworks, asked_page(request.GET), PAGE_SIZE)
    context = {"tab": "frameworks", "frameworks": found.items, "pager": pager(request, ("page",), found)}
    return manage_page(request, "review/frameworks.html", context)


@reviewer()
@once
def new(request: HttpRequest) -> HttpResponse:
    form = NewFrameworkForm(form_data(request))
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        actor = actor_of(request)
        try:
            made = authoring.create_framework(
                actor,
                name=data["name"],
                kind=data["kind"],
                description=data["description"],
                company=data["company"] or None,
                framework_id=data["frameworkId"],
            )
            if data["runCost"] is not None:
                authoring.update_framework(actor, made.slug, run_cost=data["runCost"])
        except BadFields as refusal:
            _put(form, refusal.faults)
        else:
            said = gettext("%(name)s created. It opens when you publish a specification.")
            messages.success(request, said % {"name": made.name})
            return HttpResponseRedirect(f"/review/frameworks/{made.slug}")
    crumbs = [(gettext("Frameworks"), "/review/frameworks"), (gettext("New"), "")]
    return manage_page(request, "review/framework_new.html", {"tab": "frameworks", "form": form, "crumbs": crumbs})


@reviewer()
@once
def framework(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Show a framework; change its name, summary and price; open and close it."""
    found = _found(framework_id)
    form = None
    if request.method == "POST":
        actor, what = actor_of(request), request.POST.get("do", "")
        if what in {"open", "close"}:
            authoring.update_framework(actor, framework_id, closed=what == "close")
            words = {"open": gettext("Framework opened."), "close": gettext("Framework closed.")}
            messages.success(request, words[what])
            return HttpResponseRedirect(f"/review/frameworks/{framework_id}")
        form = _form_of(found)(request.POST)
        if form.is_valid():
            data = form.cleaned_data
            opens_on: str | Unset | None = UNSET
            closes_on: str | Unset | None = UNSET
            if found.kind == Framework.Kind.PROGRAM:
                opens_on, closes_on = data["opensOn"] or None, data["closesOn"] or None
            try:
                authoring.update_framework(
                    actor,
                    framework_id,
                    name=data["name"],
                    description=data["description"],
                    run_cost=data["runCost"],
                    opens_on=opens_on,
                    closes_on=closes_on,
                )
            except BadFields as refusal:
                _put(form, refusal.faults)
            else:
                messages.success(request, gettext("Saved."))
                return HttpResponseRedirect(f"/review/frameworks/{framework_id}")
    return _page(request, found, form)


@reviewer("POST")
def validate(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Return the errors of a specification while it is typed."""
    _found(framework_id)
    _, faults = _read(request.POST.get("specification", ""))
    return render(request, "review/faults.html", {"faults": faults})


@reviewer("POST")
@once
def author(request: HttpRequest, framework_id: str) -> HttpResponse:
    """Publish the next version of a specification."""
    found = _found(framework_id)
    text = request.POST.get("specification", "")
    document, faults = _read(text)
    if not faults and document is not None:
        try:
            stored = authoring.author_framework(actor_of(request), framework_id, document)
        except BadFields as refusal:
            faults = [(fault.field, translated(fault.reason)) for fault in refusal.faults]
        else:
            messages.success(request, gettext("Version %(number)s published.") % {"number": stored.version})
            return HttpResponseRedirect(f"/review/frameworks/{framework_id}")
    return _page(request, found, None, text, faults)


def _page(
    request: HttpRequest,
    found: Framework,
    form: FrameworkForm | None,
    text: str | None = None,
    faults: list[tuple[str, str]] | None = None,
) -> HttpResponse:
    is_sent = text is not None
    standing = {
        "name": found.name,
        "description": found.description,
        "runCost": found.run_cost,
        "opensOn": found.opens_on and found.opens_on.isoformat(),
        "closesOn": found.closes_on and found.closes_on.isoformat(),
    }
    versions = list(found.specifications.select_related("author").order_by("-version")[:20])
    if text is None:
        document = versions[0].document if versions else STARTER
        text = json.dumps(document, indent=2, ensure_ascii=False)
    context = {
        "tab": "frameworks",
        "framework": found,
        "form": form or _form_of(found)(initial=standing),
        "versions": versions,
        "specification": text,
        "is_sent": is_sent,
        "faults": faults or [],
        "history": found.history.select_related("account").order_by("-at", "-pk")[:20],
        "crumbs": [(gettext("Frameworks"), "/review/frameworks"), (found.name, "")],
    }
    return manage_page(request, "review/framework.html", context, status=422 if faults else 0)


def _read(text: str) -> tuple[JSONObject | None, list[tuple[str, str]]]:
    if len(text) > MAX_CHARACTERS:
        return None, [("$", gettext("is too long: at most %(limit)s characters") % {"limit": number(MAX_CHARACTERS)})]
    try:
        document = read_json(text.encode("utf-8", "surrogatepass"))
    except JSONError:
        return None, [(_place_of_fault(text), gettext("is not valid JSON"))]
    faults = [(path, translated(reason)) for path, reason in faults_of(document)]
    if not isinstance(document, dict):
        return None, faults
    return document, faults


def _place_of_fault(text: str) -> str:
    """Return where *text* is not JSON, as far as Python's reader, which takes more, sees it too."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return gettext("line %(line)d, column %(column)d") % {"line": error.lineno, "column": error.colno}
    except (ValueError, RecursionError):
        return "$"
    return "$"


def _form_of(found: Framework) -> type[FrameworkForm]:
    return ProgramForm if found.kind == Framework.Kind.PROGRAM else FrameworkForm


def _put(form: forms.Form, faults: list[Fault]) -> None:
    for fault in faults:
        field = fault.field if fault.field in form.fields else None
        form.add_error(field, sentence(fault.reason))


def _found(framework_id: str) -> Framework:
    found = Framework.objects.filter(slug=framework_id).select_related("company").first()
    if found is None:
        raise NotFound(gettext("This framework doesn't exist."), gettext("All frameworks are at /review/frameworks."))
    return found
