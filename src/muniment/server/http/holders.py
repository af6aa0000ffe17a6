"""
Holders: which client address holds which connections and body bytes, so that no address takes them from the others.

A connection counts for its client's address. A connection of a trusted proxy carries many clients: it counts for the
client that the proxy names, while it carries a request of that client. Every event costs constant time, except closing
idle connections, which closes several at once.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from heapq import nsmallest
from itertools import chain
from typing import Final, Protocol

MAX_CONNECTIONS: Final = 4_000
"""Of a process. Each takes about 10 KB at rest, and a browser opens six; `file_limit` may allow fewer."""
MAX_CONNECTIONS_PER_ADDRESS: Final = 256
"""An office behind one address has enough; 16 addresses must work together to take all connections of a process."""
SMALL: Final = 16
SMALL_PART: Final = 250
"""A holder of at most this part of all connections is small, and of 16 at most: browsers and agents have fewer."""
ADDRESS_BYTES: Final = 32 << 20
TOTAL_BYTES: Final = 80 << 20
"""For all bodies and what is sent ahead, below the limit of the forms; the address with most of it makes room."""
HONEST_S: Final = 1.0
"""An ordinary request arrives within this time, so an older unfinished one makes room before an idle connection."""


class Member(Protocol):
    """A connection, as its holder sees it."""

    holder: "Holder | None"
    held_bytes: int
    is_unfinished: bool

    @property
    def is_working(self) -> bool:
        """Return whether a response to a complete request is being made, and the client reads it."""

    @property
    def waiting_since(self) -> float:
        """Return since when its client has been expected to send."""

    def evict(self) -> None:
        """End the connection."""


class Holder:
    """A client address, its connections, and those of them whose request has not arrived completely."""

    __slots__ = ("address", "body_bytes", "members", "unfinished")

    def __init__(self, address: str) -> None:
        self.address = address
        self.members: dict[Member, None] = {}
        self.unfinished: OrderedDict[Member, None] = OrderedDict()
        """From the oldest to the newest."""
        self.body_bytes = 0


class Holders:
    """
    The holders of a process.

    Args:
        max_connections: of the process; the largest holder makes room for another.
        per_address: connections, and requests through a trusted proxy.
        address_bytes: body bytes, and bytes sent ahead, in memory of one address.
        total_bytes: the same of all addresses.
        count_refusal: gets the name of the limit for which a connection or request is ended or refused.
    """

    def __init__(
        self,
        max_connections: int,
        per_address: int,
        *,
        address_bytes: int = ADDRESS_BYTES,
        total_bytes: int = TOTAL_BYTES,
        count_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.limit_connections(max_connections)
        self.body_bytes = 0
        self._refused = count_refusal
        self._per_address = per_address
        self._address_bytes, self._total_bytes = address_bytes, total_bytes
        self._holders: dict[str, Holder] = {}
        self._by_size: dict[int, OrderedDict[Holder, None]] = {}
        self._largest = 0

    def limit_connections(self, max_connections: int) -> None:
        self.max_connections = max_connections
        self._small = max(1, min(SMALL, max_connections // SMALL_PART))

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def largest(self) -> int:
        """Return the number of connections of the largest holder."""
        return self._largest

    @property
    def unfinished(self) -> int:
        return sum(len(holder.unfinished) for holder in self._holders.values())

    def enter(self, member: Member, address: str) -> bool:
        """Count *member* for *address*; return False if the address holds too many, and each of them is busy."""
        holder = self._holders.get(address)
        if holder is not None and len(holder.members) >= self._per_address:
            self._refused("connections")
            if not self._evict_from(holder):
                return False
            holder = self._holders.get(address)  # the last one may have gone
        if holder is None:
            holder = self._holders[address] = Holder(address)
        member.holder = holder
        holder.members[member] = None
        if member.is_unfinished:
            holder.unfinished[member] = None
        self._resized(holder, len(holder.members) - 1)
        return True

    def leave(self, member: Member) -> None:
        """Stop counting *member*; without effect if it is not counted."""
        self.release(member)
        holder = member.holder
        if holder is None:
            return
        member.holder = None
        del holder.members[member]
        holder.unfinished.pop(member, None)
        self._resized(holder, len(holder.members) + 1)
        if not holder.members:
            del self._holders[holder.address]

    def mark(self, member: Member) -> None:
        """Note whether the request of *member* is unfinished; a new unfinished one is the newest of its holder."""
        holder = member.holder
        if holder is None:
            return
        holder.unfinished.pop(member, None)
        if member.is_unfinished:
            holder.unfinished[member] = None

    def make_room(self, everyone: Collection[Member], newcomer: Member, now: float) -> bool:
        """
        End a connection of the largest holder, or the one that has waited longest if every holder is small.

        An unfinished request goes first, the oldest one; then the most idle connection. Return False if every
        connection is busy.
        """
        self._refused("all_connections")
        for size in range(self._largest, self._small, -1):
            for holder in list(self._by_size.get(size, ())):
                if self._evict_from(holder):
                    return True

        def rank(member: Member) -> tuple[bool, float]:
            since = member.waiting_since
            return not (member.is_unfinished and now - since > HONEST_S), since

        waiting = [each for each in everyone if each is not newcomer and not each.is_working]
        return self._evict(nsmallest(max(1, len(everyone) // 100), waiting, key=rank))

    def hold(self, member: Member, count: int) -> bool:
        """Count *count* body bytes for *member*; return False if there are too many of its address, or of all."""
        member.held_bytes += count
        self.body_bytes += count
        holder = member.holder
        if holder is not None:
            holder.body_bytes += count
            if holder.body_bytes > self._address_bytes:
                self._refused("body_bytes")
                return False
        return self.body_bytes <= self._total_bytes or self._relieve(member)

    def release(self, member: Member) -> None:
        """Stop counting the body bytes of *member*."""
        count, member.held_bytes = member.held_bytes, 0
        self.body_bytes -= count
        if member.holder is not None:
            member.holder.body_bytes -= count

    def _relieve(self, member: Member) -> bool:
        """
        End a connection of the address with most bytes, unless it is the address of *member*.

        The oldest unfinished request goes first; then a connection whose client sent ahead and that does not work.
        """
        self._refused("all_body_bytes")
        largest = max(self._holders.values(), key=lambda holder: holder.body_bytes, default=None)
        if largest is None or largest is member.holder:
            return False
        unfinished = (each for each in largest.unfinished if each.held_bytes)
        ahead = (each for each in largest.members if each.held_bytes and not each.is_working)
        found = next(chain(unfinished, ahead), None)
        return found is not None and self._evict([found])

    def _evict_from(self, holder: Holder) -> bool:
        if holder.unfinished:
            return self._evict([next(iter(holder.unfinished))])
        idle = [each for each in holder.members if not each.is_working]
        return self._evict(nsmallest(max(1, len(holder.members) // 32), idle, key=lambda each: each.waiting_since))

    def _evict(self, members: list[Member]) -> bool:
        for member in members:
            self.leave(member)
            member.evict()
        return bool(members)

    def _resized(self, holder: Holder, before: int) -> None:
        size = len(holder.members)
        if before:
            former = self._by_size[before]
            del former[holder]
            if not former:
                del self._by_size[before]
        if size:
            self._by_size.setdefault(size, OrderedDict())[holder] = None
        if size > self._largest or (before == self._largest and before not in self._by_size):
            self._largest = size
