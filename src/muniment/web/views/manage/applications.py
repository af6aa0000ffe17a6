"""Applications to programs: what owners sent, and what the companies that run programs received."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.assessments import applications
from muniment.web.presenters import reports
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.pages import manage_page, problems_shown
from muniment.web.requests.pagination import asked_page, pager

HOME = "/manage/applications"
SENT = "sent"
PARAMETERS = ("page", SENT)


@signed_in("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """List received and sent applications."""
    actor = actor_of(request)
    received = applications.list_received(actor, page=asked_page(request.GET))
    sent = applications.list_sent(actor, page=asked_page(request.GET, SENT))
    context = {
        "received": received,
        "sent": sent,
        "pager": pager(request, PARAMETERS, received),
        "sent_pager": pager(request, PARAMETERS, sent, name=SENT),
    }
    return manage_page(request, "manage/applications.html", context)


@signed_in("GET", "HEAD")
def application(request: HttpRequest, application_id: str) -> HttpResponse:
    """Show a submitted report: its findings, and no other data of the applicant."""
    found = applications.get_received(actor_of(request), application_id)
    # The most urgent criteria concern only the applicant.
    context = {"application": found, **reports.shown(found.report), "first": []}
    return manage_page(request, "manage/application.html", context)


@signed_in("POST")
def act(request: HttpRequest, application_id: str, action: str) -> HttpResponse:
    """Withdraw a sent application; accept or decline a received one."""
    actor = actor_of(request)
    with problems_shown(request):
        if action == "withdraw":
            applications.withdraw_application(actor, application_id)
            words = gettext("Application withdrawn. The program can no longer read your report.")
        else:
            decided = applications.decide_application(
                actor, application_id, accept=action == "accept", note=request.POST.get("note", "")
            )
            words = gettext("Application declined. We've emailed the applicant.")
            if decided.state == "accepted":
                words = gettext("Application accepted. We've emailed the applicant.")
        messages.success(request, words)
    return HttpResponseRedirect(HOME)
