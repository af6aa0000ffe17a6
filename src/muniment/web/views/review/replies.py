"""Saved replies, and how a reviewer works."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict
from muniment.languages.translated import sentence
from muniment.registry.company.changes import BadFields
from muniment.registry.inbox import reviewers
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import show_problem
from muniment.web.views.review.inbox import review_page


class ReplyForm(forms.Form):
    """Title and text of a saved reply."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        max_length=reviewers.MAX_TITLE,
        help_text=gettext_lazy("Only reviewers see it, for example “Website missing”."),
    )
    text = forms.CharField(
        label=gettext_lazy("Text"),
        max_length=reviewers.MAX_TEXT,
        help_text=gettext_lazy("Becomes the note to the owner or the requester. You can add to it before you decide."),
        widget=forms.Textarea(attrs={"rows": 6}),
    )


class WorkingForm(forms.Form):
    """The settings of a reviewer's work."""

    digest = forms.BooleanField(
        label=gettext_lazy("Email me a digest when items wait"),
        required=False,
        help_text=gettext_lazy("The number of items that wait, and the oldest one. No email if the queue is empty."),
    )
    shortcuts = forms.BooleanField(
        label=gettext_lazy("Keyboard shortcuts"),
        required=False,
        help_text=gettext_lazy("Single keys on the review pages. They do nothing while you type."),
    )


@reviewer()
@once
def home(request: HttpRequest) -> HttpResponse:
    """List the saved replies; create one."""
    form = ReplyForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and _saved(request, form):
        messages.success(request, gettext("Reply saved."))
        return HttpResponseRedirect("/review/replies")
    context = {"tab": "replies", "form": form, "replies": reviewers.list_replies(actor_of(request))}
    return review_page(request, "review/replies.html", context)


@reviewer()
@once
def reply(request: HttpRequest, number: int) -> HttpResponse:
    """Change or delete a saved reply."""
    actor = actor_of(request)
    found = reviewers.get_reply(actor, number)
    if request.method == "POST" and request.POST.get("do") == "delete":
        reviewers.delete_reply(actor, number)
        messages.success(request, gettext("Reply deleted."))
        return HttpResponseRedirect("/review/replies")
    stored = {"title": found.title, "text": found.text}
    form = ReplyForm(request.POST) if request.method == "POST" else ReplyForm(initial=stored)
    if request.method == "POST" and _saved(request, form, number):
        messages.success(request, gettext("Reply saved."))
        return HttpResponseRedirect("/review/replies")
    crumbs = [(gettext("Saved replies"), "/review/replies"), (found.title, "")]
    context: JSONObject = {"tab": "replies", "form": form, "reply": found, "crumbs": crumbs}
    return review_page(request, "review/reply.html", context)


@reviewer("GET", "HEAD")
def text(request: HttpRequest, number: int) -> HttpResponse:
    """Return the text of a saved reply."""
    found = reviewers.get_reply(actor_of(request), number)
    return HttpResponse(found.text, content_type="text/plain; charset=utf-8")


@reviewer()
@once
def settings(request: HttpRequest) -> HttpResponse:
    """Show and change how the reviewer works."""
    actor = actor_of(request)
    own = reviewers.get_settings(actor)
    if request.method == "POST":
        form = WorkingForm(request.POST)
        if form.is_valid():
            reviewers.change_settings(actor, **form.cleaned_data)
            messages.success(request, gettext("Settings saved."))
            return HttpResponseRedirect("/review/settings")
    form = WorkingForm(initial={"digest": own.digest, "shortcuts": own.shortcuts})
    return review_page(request, "review/settings.html", {"tab": "settings", "form": form})


def _saved(request: HttpRequest, form: ReplyForm, number: int | None = None) -> bool:
    """Save a reply; return whether it was, and put what is wrong into the form."""
    if not form.is_valid():
        return False
    data = form.cleaned_data
    try:
        reviewers.save_reply(actor_of(request), data["title"], data["text"], number=number)
    except BadFields as refusal:
        for fault in refusal.faults:
            form.add_error(fault.field, sentence(fault.reason))
    except Conflict as refusal:
        show_problem(request, refusal)
    else:
        return True
    return False
