"""How often Python looks for cyclic garbage, and what becomes of memory that is free again.

Events, messages and rows come and go by the million and refer to nothing that refers back; tables stay. Looking
through them again and again for cycles takes a third of the time at the default setting, and finds nothing. Giving
their memory back to the system, to ask for it again a turn later, was ten page faults in the place of one with taps.
"""

import ctypes
import gc

_YOUNG = 100_000
"""New objects before the young ones are looked through: some hundredths of a second, some megabytes."""

_TRIM, _MAP = -1, -3
"""What the C library calls them: how much may lie free at the end of its memory, and from which size on it asks the
system for a piece of its own."""
_FREE, _OWN_PIECE = 64 * 1024 * 1024, 32 * 1024 * 1024


def seldom() -> None:
    """For processes that handle events in bulk: brokers, simulations, benches."""
    gc.set_threshold(_YOUNG, 20, 20)
    tune = getattr(ctypes.CDLL(None), "mallopt", None)  # not every C library has it
    if tune is not None:
        tune(_TRIM, _FREE)
        tune(_MAP, _OWN_PIECE)


def settled() -> None:
    """What is there now stays: it is not looked through again."""
    gc.collect()
    gc.freeze()
