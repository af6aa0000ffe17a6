"""The account's own profile and its picture."""

from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.languages.translated import stated, told
from muniment.registry.company import pictures
from muniment.registry.company.changes import BadFields
from muniment.registry.history import LaterChanges
from muniment.registry.models import Person, Petition
from muniment.registry.people import positions, profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.web.form_fields import form_field
from muniment.web.presenters import differences
from muniment.web.requests.access import account_of, actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, ask, manage_page, problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager
from muniment.web.views.manage.companies import ask_to_overwrite
from muniment.web.views.manage.pictures import read_picture


class ProfileForm(forms.Form):
    """The editable fields of a profile."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields |= {name: form_field(field) for name, field in settings.SCHEMA.profile_change.by_name.items()}

    def to_change(self) -> ProfileChange:
        # An emptied field is cleared, but a name cannot be: the operation refuses an empty one.
        change = {name: value or None for name, value in self.cleaned_data.items()}
        change["name"] = self.cleaned_data["name"]
        return ProfileChange(change)


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
                field = fault.field if fault.field in form.fields else None
                form.add_error(field, stated(fault.reason))
        else:
            messages.success(request, gettext("Saved."))
            return HttpResponseRedirect("/manage/profile")
    return _profile(request, form, person)


@signed_in("POST")
@once
def portrait(request: HttpRequest) -> HttpResponse:
    """Change the picture of the account's profile."""
    actor = actor_of(request)
    path, done = "", gettext("Picture removed.")
    try:
        if request.POST.get("do") != "remove":
            path, done = pictures.store_picture(read_picture(request)), gettext("Picture updated.")
        profiles.set_portrait(actor, path)
    except BadRequest as refusal:
        person = profiles.get_profile(actor)
        return _profile(request, ProfileForm(initial=_standing(person)), person, told(refusal))
    messages.success(request, done)
    return HttpResponseRedirect("/manage/profile")


_ANSWERS: Final = {
    "confirm": gettext_lazy("Position confirmed. Your profile and the listing show it."),
    "decline": gettext_lazy("Position declined. It was removed from the listing."),
    "end": gettext_lazy("Position ended. It was removed from the listing."),
}


@signed_in("POST")
@once
def answer_position(request: HttpRequest) -> HttpResponse:
    """Confirm, decline or end a position that a listing gives to the account's profile."""
    answer = request.POST.get("do", "")
    if answer not in _ANSWERS:
        raise BadRequest(gettext("The form has no answer."), gettext("Use one of the buttons on the page."))
    with problems_shown(request, BadRequest, Conflict, NotFound):
        # The operation takes the positions to confirm, to decline and to end each as a list.
        answers: dict[str, Any] = {answer: [request.POST.get("position", "")]}
        positions.answer_positions(actor_of(request), **answers)
        messages.success(request, _ANSWERS[answer])
    return HttpResponseRedirect("/manage/profile#positions")


@signed_in("GET", "HEAD")
def history(request: HttpRequest) -> HttpResponse:
    """Show every change of the profile with its diff and a button to revert it."""
    actor = actor_of(request)
    page = profiles.profile_history(actor, page=asked_page(request.GET), page_size=PAGE_SIZE)
    room = differences.Room()
    entries = []
    for entry in page.items:
        row = {
            "entry": entry,
            "lines": differences.lines_of_entry(entry, room),
            "is_mine": entry.account_id == actor.account_id,
            "can_revert": profiles.can_revert(entry),
        }
        entries.append(row)
    context = {"entries": entries, "pager": pager(request, ("page",), page)}
    return manage_page(request, "manage/profile_history.html", context)


@signed_in("POST")
@once
def revert(request: HttpRequest, entry: int) -> HttpResponse:
    """Revert a change of the profile; ask first if it replaces what later changes wrote."""
    actor, back = actor_of(request), "/manage/profile/history"
    try:
        done = profiles.revert_profile(actor, entry, overwrite=request.POST.get("overwrite") == "yes")
    except LaterChanges as later:
        tried = profiles.revert_profile(actor, entry, dry_run=True)
        crumbs = [(gettext("Your profile"), "/manage/profile")]
        return ask_to_overwrite(request, later, tried.diff, back=back, crumbs=crumbs)
    if done.applied:
        messages.success(request, gettext("Reverted."))
    else:
        messages.info(request, gettext("No changes to save."))
    return HttpResponseRedirect(back)


@signed_in()
@once
def take_step(request: HttpRequest, step: str) -> HttpResponse:
    """Ask whether to unlist the profile or to publish it, and do it."""
    if request.method == "POST":
        with problems_shown(request, Forbidden, BadRequest):
            if step == "unlist":
                profiles.unlist_profile(actor_of(request))
                messages.success(request, gettext("Unlisted. Your profile is no longer public."))
            else:
                profiles.publish_profile(actor_of(request))
                messages.success(request, gettext("Your profile is public."))
        return HttpResponseRedirect("/manage/profile")
    if profiles.get_profile(actor_of(request)) is None:
        messages.info(request, gettext("You don't have a profile yet. You can create one here."))
        return HttpResponseRedirect("/manage/profile")
    question = _UNLIST if step == "unlist" else _PUBLISH
    crumbs = [(gettext("Your profile"), "/manage/profile"), (str(question.title), "")]
    return ask(request, question, back="/manage/profile", crumbs=crumbs)


_UNLIST: Final = Question(
    gettext_lazy("Unlist your profile?"),
    (
        gettext_lazy("Your profile leaves every public page, the search and the API."),
        gettext_lazy("Companies that name you keep your name, without a link to a profile."),
        gettext_lazy("You can publish it again at any time."),
    ),
    gettext_lazy("Unlist profile"),
)
_PUBLISH: Final = Question(
    gettext_lazy("Publish your profile?"),
    (
        gettext_lazy("Your profile goes live as it is now: on the pages, in the search and the API."),
        gettext_lazy("You can unlist it at any time."),
    ),
    gettext_lazy("Publish profile"),
    "main",
)


def _profile(request: HttpRequest, form: ProfileForm, person: Person | None, fault: str = "") -> HttpResponse:
    waits = Petition.objects.filter(account=account_of(request), kind="profile", decision="").exists()
    held = positions.list_positions(actor_of(request))
    context: JSONObject = {"form": form, "person": person, "fault": fault, "petition": waits, "positions": held}
    return manage_page(request, "manage/profile.html", context, status=422 if fault else 0)


def _standing(person: Person | None) -> JSONObject:
    return settings.SCHEMA.person.published(vars(person), {}) if person else {}
