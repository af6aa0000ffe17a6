"""A scheduled backup rests in proportion to its work."""

from muniment.backup.scheduled.pace import Pace


class Clock:
    def __init__(self):
        self.at, self.slept = 0.0, []

    def __call__(self):
        return self.at

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.at += seconds


def test_it_rests_as_long_as_it_worked_and_a_second_at_most():
    clock = Clock()
    pace = Pace(0.5, clock=clock, sleep=clock.sleep)

    def work():
        for seconds in (0.1, 0.4, 3.0):
            clock.at += seconds
            yield seconds

    assert list(pace.through(work())) == [0.1, 0.4, 3.0]
    assert [round(each, 6) for each in clock.slept] == [0.1, 0.4, 1.0]


def test_without_a_limit_it_never_rests():
    clock = Clock()
    pace = Pace(1, clock=clock, sleep=clock.sleep)
    clock.at += 5
    pace.rest()
    assert clock.slept == []
