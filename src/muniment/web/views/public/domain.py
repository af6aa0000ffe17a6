"""Verify the domain of a listing's website: for its owners and for accounts that claim it."""

from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext

from muniment.kernel.actor import Actor
from muniment.registry.models import DomainProof
from muniment.registry.verification import proofs
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown


@signed_in()
@once
def domain(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the ways to verify the domain and how far each is; begin, check or confirm one."""
    actor = actor_of(request)
    if request.method == "POST":
        with problems_shown(request):
            _say(request, _act(actor, slug, request.POST))
        return HttpResponseRedirect(f"/companies/{quote(slug)}/domain")
    found = proofs.find_verification(actor, slug)
    name = found.company.name
    verified = [proof for proof in found.proofs.values() if proof.state == "verified"]
    context = {
        "found": found,
        "company": found.company,
        "proofs": found.proofs,
        "methods": found.claim.methods if found.claim else (),
        "verified": verified[0] if verified else None,
        "is_owner": found.is_owner,
        "crumbs": [
            (gettext("Companies"), "/companies"),
            (name, f"/companies/{quote(slug)}"),
            (gettext("Verify domain"), ""),
        ],
    }
    return manage_page(request, "manage/domain.html", {"room": "", **context})


def _act(actor: Actor, slug: str, form: QueryDict) -> DomainProof:
    method = form.get("method", "")
    match form.get("do"):
        case "check":
            return proofs.check_proof(actor, slug, method)
        case "send":
            return proofs.send_code(actor, slug, form.get("address", ""))
        case "confirm":
            return proofs.confirm_code(actor, slug, form.get("code", "")[:40])
        case _:
            return proofs.start_proof(actor, slug, method)


def _say(request: HttpRequest, proof: DomainProof) -> None:
    if request.POST.get("do") == "send":
        messages.success(request, gettext("Code sent to %(address)s.") % {"address": proof.address})
    elif proof.finding:
        messages.warning(request, proof.finding)
    elif proof.state == DomainProof.ProofState.VERIFIED:
        messages.success(request, gettext("%(domain)s is verified.") % {"domain": proof.domain})
