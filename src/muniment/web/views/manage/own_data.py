"""The account's own data: an archive of it, and the deletion of the account."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.accounts import personal_data
from muniment.documents.downloading import create_archive
from muniment.kernel.problems import BadRequest, Problem
from muniment.registry.own_data import describe_deletion
from muniment.web.requests.access import account_of, actor_of, confirmed, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown, show_problem

HOME = "/accounts/data/"


@signed_in()
@confirmed(when=lambda request: request.POST.get("do") == "delete")
@once
def data(request: HttpRequest) -> HttpResponse:
    """Show what can be exported and what a deletion means; schedule or cancel the deletion."""
    account, fault = account_of(request), ""
    if request.method == "POST":
        match request.POST.get("do", ""):
            case "delete" if request.POST.get("confirm", "").strip().lower() == account.email:
                with problems_shown(request):
                    personal_data.request_deletion(actor_of(request))
                return HttpResponseRedirect(HOME)
            case "delete":
                fault = gettext("Type your email address exactly as shown.")
            case "keep":
                personal_data.cancel_deletion(actor_of(request))
                messages.success(request, gettext("Your account stays."))
                return HttpResponseRedirect(HOME)
            case _:
                raise BadRequest(gettext("The form has no action."), gettext("Use one of the buttons on the page."))
    typed = form_data(request)
    context = {
        "tab": "data",
        "account": account,
        "meaning": describe_deletion(account),
        "fault": fault,
        "confirm": typed.get("confirm", "") if typed else "",
    }
    return manage_page(request, "manage/own_data.html", context, status=422 if fault else 200)


@signed_in("POST")
@confirmed(lambda: HOME)
def archive(request: HttpRequest) -> HttpResponse:
    """Create an archive of the account's data and redirect to its download."""
    try:
        response = HttpResponseRedirect(create_archive(actor_of(request)))
    except Problem as problem:
        show_problem(request, problem)
        return HttpResponseRedirect(HOME)
    response["Referrer-Policy"] = "no-referrer"
    return response
