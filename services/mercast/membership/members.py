"""The members of a cluster, and how to reach them."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from mercast.overlay.split import BROKER


class Member(NamedTuple):
    id: int
    peer: str
    """Address of its peer port."""
    clients: str = ""
    """Address of its client port; empty if it has not said so yet."""
    incarnation: int = 0
    """The highest one that was heard of: what it says counts."""

    @property
    def peer_address(self) -> str:
        return self.peer

    @property
    def client_address(self) -> str:
        return self.clients


class Members(dict[int, Member]):
    def __init__(self, me: int) -> None:
        super().__init__()
        self.me = me
        self.fixed: set[int] = set()
        """Given by configuration: never forgotten."""

    def fix(self, members: Iterable[Member]) -> None:
        for member in members:
            self.fixed.add(member.id)
            self.setdefault(member.id, member)

    def learn(self, members: Iterable[Member]) -> list[Member]:
        """What is news among these. Nobody tells this broker about itself."""
        news = []
        for member in members:
            known = self.get(member.id)
            if member.id == self.me or (known is not None and not _newer(member, known)):
                continue
            self[member.id] = member
            news.append(member)
        return news

    def forget(self, id: int) -> None:
        if id not in self.fixed:
            self.pop(id, None)


def _newer(one: Member, other: Member) -> bool:
    return one.incarnation > other.incarnation


def to_json(members: Iterable[Member]) -> list[list[Any]]:
    return [list(member) for member in members]


def from_json(said: Any) -> list[Member]:
    """Raises ValueError for what is no list of members."""
    if not isinstance(said, list):
        raise ValueError("members are a list")
    members = []
    for one in said:
        match one:
            case [int(id), str(peer), str(clients), int(incarnation), *_] if 0 <= id < BROKER:
                members.append(Member(id, peer, clients, incarnation))
            case _:
                raise ValueError("a member is [id, peer address, client address, incarnation]")
    return members
