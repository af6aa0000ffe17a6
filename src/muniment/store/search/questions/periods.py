"""Days and periods in a question: ``since 2024``, ``before March 2023``, ``last 30 days``."""

from datetime import date, timedelta
from typing import Final, NamedTuple

from muniment.store.search.questions.sentence import Sentence

DAY: Final = timedelta(days=1)
YEARS: Final = range(1900, 2200)


class Period(NamedTuple):
    """The first and the last day, None where it is open, and the part after it."""

    first: date | None
    last: date | None
    end: int


class Calendar(NamedTuple):
    """Reads periods in a question that is asked on a day."""

    sentence: Sentence
    today: date

    def period_at(self, at: int) -> Period | None:
        """Return the period that begins with a part such as "since", or None."""
        try:
            return self._between(at) or self._relative(at) or self._bounded(at)
        except (OverflowError, ValueError):  # a day, a year or a number of days that no calendar has
            return None

    def _between(self, at: int) -> Period | None:
        if not self.sentence.has(at, "between"):
            return None
        begin = self._date(at + 1)
        end = self._date(begin.end + 1) if begin and self.sentence.has(begin.end, "to") else None
        return Period(begin.first, end.last, end.end) if begin and end else None

    def _relative(self, at: int) -> Period | None:
        """Read "last 30 days", "last year", "past month", "this week", "yesterday"."""
        sentence = self.sentence
        if sentence.has(at, "days_ago"):
            day = self.today - int(sentence.entry(at, "days_ago")) * DAY
            return Period(day, day, at + 1)
        if not sentence.has(at, "past", "last", "this"):
            return None
        place, count = at + 1, None
        if place < len(sentence.parts) and sentence.parts[place].amount is not None:
            count, place = int(sentence.parts[place].amount or 0), place + 1
        unit = sentence.entry(place, "unit")
        if not unit:
            return None
        if sentence.has(at, "past") or count is not None:
            return Period(_back(self.today, unit, count or 1), None, place + 1)
        start = _start(self.today, unit)
        if sentence.has(at, "this"):
            return Period(start, None, place + 1)
        return Period(_start(start - DAY, unit), start - DAY, place + 1)

    def _bounded(self, at: int) -> Period | None:
        """Read "since 2024", "before March 2023", "in 2024", "after last year"."""
        part = self.sentence.parts[at]
        if not part.has("since", "after", "before", "until", "during"):
            return None
        span = self._date(at + 1) or self._relative(at + 1)
        if span is None or span.first is None:
            return None
        last = span.last or self.today
        if part.has("after"):
            return Period(last + DAY, None, span.end)
        if part.has("before"):
            return Period(None, span.first - DAY, span.end)
        if part.has("since"):
            return Period(span.first, None, span.end)
        return Period(None if part.has("until") else span.first, last, span.end)

    def _date(self, at: int) -> Period | None:
        """Read a day, a month or a year; its first and last day."""
        if at >= len(self.sentence.parts):
            return None
        day = self.sentence.parts[at].day
        if day is not None:
            return Period(day, day, at + 1)
        if (year := self._year(at)) is not None:
            return Period(date(year, 1, 1), date(year, 12, 31), at + 1)
        return self._in_month(at)

    def _in_month(self, at: int) -> Period | None:
        """Read a month or a day of it, with its year or in the last twelve months."""
        number = self._day_of_month(at)
        at += number is not None
        month = int(self.sentence.entry(at, "month") or 0)
        if not month:
            return None
        at += 1
        if number is None and self._year(at) is None:
            number = self._day_of_month(at)
            at += number is not None
        year = self._year(at)
        at += year is not None
        if year is None:
            year = self.today.year - ((month, number or 1) > (self.today.month, self.today.day))
        first = date(year, month, number or 1)
        return Period(first, first if number else _start(first + 31 * DAY, "month") - DAY, at)

    def _year(self, at: int) -> int | None:
        token = self.sentence.first_token(at)
        if token is None or len(token.word) != 4 or not (token.word.isascii() and token.word.isdigit()):
            return None
        return int(token.word) if int(token.word) in YEARS and not token.has_currency else None

    def _day_of_month(self, at: int) -> int | None:
        token = self.sentence.first_token(at)
        digits = token.digits.rstrip(".") if token else ""
        if token is None or not (digits.isascii() and digits.isdigit() and len(digits) <= 2):
            return None
        return int(digits) if not token.suffix or token.suffix in self.sentence.language.ordinals else None


def _start(day: date, unit: str) -> date:
    """Return the first day of the calendar unit that *day* is in."""
    if unit == "week":
        return day - day.weekday() * DAY
    return {"year": day.replace(month=1, day=1), "month": day.replace(day=1)}.get(unit, day)


def _back(day: date, unit: str, count: int) -> date:
    if unit in {"day", "week"}:
        return day - count * (7 if unit == "week" else 1) * DAY
    years, month = divmod(day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1), 12)
    first = date(years, month + 1, 1)
    return min(first + (day.day - 1) * DAY, _start(first + 31 * DAY, "month") - DAY)
