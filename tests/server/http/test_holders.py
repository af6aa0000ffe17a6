"""No address takes the connections or the memory from the others: the largest holder makes room first."""

import pytest

from muniment.server.http.holders import SMALL, Holders


class Connection:
    """A connection that waits for a request, or is idle or busy; it counts how often it is looked at."""

    looked_at = 0

    def __init__(self, since=0.0, *, is_unfinished=False, is_working=False):
        self.holder = None
        self.held_bytes = 0
        self.is_unfinished = is_unfinished
        self._is_working, self._since = is_working, since
        self.has_ended = False

    @property
    def is_working(self):
        Connection.looked_at += 1
        return self._is_working

    @property
    def waiting_since(self):
        return self._since

    def evict(self):
        assert self.holder is None, "it no longer counts when it ends"
        self.has_ended = True


class Process:
    """The connections of a process, which arrive as its server lets them."""

    def __init__(self, most=100, per_address=1000, **more):
        self.refused = []
        self.holders = Holders(most, per_address, count_refusal=self.refused.append, **more)
        self.open = set()
        self.now = 100.0

    def arrive(self, address, **state):
        """Return a new connection, or None if it is refused."""
        connection = Connection(self.now, **state)
        self.open.add(connection)
        if len(self.open) > self.holders.max_connections and not self.holders.make_room(
            self.open, connection, self.now
        ):
            self.open.discard(connection)
            return None
        entered = self.holders.enter(connection, address)
        self.open = {each for each in self.open if not each.has_ended}
        if not entered:
            self.open.discard(connection)
            return None
        self.now += 0.001
        return connection

    def leave(self, connection):
        self.holders.leave(connection)
        self.open.discard(connection)


def test_over_its_own_limit_an_address_loses_its_oldest_unfinished_request():
    process = Process(per_address=3)
    idle, first, second = (process.arrive("a", is_unfinished=unfinished) for unfinished in (False, True, True))
    other = process.arrive("b", is_unfinished=True)
    assert process.arrive("a", is_unfinished=True)
    assert (first.has_ended, second.has_ended, idle.has_ended, other.has_ended) == (True, False, False, False)
    assert process.refused == ["connections"]


def test_what_a_connection_without_a_client_has_sent_counts_for_all_together():
    process = Process(total_bytes=100)
    nameless = Connection()
    assert process.holders.hold(nameless, 100)
    assert process.refused == []
    assert not process.holders.hold(process.arrive("a"), 1), "only its own bytes could make room"
    assert process.refused == ["all_body_bytes"]
    process.holders.release(nameless)
    assert process.holders.body_bytes == 1


def test_a_request_that_begins_later_is_newer_than_one_that_has_begun():
    process = Process(per_address=2)
    first, second = (process.arrive("a", is_unfinished=True) for _ in range(2))
    process.holders.mark(first)
    process.arrive("a", is_unfinished=True)
    assert (first.has_ended, second.has_ended) == (False, True)


def test_an_address_without_unfinished_requests_loses_its_most_idle_connection():
    process = Process(per_address=3)
    busy = process.arrive("a", is_working=True)
    old, new = process.arrive("a"), process.arrive("a")
    process.arrive("a")
    assert (busy.has_ended, old.has_ended, new.has_ended) == (False, True, False)


def test_an_address_whose_connections_are_all_busy_gets_no_other():
    process = Process(per_address=3)
    busy = [process.arrive("a", is_working=True) for _ in range(3)]
    assert process.arrive("a") is None
    assert not any(each.has_ended for each in busy)
    assert process.arrive("b") is not None


def test_the_largest_holder_makes_room_for_a_visitor_and_small_ones_keep_all():
    process = Process(100)
    honest = [process.arrive(f"honest {number}", is_working=number % 2) for number in range(20)]
    hoard = [process.arrive("idle hoard") for _ in range(30)]
    attack = [process.arrive("attacker", is_unfinished=True) for _ in range(50)]
    assert process.refused == []
    visitors = [process.arrive(f"visitor {number}", is_unfinished=True) for number in range(40)]
    assert all(visitors)
    assert not any(each.has_ended for each in honest + visitors)
    left = [sum(not each.has_ended for each in group) for group in (attack, hoard)]
    assert max(left) - min(left) <= 1, "both are held to the same share"
    assert [each.has_ended for each in attack].index(False) == 50 - left[0], "the oldest go first"
    assert set(process.refused) == {"all_connections"}


def test_a_larger_holder_that_is_busy_keeps_its_connections_and_the_next_one_makes_room():
    process = Process(60)
    busy = [process.arrive("busy", is_working=True) for _ in range(40)]
    unfinished = [process.arrive("slow", is_unfinished=True) for _ in range(20)]
    assert process.arrive("visitor")
    assert not any(each.has_ended for each in busy)
    assert [each.has_ended for each in unfinished] == [True] + [False] * 19


def test_among_small_holders_old_unfinished_requests_go_before_idle_connections():
    process = Process(60)
    idle = [process.arrive(f"idle {number}") for number in range(30)]
    slow = [process.arrive(f"slow {number}", is_unfinished=True) for number in range(20)]
    process.now += 2
    prompt = [process.arrive(f"prompt {number}", is_unfinished=True) for number in range(10)]
    visitors = [process.arrive(f"visitor {number}") for number in range(25)]
    assert all(visitors)
    assert all(each.has_ended for each in slow)
    assert [each.has_ended for each in idle] == [True] * 5 + [False] * 25
    assert not any(each.has_ended for each in prompt)


def test_if_every_connection_is_busy_a_newcomer_is_refused():
    process = Process(20)
    busy = [process.arrive(f"busy {number}", is_working=True) for number in range(20)]
    assert process.arrive("visitor") is None
    process.leave(busy.pop())
    assert process.arrive("visitor") is not None


@pytest.mark.parametrize("is_unfinished", [True, False])
def test_a_flood_costs_constant_work_for_each_connection(is_unfinished):
    process = Process(4000, per_address=256)
    Connection.looked_at = 0
    for _ in range(4700):
        process.arrive("attacker", is_unfinished=is_unfinished)
    assert Connection.looked_at <= 40 * 4700
    for number in range(5000):
        process.arrive(f"{number // 20}", is_unfinished=is_unfinished)
    assert Connection.looked_at <= 100 * 9700
    assert len(process.open) <= 4000


def test_nothing_is_kept_of_connections_that_have_closed():
    process = Process(1000)
    connections = [
        process.arrive(f"{number % 70}", is_unfinished=bool(number % 3), is_working=not number % 2)
        for number in range(500)
    ]
    assert (len(process.holders), process.holders.largest) == (70, 8)
    assert process.holders.unfinished == sum(bool(number % 3) for number in range(500))
    for connection in connections:
        process.leave(connection)
        process.leave(connection)
    assert (len(process.holders), process.holders.largest, process.holders.unfinished) == (0, 0, 0)
    assert process.holders._by_size == {}


def test_body_bytes_of_an_address_are_limited_and_returned():
    process = Process(address_bytes=100, total_bytes=1000)
    first, second = process.arrive("a"), process.arrive("a")
    assert process.holders.hold(first, 60)
    assert not process.holders.hold(second, 60)
    assert process.refused == ["body_bytes"]
    assert process.holders.hold(process.arrive("b"), 60)
    process.holders.release(first)
    process.leave(second)
    assert process.holders.body_bytes == 60
    assert process.holders.hold(process.arrive("a"), 100)


def test_the_address_with_most_body_bytes_makes_room_for_another():
    process = Process(address_bytes=100, total_bytes=150)
    first, second = (process.arrive("a", is_unfinished=True) for _ in range(2))
    assert process.holders.hold(second, 90)
    other = process.arrive("b", is_unfinished=True)
    assert process.holders.hold(other, 70)
    assert (first.has_ended, second.has_ended, process.holders.body_bytes) == (False, True, 70)
    last = process.arrive("c", is_working=True)
    assert process.holders.hold(last, 75)
    assert not process.holders.hold(last, 10), "its own address has most of them"


def test_all_body_bytes_may_be_held():
    process = Process(address_bytes=100, total_bytes=150)
    first, second = process.arrive("a", is_unfinished=True), process.arrive("b", is_unfinished=True)
    assert process.holders.hold(first, 100)
    assert process.holders.hold(second, 50)
    assert (first.has_ended, process.refused) == (False, [])


def test_an_address_with_most_body_bytes_is_refused_rather_than_loses_another_request():
    process = Process(address_bytes=100, total_bytes=150)
    kept, other = (process.arrive(address, is_unfinished=True) for address in "ab")
    assert process.holders.hold(kept, 70)
    assert process.holders.hold(other, 60)
    assert not process.holders.hold(process.arrive("a", is_unfinished=True), 25)
    assert (kept.has_ended, other.has_ended) == (False, False)


def test_a_paused_connection_makes_room_after_the_unfinished_requests_of_its_address_and_a_working_one_never():
    process = Process(address_bytes=100, total_bytes=100)
    working = process.arrive("a", is_working=True)
    paused, empty = process.arrive("a"), process.arrive("a")
    unfinished = process.arrive("a", is_unfinished=True)
    assert all(process.holders.hold(each, 30) for each in (working, paused, unfinished))
    other = process.arrive("b", is_working=True)
    assert process.holders.hold(other, 11)
    assert [each.has_ended for each in (working, paused, empty, unfinished)] == [False, False, False, True]
    assert process.holders.hold(other, 30)
    assert [each.has_ended for each in (working, paused, empty)] == [False, True, False]
    assert not process.holders.hold(process.arrive("c", is_working=True), 30), "working ones are kept"


def network(number):
    """Return an address of one site: the network of a client."""
    return f"2001:db8:1:{number:x}::/64"


OTHERS = ("2001:db8:2::/64", "192.0.2.1")


def test_a_site_holds_a_tenth_of_the_connections_and_its_oldest_unfinished_request_makes_room():
    process = Process(100, per_address=4)
    others = [process.arrive(other) for other in OTHERS]
    attack = [process.arrive(network(number), is_unfinished=True) for number in range(10)]
    assert process.refused == []
    assert process.arrive(network(10), is_unfinished=True)
    assert [each.has_ended for each in attack] == [True] + [False] * 9
    assert not any(each.has_ended for each in others)
    assert process.refused == ["connections"]
    assert process.holders.unfinished == 10


def test_a_site_holds_as_many_connections_as_one_address():
    process = Process(100, per_address=20)
    assert all(process.arrive(network(number)) for number in range(20))
    assert process.refused == []
    process.arrive(network(20))
    assert process.refused == ["connections"]


def test_within_a_site_the_largest_address_makes_room():
    process = Process(1_000, per_address=90)
    small = [process.arrive(network(number), is_unfinished=True) for number in range(20)]
    attack = [process.arrive(network(99), is_unfinished=True) for _ in range(80)]
    assert process.arrive(network(30), is_unfinished=True)
    assert [each.has_ended for each in attack] == [True] + [False] * 79
    assert not any(each.has_ended for each in small)


def test_within_a_site_of_small_addresses_the_oldest_unfinished_request_makes_room():
    process = Process(10 * SMALL, per_address=SMALL)
    idle = process.arrive(network(1))
    oldest = process.arrive(network(2), is_unfinished=True)
    for number in range(3, process.holders.per_site + 1):
        assert process.arrive(network(number), is_unfinished=True)
    assert process.arrive(network(99), is_unfinished=True)
    assert (idle.has_ended, oldest.has_ended) == (False, True)


def test_a_site_whose_connections_are_all_busy_gets_no_other():
    process = Process(10, per_address=1)
    assert process.arrive(network(1), is_working=True)
    assert process.arrive(network(2)) is None
    assert all(process.arrive(other) for other in OTHERS)


def test_a_site_may_begin_again_after_all_its_connections_have_ended():
    process = Process(10, per_address=1)
    former = process.arrive(network(1))
    assert process.arrive(network(2))
    assert former.has_ended
    assert len(process.holders) == 1


def test_body_bytes_of_a_site_are_limited_like_those_of_an_address_and_returned():
    process = Process(address_bytes=100, total_bytes=1000)
    first, second = (process.arrive(network(number), is_unfinished=True) for number in range(2))
    assert process.holders.hold(first, 60)
    assert process.holders.hold(second, 40)
    assert process.refused == []
    assert process.holders.hold(second, 1)
    assert (first.has_ended, process.refused) == (True, ["body_bytes"])
    assert not process.holders.hold(second, 60), "its own address has most of them"
    process.leave(second)
    assert process.holders.body_bytes == 0
    assert process.holders.hold(process.arrive(network(0)), 100)


def test_a_site_holds_a_tenth_of_all_body_bytes_if_that_is_more():
    process = Process(address_bytes=50, total_bytes=1000)
    first, second, third = (process.arrive(network(number), is_unfinished=True) for number in range(3))
    assert all(process.holders.hold(each, 50) for each in (first, second))
    assert not first.has_ended
    assert process.holders.hold(third, 1)
    assert first.has_ended


def test_nothing_is_kept_of_the_connections_of_a_site_that_have_closed():
    process = Process(1_000)
    connections = [process.arrive(network(number % 7), is_unfinished=number % 3) for number in range(50)]
    for connection in connections:
        process.holders.mark(connection)
        process.leave(connection)
    assert (len(process.holders), process.holders._sites, process.holders.unfinished) == (0, {}, 0)
