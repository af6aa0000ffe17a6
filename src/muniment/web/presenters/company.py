"""Present a published document on its page: facts, links and charts."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.texts import is_web_address
from muniment.kernel.wire import parse_timestamp
from muniment.languages import writing
from muniment.languages.speaking import language
from muniment.languages.writing import number
from muniment.schema.company import MAX_NOTE, TREASURY_NOTE
from muniment.schema.company_parts import ADDRESS, SOCIALS
from muniment.schema.kinds import Country, Date, Items, Link, Money, Number, parse_month_and_year
from muniment.schema.record import Field, Record
from muniment.web.presenters import charts, company_lists
from muniment.web.presenters.charts import ChartSlice
from muniment.web.wording import labels
from muniment.web.wording.labels import labelled, words_of
from muniment.web.wording.places import country_names, month_or_text
from muniment.web.wording.states import outcome

_LONG_AMOUNT = re.compile(r"(?<!\d)\d{4,}(?=\.|$)")
_SOCIAL_STARTS = {
    "email": "mailto:",
    "phone_number": "tel:",
    "twitter": "https://x.com/",
    "linkedin": "https://www.linkedin.com/company/",
    "youtube": "https://www.youtube.com/",
    "instagram": "https://www.instagram.com/",
    "facebook": "https://www.facebook.com/",
    "tiktok": "https://www.tiktok.com/",
}
"""The beginnings of addresses that a name on a network stands for, in the order of the page."""
_NO_ADDRESSES = frozenset({"email", "phone_number"})
_HOST = re.compile(r"[\w-]+(\.[\w-]+)+/")
"""The beginning of a web address without a scheme."""
PLACED = frozenset(
    {
        *(
            "name",
            "symbol",
            "teamSize",
            "treasury",
            "treasuryAmount",
            "status",
            "type",
            "industry",
            "orgKind",
            "themes",
        ),
        *("description", "body", "website", "dao_website", "socials", "address", "bio"),
        *("frameworkName", "opensOn", "closesOn"),
    }
)
"""
Editable fields of companies, people and frameworks for which their page has a place, a picture or a chip of its own.

Every other editable field is among the further facts, so that a new one is on the page without a line of it.
"""
MAX_FURTHER = 20
YEARS_SHOWN = 10
MANY_HOLDERS = 20
"""Of more, a picture shows the ten largest together."""
DECIDED = frozenset({"passed", "failed"})
"""The states of a proposal whose vote has an outcome."""


def day(moment: str) -> str:
    """Show an RFC 3339 moment as its day: ``21 November 2026``."""
    return _day(language(), moment)


@lru_cache(maxsize=2048)
def _day(_language: str, moment: str) -> str:
    return writing.day(parse_timestamp(moment))


def fact(
    label: str, value: Any, *, address: str = "", is_outside: bool = False, lines: Sequence[str] = ()
) -> JSONObject:
    """
    Return a fact as the templates show it.

    It has every member: for one that is missing, a template looks for 20 microseconds, and a page has a dozen facts.

    Args:
        lines: the value, if it takes several.
    """
    return {"label": label, "value": value, "address": address, "outside": is_outside, "lines": lines}


def company_tiles(bundle: JSONObject, home: str, people: int) -> list[JSONObject]:
    """
    Return the figures of a company, each with a link to its part where the listing has that part.

    Args:
        people: how many different people its positions name; without any, the team size is what the listing says.
    """
    company = bundle["company"]
    proposals, holders = bundle.get("proposals") or [], bundle.get("capTable") or []
    today = company_lists.today()
    voting = sum(company_lists.is_open(proposal, today) for proposal in proposals)
    distribution_address = "#distribution" if bundle.get("distribution") else ""
    figures: list[tuple[str, Any, str]] = [
        (treasury_label(company.get(TREASURY_NOTE)), writing.amount(company.get("treasury") or ""), ""),
        _raising(company, bundle),
        (gettext("Token"), company.get("symbol"), distribution_address),
        _team(company, people, home),
        (ngettext("Open vote", "Open votes", voting), voting, "#proposals"),
        (ngettext("Proposal", "Proposals", len(proposals)), len(proposals), f"{home}/proposals"),
        (company_lists.holders_label(holders), len(holders), f"{home}/cap-table"),
    ]
    tiles = []
    for label, value, address in figures:
        if value:
            shown = number(value) if type(value) is int else value
            tiles.append(fact(label, shown, address=address))
    return tiles


def _team(company: JSONObject, people: int, home: str) -> tuple[str, Any, str]:
    if not people:
        return gettext("Team size"), company.get("teamSize"), ""
    # The page itself shows a single person, so that person is no figure.
    figure = people if people > 1 else 0
    return ngettext("Person", "People", people), figure, f"{home}/team"


def treasury_label(note: object) -> str:
    """
    Return what the amount of a listing is called wherever it is shown: a treasury, or what its note says instead.

    An amount that is the sum of grants received is no treasury, so it never carries that name.
    """
    if not isinstance(note, str) or not note:
        return gettext("Treasury")
    label = labels.note(note)
    return label if len(label) <= MAX_NOTE else f"{label[: MAX_NOTE - 1]}…"


def has_short_note(company: JSONObject) -> bool:
    """Return whether the note on the amount is shown whole as its name."""
    note = company.get(TREASURY_NOTE)
    return isinstance(note, str) and 0 < len(note) <= MAX_NOTE


def _raising(company: JSONObject, bundle: JSONObject) -> tuple[str, Any, str]:
    """Return how much a company raises where an open round says so, else "Yes"; nothing if it does not raise."""
    if not company.get("raising"):
        return gettext("Raising"), None, ""
    address = "#funding" if bundle.get("fundingRounds") else ""
    for funding_round in rounds_of(bundle):
        if funding_round["state"] == "open" and funding_round.get("target"):
            return gettext("Raising"), funding_round["target"], address
    return gettext("Raising"), gettext("Yes"), address


def company_facts(company: JSONObject, updated_at: Any, *, was_listed_before: bool = False) -> list[JSONObject]:
    """
    Return the facts of a company that are no figures of :func:`company_tiles`.

    Args:
        was_listed_before: the page also says when the company was added to this registry, which was later.
    """
    listed = gettext("Listed at its source") if was_listed_before else gettext("Listed")
    subtype = company.get("orgKind") or ""
    if str(subtype).casefold() == str(company.get("type")).casefold():
        subtype = ""  # the chips under the name show the type
    facts = _facts(
        {"orgKind": labelled("orgKind", subtype), "listed": listed_on(company)},
        {"orgKind": gettext("Subtype"), "listed": listed},
    )
    for entry in company.get("formerNames") or ():
        facts.append(fact(gettext("Formerly"), former_name(entry)))
    facts.append(fact(gettext("Updated"), day(str(updated_at))))
    return [*facts, *_trust(company), *_addresses(company), *_derived(company)]


def _addresses(company: JSONObject) -> list[JSONObject]:
    """Return the addresses as one fact."""
    places = [address(place) for place in places_of(company)]
    if len(places) <= 1:
        return [fact(gettext("Address"), place) for place in places]
    return [fact(gettext("Addresses"), "", lines=places)]


def _derived(company: JSONObject) -> list[JSONObject]:
    """Return the countries that no address names, with what they follow from."""
    codes = company.get("derivedCountries")
    if not codes:
        return []
    names = ", ".join(str(country_names().get(code, code)) for code in codes)
    words = gettext("%(countries)s (from state and postal code)") % {"countries": names}
    return [{"label": gettext("Country"), "value": words}]


def _trust(company: JSONObject) -> list[JSONObject]:
    """Return how far a listing can be trusted: its last review, its maintainer, its proven domain."""
    facts = []
    reviewed_at, proof = company.get("reviewedAt"), company.get("verifiedDomain")
    if reviewed_at:
        facts.append(fact(gettext("Reviewed"), day(reviewed_at)))
    if company.get("maintainedByOwner"):
        facts.append(fact(gettext("Maintained by"), gettext("Its owner")))
    if proof:
        words = gettext("%(domain)s (%(method)s, %(day)s)")
        values = {"domain": proof["domain"], "method": proof_method(proof["method"]), "day": day(proof["verifiedAt"])}
        facts.append(fact(gettext("Verified domain"), words % values))
    return facts


def former_name(entry: JSONObject) -> str:
    """Return a former name with the day until which it was used."""
    if not entry.get("until"):
        return str(entry["name"])
    return gettext("%(name)s (until %(day)s)") % {"name": entry["name"], "day": day_or_text(entry["until"])}


def proof_method(method: str) -> str:
    """Return the words for how a domain was proven."""
    names = {
        "dns": gettext("DNS record"),
        "file": gettext("File on the website"),
        "mail": gettext("Email to the domain"),
    }
    return names.get(method, method)


def address(place: JSONObject) -> str:
    """Return an address in one line, with the name of the country."""
    lines = [place.get(field.name) for field in ADDRESS.values if field.name != "country"]
    country = place.get("country")
    if country:
        lines.append(country_names().get(country, country))
    return ", ".join(filter(None, lines))


def _facts(document: JSONObject, labels: dict[str, str]) -> list[JSONObject]:
    """Return the members of a document that *labels* names, without those that are empty."""
    facts = []
    for name, label in labels.items():
        if document.get(name) not in (None, "", []):
            facts.append(fact(label, document[name]))
    return facts


def places_of(company: JSONObject) -> list[JSONObject]:
    """Return the addresses that have a line to show."""
    return [place for place in company.get("address") or [] if address(place)]


def links_of(company: JSONObject) -> list[JSONObject]:
    """Return the links of a company: its websites and social profiles, without unsafe schemes."""
    links: list[JSONObject] = []
    further = gettext("DAO website") if company.get("type") == "DAO" else gettext("Further website")
    for label, name in ((gettext("Website"), "website"), (further, "dao_website")):
        safe = safe_link(company.get(name))
        is_new = bare(safe) not in {link["value"] for link in links}
        if safe and is_new:
            links.append(fact(label, bare(safe), address=safe, is_outside=True))
    socials = company.get("socials") or {}
    for name in _SOCIAL_STARTS:
        profile = socials.get(name) or ""
        safe = _social_link(name, profile)
        if safe:
            label = gettext(SOCIALS.by_name[name].label)
            links.append(fact(label, bare(profile), address=safe, is_outside=True))
    return links


def _social_link(name: str, value: str) -> str:
    """Return the address of a profile on a network, which owners give as an address or as a name; "" if unsafe."""
    is_other_scheme = ":" in value and "://" not in value  # such as javascript:
    if not value or is_other_scheme:
        return ""
    target = value
    if name == "phone_number":
        target = "".join(value.split())  # people write numbers with spaces
    is_address = "://" in target or (name not in _NO_ADDRESSES and _HOST.match(target))
    if not is_address:
        target = _SOCIAL_STARTS[name] + target.lstrip("@")
    return safe_link(target, ("http", "https", "mailto", "tel"))


def safe_link(value: object, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Return *value* if a page may link to it, else an empty string."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    # People type a website without its scheme. A text without a dot is no host; a colon ends a scheme.
    if "." in text and ":" not in text:
        text = f"https://{text}"
    try:
        scheme = urlsplit(text).scheme.lower()
    except ValueError:
        return ""
    # urlsplit and browsers leave out line breaks and tabs, so that these could hide a scheme.
    is_one_word = not any(sign in text for sign in ' <>"\n\r\t')
    return text if scheme in schemes and is_one_word else ""


def bare(link: str) -> str:
    """Return a link without its scheme and trailing slash."""
    return link.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")[:80]


def further_fields(document: JSONObject, record: Record) -> list[JSONObject]:
    """
    Return the fields of a document for which its page has no place, and members that no field declares, as facts.

    Args:
        record: its schema. Fields come first, in their order.
    """
    declared = []
    for name, field in record.by_name.items():
        value = document.get(name)
        has_place = not field.is_additional and (name in PLACED or not field.editable)
        if not has_place and not isinstance(value, dict) and value not in (None, "", []):
            declared.append(_declared_fact(field, value))
    undeclared = []
    for name, value in document.items():
        if name not in record.by_name:
            undeclared += _undeclared_facts(name, value)
    # An imported file may bring any number of members that are not declared.
    return [*declared, *undeclared[:MAX_FURTHER]]


def _undeclared_facts(name: str, value: Any) -> list[JSONObject]:
    """Return an additional member as a fact, whose address leads there; nothing of a flag or an object."""
    values = value if isinstance(value, list) else [value]
    if isinstance(value, bool) or value in (None, "", []) or any(isinstance(each, dict | list) for each in values):
        return []
    text = ", ".join(map(str, values))
    safe = safe_link(text) if len(values) == 1 and is_web_address(text) else ""
    if safe:
        return [fact(words_of(name), bare(safe), address=safe, is_outside=True)]
    return [fact(words_of(name), text[:300])]


def declared_facts(document: JSONObject, record: Record) -> dict[str, JSONObject]:
    """Return the declared fields that a document has, in their order, as pages show them."""
    facts = {}
    for field in record.declared:
        # The note on the amount is the label of that figure.
        if field.name != TREASURY_NOTE and document.get(field.name) not in (None, ""):
            facts[field.name] = _declared_fact(field, document[field.name])
    return facts


def _declared_fact(field: Field, value: Any) -> JSONObject:
    """Return a declared field as its kind is read: a link as a link, a day in words, a country by its name."""
    label, shown = gettext(field.label), str(value)[:300]
    address = safe_link(value) if isinstance(field.kind, Link) else ""
    if address:
        return fact(label, bare(address), address=address, is_outside=True)
    if isinstance(field.kind, Country):
        shown = country_names().get(value, value)
    elif isinstance(field.kind, Date):
        shown = day_or_text(value)
    elif isinstance(value, bool):
        shown = gettext("yes") if value else gettext("no")
    elif isinstance(field.kind, Items) and isinstance(value, list):
        shown = ", ".join(map(str, value))[:300]
    elif isinstance(field.kind, Money):
        # On the wire, an amount in full has no separators.
        shown = _LONG_AMOUNT.sub(lambda digits: writing.number(int(digits[0])), str(value))
    elif isinstance(field.kind, Number) and isinstance(value, int | float):
        shown = writing.number(value)
    return fact(label, shown)


def rounds_of(bundle: JSONObject) -> list[JSONObject]:
    """Return the funding rounds with their state today, in UTC: planned, open or closed."""
    today = now().date().isoformat()
    rounds = []
    for row in bundle.get("fundingRounds") or ():
        state = "closed"
        if row.get("opened", "") > today:
            state = "planned"
        elif row.get("closed", "9999") > today:
            state = "open"
        shown = {**row, "state": state}
        if row.get("target"):
            shown["target"] = writing.amount(row["target"])
        rounds.append(shown)
    return rounds


def shares(bundle: JSONObject) -> JSONObject:
    """Draw the charts of a bundle: distribution and cap table."""
    company, distribution, holders = bundle["company"], bundle.get("distribution"), bundle.get("capTable") or []
    if not distribution and not holders:
        return {"distribution": None, "distribution_facts": [], "pools_chart": "", "holders_chart": ""}
    labels = {
        "method": gettext("Method"),
        "schedule": gettext("Schedule"),
        "vestingPeriod": gettext("Vesting"),
        "details": gettext("Details"),
    }
    return {
        "distribution": distribution,
        "distribution_facts": _facts(distribution or {}, labels),
        "pools_chart": _pools_chart(company, distribution or {}),
        "holders_chart": _holders_chart(company, holders),
    }


def _pools_chart(company: JSONObject, distribution: JSONObject) -> SafeString:
    pools = []
    for pool in distribution.get("pools") or ():
        pools.append(_share(pool, str(pool.get("name", ""))))
    centre = company.get("symbol", "")[:8]
    return charts.shares_of_whole(gettext("Token distribution"), gettext("Pools"), pools, centre=centre)


def _holders_chart(company: JSONObject, holders: Sequence[JSONObject]) -> SafeString:
    shares = _ten_and_others(holders)
    if not shares:
        for holder in holders:
            shares.append(_share(holder, str(holder.get("name") or holder.get("address") or gettext("unnamed"))))
    return charts.shares_of_whole(
        gettext("Token holders"),
        gettext("Holders of %(name)s") % {"name": company["name"]},
        shares,
        keep=4,
        centre=number(len(holders)),
        counted=ngettext("holder", "holders", len(holders)),
        missing_label=gettext("Holders that are not listed"),
    )


def _ten_and_others(holders: Sequence[JSONObject]) -> list[ChartSlice]:
    """Return the share of the ten largest holders and that of all others: of many, single ones cannot be seen."""
    concentration = company_lists.concentration_of(holders)
    if concentration is None or len(holders) <= MANY_HOLDERS:
        return []
    others = len(holders) - company_lists.TOP
    named = ngettext("%(count)s other listed holder", "%(count)s other listed holders", others)
    return [
        ChartSlice(gettext("The ten largest"), concentration.share_of_top, concentration.top),
        ChartSlice(
            named % {"count": number(others)},
            concentration.share_of_others,
            charts.percent(round(concentration.share_of_others, 2) or concentration.share_of_others),
            rest=True,
        ),
    ]


def _share(row: JSONObject, label: str) -> ChartSlice:
    share = row.get("percentage")
    shown = gettext("Not specified") if share is None else ""
    return ChartSlice(label, _number(share), shown)


def _number(value: object) -> float:
    """Return a number as it is; 0 for anything else, and the nearest that can be drawn for one beyond."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:  # noqa: PLR0124 - NaN
        return 0
    return min(max(value, -sys.float_info.max), sys.float_info.max)


def votes_over_time(proposals: Sequence[JSONObject]) -> SafeString:
    """Draw how many votes were decided in each year, passed and failed, the latest years; nothing of a single year."""
    decided: dict[str, Counter[str]] = {}
    for proposal in proposals:
        year = str(proposal.get("endDate") or "")[:4]
        if proposal.get("status") in DECIDED and year.isdecimal():
            decided.setdefault(year, Counter())[str(proposal["status"])] += 1
    years = sorted(decided)[-YEARS_SHOWN:]
    if len(years) < 2:
        return SafeString("")
    words = gettext("%(passed)s passed, %(failed)s failed")
    rows = []
    for year in years:
        passed, failed = decided[year]["passed"], decided[year]["failed"]
        shown = words % {"passed": number(passed), "failed": number(failed)}
        rows.append((year, shown, [("tint-good", passed), ("tint-bad", failed)]))
    title = gettext("Decided votes by year")
    chart = charts.columns(title, rows, unit=gettext("Votes"))
    counted = sum(decided[year].total() for year in years)
    if counted == len(proposals):
        return chart
    # The others are open, have no recorded outcome or day, or were decided before these years.
    of_all = gettext("%(counted)s of %(total)s proposals") % {
        "counted": number(counted),
        "total": number(len(proposals)),
    }
    return format_html('<p class="quiet small">{}: {}</p>{}', title, of_all, chart)


def proposal_row(proposal: JSONObject) -> JSONObject:
    """Return a proposal as the pages show it: with its title, the chart of its votes, and the day on which it ends."""
    title = str(proposal.get("title") or proposal.get("id") or gettext("Proposal"))
    status = str(proposal.get("status") or "")
    ends = str(proposal.get("endDate") or "")
    today = company_lists.today()
    is_left = company_lists.is_left_open(proposal, today)
    shown_outcome = gettext("Ended") if is_left else outcome(status)
    return {
        **proposal,
        "title": title,
        "state": company_lists.state_of(proposal, today),
        "outcome": shown_outcome,
        **_votes(title, proposal.get("votes") or {}),
        "is_undecided": is_left,
        "ends": day_or_text(ends),
        "has_ended": status in DECIDED or company_lists.has_passed(ends, today),
    }


def _votes(title: str, votes: JSONObject) -> JSONObject:
    """Return the chart of the votes on a proposal and how many were cast; empty texts without votes."""
    pro, contra = _number(votes.get("for")), _number(votes.get("against"))
    both = [
        ChartSlice(gettext("For"), pro, charts.exact(pro), tone="good"),
        ChartSlice(gettext("Against"), contra, charts.exact(contra), tone="bad"),
    ]
    numbers = ", ".join(f"{slice_.label} {slice_.text}" for slice_ in both)
    unit = gettext("Votes")
    chart_title, description = gettext("Votes on %(title)s") % {"title": title}, f"{unit}: {numbers}."
    # Only amounts from zero can be parts of a whole; others are drawn as bars.
    if min(pro, contra) >= 0:
        chart = charts.stacked_bar(chart_title, description, both, unit=unit)
    else:
        chart = charts.bar(chart_title, description, both, unit=unit, of=max(pro, contra, 1))
    cast = ""
    if chart:
        cast = gettext("%(count)s votes cast") % {"count": charts.exact(pro + contra)}
    return {"chart": chart, "cast": cast}


def listed_on(company: JSONObject) -> str:
    """Return the day on which a company was listed, or the month, if only that is known."""
    return day_or_text(company.get("listedAt")) or month_or_text(company.get("createdAt"))


def listed_day(company: JSONObject) -> str:
    """Return the day on which a company was listed as 2024-03-31, or the month, if only that is known; else ""."""
    if company.get("listedAt"):
        return str(company["listedAt"])
    try:
        return parse_month_and_year(company.get("createdAt") or "").isoformat()[:7]
    except ValueError:
        return ""


def day_or_text(value: object) -> str:
    """Return a date of the wire as a day, and any other value unchanged."""
    text = str(value or "")
    moment = text if "T" in text else f"{text}T00:00:00Z"
    try:
        return day(moment)
    except ValueError:
        return text
