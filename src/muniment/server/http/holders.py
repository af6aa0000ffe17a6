"""
Holders: which client address holds which connections and body bytes, so that no address takes them from the others.

A connection counts for its client's address. A connection of a trusted proxy carries many clients: it counts for the
client that the proxy names, while it carries a request of that client. Every event costs constant time, except closing
idle connections, which closes several at once, and making room in a site, which looks at its addresses.

An IPv6 client is a network of 64 bits, of which one site, a network of 48 bits, has 65,536. So a site holds a limited
part too; within it, the largest of its addresses makes room.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from heapq import nsmallest
from typing import Final, Protocol

from muniment.kernel.http.addresses import site_key

MAX_CONNECTIONS: Final = 8_000
"""The limit of a process, lower where few files may be open. An idle one takes about 10 KB; a browser opens six."""
MAX_CONNECTIONS_PER_ADDRESS: Final = 256
"""Enough for an office behind one address; to take all connections of a process, 32 addresses must work together."""
_REMEMBERED: Final = 4096
SMALL: Final = 16
SMALL_PART: Final = 250
"""A holder of at most this part of all connections is small, and of 16 at most: browsers and agents have fewer."""
ADDRESS_BYTES: Final = 32 << 20
TOTAL_BYTES: Final = 80 << 20
"""The limit of all bodies and bytes sent ahead, below that of the forms; the address with the most makes room."""
PART_OF_A_SITE: Final = 10
"""A site may hold a tenth of all connections and body bytes, and never less than one address may."""
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

    __slots__ = ("address", "body_bytes", "members", "site", "unfinished")

    def __init__(self, address: str, site: "Site | None" = None) -> None:
        self.address, self.site = address, site
        self.members: dict[Member, None] = {}
        self.unfinished: OrderedDict[Member, None] = OrderedDict()
        """From the oldest to the newest."""
        self.body_bytes = 0


class Site(Holder):
    """A site of many client addresses, which together hold no more than a part of everything."""

    __slots__ = ("holders",)

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.holders: dict[Holder, None] = {}


class Holders:
    """
    The holders of a process.

    Args:
        max_connections: the maximum connections of the process; the largest holder makes room for another.
        per_address: the maximum connections of an address, and its requests through a trusted proxy.
        address_bytes: the maximum body bytes, and bytes sent ahead, that one address has in memory.
        total_bytes: the maximum of all addresses together.
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
        self._sites: dict[str, Site] = {}
        self._site_of = lru_cache(_REMEMBERED)(site_key)
        self._by_size: dict[int, OrderedDict[Holder, None]] = {}
        self._largest = 0

    def limit_connections(self, max_connections: int) -> None:
        self.max_connections = max_connections
        self._small = max(1, min(SMALL, max_connections // SMALL_PART))

    @property
    def per_site(self) -> int:
        """Return how many connections the addresses of a site may have together."""
        return max(self._per_address, self.max_connections // PART_OF_A_SITE)

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
        """
        Count *member* for *address*.

        Return False if the address, or the site that it belongs to, holds too many, and each of them is busy.
        """
        holder = self._holders.get(address)
        if holder is not None and len(holder.members) >= self._per_address:
            self._refused("connections")
            if not self._evict_from(holder):
                return False
        name = self._site_of(address)
        site = self._sites.get(name) if name is not None else None
        if site is not None and len(site.members) >= self.per_site:
            self._refused("connections")
            if not self._evict_from_site(site):
                return False
        holder = self._holders.get(address) or self._begin(address, name)  # the last connection may have gone
        member.holder = holder
        for each in _counted(holder):
            each.members[member] = None
            if member.is_unfinished:
                each.unfinished[member] = None
        self._resized(holder, len(holder.members) - 1)
        return True

    def _begin(self, address: str, name: str | None) -> Holder:
        site = None
        if name is not None:
            site = self._sites.get(name)
            if site is None:
                site = self._sites[name] = Site(name)
        holder = self._holders[address] = Holder(address, site)
        if site is not None:
            site.holders[holder] = None
        return holder

    def leave(self, member: Member) -> None:
        """Stop counting *member*; without effect if it is not counted."""
        self.release(member)
        holder = member.holder
        if holder is None:
            return
        member.holder = None
        for each in _counted(holder):
            del each.members[member]
            each.unfinished.pop(member, None)
        self._resized(holder, len(holder.members) + 1)
        if holder.members:
            return
        del self._holders[holder.address]
        site = holder.site
        if site is not None:
            del site.holders[holder]
            if not site.holders:
                del self._sites[site.address]

    def mark(self, member: Member) -> None:
        """Note whether the request of *member* is unfinished; a new unfinished one is the newest of its holder."""
        holder = member.holder
        if holder is None:
            return
        for each in _counted(holder):
            each.unfinished.pop(member, None)
            if member.is_unfinished:
                each.unfinished[member] = None

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

        waiting = [member for member in everyone if member is not newcomer and not member.is_working]
        count = max(1, len(everyone) // 100)
        return self._evict(nsmallest(count, waiting, key=rank))

    def hold(self, member: Member, count: int) -> bool:
        """Count *count* body bytes for *member*; return False if its address, its site or all have too many."""
        member.held_bytes += count
        self.body_bytes += count
        holder = member.holder
        if holder is not None:
            for each in _counted(holder):
                each.body_bytes += count
            if holder.body_bytes > self._address_bytes:
                self._refused("body_bytes")
                return False
            site = holder.site
            site_bytes = max(self._address_bytes, self._total_bytes // PART_OF_A_SITE)
            if site is not None and site.body_bytes > site_bytes:
                self._refused("body_bytes")
                if not self._relieve(member, site.holders):
                    return False
        if self.body_bytes <= self._total_bytes:
            return True
        self._refused("all_body_bytes")
        return self._relieve(member, self._holders.values())

    def release(self, member: Member) -> None:
        """Stop counting the body bytes of *member*."""
        count, member.held_bytes = member.held_bytes, 0
        self.body_bytes -= count
        if member.holder is not None:
            for each in _counted(member.holder):
                each.body_bytes -= count

    def _relieve(self, member: Member, holders: Iterable[Holder]) -> bool:
        """
        End a connection of the holder with the most bytes, unless that is the address of *member*.

        The oldest unfinished request goes first; then a connection whose client sent ahead and that does not work.
        """
        largest = max(holders, key=lambda holder: holder.body_bytes, default=None)
        if largest is None or largest is member.holder:
            return False
        for other in largest.unfinished:
            if other.held_bytes:
                return self._evict([other])
        for other in largest.members:
            if other.held_bytes and not other.is_working:
                return self._evict([other])
        return False

    def _evict_from_site(self, site: Site) -> bool:
        """End a connection of the site's largest address, or of any if all are small."""
        largest = max(site.holders, key=lambda holder: len(holder.members))
        if len(largest.members) > self._small and self._evict_from(largest):
            return True
        return self._evict_from(site)

    def _evict_from(self, holder: Holder) -> bool:
        """End the oldest unfinished request of a holder; without one, the connections that are idle for longest."""
        if holder.unfinished:
            oldest = next(iter(holder.unfinished))
            return self._evict([oldest])
        idle = [member for member in holder.members if not member.is_working]
        count = max(1, len(holder.members) // 32)
        return self._evict(nsmallest(count, idle, key=lambda member: member.waiting_since))

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


def _counted(holder: Holder) -> tuple[Holder, ...]:
    """Return what a connection of *holder* counts for: the address, and its site if it has one."""
    return (holder,) if holder.site is None else (holder, holder.site)
