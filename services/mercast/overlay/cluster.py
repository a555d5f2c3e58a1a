"""A broker's place in one cluster: its links there, and who can be reached by them.

Most brokers are in one cluster. An edge broker is in several, and has a place in each; its neighbours and peers are
known to it by *addresses*, which say in which of its places it meets them. In the first place, and so for everybody who
has but one, the address of a broker is its number.
"""

from mercast.overlay.linkstate import LinkState
from mercast.overlay.neighbourhood import Neighbourhood, Outgoing, Timing
from mercast.overlay.split import Rule

_PLACE_BITS = 16
NUMBER = (1 << _PLACE_BITS) - 1


def address_of(place: int, broker: int) -> int:
    return place << _PLACE_BITS | broker


def place_of(address: int) -> int:
    return address >> _PLACE_BITS


class Cluster:
    def __init__(self, place: int, number: int, state: LinkState, timing: Timing, rule: Rule) -> None:
        self.place, self.number = place, number
        self.state = state
        self.neighbourhood = Neighbourhood(state, timing, rule)
        self.unreachable: dict[int, float] = {}
        """Brokers out of reach, and since when."""

    def address(self, broker: int) -> int:
        return address_of(self.place, broker)

    @property
    def me(self) -> int:
        """This broker's own address here."""
        return address_of(self.place, self.state.me)

    def addressed(self, outgoing: Outgoing) -> Outgoing:
        """The same messages, to addresses."""
        return [(self.address(broker), message) for broker, message in outgoing] if self.place else outgoing

    def neighbours(self) -> set[int]:
        """Their addresses, as far as both sides say that they are."""
        return {self.address(broker) for broker in self.neighbourhood.neighbours.keys() & self.state.reachable}

    def members(self) -> set[int]:
        """The addresses of all others who can be reached."""
        return {self.address(broker) for broker in self.state.reachable if broker != self.state.me}

    def stays(self, broker: int) -> bool:
        """Whether a broker is not about to stop."""
        return not self.state.is_retiring(broker)

    def look_around(self, now: float) -> None:
        self.unreachable = {who: self.unreachable.get(who, now) for who in self.state.unreachable()}
