"""Present a published document on its page: facts, links and charts."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any
from urllib.parse import urlsplit

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
from muniment.schema.kinds import Country, Date, Items, Link, Money, Number
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
            One person is on the page itself.
    """
    company = bundle["company"]
    proposals, holders = bundle.get("proposals") or [], bundle.get("capTable") or []
    today = company_lists.today()
    voting = sum(company_lists.is_open(each, today) for each in proposals)
    team = company.get("teamSize")
    crew: tuple[str, Any, str] = (gettext("Team size"), team, "")
    if people:
        # A single person is on the page itself.
        crew = (ngettext("Person", "People", people), people if people > 1 else 0, f"{home}/team")
    tiles: list[tuple[str, Any, str]] = [
        (treasury_label(company.get(TREASURY_NOTE)), writing.amount(company.get("treasury") or ""), ""),
        _raising(company, bundle),
        (gettext("Token"), company.get("symbol"), "#distribution" if bundle.get("distribution") else ""),
        crew,
        (ngettext("Open vote", "Open votes", voting), voting, "#proposals"),
        (ngettext("Proposal", "Proposals", len(proposals)), len(proposals), f"{home}/proposals"),
        (company_lists.holders_label(holders), len(holders), f"{home}/cap-table"),
    ]
    shown = []
    for label, value, address in tiles:
        if value:
            shown.append(fact(label, number(value) if type(value) is int else value, address=address))
    return shown


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
    rounds = bundle.get("fundingRounds")
    if not company.get("raising"):
        return gettext("Raising"), None, ""
    wanted = next((each["target"] for each in rounds_of(bundle) if each["state"] == "open" and each.get("target")), "")
    return gettext("Raising"), wanted or gettext("Yes"), "#funding" if rounds else ""


def company_facts(company: JSONObject, updated_at: Any) -> list[JSONObject]:
    """Return the facts of a company that are no figures of :func:`company_tiles`."""
    labels = {"orgKind": gettext("Subtype"), "listed": gettext("Listed")}
    shown = {**company, "listed": listed_on(company)}
    if str(company.get("orgKind")).casefold() == str(company.get("type")).casefold():
        shown["orgKind"] = ""  # the chips say it
    shown["orgKind"] = labelled("orgKind", shown.get("orgKind") or "")
    return [
        *_facts(shown, labels),
        *(fact(gettext("Formerly"), former_name(each)) for each in company.get("formerNames") or ()),
        fact(gettext("Updated"), day(str(updated_at))),
        *_trust(company),
        *_addresses(company),
        *_derived(company),
    ]


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
    """Return what the registry knows of a listing's truth: its last review, its maintainer, its proven domain."""
    facts = []
    if reviewed_at := company.get("reviewedAt"):
        facts.append(fact(gettext("Reviewed"), day(reviewed_at)))
    if company.get("maintainedByOwner"):
        facts.append(fact(gettext("Maintained by"), gettext("Its owner")))
    if proof := company.get("verifiedDomain"):
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
    parts = [place.get(field.name) for field in ADDRESS.values if field.name != "country"]
    if country := place.get("country"):
        parts.append(country_names().get(country, country))
    return ", ".join(part for part in parts if part)


def _facts(document: JSONObject, labels: dict[str, str]) -> list[JSONObject]:
    return [fact(label, document[name]) for name, label in labels.items() if document.get(name) not in (None, "", [])]


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
    text = value
    if name == "phone_number":
        text = "".join(value.split())  # people write numbers with spaces
    is_address = "://" in text or (name not in _NO_ADDRESSES and _HOST.match(text))
    target = text if is_address else _SOCIAL_STARTS[name] + text.lstrip("@")
    return safe_link(target, ("http", "https", "mailto", "tel"))


def safe_link(value: object, schemes: tuple[str, ...] = ("http", "https")) -> str:
    """Return *value* if a page may link to it, else an empty string."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if "://" not in text and not text.startswith(("mailto:", "tel:")) and "." in text and ":" not in text:
        text = f"https://{text}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    if parts.scheme.lower() not in schemes or any(sign in text for sign in ' <>"\n\r\t'):
        return ""
    return text


def bare(link: str) -> str:
    """Return a link without its scheme and trailing slash."""
    return link.removeprefix("https://").removeprefix("http://").removeprefix("www.").rstrip("/")[:80]


def further_fields(document: JSONObject, record: Record) -> list[JSONObject]:
    """
    Return the additional members of a document, where they are short enough to be facts.

    Args:
        record: its schema; the pages place its own fields. Declared ones come first, in their order.
    """
    fields = []
    declared = {
        name: document[name] for name, field in record.by_name.items() if field.is_additional and name in document
    }
    for name, value in {**declared, **document}.items():
        field = record.by_name.get(name)
        is_placed = field is not None and not field.is_additional
        is_undeclared_flag = field is None and isinstance(value, bool)
        is_no_fact = isinstance(value, dict) or is_undeclared_flag or value in (None, "", [])
        if is_placed or is_no_fact:
            continue
        if field is not None:
            fields.append(_declared_fact(field, value))
        elif not isinstance(value, list):
            fields.append(_undeclared_fact(name, str(value)))
        elif len(value) == 1 and not isinstance(value[0], dict | list):
            fields.append(_undeclared_fact(name, str(value[0])))
        elif not any(isinstance(part, dict | list) for part in value):
            fields.append(fact(words_of(name), ", ".join(map(str, value))[:300]))
    return fields[: len(declared) + MAX_FURTHER]


def _undeclared_fact(name: str, value: str) -> JSONObject:
    """Return an additional member as a fact: a web address leads there."""
    if is_web_address(value) and (safe := safe_link(value)):
        return fact(words_of(name), bare(safe), address=safe, is_outside=True)
    return fact(words_of(name), value[:300])


def declared_facts(document: JSONObject, record: Record) -> dict[str, JSONObject]:
    """Return the declared fields that a document has, in their order, as pages show them."""
    shown = (field.name for field in record.declared if field.name != TREASURY_NOTE)  # it names its figure
    return {
        name: _declared_fact(record.by_name[name], document[name])
        for name in shown
        if document.get(name) not in (None, "")
    }


def _declared_fact(field: Field, value: Any) -> JSONObject:
    """Return a declared field as its kind is read: a link as a link, a day in words, a country by its name."""
    label, shown = gettext(field.label), str(value)[:300]
    if isinstance(field.kind, Link) and (safe := safe_link(value)):
        return fact(label, bare(safe), address=safe, is_outside=True)
    if isinstance(field.kind, Country):
        shown = country_names().get(value, value)
    elif isinstance(field.kind, Date):
        shown = day_or_text(value)
    elif isinstance(value, bool):
        shown = gettext("yes") if value else gettext("no")
    elif isinstance(field.kind, Items) and isinstance(value, list):
        shown = ", ".join(map(str, value))[:300]
    elif isinstance(field.kind, Money):
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
        target = {"target": writing.amount(row["target"])} if row.get("target") else {}
        rounds.append({**row, **target, "state": state})
    return rounds


def shares(bundle: JSONObject) -> JSONObject:
    """Draw the charts of a bundle: distribution and cap table."""
    name = bundle["company"]["name"]
    distribution = bundle.get("distribution")
    if not distribution and not bundle.get("capTable"):
        return {"distribution": None, "distribution_facts": [], "pools_chart": "", "holders_chart": ""}
    labels = {
        "method": gettext("Method"),
        "schedule": gettext("Schedule"),
        "vestingPeriod": gettext("Vesting"),
        "details": gettext("Details"),
    }
    pools = [_share(pool, str(pool.get("name", ""))) for pool in (distribution or {}).get("pools") or []]
    holders = [
        _share(entry, str(entry.get("name") or entry.get("address") or gettext("unnamed")))
        for entry in bundle.get("capTable") or []
    ]
    return {
        "distribution": distribution,
        "distribution_facts": _facts(distribution or {}, labels),
        "pools_chart": charts.shares_of_whole(
            gettext("Token distribution"),
            gettext("Pools"),
            pools,
            centre=bundle["company"].get("symbol", "")[:8],
        ),
        "holders_chart": charts.shares_of_whole(
            gettext("Token holders"),
            gettext("Holders of %(name)s") % {"name": name},
            _ten_and_others(bundle.get("capTable") or []) or holders,
            keep=4,
            centre=number(len(holders)),
            counted=ngettext("holder", "holders", len(holders)),
            missing_label=gettext("Holders that are not listed"),
        ),
    }


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
    return ChartSlice(label, _number(share), "" if share is not None else gettext("Not specified"))


def _said(lead: str, slices: list[ChartSlice]) -> str:
    return f"{lead}: {', '.join(f'{slice_.label} {slice_.text}' for slice_ in slices)}."


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
    return charts.columns(gettext("Decided votes by year"), rows, unit=gettext("Votes"))


def proposal_row(proposal: JSONObject) -> JSONObject:
    """Return a proposal as the pages show it: with its title, the chart of its votes, and the day on which it ends."""
    votes = proposal.get("votes") or {}
    pro, contra = _number(votes.get("for")), _number(votes.get("against"))
    both = [
        ChartSlice(gettext("For"), pro, charts.exact(pro), tone="good"),
        ChartSlice(gettext("Against"), contra, charts.exact(contra), tone="bad"),
    ]
    title = str(proposal.get("title") or proposal.get("id") or gettext("Proposal"))
    ends = str(proposal.get("endDate") or "")
    today = company_lists.today()
    is_left = company_lists.is_left_open(proposal, today)
    draw = charts.stacked_bar if min(pro, contra) >= 0 else partial(charts.bar, of=max(pro, contra, 1))
    chart = draw(
        gettext("Votes on %(title)s") % {"title": title}, _said(gettext("Votes"), both), both, unit=gettext("Votes")
    )
    cast = gettext("%(count)s votes cast") % {"count": charts.exact(pro + contra)} if chart else ""
    return {
        **proposal,
        "title": title,
        "state": company_lists.state_of(proposal, today),
        "outcome": gettext("Ended") if is_left else outcome(str(proposal.get("status") or "")),
        "chart": chart,
        "cast": cast,
        "is_undecided": is_left,
        "ends": day_or_text(ends),
        "has_ended": proposal.get("status") in DECIDED or company_lists.has_passed(ends, today),
    }


def listed_on(company: JSONObject) -> str:
    """Return the day on which a company was listed, or the month, if only that is known."""
    return day_or_text(company.get("listedAt")) or month_or_text(company.get("createdAt"))


def day_or_text(value: object) -> str:
    """Return a date of the wire as a day, and any other value unchanged."""
    text = str(value or "")
    try:
        return day(text if "T" in text else f"{text}T00:00:00Z")
    except ValueError:
        return text
