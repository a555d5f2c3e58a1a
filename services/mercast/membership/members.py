"""The members of a cluster: how to reach them, and which of them are there."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from mercast.limits import DEFAULTS
from mercast.overlay.split import BROKER

ABSENT_AFTER = 10.0
"""Seconds without a sign of life after which the overlay is built without a member: it may be restarting."""

INCARNATIONS = range(2**63 - 1)
"""Milliseconds since 1970. Whoever has outlived one can still say the next in JSON."""


class Member(NamedTuple):
    id: int
    peer: str
    """Address of its peer port."""
    clients: str = ""
    """Address of its client port; empty if it has not said so yet."""
    incarnation: int = 0
    """The highest one that was heard of: what it says counts."""
    also_in: tuple[str, ...] = ()
    """The other clusters that it is in, if it is an edge."""


class Members(dict[int, Member]):
    """All that were heard of. Whoever has not spoken for itself is hearsay: it is called, and changes nothing else."""

    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me
        self.fixed: set[int] = set()
        """Given by configuration: never forgotten."""
        self.hinted: dict[int, str] = {}
        """Peer addresses, as somebody says who need not be right, such as the Kubernetes API."""
        self._seen: dict[int, float] = {}
        """When each was last known to be there."""

    def fix(self, members: Iterable[Member]) -> None:
        for member in members:
            self.fixed.add(member.id)
            self.setdefault(member.id, member)

    def take_hints(self, there: Collection[int]) -> list[int]:
        """Those whom hints lead to, or lead elsewhere. Whoever is there knows better where that is."""
        news = []
        for id, peer in self.hinted.items():
            known = self.get(id)
            if id == self.me or (known is not None and (known.peer == peer or id in there)):
                continue
            if known is None and len(self) >= DEFAULTS.brokers:
                continue
            self[id] = Member(id, peer) if known is None else known._replace(peer=peer)
            news.append(id)
        return news

    def learn(self, members: Iterable[Member]) -> list[Member]:
        """What is news among these. Nobody tells this broker about itself."""
        news = []
        for member in members:
            known = self.get(member.id)
            if member.id == self.me or (known is not None and not _newer(member, known)):
                continue
            if known is None and len(self) >= DEFAULTS.brokers:
                continue
            self[member.id] = member
            news.append(member)
        return news

    def forget(self, id: int) -> None:
        if id not in self.fixed and id not in self.hinted:
            self.pop(id, None)
            self._seen.pop(id, None)

    def see(self, ids: Iterable[int], now: float) -> None:
        """A sign of life of these: they spoke to this broker, or are part of the overlay."""
        self._seen.update((id, now) for id in ids if id in self)

    def leave(self, ids: Iterable[int]) -> None:
        """These say that they go: they are not waited for."""
        for id in ids:
            self._seen.pop(id, None)

    def present(self, now: float) -> set[int]:
        """Those of which there was a sign of life lately."""
        return {id for id, when in self._seen.items() if now - when < ABSENT_AFTER}


def _newer(one: Member, other: Member) -> bool:
    return one.incarnation > other.incarnation


def to_json(members: Iterable[Member]) -> list[list[Any]]:
    return [list(member) for member in members]


def from_json(said: Any) -> list[Member]:
    """Raises ValueError for what is no list of members."""
    if not isinstance(said, list):
        raise ValueError("members are a list")
    if len(said) > DEFAULTS.brokers:
        raise ValueError(f"{len(said)} members; a cluster may have {DEFAULTS.brokers}")
    members = []
    for one in said:
        match one:
            case [int(id), str(peer), str(clients), int(incarnation), *more] if (
                0 <= id < BROKER and incarnation in INCARNATIONS
            ):
                members.append(Member(id, peer, clients, incarnation, _names(more[:1])))
            case _:
                raise ValueError(
                    f"a member is [id, peer address, client address, incarnation], with an id from 0 to {BROKER - 1} "
                    f"and an incarnation from 0 to {INCARNATIONS[-1]}"
                )
    return members


def _names(said: list[Any]) -> tuple[str, ...]:
    """Of clusters, for people: what is none is left out."""
    listed = said[0] if said and isinstance(said[0], list) else []
    return tuple(name[: DEFAULTS.name_length] for name in listed[: DEFAULTS.links] if isinstance(name, str))
