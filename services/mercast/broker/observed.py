"""What metrics and admin HTTP read of a broker. They only read."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from mercast.broker.config import BrokerConfig
from mercast.broker.counters import Counters
from mercast.broker.last_stimuli import LastStimuli
from mercast.routing.core import Core
from mercast.security.state import Security
from mercast.taps.taps import Taps


class ObservedSession(Protocol):
    """A client's connection."""

    @property
    def name(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def queued(self) -> int:
        """Bytes that wait to be written."""


class ObservedLink(Protocol):
    """The connection to a neighbour."""

    @property
    def address(self) -> str: ...
    @property
    def version(self) -> int:
        """Of the wire that both speak."""

    @property
    def queued(self) -> int:
        """Bytes that wait to be written."""

    @property
    def received(self) -> int:
        """Events that came by it."""


class ObservedMember(Protocol):
    @property
    def peer(self) -> str: ...
    @property
    def clients(self) -> str: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def also_in(self) -> tuple[str, ...]: ...


class Observed(Protocol):
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def core(self) -> Core: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def security(self) -> Security: ...
    @property
    def sessions(self) -> Mapping[str, ObservedSession]: ...
    @property
    def links(self) -> Mapping[int, ObservedLink]: ...
    @property
    def members(self) -> Sequence[Mapping[int, ObservedMember]]:
        """Cluster by cluster."""

    @property
    def calls(self) -> Collection[object]:
        """Connections that other brokers have made."""

    @property
    def strangers(self) -> Mapping[Any, float]:
        """Connections that have not said who they are, and since when."""

    @property
    def last_stimuli(self) -> LastStimuli | None: ...
    @property
    def taps(self) -> Taps | None: ...
    @property
    def draining(self) -> bool: ...
    @property
    def started(self) -> float:
        """By the clock that nobody sets, as `time.monotonic` has it."""

    def now(self) -> float: ...

    def ready(self) -> tuple[bool, str]:
        """Whether clients should come here; the reason, if not."""
