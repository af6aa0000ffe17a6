"""The account's own profile and its picture."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.registry.company import pictures
from muniment.registry.company.company_change import BadFields
from muniment.registry.models import Person, Petition
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.web.context import address
from muniment.web.form_fields import form_field
from muniment.web.requests.access import account_of, actor_of, form_data, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page
from muniment.web.views.manage.pictures import read_picture


class ProfileForm(forms.Form):
    """The editable fields of a profile."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields |= {name: form_field(each) for name, each in settings.SCHEMA.profile_change.by_name.items()}

    def to_change(self) -> ProfileChange:
        data = self.cleaned_data
        return ProfileChange({name: value if name == "name" else value or None for name, value in data.items()})


@signed_in()
@once
def profile(request: HttpRequest) -> HttpResponse:
    """Show, edit or create the account's profile."""
    actor = actor_of(request)
    person = profiles.get_profile(actor)
    form = ProfileForm(form_data(request), initial=_standing(person))
    if request.method == "POST" and form.is_valid():
        change = form.to_change()
        try:
            if person is None:
                profiles.create_profile(actor, change)
            else:
                profiles.update_profile(actor, change)
        except BadFields as refusal:
            for fault in refusal.faults:
                form.add_error(fault.field if fault.field in form.fields else None, f"{fault.reason}.")
        else:
            messages.success(request, gettext("Saved."))
            return HttpResponseRedirect("/manage/profile")
    return _profile(request, form, person)


@signed_in("POST")
@once
def portrait(request: HttpRequest) -> HttpResponse:
    """Change the picture of the account's profile."""
    actor = actor_of(request)
    try:
        path = "" if request.POST.get("do") == "remove" else pictures.store_picture(read_picture(request))
        profiles.set_portrait(actor, f"{address(request)}{path}" if path else "")
    except BadRequest as refusal:
        person = profiles.get_profile(actor)
        return _profile(request, ProfileForm(initial=_standing(person)), person, f"{refusal.message} {refusal.hint}")
    messages.success(request, gettext("Picture updated.") if path else gettext("Picture removed."))
    return HttpResponseRedirect("/manage/profile")


def _profile(request: HttpRequest, form: ProfileForm, person: Person | None, fault: str = "") -> HttpResponse:
    waits = Petition.objects.filter(account=account_of(request), kind="profile", decision="").exists()
    context: JSONObject = {"form": form, "person": person, "fault": fault, "petition": waits}
    return manage_page(request, "manage/profile.html", context, status=422 if fault else 0)


def _standing(person: Person | None) -> JSONObject:
    return settings.SCHEMA.person.published(vars(person), {}) if person else {}
