"""The size of a team that a listing names: counted, not typed."""

from collections.abc import Sequence

from django.utils.translation import ngettext

from muniment.kernel.json import JSONObject
from muniment.languages.writing import number
from muniment.web.presenters.company_lists import team_of


def counted_team(positions: Sequence[JSONObject]) -> str:
    """Return how many people a team has, and how many positions if some have several; empty without any."""
    if not positions:
        return ""
    people = len(team_of(positions))
    shown = ngettext("%(count)s person", "%(count)s people", people) % {"count": number(people)}
    if people == len(positions):
        return shown
    held = ngettext("%(count)s position", "%(count)s positions", len(positions)) % {"count": number(len(positions))}
    return f"{shown}, {held}"
