"""Brokers that are started with this folder in PYTHONPATH do some events wrong, chosen by their attribute `n`.

What a broker does and what its taps tell of it stay the same thing: both follow from whom it finds interested.
"""

from mercast.routing.clients import Clients

DROPPED, DOUBLED, MISDELIVERED = 13, 14, 15

_found = Clients.interested


def _wrong(self, contents, packets, own):
    answers = _found(self, contents, packets, own)
    for place, packet in enumerate(packets):
        match packet.event.attributes.get("n"):
            case 13:
                answers[place] = ()
            case 14:
                answers[place] = answers[place] * 2
            case 15:
                answers[place] = tuple(("somebody", requests) for _, requests in answers[place])
    return answers


Clients.interested = _wrong
