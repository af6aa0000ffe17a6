"""
Mark the words that differ between two texts, within a budget of work.

What both texts begin and end with is found in time that grows with their length alone. The words between are compared
by the algorithm of Myers, whose work grows with their number times that of the differences; beyond the budget the lines
are compared in place of the words, and then the text between counts as replaced.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from django.utils.safestring import SafeString, mark_safe

STEPS: Final = 60_000
"""Words read and compared for one page."""
STEPS_OF_ONE: Final = 20_000
"""Words read and compared for one pair of texts, out of those of the page."""
_WORDS: Final = re.compile(r"\s+|\S+")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")
_EDGE: Final = re.compile(r"\s")


@dataclass(slots=True)
class Budget:
    """
    The work that may still be done for a page.

    Args:
        left: steps.
        spent: steps that were done.
    """

    left: int = STEPS
    spent: int = 0

    def take(self, steps: int) -> bool:
        """Return whether *steps* were left, and take them."""
        if steps > self.left:
            return False
        self.left -= steps
        self.spent += steps
        return True


def mark(was: str, now: str, budget: Budget) -> tuple[SafeString, SafeString]:
    """Return both texts as HTML, with the words that only one of them has marked as deleted or inserted."""
    if not was or not now or was == now:
        return _safe(escape(was)), _safe(escape(now))
    head, tail = _common(was, now)
    old, new = was[head : len(was) - tail], now[head : len(now) - tail]
    front, back = escape(was[:head]), escape(was[len(was) - tail :])
    left, right = [front], [front]
    for is_same, before, after in _whole(list(_changes(old, new, budget))):
        left.append(escape(before) if is_same else _element("del", before))
        right.append(escape(after) if is_same else _element("ins", after))
    return _safe("".join((*left, back))), _safe("".join((*right, back)))


def _whole(changes: list[tuple[bool, str, str]]) -> list[tuple[bool, str, str]]:
    """Return *changes*, as a single one where no word is the same: marks with gaps between would be hard to read."""
    if any(is_same and before.strip() for is_same, before, _ in changes):
        return changes
    return [(False, "".join(before for _, before, _ in changes), "".join(after for *_, after in changes))]


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 - every text in it passed through escape


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>" if text else ""


def _common(was: str, now: str) -> tuple[int, int]:
    """Return the lengths of the beginning and of the end that both texts share, which end and begin at white space."""
    head, tail = shared_ends(was, now)
    if head < max(len(was), len(now)):
        head = _back_to_edge(was[:head])
    if tail < max(len(was), len(now)) - head:
        tail = _back_to_edge(was[len(was) - tail :][::-1])
    return head, tail


def shared_ends(was: str, now: str) -> tuple[int, int]:
    """Return how many characters both texts begin with, and how many of the others they end with."""
    head = _shared(was, now, lambda text, size: text[:size])
    most = min(len(was), len(now)) - head
    tail = _shared(was[len(was) - most :], now[len(now) - most :], lambda text, size: text[len(text) - size :])
    return head, tail


def _shared(was: str, now: str, part: Callable[[str, int], str]) -> int:
    """Return the largest size at which the parts of both texts are equal, by halving."""
    least, most = 0, min(len(was), len(now))
    while least < most:
        size = (least + most + 1) // 2
        if part(was, size) == part(now, size):
            least = size
        else:
            most = size - 1
    return least


def _back_to_edge(text: str) -> int:
    for match in _EDGE.finditer(text[::-1]):
        return len(text) - match.start()
    return 0


def _changes(old: str, new: str, budget: Budget) -> Iterator[tuple[bool, str, str]]:
    """Yield the pieces of both texts in order: equal ones, and those that replace each other."""
    for pattern in (_WORDS, _LINES):
        if not old or not new:
            break
        if not budget.take((len(old) + len(new)) // 50):  # reading is cheaper than comparing
            break
        before, after = pattern.findall(old), pattern.findall(new)
        found = _pairs(before, after, min(STEPS_OF_ONE, budget.left), budget)
        if found is not None:
            yield from _pieces(before, after, found)
            return
    yield False, old, new


def _pieces(
    before: Sequence[str], after: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> Iterator[tuple[bool, str, str]]:
    x = y = 0
    for i, j in (*pairs, (len(before), len(after))):
        if i > x or j > y:
            yield False, "".join(before[x:i]), "".join(after[y:j])
        if i < len(before) and j < len(after):
            yield True, before[i], after[j]
        x, y = i + 1, j + 1


def _pairs(before: Sequence[str], after: Sequence[str], limit: int, budget: Budget) -> list[tuple[int, int]] | None:
    """
    Return the indexes of equal items in a longest common subsequence, or None beyond *limit* steps.

    Source: E. Myers, An O(ND) Difference Algorithm and Its Variations, 1986.
    """
    n, m = len(before), len(after)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    steps = 0
    for distance in range(n + m + 1):
        trace.append(furthest)
        furthest = dict(furthest)
        for k in range(-distance, distance + 1, 2):
            down = k == -distance or (k != distance and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = start = x - k
            while x < n and y < m and before[x] == after[y]:
                x, y = x + 1, y + 1
            steps += 1 + y - start
            furthest[k] = x
            if x >= n and y >= m:
                budget.take(min(steps, budget.left))
                return _path(trace, n, m)
        if steps > limit:
            break
    budget.take(min(steps, budget.left))
    return None


def _path(trace: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for distance in range(len(trace) - 1, -1, -1):
        furthest, k = trace[distance], x - y
        down = k == -distance or (k != distance and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
        former = k + 1 if down else k - 1
        end_x = furthest[former] if distance else 0
        end_y = end_x - former if distance else 0
        while x > end_x and y > end_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = end_x, end_y
    pairs.reverse()
    return pairs
