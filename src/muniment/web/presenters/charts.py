"""
Charts as inline SVG: bar, paired bar, stacked bar, donut, sparkline. Pure functions, no script, no style attribute.

Each returns a ``figure`` with a titled and described picture, followed by a table of its numbers for readers who
cannot see the picture. The numbers are those that it was given: none is rescaled.
"""

import hashlib
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Final, NamedTuple

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.languages.writing import digits, number
from muniment.schema.item_lists import SHARES_TOLERANCE

TINTS = 6
"""Number of tints in the stylesheet; the last one is the remainder's."""
REST = f"tint{TINTS - 1}"
WHOLE = 100
"""Percent."""
VISIBLE = 1
"""Percent: a smaller part of a ring cannot be told from its edge."""
NEGLIGIBLE = Decimal("0.05")
"""Percent: what rounded shares may lack to the whole."""
TOO_MANY_DIGITS = 10**40


class ChartSlice(NamedTuple):
    """
    One named share of something.

    Args:
        shown: how its value is written, else the number itself.
        rest: it is the remainder, and has the remainder's tint.
        tone: ``good``, ``wait``, ``bad`` or ``none``, where the share itself is a judgement.
        address: where its name and, in a chart of bars, its bar lead.
    """

    label: str
    value: float
    shown: str = ""
    rest: bool = False
    tone: str = ""
    address: str = ""

    @property
    def text(self) -> str:
        return self.shown or digits(f"{self.value:,.10g}")


class ChartPair(NamedTuple):
    """One named amount before and after; None where there was none."""

    label: str
    before: float | None
    after: float | None

    @property
    def text(self) -> str:
        """Return both amounts and their difference."""
        if self.before is None or self.after is None:
            return f"{_amount(self.before)} → {_amount(self.after)}"
        text = f"{self.before:,.10g} → {self.after:,.10g}"
        difference = round(self.after - self.before, 10)
        if difference:
            text += f" ({difference:+,.10g})"
        return digits(text)


def _amount(value: float | None) -> str:
    return gettext("none") if value is None else digits(f"{value:,.10g}")


def exact(value: float | Decimal) -> str:
    """Return a number with all its digits, as the API answers it, with separated thousands."""
    number = Decimal(str(value))
    if abs(number) > TOO_MANY_DIGITS:
        return digits(f"{value:,.10g}")
    text = f"{number:,f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return digits(text)


def percent(value: float | Decimal) -> str:
    """Return a number of percent as the language writes it: 50.2%."""
    return in_percent(exact(value))


def rounded(share: Decimal) -> str:
    """Return a computed share with at most two decimals: it is what is left of others, and no more exact than these."""
    return percent(round(share, 2) or share)


def in_percent(number: str) -> str:
    """Return a number, written as the language does, as percent."""
    return gettext("%(number)s%%") % {"number": number}


def _sum(slices: Iterable[ChartSlice]) -> Decimal:
    """Return the sum without the rounding of floats."""
    return sum((Decimal(str(slice_.value)) for slice_ in slices), Decimal())


def folded(slices: Sequence[ChartSlice], keep: int = TINTS - 1) -> list[ChartSlice]:
    """
    Return the *keep* largest shares in percent, and one slice for all others, which counts those of nothing too.

    Of many, those too small to see are among the others.
    """
    ranked = sorted(slices, key=lambda slice_: (slice_.rest, -slice_.value))
    if len(ranked) <= keep + 1:
        return ranked
    kept = [slice_ for slice_ in ranked[:keep] if slice_.value >= VISIBLE]
    rest = ranked[len(kept) :]
    if kept:
        words = ngettext("%(count)s other", "%(count)s others", len(rest))
    else:
        words = ngettext("%(count)s with less than 1%%", "%(count)s with less than 1%% each", len(rest))
    total = _sum(rest)
    return [*kept, ChartSlice(words % {"count": number(len(rest))}, float(total), rounded(total), rest=True)]


def shares_of_whole(
    title: str,
    lead: str,
    slices: Sequence[ChartSlice],
    *,
    keep: int = TINTS - 1,
    centre: str = "",
    counted: str = "",
    missing_label: str = "",
) -> SafeString:
    """
    Draw shares in percent: as a ring, with what is missing to the whole; as bars if they cannot be a whole.

    Args:
        lead: the beginning of the description.
        keep: how many of the largest are drawn, if there are more than one above it.
        counted: what the number in the centre counts.
        missing_label: what the part is called that is missing to the whole.
    """
    if not any(slice_.value for slice_ in slices):
        return SafeString("")
    total = _sum(slices)
    shares = []
    for slice_ in folded(slices, keep):
        shares.append(slice_._replace(shown=slice_.shown or percent(slice_.value)))
    named = ", ".join(f"{share.label} {share.text}" for share in shares[:TINTS])
    description, unit = f"{lead}: {named}.", gettext("Share")
    are_parts = all(0 <= slice_.value <= WHOLE for slice_ in slices)
    if total > WHOLE + SHARES_TOLERANCE or not are_parts:
        words = gettext("These shares add up to %(total)s, so they are not parts of a whole.")
        largest = max(WHOLE, *(share.value for share in shares))
        return bar(title, description, shares, unit=unit, of=largest, note=words % {"total": percent(total)})
    missing = WHOLE - total
    if missing > NEGLIGIBLE:
        label = missing_label or gettext("Not specified")
        shares.append(ChartSlice(label, float(missing), rounded(missing), tone="none"))
    return donut(title, description, shares, centre=centre, counted=counted, unit=unit)


def percentage(value: float, total: float) -> str:
    """Show a share of *total* with at most one decimal."""
    share = 100 * value / total if total else 0
    return in_percent(digits(f"{share:.1f}".removesuffix(".0")))


def donut(
    title: str,
    description: str,
    slices: Sequence[ChartSlice],
    *,
    centre: str = "",
    counted: str = "",
    unit: str = "Share",
) -> SafeString:
    """Draw shares in percent as a ring, in the order given, from twelve o'clock."""
    if not any(slice_.value > 0 for slice_ in slices):
        return SafeString("")
    parts, rows, start = [], [], 0.0
    for index, slice_ in enumerate(slices):
        end = min(start + slice_.value / WHOLE, 1)
        if end > start:
            parts.append(f'<path class="{_tint(index, slices)}" d="{_ring(start, end)}"/>')
        rows.append((slice_.label, slice_.shown or percent(slice_.value), _tint(index, slices)))
        start = max(start, end)
    if centre and counted:
        parts.append(f'<text class="centre" x="60" y="54">{escape(centre)}</text>')
        parts.append(f'<text class="centre counted" x="60" y="70">{escape(counted)}</text>')
    elif centre:
        parts.append(f'<text class="centre" x="60" y="60">{escape(centre)}</text>')
    return _figure("donut", "0 0 120 120", title, description, "".join(parts), rows, unit)


FLATTENING: Final = 20
"""How many times the second amount an amount has to be to leave nothing of the other bars."""


def bar(
    title: str, description: str, slices: Sequence[ChartSlice], *, unit: str = "Number", of: float = 0, note: str = ""
) -> SafeString:
    """
    Draw amounts as horizontal bars under their names, each against the largest, or against *of*.

    Where one amount is so large that the bars of all others would look like none, there are only names and numbers.
    """
    if not slices:
        return SafeString("")
    amounts = sorted((slice_.value for slice_ in slices), reverse=True)
    largest = of or amounts[0]
    if largest <= 0:
        return SafeString("")
    is_flat = len(amounts) > 2 and largest > FLATTENING * amounts[1]
    rows: list[tuple[str, str, list[tuple[str, float]]]] = []
    for slice_ in slices:
        bars = [] if is_flat else [("tint0", slice_.value)]
        rows.append((slice_.label, slice_.text, bars))
    return _bars(title, description, rows, largest, unit, note, [slice_.address for slice_ in slices])


def paired_bar(
    title: str, description: str, pairs: Sequence[ChartPair], *, of: float, unit: str = "Score"
) -> SafeString:
    """Draw amounts before and after as two thin bars each, against *of*: the earlier in the tint of what is past."""
    if of <= 0 or not pairs:
        return SafeString("")
    rows = [(pair.label, pair.text, [(REST, pair.before or 0), ("tint0", pair.after or 0)]) for pair in pairs]
    return _bars(title, description, rows, of, unit)


def stacked_bar(title: str, description: str, slices: Sequence[ChartSlice], *, unit: str = "Share") -> SafeString:
    """Draw shares of a whole as one bar, in the order given."""
    total = sum(slice_.value for slice_ in slices)
    if total <= 0:
        return SafeString("")
    parts, rows, x = [], [], 0.0
    for index, slice_ in enumerate(slices):
        width = 100 * slice_.value / total
        gap = 0.4 if index < len(slices) - 1 and width > 1 else 0
        parts.append(
            f'<rect class="{_tint(index, slices)}" x="{x:.3f}" y="0" width="{max(width - gap, 0):.3f}" height="6"/>'
        )
        x += width
        share = f" ({percentage(slice_.value, total)})" if slice_.shown else ""
        rows.append((slice_.label, f"{slice_.text}{share}", _tint(index, slices)))
    return _figure("stacked", "0 0 100 6", title, description, "".join(parts), rows, unit, stretch=True)


def columns(title: str, rows: Sequence[tuple[str, str, Sequence[tuple[str, int]]]], *, unit: str) -> SafeString:
    """Draw amounts over time as narrow columns, each of stacked parts, against the highest; each names its numbers."""
    highest = 0
    for _, _, parts in rows:
        highest = max(highest, sum(amount for _, amount in parts))
    if highest <= 0:
        return SafeString("")
    picture, texts, numbers = "", [], []
    for place, (label, shown, parts) in enumerate(rows):
        top, drawn = 40.0, ""
        for tint, amount in parts:
            tall = 40 * amount / highest
            top -= tall
            drawn += f'<rect class="{tint}" x="{place * 12}" y="{top:.2f}" width="10" height="{tall:.2f}"/>'
        text = f"{label}: {shown}"
        picture += f"<g><title>{escape(text)}</title>{drawn}</g>"
        texts.append(text)
        numbers.append((label, shown, ""))
    described = f"{title}: {'; '.join(texts)}."
    return _figure("columns", f"0 0 {len(rows) * 12 - 2} 40", title, described, picture, numbers, unit, stretch=True)


def sparkline(title: str, description: str, points: Sequence[ChartSlice], *, unit: str = "Number") -> SafeString:
    """
    Draw a course over time as one line over zero, from the oldest point to the newest.

    Its numbers are only for screen readers; the page lists them for everyone.
    """
    if len(points) < 2:
        return SafeString("")
    values = [point.value for point in points]
    low, high = min(0, *values), max(0, *values)
    span = (high - low) or 1
    places, rows = [], []
    for index, point in enumerate(points):
        x = index * 100 / (len(points) - 1)
        y = 28 - 26 * (point.value - low) / span
        places.append(f"{x:.2f},{y:.2f}")
        rows.append((point.label, point.text, ""))
    line = " ".join(places)
    picture = f'<polygon class="under" points="0,30 {line} 100,30"/><polyline class="line" points="{line}"/>'
    return _figure("spark", "0 0 100 30", title, description, picture, rows, unit, stretch=True)


def _tint(index: int, slices: Sequence[ChartSlice]) -> str:
    slice_ = slices[index]
    if slice_.tone:
        return f"tint-{slice_.tone}"
    return REST if slice_.rest else f"tint{min(index, TINTS - 1)}"


def _ring(start: float, end: float) -> str:
    """Return the path of a ring segment between two fractions of the full turn."""
    # An arc that ends where it begins is not drawn, so a full turn stops a little before.
    end = min(end, start + 0.99999)
    outer, inner = 56, 36
    # A gap would leave nothing of a narrow segment, and a single one has no neighbour.
    gap = 0.004 if 0.02 < end - start < 0.99 else 0

    def at(share: float, radius: float) -> str:
        angle = 2 * math.pi * share - math.pi / 2
        return f"{60 + radius * math.cos(angle):.2f} {60 + radius * math.sin(angle):.2f}"

    first, last = start + gap / 2, end - gap / 2
    large = int(last - first > 0.5)
    return (
        f"M{at(first, outer)}A{outer} {outer} 0 {large} 1 {at(last, outer)}"
        f"L{at(last, inner)}A{inner} {inner} 0 {large} 0 {at(first, inner)}Z"
    )


def _figure(  # noqa: PLR0917 - the parts of a figure, in their order
    kind: str,
    box: str,
    title: str,
    description: str,
    picture: str,
    rows: Sequence[tuple[str, str, str]],
    unit: str,
    *,
    stretch: bool = False,
) -> SafeString:
    key = hashlib.blake2s(f"{kind}{title}{rows}".encode(), digest_size=4).hexdigest()
    cells = "".join(_row(label, value, tint) for label, value, tint in rows)
    aspect = ' preserveAspectRatio="none"' if stretch else ""
    unseen = " unseen" if kind == "spark" else ""
    return mark_safe(  # noqa: S308 - every value above passed through escape
        f'<figure class="chart chart-{kind}">'
        f'<svg viewBox="{box}" role="img" aria-labelledby="t{key} d{key}"{aspect}>'
        f'<title id="t{key}">{escape(title)}</title><desc id="d{key}">{escape(description)}</desc>{picture}</svg>'
        f"{_numbers(title, unit, cells, unseen)}</figure>"
    )


def _bars(  # noqa: PLR0917 - the parts of a figure, in their order
    title: str,
    description: str,
    rows: Sequence[tuple[str, str, Sequence[tuple[str, float]]]],
    of: float,
    unit: str,
    note: str = "",
    addresses: Sequence[str] = (),
) -> SafeString:
    """Draw the bars of each row right under its name and number, so that readers need not count lines."""
    cells = ""
    for (label, value, bars), address in zip(rows, addresses or [""] * len(rows), strict=True):
        if not bars:
            cells += _row(label, value, address=address)
            continue
        tall = 7 * len(bars) - 1
        picture = ""
        for place, (tint, amount) in enumerate(bars):
            top, width = 7 * place, max(0.0, 100 * amount / of)
            picture += f'<rect class="track" x="0" y="{top}" width="100" height="6"/>'
            picture += f'<rect class="{tint}" x="0" y="{top}" width="{width:.2f}" height="6"/>'
        drawn = f'<svg viewBox="0 0 100 {tall}" height="{tall}" preserveAspectRatio="none">{picture}</svg>'
        if address:
            # The link of the name above leads to the same page: one of the two is enough for the keyboard.
            drawn = f'<a href="{escape(address)}" tabindex="-1">{drawn}</a>'
        cells += f'{_row(label, value, address=address)}<tr aria-hidden="true"><td colspan="2">{drawn}</td></tr>'
    shown_note = f'<p class="quiet small">{escape(note)}</p>' if note else ""
    return mark_safe(  # noqa: S308 - every value above passed through escape
        f'<figure class="chart chart-bar"><figcaption class="unseen">{escape(description)}</figcaption>'
        f"{_numbers(title, unit, cells)}{shown_note}</figure>"
    )


def _numbers(title: str, unit: str, cells: str, unseen: str = "") -> str:
    return (
        f'<table class="numbers{unseen}"><caption class="unseen">{escape(title)}</caption>'
        f'<thead class="unseen"><tr><th scope="col">{escape(gettext("Name"))}</th>'
        f'<th scope="col">{escape(unit)}</th></tr></thead>'
        f"<tbody>{cells}</tbody></table>"
    )


def _row(label: str, value: str, tint: str = "", *, address: str = "") -> str:
    key = f'<span class="key {tint}"></span>' if tint else ""
    name = f"<bdi>{escape(label)}</bdi>"
    if address:
        name = f'<a href="{escape(address)}">{name}</a>'
    return f'<tr><th scope="row">{key}{name}</th><td class="number">{escape(value)}</td></tr>'
