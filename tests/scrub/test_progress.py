"""A pass of the scrub is spread over its time, ends a turn when its CPU time is used, and continues after a stop."""

import itertools

import pytest

from muniment.scrub.checks import Check, Damage, Slice, in_order
from muniment.scrub.progress import Progress, begun, step, turn

DAY_S = 86_400.0
PASS_S = 7 * DAY_S
BEGAN = 1_800_000_000.0


class Shelf:
    """A check of numbered items, some of which are damaged."""

    def __init__(self, name, items, *damaged, mendable=()):
        self.name, self.items, self.damaged, self.mendable = name, items, set(damaged), set(mendable)
        self.seen = []
        self.check = Check(name=name, fine="each is there", count=lambda: items, look=self.look)

    def look(self, after, limit, mend):
        first = int(after or 0)
        numbers = list(range(first + 1, min(first + limit, self.items) + 1))
        self.seen += numbers
        damages = []
        for number in sorted(self.damaged & set(numbers)):
            mended = mend and number in self.mendable
            self.damaged -= {number} if mended else set()
            damages.append(self.damage(number, is_mended=mended))
        last = numbers[-1] if numbers else first
        return Slice(len(numbers), damages, str(last) if last < self.items else None)

    def damage(self, number, **more):
        return Damage(check=self.name, subject=str(number), says="is torn", remedy="replace it", **more)


def run(progress, shelves, *, at, **more):
    return turn(progress, [shelf.check for shelf in shelves], at=at, pass_s=PASS_S, **more)


def test_the_first_pass_begins_an_hour_after_the_first_turn():
    shelf = Shelf("books", 100)
    waiting = run(Progress(), [shelf], at=BEGAN)
    assert run(waiting, [shelf], at=BEGAN + 3_599) == waiting
    assert run(waiting, [shelf], at=BEGAN + 3_601).check == "books"


def test_a_pass_is_spread_over_its_time_and_done_before_the_next_one():
    books, maps = Shelf("books", 3_000), Shelf("maps", 1_000)
    progress = run(Progress(began_at=BEGAN - PASS_S), [books, maps], at=BEGAN)
    shares = []
    for day in range(1, 7):
        progress = run(progress, [books, maps], at=BEGAN + day * DAY_S)
        shares.append(progress.examined / 4_000)
    assert shares == pytest.approx([day / 6.3 for day in range(1, 7)], abs=0.01)
    progress = run(progress, [books, maps], at=BEGAN + 6.5 * DAY_S)
    assert (progress.check, progress.finished_at) == ("", BEGAN + 6.5 * DAY_S)
    assert books.seen == list(range(1, 3_001))
    assert maps.seen == list(range(1, 1_001))
    assert run(progress, [books, maps], at=BEGAN + 6.9 * DAY_S) == progress
    assert run(progress, [books, maps], at=BEGAN + 7 * DAY_S).began_at == BEGAN + 7 * DAY_S


def test_a_turn_ends_when_its_cpu_time_is_used():
    shelf = Shelf("books", 3_000)
    clock = itertools.count()
    progress = begun(Progress(), [shelf.check], at=BEGAN)
    late = run(progress, [shelf], at=BEGAN + 2 * PASS_S, cpu_s=5, cpu=lambda: float(next(clock)))
    assert late.examined == 4 * 20, "one part for each second of the clock"
    assert run(late, [shelf], at=BEGAN + 2 * PASS_S).finished_at == BEGAN + 2 * PASS_S


def test_a_pass_continues_where_it_was_stopped():
    shelf = Shelf("books", 100)
    stored = []

    def killed(progress):
        stored.append(progress)
        if len(stored) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(begun(Progress(), [shelf.check], at=BEGAN), [shelf], at=BEGAN + PASS_S, between=killed)
    done = run(stored[-1], [shelf], at=BEGAN + PASS_S)
    assert shelf.seen == list(range(1, 101))
    assert done.finished_at


def test_damage_stays_known_until_the_same_place_is_whole_again(caplog):
    books, maps = Shelf("books", 40, 7, 30, mendable=[30]), Shelf("maps", 20, 3)
    every = [books.check, maps.check]
    progress = begun(Progress(), every, at=BEGAN)
    assert progress.open(every) == []
    while progress.check:
        progress = step(progress, every, at=BEGAN)
    assert progress.open(every) == [books.damage(7), maps.damage(3)]
    assert progress.mended == 1
    assert "mended: 30: is torn; replace it" in caplog.text
    assert "damaged: 7: is torn; replace it" in caplog.text
    books.damaged.clear()
    progress = begun(progress, every, at=BEGAN + PASS_S)
    assert progress.open(every) == [books.damage(7), maps.damage(3)], "not looked at again yet"
    progress = step(step(progress, every, at=BEGAN), every, at=BEGAN)
    assert progress.check == "maps"
    assert progress.open(every) == [maps.damage(3)]


def test_a_check_that_is_no_longer_there_begins_the_pass_again():
    shelf = Shelf("books", 10)
    gone = Progress(began_at=BEGAN, check="scrolls", examined=5, total=10)
    assert step(gone, [shelf.check], at=BEGAN + 1) == begun(gone, [shelf.check], at=BEGAN + 1)


def test_what_heals_by_itself_is_no_damage():
    minor = Damage(check="books", subject="8", says="is on the floor", remedy="it is put back", is_minor=True)
    check = Check(name="books", fine="", count=lambda: 1, look=lambda *_: Slice(1, [minor], None))
    assert step(begun(Progress(), [check], at=BEGAN), [check], at=BEGAN).former == ()


def test_keys_are_taken_in_order_also_after_one_that_is_gone():
    keys = ["a", "b", "c"]
    assert in_order(keys, "", 2) == (["a", "b"], "b")
    assert in_order(keys, "b", 2) == (["c"], None)
    assert in_order(keys, "gone", 9) == (keys, None)
    assert in_order([], "", 9) == ([], None)
