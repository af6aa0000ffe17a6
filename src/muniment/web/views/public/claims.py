"""Claim a listing or a profile, suggest an edit: requests for the reviewers."""

from collections.abc import Callable

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import Company, Person, State
from muniment.registry.review import claims
from muniment.registry.verification import proofs
from muniment.web.forms import FormStep
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page

Crumbs = list[tuple[str, str]]


class ClaimForm(FormStep):
    """Evidence for a claim."""

    text = forms.CharField(
        label=gettext_lazy("How can we verify this?"),
        max_length=claims.MAX_TEXT,
        help_text=gettext_lazy(
            "For example, your email address at the organization's domain or a public page that names you."
        ),
        widget=forms.Textarea(attrs={"rows": 5}),
    )


class SuggestForm(FormStep):
    """The fields that visitors most often correct, and a comment."""

    names = ("name", "status", "type", "industry", "website", "symbol", "description")
    text = forms.CharField(
        label=gettext_lazy("Reason and other corrections"),
        required=False,
        max_length=claims.MAX_TEXT,
        help_text=gettext_lazy("Add a source to help the reviewer."),
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def clean(self) -> JSONObject:
        """Refuse a suggestion that says nothing."""
        found = super().clean() or {}
        if not self.errors and not self.to_wire() and not found.get("text", "").strip():
            self.add_error("text", gettext("Change at least one field, or describe the correction here."))
        return found


@signed_in()
@once
def claim_company(request: HttpRequest, slug: str) -> HttpResponse:
    company = _company(slug)
    form = ClaimForm(form_data(request))
    next_page = f"/companies/{slug}/domain" if proofs.current_claim(company) else "/manage"
    return _petition(
        request,
        form,
        lambda: claims.claim_company(actor_of(request), slug, form.cleaned_data["text"]),
        title=gettext("Claim %(name)s") % {"name": company.name},
        lead=gettext(
            "Claim the listing if you act for this organization. Owners can edit it. We'll email you after review."
        ),
        crumbs=[(gettext("Companies"), "/companies"), (company.name, f"/companies/{slug}")],
        here=gettext("Claim listing"),
        next_page=next_page,
    )


@signed_in()
@once
def suggest_edit(request: HttpRequest, slug: str) -> HttpResponse:
    company = _company(slug)
    standing = {field.name: getattr(company, field.column) for field in SuggestForm.schema_fields()}
    form = SuggestForm(form_data(request), initial=standing)
    return _petition(
        request,
        form,
        lambda: claims.suggest_edit(actor_of(request), slug, CompanyChange(form.to_wire()), form.cleaned_data["text"]),
        title=gettext("Suggest an edit to %(name)s") % {"name": company.name},
        lead=gettext("Correct the fields that are wrong and leave the others unchanged. We'll email you after review."),
        crumbs=[(gettext("Companies"), "/companies"), (company.name, f"/companies/{slug}")],
        here=gettext("Suggest edit"),
    )


@signed_in()
@once
def claim_person(request: HttpRequest, slug: str) -> HttpResponse:
    person = Person.objects.filter(slug=slug, published=True).first()
    if person is None:
        raise NotFound(gettext("This person doesn't exist."), gettext("Search all people."))
    form = ClaimForm(form_data(request))
    return _petition(
        request,
        form,
        lambda: claims.claim_person(actor_of(request), slug, form.cleaned_data["text"]),
        title=gettext("Claim the profile of %(name)s") % {"name": person.name},
        lead=gettext("Claim your profile to edit it. We'll email you after review."),
        crumbs=[(gettext("People"), "/people"), (person.name, f"/people/{slug}")],
        here=gettext("Claim this profile"),
    )


def _petition(
    request: HttpRequest,
    form: FormStep,
    submit: Callable[[], object],
    *,
    title: str,
    lead: str,
    crumbs: Crumbs,
    here: str,
    next_page: str = "/manage",
) -> HttpResponse:
    """Show the form; *submit* what is valid, and lead to *next_page*. In the breadcrumb, the page is *here*."""
    if request.method == "POST" and form.is_valid():
        try:
            submit()
        except BadFields as refusal:
            form.put(refusal.faults)
        else:
            messages.success(request, gettext("Submitted. We'll email you when a reviewer decides."))
            return HttpResponseRedirect(next_page)
    context = {"form": form, "petition_title": title, "petition_lead": lead, "crumbs": [*crumbs, (here, "")]}
    return manage_page(request, "manage/petition.html", {"room": "", **context, "back": crumbs[-1][1]})


def _company(slug: str) -> Company:
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first()
    if company is None:
        raise NotFound(gettext("This company doesn't exist."), gettext("Search all companies."))
    return company
