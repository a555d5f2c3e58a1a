"""Finds the members of the cluster: by seed addresses, and by calling those that were heard of and are not there.

The name of a seed may stand for many brokers, and for others tomorrow, as that of a headless Service does: all of its
addresses are called, but for this broker's own.
"""

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Iterable

from mercast.broker.addresses import Address, parse_address
from mercast.membership.members import Members

SOON, LATE = 0.1, 5.0
"""Seconds between two tries to reach somebody: they double from the first to the second."""

_SEEDS_AGAIN = 30.0
"""Seconds between calls to the seeds when all is well: halves of a cluster that lost each other find together."""

_AT_ONCE = 8
"""Members, or addresses of seeds, that are called at a time."""

Call = Callable[[str, int | None], Awaitable[str | None]]
"""Call an address (of this member, if that is known), say who calls, and hear who answers. Empty if all is well, else
which side refuses the other and why, as in "refuses: …"; None if nobody answers."""


class Seeking:
    def __init__(
        self,
        members: Members,
        seeds: list[str],
        call: Call,
        now: Callable[[], float],
        own: str = "",
        seeds_needed: bool = True,
    ) -> None:
        """`own` is the address that others are told of this broker. `seeds_needed` is whether it cannot know its place
        before a seed has answered: not if others find it anyway, for they may wait for each other."""
        self._members, self._call, self._now = members, call, now
        self._seeds, self._own = [seed for seed in seeds if seed != own], own
        self._seed_answered = not self._seeds
        self._seeds_needed, self._seeds_asked = seeds_needed, False
        self._behind: set[str] = set()
        """Addresses that the seeds' names stand for."""
        self._tried: set[int] = set()
        self._refusals: dict[str, str] = {}
        """By address, what was refused at the last try."""
        self._news = asyncio.Event()

    def begin(self) -> list[asyncio.Task[None]]:
        seeking = [self._seek()]
        if self._seeds:
            seeking.append(self._ask_seeds())
        return [asyncio.create_task(one) for one in seeking]

    def heard_of_more(self, moved: Iterable[int] = ()) -> None:
        self._tried.difference_update(moved)
        self._news.set()

    def lacks(self) -> str:
        """What is still to be found out before this broker can know its place; empty if nothing."""
        current = self._current()
        for address, reason in self._refusals.items():
            if address in current:
                return f"the broker at {address} {reason}"
        if not self._seed_answered and (self._seeds_needed or not self._seeds_asked):
            return "no seed has answered yet"
        for member in self._members.keys() - self._tried - self._members.present(self._now()):
            return f"broker {member} has not been called yet"
        return ""

    def _current(self) -> set[str]:
        """Addresses that count: whoever has moved from another refuses nobody."""
        return self._behind | {member.peer for member in self._members.values()}

    async def _ask_seeds(self) -> None:
        wait = SOON
        while True:
            own, behind = await _addresses(self._own), [await _addresses(seed) for seed in self._seeds]
            # Nobody but this broker: it is the first.
            alone = any(behind) and all(found and found <= own for found in behind)
            self._behind = set().union(*behind) - own
            some = random.sample(sorted(self._behind), min(_AT_ONCE, len(self._behind)))  # each tells of all others
            answers = await asyncio.gather(*(self._asked(address, None) for address in some))
            self._seeds_asked, self._seed_answered = True, self._seed_answered or alone or "" in answers
            wait = _SEEDS_AGAIN if self._seed_answered else min(2 * wait, LATE)
            await asyncio.sleep(wait * random.uniform(0.5, 1.5))

    async def _seek(self) -> None:
        """Call members that are not there, the longer it lasts the less often."""
        due: dict[int, float] = {}
        waits: dict[int, float] = {}
        while True:
            now, self._news = self._now(), asyncio.Event()
            absent = self._members.keys() - self._members.present(now)
            due, waits = {id: due.get(id, now) for id in absent}, {id: waits.get(id, SOON) for id in absent}
            some = sorted((id for id in absent if due[id] <= now), key=due.__getitem__)[:_AT_ONCE]
            await asyncio.gather(*map(self._try, some))
            for id in some:
                due[id] = self._now() + waits[id] * random.uniform(0.5, 1.5)
                waits[id] = min(2 * waits[id], LATE)
            if not some:
                await until(self._news, min((min(due.values(), default=now + LATE) - now), LATE))

    async def _try(self, id: int) -> None:
        member = self._members.get(id)
        if member is not None:
            await self._asked(member.peer, id)
        self._tried.add(id)

    async def _asked(self, address: str, id: int | None) -> str | None:
        answer = await self._call(address, id)
        others = self._current() - {address}
        self._refusals = {one: why for one, why in self._refusals.items() if one in others}
        if answer:
            self._refusals[address] = answer
        return answer


async def _addresses(where: str) -> set[str]:
    """All that a name stands for now; none, if that cannot be found out."""
    if not where:
        return set()
    host, port = parse_address(where)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the latter if it can be no name, such as a..b
        return set()
    return {str(Address(str(one[4][0]), port)) for one in found}


async def until(event: asyncio.Event, seconds: float) -> None:
    """The event, or so long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
