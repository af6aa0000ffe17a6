"""Claim a listing or a profile, suggest an edit: requests for the reviewers."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.problems import NotFound
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.models import Company, Person, State
from muniment.registry.review import claims
from muniment.web.forms import FormStep
from muniment.web.requests.access import actor_of, kept_form, signed_in
from muniment.web.requests.once import fresh_token, once


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


def _petition(
    request: HttpRequest, form: FormStep, *, title: str, lead: str, crumbs: list[tuple[str, str]]
) -> HttpResponse:
    context = {"form": form, "petition_title": title, "petition_lead": lead, "crumbs": [*crumbs, (title, "")]}
    status = 422 if form.errors else 200
    return render(
        request, "manage/petition.html", {**context, "back": crumbs[-1][1], "once": fresh_token()}, status=status
    )


def _public(slug: str) -> Company:
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first()
    if company is None:
        raise NotFound(gettext("This company doesn't exist."), gettext("Search all companies."))
    return company


@signed_in()
@once
def claim_company(request: HttpRequest, slug: str) -> HttpResponse:
    company = _public(slug)
    form = ClaimForm(request.POST if request.method == "POST" else kept_form(request))
    if request.method == "POST" and form.is_valid():
        try:
            claims.claim_company(actor_of(request), slug, form.cleaned_data["text"])
        except BadFields as refusal:
            form.put(refusal.faults)
        else:
            return _thanks(request)
    return _petition(
        request,
        form,
        title=gettext("Claim listing"),
        lead=gettext("Owners can edit this listing. We'll email you after review."),
        crumbs=[(gettext("Companies"), "/companies"), (company.name, f"/companies/{slug}")],
    )


@signed_in()
@once
def suggest_edit(request: HttpRequest, slug: str) -> HttpResponse:
    company = _public(slug)
    standing = {field.name: getattr(company, field.column) for field in SuggestForm.schema_fields()}
    typed = request.POST if request.method == "POST" else kept_form(request)
    form = SuggestForm(typed, initial=standing) if typed is not None else SuggestForm(initial=standing)
    if request.method == "POST" and form.is_valid():
        try:
            change = CompanyChange(form.to_wire())
            claims.suggest_edit(actor_of(request), slug, change, form.cleaned_data["text"])
        except BadFields as refusal:
            form.put(refusal.faults)
        else:
            return _thanks(request)
    return _petition(
        request,
        form,
        title=gettext("Suggest edit"),
        lead=gettext("Correct the fields that are wrong and leave the others unchanged. We'll email you after review."),
        crumbs=[(gettext("Companies"), "/companies"), (company.name, f"/companies/{slug}")],
    )


@signed_in()
@once
def claim_person(request: HttpRequest, slug: str) -> HttpResponse:
    person = Person.objects.filter(slug=slug, published=True).first()
    if person is None:
        raise NotFound(gettext("This person doesn't exist."), gettext("Search all people."))
    form = ClaimForm(request.POST if request.method == "POST" else kept_form(request))
    if request.method == "POST" and form.is_valid():
        try:
            claims.claim_person(actor_of(request), slug, form.cleaned_data["text"])
        except BadFields as refusal:
            form.put(refusal.faults)
        else:
            return _thanks(request)
    return _petition(
        request,
        form,
        title=gettext("Claim this profile"),
        lead=gettext("Claim your profile to edit it. We'll email you after review."),
        crumbs=[(gettext("People"), "/people"), (person.name, f"/people/{slug}")],
    )


def _thanks(request: HttpRequest) -> HttpResponse:
    messages.success(request, gettext("Submitted. We'll email you when a reviewer decides."))
    return HttpResponseRedirect("/manage")
