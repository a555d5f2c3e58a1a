"""Which events the taps get rows of: a share, by a hash of the publisher's broker and of the time at which that read
them. So they are the same ones at every broker.

Events that were read together have one time: all of them are told of, or none. Under load these are hundreds, so most
turns are over with one look, and those that are told of have their rows in runs. What is read by itself is judged by
itself.
"""

_MASK = (1 << 64) - 1
_ODD = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
"""Their bits look random."""


class Sampler:
    def __init__(self, share: float) -> None:
        self._all = share >= 1
        self._below = int(max(share, 0) * (1 << 64))

    def __call__(self, broker: int, incarnation: int, time: int) -> bool:
        return self._all or _hash(broker, incarnation, time) < self._below


def _hash(broker: int, incarnation: int, time: int) -> int:
    mixed = (time + (incarnation << 20) + (broker << 48)) * _ODD[0] & _MASK
    mixed = (mixed ^ mixed >> 32) * _ODD[1] & _MASK
    mixed = (mixed ^ mixed >> 32) * _ODD[1] & _MASK
    return mixed ^ mixed >> 32
