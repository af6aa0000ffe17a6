"""What an import did, in words: the stored sentence without the numbers that are zero."""

import re
from typing import Final

from django.utils.translation import gettext

from muniment.languages.recalled import recalled
from muniment.languages.writing import digits

_COUNTS: Final = re.compile(r"(people|companies|frameworks): ([\d,]+) new, ([\d,]+) changed, ([\d,]+) unchanged")
_UNDONE: Final = re.compile(r"([\d,]+) rows restored, ([\d,]+) unpublished, ([\d,]+) kept")
_NOTHING_BAD: Final = "no invalid rows"


def outcome(stored: str) -> str:
    """Return the stored result of an import or an undo as pages say it."""
    return "; ".join(filter(None, map(_said, stored.split("; "))))


def _said(part: str) -> str:
    if found := _COUNTS.fullmatch(part):
        kinds = {
            "people": gettext("People"),
            "companies": gettext("Companies"),
            "frameworks": gettext("Frameworks"),
        }
        words = (gettext("%(count)s new"), gettext("%(count)s changed"), gettext("%(count)s unchanged"))
        return f"{kinds[found[1]]}: {_counted(words, found.groups()[1:]) or gettext('nothing')}"
    if found := _UNDONE.fullmatch(part):
        words = (
            gettext("%(count)s rows restored"),
            gettext("%(count)s rows unpublished"),
            gettext("%(count)s rows kept"),
        )
        return _counted(words, found.groups()) or gettext("Nothing was restored")
    return "" if part == _NOTHING_BAD else recalled(part)


def _counted(words: tuple[str, ...], counts: tuple[str, ...]) -> str:
    """Return the numbers that are not zero, each with its word."""
    return ", ".join(word % {"count": digits(count)} for word, count in zip(words, counts, strict=True) if count != "0")
