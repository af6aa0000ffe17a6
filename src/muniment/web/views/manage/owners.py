"""Owners of a listing: invite, accept an invitation, leave."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext

from muniment.kernel.problems import Conflict, TooMany
from muniment.registry.company import owners
from muniment.registry.company.company_change import BadFields
from muniment.registry.review import invitations
from muniment.web.context import address
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown


@signed_in("POST")
@once
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    email = request.POST.get("email", "")
    with problems_shown(request, BadFields, Conflict, TooMany):
        invitations.invite_owner(actor_of(request), slug, email, base_url=address(request))
        messages.success(request, gettext("Invitation sent to %(email)s.") % {"email": email})
    return HttpResponseRedirect(f"/manage/companies/{slug}")


@signed_in()
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    if request.method == "POST":
        company = invitations.accept_invitation(actor_of(request), token)
        messages.success(request, gettext("You now co-own the listing of %(name)s.") % {"name": company.name})
        return HttpResponseRedirect(f"/manage/companies/{company.slug}")
    return manage_page(request, "manage/invitation.html", {"invitation": invitations.find_invitation(token)})


@signed_in("POST")
@once
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    owners.leave_company(actor_of(request), slug)
    messages.success(request, gettext("You've left this listing."))
    return HttpResponseRedirect("/manage")
