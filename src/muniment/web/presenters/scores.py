"""Present published scores: on a company, in the list of a framework, as a badge with the code that embeds it."""

import unicodedata
from collections.abc import Iterable
from html import escape
from typing import Final, NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import gettext

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import summary_path
from muniment.languages.writing import digits
from muniment.web.presenters.charts import ChartSlice, bar
from muniment.web.presenters.company import day

MAX_LABEL: Final = 40
MAX_VALUE: Final = 24
_WIDE: Final = frozenset("WF")
_ESCAPES: Final = str.maketrans({sign: f"\\{sign}" for sign in r"\[]"})
"""The signs that would end the text of a picture in Markdown, each with a backslash."""


class Trend(NamedTuple):
    """A score compared with the one before: a sign and its tone for the eye, a sentence for everyone."""

    sign: str
    tone: str
    text: str


class Embed(NamedTuple):
    """A badge: its path, what it says, and the code that shows it on other sites."""

    path: str
    alt: str
    html: str
    markdown: str


def trend(score: float, before: float | None, since: str = "") -> Trend | None:
    """
    Return how a score compares with an earlier one, None if there is none.

    Args:
        since: the day of the earlier one, as pages show it.
    """
    if before is None:
        return None
    difference = round(score - before, 1)
    values = {"points": f"{abs(difference):g}", "day": since}
    if not difference:
        words = gettext("unchanged since %(day)s") if since else gettext("unchanged")
        return Trend("=", "", words % values)
    if difference > 0:
        words = gettext("%(points)s more than on %(day)s") if since else gettext("%(points)s more than before")
        return Trend(digits(f"+{difference:g}"), "good", words % values)
    words = gettext("%(points)s less than on %(day)s") if since else gettext("%(points)s less than before")
    return Trend(digits(f"−{-difference:g}"), "bad", words % values)


def with_grade(score: float, grade: str | None) -> str:
    """Return a score with its grade, such as ``72.5, B``."""
    return f"{digits(f'{score:g}')}, {grade}" if grade else digits(f"{score:g}")


def assessments(company: JSONMapping) -> list[JSONObject]:
    """Return the published scores of a company as its pages show them."""
    return [_score(row, company["id"], row["frameworkId"]) for row in company.get("assessments") or ()]


def ranked(rows: Iterable[JSONMapping], framework_id: str) -> list[JSONObject]:
    """Return the published scores of a framework as its pages show them."""
    return [_score(row, row["company"]["id"], framework_id) for row in rows]


def _score(row: JSONMapping, company: str, framework_id: str) -> JSONObject:
    previous = row.get("previousAssessedAt")
    previous_day = day(previous) if previous else ""
    return {
        **row,
        "value": digits(f"{row['score']:g}"),
        "grade": row.get("grade", ""),
        "day": day(row["assessedAt"]),
        "trend": trend(row["score"], row.get("previousScore"), previous_day),
        "address": summary_path(company, framework_id),
    }


def sections_chart(sections: Iterable[JSONMapping]) -> SafeString:
    """Draw the scores of sections as bars out of 100; those to which no criterion applied are left out."""
    slices = []
    for section in sections:
        score = section.get("score")
        if score is not None:
            slices.append(ChartSlice(section["title"], score, digits(f"{score:g}")))
    description = gettext("Each section's score out of 100.")
    return bar(gettext("Score by section"), description, slices, unit=gettext("Score"), of=100)


def embed(base: str, company: str, framework_id: str, alt: str) -> Embed:
    """Return the badge of a published score; *alt* is what it says."""
    summary = summary_path(company, framework_id)
    path = f"{summary}/badge.svg"
    page, picture = base + summary, base + path
    html = f'<a href="{page}"><img src="{picture}" alt="{escape(alt)}" height="20"></a>'
    return Embed(path, alt, html, f"[![{alt.translate(_ESCAPES)}]({picture})]({page})")


def badge_text(name: str, score: float | None, grade: str | None) -> tuple[str, str]:
    """Return both halves of a badge: the framework, and the score with its grade."""
    if score is None:
        value = gettext("no score")
    else:
        value = f"{digits(f'{score:g}')} {grade or ''}".strip()
    return name[:MAX_LABEL], value[:MAX_VALUE]


def badge(left: str, right: str, proof: str) -> str:
    """
    Draw a badge as SVG.

    Args:
        proof: the address of the proof that the document which has the score is in the public log.
    """
    widths = (_width(left), _width(right))
    whole = sum(widths)
    label = escape(f"{left}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{label}">'
        f"<title>{label}</title><metadata>Proof: {escape(proof)}</metadata>"
        f'<rect width="{whole}" height="20" rx="3" fill="#8a2b2b"/>'
        f'<path d="M3 0h{widths[0] - 3}v20h-{widths[0] - 3}a3 3 0 0 1-3-3v-14a3 3 0 0 1 3-3z" fill="#3a3b40"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{widths[0] / 2:g}" y="14">{escape(left)}</text>'
        f'<text x="{widths[0] + widths[1] / 2:g}" y="14">{escape(right)}</text></g></svg>'
    )


def _width(text: str) -> int:
    """Return the width of one half of a badge: a margin, and the usual width of each character in Verdana at 11 px."""
    wide = sum(unicodedata.east_asian_width(character) in _WIDE for character in text)
    return 14 + 12 * wide + 7 * (len(text) - wide)
