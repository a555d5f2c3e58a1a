"""What a load may be asked for: said by flags, or on Locust's own page. Asked before anything starts."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mercast.workloads import QuotesError, quotes_of

_LEAST_CHURNING = 2
_MOST_USERS, _MOST_SUBSCRIPTIONS = 4_000, 2_000_000
"""What the ledger has numbers for."""


def problem(asked: Any) -> str:
    """The first of what cannot be, with what would be right; empty if all can. `asked` has the flags as attributes."""
    return next((found for check in (_counts, _numbers, _quotes) for found in check(asked)), "")


def _counts(asked: Any) -> Iterator[str]:
    for name in ("publishers", "subscribers", "filters"):
        if getattr(asked, name) < 1:
            yield f"--{name} {getattr(asked, name)}: it must be at least 1"
    if asked.crowd < 0:
        yield f"--crowd {asked.crowd}: it must be 0 or more"
    subscribers = asked.subscribers + asked.crowd
    if asked.publishers + subscribers > _MOST_USERS:
        yield f"{asked.publishers + subscribers} users: this is for {_MOST_USERS} at most"
    if subscribers * asked.filters > _MOST_SUBSCRIPTIONS:
        yield f"{subscribers * asked.filters} filters: this is for {_MOST_SUBSCRIPTIONS} at most"
    if asked.shape == "churn" and asked.filters < _LEAST_CHURNING:
        least = f"with churn, half of them stand at a time; there must be {_LEAST_CHURNING} or more"
        yield f"--filters {asked.filters}: {least}"


def _numbers(asked: Any) -> Iterator[str]:
    for name in ("rate", "seconds", "patience"):
        if not 0 < getattr(asked, name) < math.inf:
            yield f"--{name} {getattr(asked, name):g}: it must be above 0"
    if not 0 <= asked.around_faults < math.inf:
        yield f"--around-faults {asked.around_faults:g}: it must be 0 or more"
    if not (1 <= asked.step < math.inf and 1 < asked.steeper < math.inf):
        yield (
            f"--step {asked.step:g} --steeper {asked.steeper:g}: a step takes 1 s or more, and the rate grows by a "
            "factor above 1"
        )


def _quotes(asked: Any) -> Iterator[str]:
    if not asked.quotes:
        return
    if asked.workload != "quotes":
        yield f"--quotes goes with --workload quotes, not with {asked.workload}"
    try:
        quotes_of(Path(asked.quotes))
    except QuotesError as error:
        yield str(error)
    except OSError as error:
        yield f"{asked.quotes}: {error.strerror}"
