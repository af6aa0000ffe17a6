"""The grammar of questions: which filters the parts of a question are, in any language."""

import sqlite3
from collections.abc import Sequence
from datetime import date
from operator import itemgetter
from typing import Final

from muniment.store.search.questions.periods import Calendar
from muniment.store.search.questions.phrases import TOPICS
from muniment.store.search.questions.quantities import BOUNDS, quantity_at, subject_at
from muniment.store.search.questions.reading import SORT, Chip, Listings, Reading
from muniment.store.search.questions.registry_words import MAX_WORDS, Value, company_named, company_nearly_named
from muniment.store.search.questions.sentence import Sentence

PLACES: Final = frozenset({"city", "country"})
SEARCHED: Final = frozenset({"company", "person"})
"""The kinds whose list takes search words and an order."""
_HELD: Final = frozenset({"hasToken", "hasCapTable"})
"""Flags of what a company has: its words are a filter only beside a word such as "with"."""
_PASSED: Final = frozenset(
    {"skip", "having", "of", "ask", "join", "place", "topic", "listed", "to", "one", "works", "during", "until"}
)
"""Lists whose words are left out where they mean nothing else."""


class UnreadError(Exception):
    """The question says what no filter can, such as the opposite of a value."""


class Grammar:
    """
    Reads one question; use it once.

    Args:
        today: the day that "last month" counts from.
    """

    def __init__(self, connection: sqlite3.Connection, sentence: Sentence, today: date) -> None:
        self._connection = connection
        self._sentence, self._parts = sentence, sentence.parts
        self._calendar = Calendar(sentence, today)
        self._chips: list[tuple[int, Chip]] = []
        self._claimed: set[int] = set()
        self._texts: set[int] = set()
        self._last: dict[str, int] = {}
        self._kind = "framework" if sentence.any_noun("framework", "score", "program") else ""
        self._is_most: tuple[int, int] | None = None
        self.is_marked = False
        self.has_noun = False

    def read(self, listings: Listings) -> Reading:
        """Return the reading; raise UnreadError if there is none that the list of its kind takes."""
        at = 0
        while at < len(self._parts):
            at = at + 1 if at in self._claimed else max(at + 1, self._step(at))
        if self._is_most is not None:
            self._sort_by_size(*self._is_most)
        chips = {(chip.name, chip.value): chip for _, chip in sorted(self._chips, key=itemgetter(0))}
        reading = Reading(self._kind or "company", tuple(chips.values()), self._q(), self._sentence.language.code)
        if not _fits(reading, listings):
            raise UnreadError
        return reading

    @property
    def is_asked(self) -> bool:
        return any(part.has("ask") for part in self._parts)

    def _q(self) -> str:
        """Return the words that no filter came from; the last one in the singular, as a beginning of both numbers."""
        tokens = [
            token
            for number in sorted(self._texts - self._claimed)
            for token in self._sentence.tokens[self._parts[number].start : self._parts[number].end]
        ]
        text = " ".join(
            self._sentence.text[start:end] for start, end in dict.fromkeys((t.start, t.end) for t in tokens)
        )
        last = tokens[-1] if tokens else None
        if last and last.word.startswith(last.one) and text.casefold().endswith(last.word):
            return text[: len(text) - len(last.word) + len(last.one)]
        return text

    def _step(self, at: int) -> int:
        """Read what begins at a part; return the place after it, or *at* if it means nothing here."""
        part = self._parts[at]
        for rule in (self._denied, self._period, self._quantity, self._flag, self._order, self._role, self._noun):
            end = rule(at)
            if end:
                return end
        if part.values and self._value(at):
            return at + 1
        if part.is_text or not part.roles:
            self._texts.add(at)
        elif not part.has(*_PASSED):
            if part.has(*BOUNDS, "since", "after", "before", "between", "or_more", "or_less"):
                raise UnreadError
            self._texts.add(at)
        return at + 1

    # ------------------------------------------------------------------ rules: each returns the place after it, or 0

    def _denied(self, at: int) -> int:
        part = self._parts[at]
        if not part.has("deny", "without"):
            return 0
        there = self._sentence.after(at + 1, "skip", "having")
        flag = self._sentence.entry(there, "flag")
        if not flag or (part.has("without") and flag == "isOpen"):
            raise UnreadError
        return self._add(flag, "false", at, there + 1, marks=True)

    def _period(self, at: int) -> int:
        period = self._calendar.period_at(at)
        if period is None:
            return 0
        if self._kind == "framework" or any(part.has("begun") for part in self._parts):
            raise UnreadError
        verb = next((n for n, part in enumerate(self._parts) if part.has("updated") and n not in self._claimed), None)
        if verb is not None:
            if period.first is None or (period.last is not None and period.last < self._calendar.today):
                raise UnreadError
            self._claimed.add(verb)
            begin, end = (verb, period.end) if verb == at - 1 else (at, period.end + (verb == period.end))
            return self._add("updatedSince", f"{period.first}T00:00:00Z", begin, end, marks=True)
        if period.first is not None:
            self._add("listedFrom", str(period.first), at, period.end, marks=True)
        if period.last is not None:
            self._add("listedTo", str(period.last), at, period.end, marks=True)
        return period.end

    def _quantity(self, at: int) -> int:
        found = quantity_at(self._sentence, at, self._claimed)
        if found is None:
            return 0
        if found.subject == "companies":
            self._kind = self._kind or "person"
        for name, value in found.parameters:
            self._add(name, value, found.begin, found.end, marks=True)
        return found.end

    def _flag(self, at: int) -> int:
        flag = self._parts[at].roles.get("flag")
        if flag is None or (flag == "isOpen" and self._kind != "framework"):
            return 0
        begin, end = at, at + 1
        if flag in _HELD:
            before, there = self._sentence.before(at, "skip"), self._sentence.after(at + 1, "skip")
            if self._sentence.has(before, "having"):
                begin = before
            elif self._sentence.has(there, "having"):
                end = there + 1
            else:
                return 0
            self.is_marked = True
        return self._add(flag, "true", begin, end)

    def _order(self, at: int) -> int:
        part = self._parts[at]
        if part.has("sort"):
            return self._add("sort", part.roles["sort"], at, at + 1)
        if not part.has("most") or self._is_most is not None:
            return 0
        begin, end = self._sentence.before(at, "skip"), at + 1
        if begin >= 0 and begin not in self._claimed and self._parts[begin].amount is not None:  # "the 5 largest"
            self._claimed.add(begin)
        else:
            begin = at
        is_count = end < len(self._parts) and self._parts[end].amount is not None
        if is_count and subject_at(self._sentence, end + 1) != "treasury":
            end += 1
        self._is_most = begin, end
        self._claimed.update(range(at, end))
        return end

    def _sort_by_size(self, at: int, end: int) -> None:
        """Add the order that "largest" means: by what is named with it, else by treasury."""
        subject = next(
            (n for n in range(len(self._parts)) if n not in self._claimed and self._parts[n].has("treasury", "team")),
            None,
        )
        value = {"person": "companies"}.get(self._kind, "treasury")
        if subject is not None:
            value = "treasury" if self._parts[subject].has("treasury") else "team"
            self._claimed.add(subject)
            if subject == self._sentence.after(end, "skip", "of"):
                end, self.is_marked = subject + 1, True
        if all(chip.name != "sort" for _, chip in self._chips):
            self._add("sort", value, at, end)

    def _role(self, at: int) -> int:
        """Read a title or where people work: "who founded", "founders of", "works at", "people at"."""
        part = self._parts[at]
        title = part.roles.get("title")
        is_person = part.roles.get("noun") == "person"
        if not (title or is_person or part.has("works", "team")):
            return 0
        there = self._sentence.after(at + 1, "skip")
        leads = part.has("works") or title or self._sentence.has(there, "of", "place")
        start = self._sentence.after(at + 1, "skip", "of", "place", "works") if leads else len(self._parts)
        company, end, is_guess = self._company(start, near=bool(title) or part.has("works"))
        if title and not company and (begin := self._begin_of_company(at)) is not None:
            return self._titled(title, at, begin)
        if title and not company and not (self._sentence.any_noun("person") or self._parts[0].has("ask", "title")):
            return 0
        if not company and not title and not is_person:
            return 0
        self._kind = self._kind or "person"
        is_led = bool(company) and (part.has("works") or self._sentence.has(there, "of", "place"))
        self.is_marked = self.is_marked or is_led or is_person
        if title:
            self._add("title", title, at, at + 1)
        if company:
            self._add("company", company, start, end, is_guess=is_guess)
        self._claimed.update(range(at, start if company else at + 1))
        return end if company else at + 1

    def _begin_of_company(self, at: int) -> int | None:
        """Return where the name of a company before a part begins, for languages with the verb behind."""
        begins = range(max(0, at - MAX_WORDS), at)
        return next((each for each in begins if company_named(self._connection, self._sentence.words(each, at))), None)

    def _titled(self, title: str, at: int, begin: int) -> int:
        self._chips = [each for each in self._chips if each[0] < begin]
        self._add(
            "company", company_named(self._connection, self._sentence.words(begin, at)) or "", begin, at, marks=True
        )
        self._kind = self._kind or "person"
        return self._add("title", title, at, at + 1)

    def _noun(self, at: int) -> int:
        part = self._parts[at]
        noun = part.roles.get("noun") or part.roles.get("one")
        if noun is None:
            return 0
        if noun == "company" and part.has("noun") and self._kind:
            raise UnreadError
        # "Data Programs" may be a name.
        self.is_marked = self.is_marked or (part.has("noun") and noun not in {"score", "program"})
        self.has_noun = self.has_noun or part.has("noun")
        self._claimed.add(at)
        if noun in {"score", "program"}:
            self._add("kind", noun, at, at + 1)
        if self._kind == "framework" and noun != "company":
            start = self._sentence.after(at + 1, "skip", "of")
            if start > at + 1 and self._sentence.has(start - 1, "of", "skip"):
                company, end, _ = self._company(start)
                if company:
                    return self._add("company", company, start, end, marks=True)
        return at + 1

    def _value(self, at: int) -> bool:
        """Add a value as a filter; return whether it is one."""
        part, before = self._parts[at], self._sentence.before(at, "skip")
        is_place, is_topic = self._sentence.has(before, "place"), self._sentence.has(before, "topic")
        value = _chosen(part.values, place=is_place, topic=is_topic)
        is_meant = (is_place and value.name in PLACES) or ((is_place or is_topic) and not part.has(*_PASSED))
        if (part.roles and not is_meant) or part.is_text:
            return False
        if self._kind and self._kind != "company":
            if value.name not in TOPICS:
                raise UnreadError
            self._texts.add(at)
            return True
        former = self._last.get(value.name)
        if former is not None and not self._is_joined(former, at):
            if value.name not in TOPICS:
                raise UnreadError
            self._texts.add(at)
            return True
        self._last[value.name] = at
        is_plural = value.name == "type" and any(t.word != t.one for t in self._sentence.tokens[part.start : part.end])
        self._add(value.name, value.value, at, at + 1, marks=is_plural or (is_place and value.name in PLACES))
        return True

    # ------------------------------------------------------------------ parts of rules

    def _add(self, name: str, value: str, begin: int, end: int, *, marks: bool = False, is_guess: bool = False) -> int:
        self._chips.append((begin, Chip(name, value, self._sentence.words(begin, end), is_guess)))
        self._claimed.update(range(begin, end))
        self.is_marked = self.is_marked or marks
        return end

    def _is_joined(self, former: int, at: int) -> bool:
        places = range(former, at)
        return any(self._sentence.closes(each) or (each > former and self._parts[each].has("join")) for each in places)

    def _company(self, at: int, *, near: bool = False) -> tuple[str, int, bool]:
        """
        Return the company that is named, or *near*ly named, from a part on, and the place after its name.

        The last is whether the name is only similar.
        """
        if at >= len(self._parts):
            return "", at, False
        found, end = self._named(at)
        if not found and self._sentence.has(at, "one"):  # "the company Quillmere", but also "Company One"
            return self._company(at + 1, near=near)
        if found:
            return found, end, False
        if near:
            end = len(self._parts)
            found = company_nearly_named(self._connection, self._sentence.words(at, end)) or ""
        return (found, end, True) if found else ("", at, False)

    def _named(self, at: int) -> tuple[str, int]:
        """Return the company that most of the next words name."""
        for end in range(min(len(self._parts), at + MAX_WORDS), at, -1):
            found = company_named(self._connection, self._sentence.words(at, end))
            if found:
                return found, end
        return "", at


def _fits(reading: Reading, listings: Listings) -> bool:
    """Return whether the list of its kind takes all filters of a reading, each as often as it has it."""
    listing = listings[reading.kind]
    if any(chip.name not in {SORT, *listing.criteria} for chip in reading.chips):
        return False
    if reading.kind not in SEARCHED and (reading.q or any(chip.name == SORT for chip in reading.chips)):
        return False
    names = [chip.name for chip in reading.chips if chip.name == SORT or not listing.criteria[chip.name].several]
    if any(chip.value not in listing.sorts for chip in reading.chips if chip.name == SORT):
        return False
    return len(set(names)) == len(names)


def _chosen(values: Sequence[Value], *, place: bool, topic: bool) -> Value:
    """Return the value that is meant: after "in" rather a place, after "on" rather none, else the most frequent."""
    if place or topic:
        return next((each for each in values if (each.name in PLACES) == place), values[0])
    return values[0]
