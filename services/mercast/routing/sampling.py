"""Which events the taps get rows of: a share, by a hash of the event's id, so the same ones at every broker."""

from collections.abc import Callable

from mercast.content.event import EventId

_MIX = 0x9E3779B97F4A7C15  # odd, its bits look random: neighbouring ids land far apart
_MASK = (1 << 64) - 1


def sampler(share: float) -> Callable[[EventId], bool]:
    if share >= 1:
        return lambda _: True
    if share <= 0:
        return lambda _: False
    below = int(share * (1 << 64))

    def samples(event: EventId) -> bool:
        broker, incarnation, sequence = event
        mixed = (sequence + (incarnation << 16) + broker) * _MIX & _MASK
        return (mixed ^ mixed >> 32) * _MIX & _MASK < below

    return samples
