"""Around a listing: its logo, its owners, the profile of its owner, and what visitors ask of the reviewers."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render

from muniment.kernel.problems import BadRequest, Conflict, NotFound, TooMany
from muniment.registry.company import operations, pictures
from muniment.registry.company.company_change import BadFields, CompanyChange
from muniment.registry.models import Company, Person, Petition, State
from muniment.registry.people import profiles
from muniment.registry.people.profiles import LIMITS, ProfileChange
from muniment.registry.review import claims, invitations
from muniment.web.context import address
from muniment.web.forms import About, Basics, Step
from muniment.web.requests.access import account_of, actor_of, fresh_token, kept_form, once, signed_in
from muniment.web.requests.static_files import FOR_EVER
from muniment.web.views.manage import frame


@signed_in()
@once
def logo(request: HttpRequest, slug: str) -> HttpResponse:
    """Change the logo of a listing."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    fault = ""
    if request.method == "POST":
        try:
            path = "" if request.POST.get("do") == "remove" else pictures.store_picture(_file(request))
            operations.set_icon(actor, slug, f"{address(request)}{path}" if path else "")
        except BadRequest as refusal:
            fault = f"{refusal.message} {refusal.hint}"
        else:
            messages.success(request, "The logo is changed." if path else "The logo is removed.")
            return HttpResponseRedirect(f"/manage/companies/{slug}/logo")
    return render(
        request,
        "manage/logo.html",
        {**frame(mine, "logo"), "fault": fault, "once": fresh_token()},
        status=422 if fault else 200,
    )


def picture(request: HttpRequest, digest: str, size: str) -> HttpResponse:
    """Serve a picture that we drew; its address names its content, so it may be kept for ever."""
    if request.headers.get("If-None-Match") == f'"{digest}-{size}"':
        return HttpResponse(status=304, headers={"ETag": f'"{digest}-{size}"', "Cache-Control": FOR_EVER})
    body = pictures.picture_bytes(digest, int(size))
    if body is None:
        raise Http404("There is no such picture.")
    headers = {"ETag": f'"{digest}-{size}"', "Cache-Control": FOR_EVER, "Content-Security-Policy": "sandbox"}
    return HttpResponse(body, content_type="image/webp", headers=headers)


def _file(request: HttpRequest) -> bytes:
    """
    Read the picture that was sent.

    Raises:
        BadRequest: none was sent, or it is too large to be read at all.
    """
    sent = request.FILES.get("picture")
    if sent is None or isinstance(sent, list):
        raise BadRequest("No picture was sent.", "Choose a file first.")
    if (sent.size or 0) > pictures.MAX_BYTES:
        raise BadRequest(
            f"The picture has {(sent.size or 0) / (1 << 20):.1f} MB.",
            "Send a PNG, JPEG or WebP of at most 2 MB and 16 megapixels.",
        )
    content: bytes = sent.read()
    return content


@signed_in("POST")
@once
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    """Invite another owner by mail."""
    email = request.POST.get("email", "")
    try:
        invitations.invite_owner(actor_of(request), slug, email, base_url=address(request))
        messages.success(request, f"An invitation is on its way to {email}.")
    except (BadFields, Conflict, TooMany) as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint}")
    return HttpResponseRedirect(f"/manage/companies/{slug}")


@signed_in()
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation, and accept it."""
    if request.method == "POST":
        company = invitations.accept_invitation(actor_of(request), token)
        messages.success(request, f"You own the listing of {company.name} now.")
        return HttpResponseRedirect(f"/manage/companies/{company.slug}")
    return render(
        request, "manage/invitation.html", {"room": "manage", "invitation": invitations.find_invitation(token)}
    )


@signed_in("POST")
@once
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    """Stop owning a listing."""
    operations.leave_company(actor_of(request), slug)
    messages.success(request, "You no longer own it. Its history stays.")
    return HttpResponseRedirect("/manage")


class ProfileForm(forms.Form):
    """Name and words of a profile."""

    name = forms.CharField(label="Name", max_length=LIMITS["name"], strip=True)
    bio = forms.CharField(
        label="About you",
        required=False,
        max_length=LIMITS["bio"],
        help_text="Markdown.",
        widget=forms.Textarea(attrs={"rows": 8}),
    )


@signed_in()
@once
def profile(request: HttpRequest) -> HttpResponse:
    """Show and change my profile, or make one."""
    actor = actor_of(request)
    person = profiles.get_profile(actor)
    kept = kept_form(request)
    standing = {"name": person.name, "bio": person.bio} if person else {}
    typed = request.POST if request.method == "POST" else kept
    form = ProfileForm(typed, initial=standing) if typed is not None else ProfileForm(initial=standing)
    if request.method == "POST" and form.is_valid():
        change = ProfileChange(name=form.cleaned_data["name"], bio=form.cleaned_data["bio"] or None)
        try:
            if person is None:
                profiles.create_profile(actor, change)
            else:
                profiles.update_profile(actor, change)
        except BadFields as refusal:
            for fault in refusal.faults:
                form.add_error(fault.field if fault.field in form.fields else None, f"{fault.reason}.")
        else:
            messages.success(request, "Saved.")
            return HttpResponseRedirect("/manage/profile")
    return _profile(request, form, person)


@signed_in("POST")
@once
def portrait(request: HttpRequest) -> HttpResponse:
    """Change the picture of my profile."""
    actor = actor_of(request)
    try:
        path = "" if request.POST.get("do") == "remove" else pictures.store_picture(_file(request))
        pictures.set_portrait(actor, f"{address(request)}{path}" if path else "")
    except BadRequest as refusal:
        person = profiles.get_profile(actor)
        standing = {"name": person.name, "bio": person.bio} if person else {}
        return _profile(request, ProfileForm(initial=standing), person, f"{refusal.message} {refusal.hint}")
    messages.success(request, "The picture is changed.")
    return HttpResponseRedirect("/manage/profile")


def _profile(request: HttpRequest, form: ProfileForm, person: Person | None, fault: str = "") -> HttpResponse:
    waits = Petition.objects.filter(account=account_of(request), kind="profile", decision="").exists()
    context: dict[str, Any] = {"form": form, "person": person, "fault": fault, "petition": waits, "once": fresh_token()}
    status = 422 if fault or form.errors else 200
    return render(request, "manage/profile.html", {"room": "manage", **context}, status=status)


class ClaimForm(Step):
    """Why it is theirs."""

    text = forms.CharField(
        label="How can a reviewer tell?",
        max_length=claims.MAX_TEXT,
        help_text="For example: an address at the organisation's domain, or a public page that names you.",
        widget=forms.Textarea(attrs={"rows": 5}),
    )


class SuggestForm(Step):
    """The fields that visitors most often know better, and words."""

    name = Basics.base_fields["name"]
    status = Basics.base_fields["status"]
    type = Basics.base_fields["type"]
    industry = Basics.base_fields["industry"]
    website = Basics.base_fields["website"]
    symbol = Basics.base_fields["symbol"]
    description = About.base_fields["description"]
    text = forms.CharField(
        label="Why, or what else is wrong",
        required=False,
        max_length=claims.MAX_TEXT,
        help_text="A source helps the reviewer.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def to_wire(self) -> dict[str, Any]:
        """Give the fields without the words beside them."""
        return {key: value or None for key, value in self.cleaned_data.items() if key != "text"}


def _petition(
    request: HttpRequest, form: Step, *, title: str, lead: str, crumbs: list[tuple[str, str]]
) -> HttpResponse:
    context = {"form": form, "petition_title": title, "petition_lead": lead, "crumbs": [*crumbs, (title, "")]}
    status = 422 if form.errors else 200
    return render(
        request, "manage/petition.html", {**context, "back": crumbs[-1][1], "once": fresh_token()}, status=status
    )


def _public(slug: str) -> Company:
    company = Company.objects.filter(slug=slug, state=State.PUBLISHED).first()
    if company is None:
        raise NotFound("There is no such listing.", "Search among all companies.")
    return company


@signed_in()
@once
def claim_company(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask to own a listing."""
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
        title="Claim this listing",
        lead="As its owner you keep it current. A reviewer checks that it is yours, and you are mailed.",
        crumbs=[("Companies", "/companies"), (company.name, f"/companies/{slug}")],
    )


@signed_in()
@once
def suggest_edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Suggest an edit of a listing."""
    company = _public(slug)
    standing = {
        **{name: getattr(company, name) for name in ("name", "status", "type", "industry", "website", "symbol")},
        "description": company.description,
    }
    typed = request.POST if request.method == "POST" else kept_form(request)
    form = SuggestForm(typed, initial=standing) if typed is not None else SuggestForm(initial=standing)
    if request.method == "POST" and form.is_valid():
        try:
            change = CompanyChange.from_wire(form.to_wire())
            claims.suggest_edit(actor_of(request), slug, change, form.cleaned_data["text"])
        except BadFields as refusal:
            form.put(refusal.faults)
        else:
            return _thanks(request)
    return _petition(
        request,
        form,
        title="Suggest an edit",
        lead="Change what is wrong; leave the rest. A reviewer looks at it, and you are mailed.",
        crumbs=[("Companies", "/companies"), (company.name, f"/companies/{slug}")],
    )


@signed_in()
@once
def claim_person(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask to be joined to a person's profile."""
    person = Person.objects.filter(slug=slug, published=True).first()
    if person is None:
        raise NotFound("There is no such person.", "Search among all people.")
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
        title="This is me",
        lead="A claimed profile is yours to edit. A reviewer checks that it is you, and you are mailed.",
        crumbs=[("People", "/people"), (person.name, f"/people/{slug}")],
    )


def _thanks(request: HttpRequest) -> HttpResponse:
    messages.success(request, "Thank you. It is with the reviewers now.")
    return HttpResponseRedirect("/manage")
