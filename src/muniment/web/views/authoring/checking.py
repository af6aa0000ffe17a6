"""Check and submit: every value of a listing as it will appear, what to look at, and what happens next."""

from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.text import get_text_list
from django.utils.translation import gettext

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.languages.translated import stated, translated, within
from muniment.registry.company import listings
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.inbox.checks import list_dead_links
from muniment.registry.people.positions import list_unlinked
from muniment.registry.review.duplicates import likely_duplicates
from muniment.registry.review.values import broken_values
from muniment.web.authoring import checks
from muniment.web.authoring.checks import Finding
from muniment.web.presenters import company_lists, differences
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.pages import manage_page
from muniment.web.views.authoring.listing_form import TITLES, steps_of
from muniment.web.views.authoring.preview import as_published
from muniment.web.views.manage.companies import frame

SUBMITTABLE = {"draft", "changes_requested"}


@signed_in("GET", "HEAD")
def check(request: HttpRequest, slug: str) -> HttpResponse:
    """Show every value of a listing, its faults and warnings, and the button that submits it."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    bundle = as_published(mine)
    facts = mine.bundle["company"]
    pending = {}
    for name, value in mine.pending_changes.items():
        pending[name] = {"before": facts.get(name), "after": value}
    is_new = mine.state in {*SUBMITTABLE, "submitted"}
    duplicates = _duplicates(actor, mine, bundle["company"]) if is_new else []
    faults, warnings, advice = [], [], []
    for finding in (*checks.findings_of(bundle, company_lists.today()), *_stored(actor, mine, bundle)):
        if finding.is_advice:
            advice.append(finding)
        elif finding.is_fault and is_new:
            faults.append(finding)
        else:
            warnings.append(finding)
    reviewed = []
    for name, field in settings.SCHEMA.company.editable.items():
        if field.review:
            reviewed.append(within(differences.label_of(name)))
    context = {
        **frame(mine, "check"),
        "faults": faults,
        "warnings": warnings,
        "advice": advice,
        "shown_steps": checks.values_of(bundle, TITLES),
        "duplicates": duplicates,
        "pending": differences.lines_of(pending),
        "can_submit": mine.state in SUBMITTABLE,
        "reviewed": get_text_list(reviewed, gettext("or")),
        "base": f"/manage/companies/{quote(slug, safe='')}",
        "steps": steps_of("review", slug),
    }
    return manage_page(request, "manage/check.html", context)


def _stored(actor: Actor, mine: OwnedCompany, bundle: JSONObject) -> list[Finding]:
    """Return the values that break a rule, dead links, and the names of people that wait for an answer."""
    findings = []
    for fault in broken_values({**mine.bundle, "company": bundle["company"]}):
        name = fault.field.partition("[")[0].partition(".")[0]
        findings.append(Finding(stated(fault.sentence), checks.place_of(name)))
    for link in list_dead_links(actor, mine.slug):
        text = gettext("This link did not respond when we checked it: %(url)s %(fault)s")
        member = "website" if link.url == mine.bundle["company"].get("website") else "socials"
        place = checks.place_of(member)
        findings.append(Finding(text % {"url": link.url, "fault": translated(link.fault)}, place))
    known = [person.name for person in list_unlinked(actor, mine.slug) if person.candidates]
    if known:
        text = gettext("A profile with this name exists. Choose it if it is the same person: %(people)s.")
        people = ", ".join(known[: checks.ROWS_NAMED])
        findings.append(Finding(text % {"people": people}, checks.place_of("positions")))
    return findings


def _duplicates(actor: Actor, mine: OwnedCompany, facts: JSONObject) -> list[tuple[object, str]]:
    name, website, symbol = (str(facts.get(member) or "") for member in ("name", "website", "symbol"))
    return list(likely_duplicates(actor, name, website, symbol, besides=mine.slug))
