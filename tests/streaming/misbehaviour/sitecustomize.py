"""Brokers that are started with this folder in PYTHONPATH do some events wrong, chosen by their attribute `n`.

What a broker does and what its taps tell of it stay the same thing: both follow from whom it finds interested, or from
the destination lists that it makes.
"""

from mercast.routing.clients import Clients
from mercast.routing.lists import ListRouting

DROPPED, DOUBLED, MISDELIVERED, MISROUTED = 13, 14, 15, 35
ASTRAY = {3: 2, 6: 5}
"""Where events go, in place of where they should."""

_interested, _multicast = Clients.interested, ListRouting.multicast


def _wrong_clients(self, contents, packets, own):
    answers = _interested(self, contents, packets, own)
    for place, packet in enumerate(packets):
        match packet.event.attributes.get("n"):
            case 13:
                answers[place] = ()
            case 14:
                answers[place] = answers[place] * 2
            case 15:
                answers[place] = tuple(("somebody", requests) for _, requests in answers[place])
    return answers


def _wrong_brokers(self, wanted, packets, hops=0, place=0):
    packets = list(packets)
    lists = [
        [ASTRAY.get(entry, entry) for entry in entries] if packet.event.attributes.get("n") == MISROUTED else entries
        for entries, packet in zip(wanted, packets, strict=True)
    ]
    _multicast(self, lists, packets, hops, place)


Clients.interested, ListRouting.multicast = _wrong_clients, _wrong_brokers
