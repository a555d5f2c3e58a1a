"""The door for what peers say: nothing comes in that would make a broker stumble, or that the next one would refuse.

The second is as needed as the first. Who passes on what others refuse is cut off in place of the one who made it up.
"""

from math import isfinite
from typing import Any

from mercast.content.errors import ContentError, quoted
from mercast.content.interest import Advertisement, Subscription
from mercast.content.types import Declaration, check_declaration
from mercast.content.values import check_name
from mercast.limits import DEFAULTS
from mercast.overlay.split import BROKER, ENTRY
from mercast.overlay.topology import MOST_BROKERS, MOST_COST
from mercast.protocol.messages import (
    Ask,
    Carried,
    Control,
    Drop,
    HeartBeat,
    Key,
    Local,
    Look,
    Note,
    Put,
    Reply,
    Report,
    Same,
    Statement,
    Update,
)
from mercast.wire.conforms import Check, checker
from mercast.wire.frames import Kind, ProtocolError

RECORDS = 1024
"""Of one update. Brokers work out a matrix of all they know of: nobody makes them take much memory at once."""

_CHECKS: dict[int, dict[type, Check]] = {
    Kind.MESSAGE: {cls: checker(cls) for cls in (Control, Update, HeartBeat, Report)},
    Kind.ORGANISE: {cls: checker(cls) for cls in (Ask, Reply, Look, Same)},
}
"""Per kind of frame, what it may say."""
_NOTE: Check = checker(Note)

_COSTS = range(1, MOST_COST + 1)
_COUNTS = range(2**63)
"""Incarnations, sequences, numbers of statements: whoever counts on can still say it in JSON."""

_CLUSTERS, MOST_CROSSED = range(2**16), 255
"""An event has two bytes for each cluster that it has crossed, and one for their number."""

_HOPS = range(2 * MOST_BROKERS + 2)
"""Nothing is passed on that has more than twice as many hops as there are brokers."""

_SORTS: dict[Any, type] = {"advertisement": Advertisement, "subscription": Subscription}
"""What keys name, by their first word, where they have one (routing/filtering/fbr.py)."""


def check_message(message: Any, kind: int = Kind.MESSAGE) -> None:
    check = _CHECKS[kind].get(type(message))
    if check is None:
        raise ProtocolError(f"{type(message).__name__} is not a message")
    if not check(message):
        raise ProtocolError(f"a {type(message).__name__} has a field that it cannot have")
    match message:
        case Control():
            _check_control(message)
        case Update():
            _check_update(message)
        case Report():
            _check_brokers(message.target, message.broker)
            _check_hops(message.hops)
        case Ask() | Reply() | Look() | Same():
            _check_brokers(message.source, message.target)
            _check_hops(message.hops)
            if isinstance(message, Ask | Reply):
                _check_counts(message.number)
                _check_brokers(message.given_up or 0)
            if isinstance(message, Ask):
                _check_ask(message)
        case HeartBeat():
            if not all(isfinite(time) for time in (message.sent, message.echo or 0, message.held)):
                raise ProtocolError("the times of a heart-beat are finite")


def check_note(note: Any) -> None:
    if not _NOTE(note):
        raise ProtocolError("the note of a FORWARD frame is not what strategies write")
    if isinstance(note, tuple):
        _check_origin(note)


def _check_control(control: Control) -> None:
    _check_brokers(control.source, control.target)
    _check_hops(control.hops)
    for item in control.items:
        match item:
            case Put():
                _check_key(item.key)
                _check_value(item)
            case Drop():
                _check_key(item.key)


def _check_key(key: Key) -> None:
    match key:
        case Statement():
            _check_brokers(key.broker)
            _check_counts(key.number, key.incarnation)
        case Local():
            _check_local(key)
            if key.client in _SORTS:
                raise ProtocolError(f"{quoted(key.client)} is no client: brokers add a number to a client's name")
        case Carried():
            _check_origin(key.origin)
            if not key.crossed:
                raise ProtocolError("what was carried has crossed a cluster")
            _check_clusters(key.crossed)
        case (_, *origins):
            for origin in origins:
                _check_origin(origin)


def _check_value(put: Put) -> None:
    key, value = put
    try:
        if isinstance(value, Declaration):
            check_declaration(value)
        elif value.type is not None:
            check_name(value.type, "type")
    except ContentError as error:
        raise ProtocolError(f"control state that its own broker refuses: {error}") from None
    if isinstance(key, Statement) is not isinstance(value, Declaration) or not isinstance(
        value, _SORTS.get(key[0], object)
    ):
        raise ProtocolError(f"{type(value).__name__} under a key that never names one")


def _check_update(update: Update) -> None:
    _check_hops(update.hops)
    if len(update.destinations) % ENTRY:
        raise ProtocolError("a destination list ends in the midst of an entry")
    if len(update.records) > RECORDS:
        raise ProtocolError(f"{len(update.records)} records at once; there may be {RECORDS}")
    for record in update.records:
        _check_brokers(record.broker, *(neighbour for neighbour, _ in record.links))
        _check_counts(record.incarnation, record.sequence)
        listed = max(len(record.links), len(record.clusters))
        if listed > DEFAULTS.links:
            raise ProtocolError(f"a record of {listed} links or clusters; there may be {DEFAULTS.links}")
        _check_clusters(record.clusters)
        if any(cost not in _COSTS for _, cost in record.links):
            raise ProtocolError(f"a link costs 1 to {MOST_COST}")


def _check_clusters(clusters: tuple[int, ...]) -> None:
    if len(clusters) > MOST_CROSSED or any(cluster not in _CLUSTERS for cluster in clusters):
        raise ProtocolError(f"clusters are numbered 0 to {_CLUSTERS[-1]}, and at most {MOST_CROSSED} are crossed")


def _check_ask(ask: Ask) -> None:
    if not (isfinite(ask.gain) and isfinite(ask.lose)):
        raise ProtocolError("what a link gains and loses is finite")
    if len(ask.counts) > DEFAULTS.counted_pairs:
        raise ProtocolError(f"{len(ask.counts)} pairs of brokers are counted; there may be {DEFAULTS.counted_pairs}")
    for source, destination, messages in ask.counts:
        _check_brokers(source, destination)
        _check_counts(messages)


def _check_origin(origin: Any) -> None:
    _check_brokers(origin[0])
    _check_local(origin[1])


def _check_local(local: Local) -> None:
    if len(local.client) > DEFAULTS.name_length:
        raise ProtocolError(f"the name of a client has {len(local.client)} characters, not {DEFAULTS.name_length}")


def _check_brokers(*brokers: int) -> None:
    if any(not 0 <= broker <= BROKER for broker in brokers):
        raise ProtocolError(f"brokers have numbers up to {BROKER}")


def _check_hops(hops: int) -> None:
    if hops not in _HOPS:
        raise ProtocolError(f"hops are counted from 0 to {_HOPS[-1]}")


def _check_counts(*counts: int) -> None:
    if any(count not in _COUNTS for count in counts):
        raise ProtocolError(f"incarnations, sequences and statements are numbered 0 to {_COUNTS[-1]}")
