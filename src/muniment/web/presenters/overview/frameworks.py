"""The public description of a framework; its specification stays private."""

from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.web.presenters import company_lists
from muniment.web.presenters.company import day, day_or_text


def framework_facts(framework: JSONObject) -> list[JSONObject]:
    """Return the facts of a framework."""
    kinds = {"score": gettext("Score, for any company"), "program": gettext("Program, for applicants")}
    facts = [
        (gettext("Kind"), kinds.get(framework["kind"], framework["kind"])),
        (gettext("Status"), gettext("Open") if framework["isOpen"] else gettext("Not open")),
        (gettext("Opens"), day_or_text(framework.get("opensOn"))),
        (gettext("Closes"), day_or_text(framework.get("closesOn"))),
        (gettext("Updated"), day(framework["updatedAt"]) if framework.get("updatedAt") else ""),
    ]
    return [{"label": label, "value": value} for label, value in facts if value]


def standing_of(framework: JSONObject) -> str:
    """Return what the days of a program say today, in UTC; empty if they say nothing."""
    opens, closes, today = framework.get("opensOn") or "", framework.get("closesOn") or "", company_lists.today()
    if closes and closes < today:
        return gettext("Applications closed on %(day)s.") % {"day": day_or_text(closes)}
    if opens > today:
        return gettext("Applications open on %(day)s.") % {"day": day_or_text(opens)}
    if closes:
        return gettext("Applications close on %(day)s.") % {"day": day_or_text(closes)}
    return ""
