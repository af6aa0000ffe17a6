"""
Checks of a listing before it is submitted: every value and every warning, each with the place to edit it.

A *fault* prevents submission, a *warning* is for the owner to judge, advice makes the listing better. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.languages.writing import digits, number
from muniment.schema.item_lists import SHARES_TOLERANCE
from muniment.schema.record import Record
from muniment.web.forms import NEEDED, About, Basics, Links
from muniment.web.presenters import company_lists
from muniment.web.presenters.charts import in_percent, percent
from muniment.web.presenters.company import address, day_or_text, links_of, rounds_of
from muniment.web.presenters.company_lists import counted_team
from muniment.web.presenters.values import field_of, kind_of, value_text
from muniment.web.wording.states import outcome, state

WHOLE: Final = 100
NEARLY_WHOLE: Final = 99.5
ROWS_NAMED: Final = 3
"""Maximum number of rows that a warning names."""
ROWS_SHOWN: Final = 10
"""Maximum number of rows of a list that are shown; the preview has all."""
_PLACES: Final = {
    **{name: ("basics", f"id_{name}") for name in Basics.names},
    **{name: ("about", f"id_{name}") for name in About.names},
    "dao_website": ("links", "id_dao_website"),
    "socials": ("links", "id_socials_email"),
    "positions": ("team", "positions"),
    "address": ("team", "address"),
    "distribution": ("token", "id_method"),
    "pools": ("token", "pools"),
    "proposals": ("token", "proposals"),
    "capTable": ("token", "capTable"),
    "fundingRounds": ("token", "fundingRounds"),
}
_RECOMMENDED: Final = {
    "body": gettext_lazy("Full description: what the organization does and why. Readers and agents use it most."),
    "industry": gettext_lazy("Industry: people filter lists by it."),
    "themes": gettext_lazy("Themes: people filter lists by them."),
    "icon": gettext_lazy("Logo: lists show it beside the name."),
    "socials": gettext_lazy("Links: an email address or a profile."),
    "address": gettext_lazy("Address: at least city and country."),
    "positions": gettext_lazy("Team: the people behind the organization."),
}


class Finding(NamedTuple):
    """
    Something to look at; ``place`` is the page and anchor of the form that fixes it.

    Args:
        is_advice: nothing is wrong, but the listing says more with it.
    """

    text: str
    place: str
    is_fault: bool = False
    is_advice: bool = False


class ShownValue(NamedTuple):
    """
    A value as the page shows it.

    Args:
        needs_review: a change of it waits for a reviewer once it is published.
        is_markdown: its markup is shown as it will look.
        is_list: each line is a row.
        name: the field, if it is a single one.
    """

    label: str
    value: str
    place: str
    needs_review: bool = False
    is_markdown: bool = False
    is_list: bool = False
    name: str = ""

    @property
    def lines(self) -> list[str]:
        """Return the rows of a list."""
        return self.value.splitlines()


class ShownStep(NamedTuple):
    """The values of a step of the form."""

    step: str
    title: str | Promise
    values: list[ShownValue]


def place_of(name: str) -> str:
    """Return the page and anchor of the form that has a field, as the end of an address."""
    if name == "icon":
        return "logo"
    step, anchor = _PLACES.get(name, ("about", f"id_{name}"))
    return f"edit/{step}#{anchor}"


def missing_of(facts: JSONMapping) -> list[str]:
    """Return the fields that a submission needs and the listing lacks."""
    return [str(words) for name, words in NEEDED.items() if not facts.get(name)]


def findings_of(bundle: JSONMapping, today: str) -> list[Finding]:
    """Return what a listing lacks and what looks unfinished, faults first."""
    facts = bundle["company"]
    findings = []
    for name, words in NEEDED.items():
        if not facts.get(name):
            text = gettext("Missing: %(field)s.") % {"field": words}
            findings.append(Finding(text, place_of(name), is_fault=True))
    findings += unfinished_of(bundle, today)
    # The team is beside the company in a bundle; all else that is recommended is a member of the company.
    contents = {**facts, "positions": bundle.get("positions")}
    for name, words in _RECOMMENDED.items():
        if not contents.get(name):
            findings.append(Finding(str(words), place_of(name), is_advice=True))
    return findings


def unfinished_of(bundle: JSONMapping, today: str) -> Iterator[Finding]:
    """Yield what looks unfinished and is for a person to judge."""
    pools = (bundle.get("distribution") or {}).get("pools") or []
    holders, positions = bundle.get("capTable") or [], bundle.get("positions") or []
    yield from _shares("pools", gettext("Pools"), pools)
    yield from _shares("capTable", gettext("Cap table"), holders)
    proposals, rounds = bundle.get("proposals") or [], bundle.get("fundingRounds") or []
    overdue_label = gettext("Proposals that are still active or pending although their end date has passed")
    rules: tuple[tuple[str, str, list[JSONObject], Callable[[JSONObject], bool]], ...] = (
        ("pools", gettext("Pools without a name or percentage"), pools, _is_unnamed_pool),
        ("capTable", gettext("Holders without tokens or percentage"), holders, _has_no_amount),
        ("positions", gettext("People without a title"), positions, lambda row: not row.get("title")),
        ("proposals", overdue_label, proposals, lambda row: _is_overdue(row, today)),
        ("fundingRounds", gettext("Funding rounds without a name or target"), rounds, _is_unnamed_round),
    )
    for name, label, rows, is_unfinished in rules:
        unfinished = [row for row in rows if is_unfinished(row)]
        if unfinished:
            yield Finding(f"{label}: {_named(unfinished)}.", place_of(name))
    yield from _duplicates("capTable", holders)
    yield from _duplicates("positions", positions)


def _duplicates(name: str, rows: list[JSONObject]) -> Iterator[Finding]:
    kind: Any = settings.SCHEMA.bundle.by_name[name].kind
    rows_by_identity: dict[Any, list[JSONObject]] = {}
    for row in rows:
        rows_by_identity.setdefault(kind.identity(row), []).append(row)
    repeated = []
    for identity, same_rows in rows_by_identity.items():
        if identity and len(same_rows) > 1:
            repeated.append(same_rows[-1])
    if repeated:
        label = gettext("Duplicate rows") + f" ({_label(name)})"
        yield Finding(f"{label}: {_named(repeated)}.", place_of(name))


def _shares(name: str, label: str, rows: list[JSONObject]) -> Iterator[Finding]:
    shares = [row["percentage"] for row in rows if type(row.get("percentage")) in {int, float}]
    total = fsum(shares)
    if not shares or NEARLY_WHOLE <= total <= WHOLE + SHARES_TOLERANCE:
        return
    values = {"list": label, "total": in_percent(digits(f"{total:.4g}")), "whole": in_percent(str(WHOLE))}
    if total > WHOLE + SHARES_TOLERANCE:
        text = gettext("%(list)s: the shares add up to %(total)s, which is more than %(whole)s.") % values
    else:
        text = gettext("%(list)s: the shares add up to %(total)s. Charts show the rest as not specified.") % values
    yield Finding(text, place_of(name))


def _is_unnamed_pool(row: JSONObject) -> bool:
    return not _has(row, "name", "percentage")


def _has_no_amount(row: JSONObject) -> bool:
    return row.get("percentage") is None and not row.get("tokens")


def _is_unnamed_round(row: JSONObject) -> bool:
    """Return whether a round lacks its name or target; one whose figures the owner keeps private may."""
    is_private = row.get("public") is False
    return not is_private and not _has(row, "name", "target")


def _is_overdue(row: JSONMapping, today: str) -> bool:
    is_open = row.get("status") in {"active", "pending"}
    return is_open and company_lists.has_passed(str(row.get("endDate") or ""), today)


def _has(row: JSONMapping, *names: str) -> bool:
    return all(row.get(name) not in (None, "") for name in names)


def _named(rows: Sequence[JSONMapping]) -> str:
    """Name the first of *rows*."""
    names = [_name(row) for row in rows[:ROWS_NAMED]]
    more = len(rows) - ROWS_NAMED
    if more > 0:
        names.append(ngettext("%(count)d more", "%(count)d more", more) % {"count": more})
    return ", ".join(names)


def _name(row: JSONMapping) -> str:
    person = row.get("person") or {}
    for name in (person.get("name"), person.get("slug"), row.get("name"), row.get("title"), row.get("address")):
        if name:
            return str(name)
    return gettext("a row without a name")


# ---------------------------------------------------------------------- every value


def values_of(bundle: JSONMapping, titles: JSONMapping) -> list[ShownStep]:
    """Return every value of a listing as its page shows it, by the steps of the form."""
    facts = bundle["company"]
    company: Record = settings.SCHEMA.company
    shown_elsewhere = {*Basics.names, *About.names, *Links.names, "address", "treasuryAmount"}
    further = [name for name in company.editable if name not in shown_elsewhere]
    links = []
    for link in links_of(dict(facts)):
        if link["label"] != _label("website"):
            links.append(ShownValue(link["label"], link["value"], place_of("socials")))
    if not links:
        links.append(ShownValue(_label("socials"), "", place_of("socials")))
    team = [
        _rows("positions", bundle.get("positions") or [], _position),
        _rows("address", facts.get("address") or [], address),
    ]
    return [
        ShownStep("basics", titles["basics"], [_value(facts, name) for name in Basics.names]),
        ShownStep("about", titles["about"], [_about(bundle, name) for name in (*About.names, *further)]),
        ShownStep("links", titles["links"], links),
        ShownStep("team", titles["team"], team),
        ShownStep("token", titles["token"], _token(bundle)),
    ]


def _label(name: str) -> str:
    schema = settings.SCHEMA
    for record in (schema.company, schema.bundle):
        if name in record.by_name:
            return gettext(record.by_name[name].label)
    return name


def _value(facts: JSONMapping, name: str) -> ShownValue:
    value, kind = facts.get(name), kind_of(field_of(name))
    text = ", ".join(map(str, value)) if isinstance(value, list) else value_text(value, kind)
    review = settings.SCHEMA.company.by_name[name].review
    return ShownValue(_label(name), text, place_of(name), review, name == "body", name=name)


def _about(bundle: JSONMapping, name: str) -> ShownValue:
    shown = _value(bundle["company"], name)
    counted = counted_team(bundle.get("positions") or [])
    if name == "teamSize" and counted:
        return shown._replace(value=counted, place=place_of("positions"))
    return shown


def _rows(name: str, rows: list[JSONObject], text_of: Callable[[JSONObject], str]) -> ShownValue:
    lines = [" ".join(text_of(row).split()) for row in rows[:ROWS_SHOWN]]
    more = len(rows) - len(lines)
    if more:
        lines.append(ngettext("and %(count)s more", "and %(count)s more", more) % {"count": number(more)})
    label = _label(name) if name != "pools" else gettext("Pools")
    return ShownValue(label, "\n".join(lines), place_of(name), is_list=True)


def _position(row: JSONObject) -> str:
    person = row.get("person") or {}
    name = str(person.get("name") or person.get("slug") or "")
    return f"{name}, {row['title']}" if row.get("title") else name


def _pool(row: JSONObject) -> str:
    return _in_line(row.get("name"), _percent(row))


def _holder(row: JSONObject) -> str:
    return _in_line(row.get("name") or row.get("address"), row.get("tokens"), _percent(row))


def _percent(row: JSONObject) -> str:
    return "" if row.get("percentage") is None else percent(row["percentage"])


def _proposal(row: JSONObject) -> str:
    return _in_line(row.get("title"), outcome(row.get("status") or ""), day_or_text(row.get("endDate")))


def _round(row: JSONObject) -> str:
    opened = day_or_text(row.get("opened"))
    when = gettext("opened %(day)s") % {"day": opened} if opened else ""
    return _in_line(row.get("name"), row.get("target"), when, state(row["state"]))


def _in_line(*values: object) -> str:
    return " · ".join(str(value) for value in values if value)


def _token(bundle: JSONMapping) -> list[ShownValue]:
    distribution = bundle.get("distribution") or {}
    record: Any = settings.SCHEMA.bundle.by_name["distribution"].kind
    values = []
    for name in ("method", "details", "schedule", "vestingPeriod"):
        label, text = gettext(record.by_name[name].label), str(distribution.get(name) or "")
        values.append(ShownValue(label, text, f"edit/token#id_{name}"))
    return [
        *values,
        _rows("pools", distribution.get("pools") or [], _pool),
        _rows("proposals", bundle.get("proposals") or [], _proposal),
        _rows("capTable", bundle.get("capTable") or [], _holder),
        _rows("fundingRounds", rounds_of(dict(bundle)), _round),
    ]
