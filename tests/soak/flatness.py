"""Whether a curve is flat: the median of its last quarter beside that of its second; the first is for warming up."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

MIB = 1024 * 1024
LEAST = 8
"""Samples; fewer have no quarters worth speaking of."""


class Slack(NamedTuple):
    """What may come on top: a share of what there was, or so much, whichever is more."""

    share: float
    least: float


MEMORY = Slack(0.015, 3 * MIB)
"""Python gives memory back late and in lumps: brokers that stay, with nobody passing by, were seen to change by less
than 0.7 MiB in five minutes; with all that do (soak/visitors.py), by 1.9 MiB in 2.5 minutes. A kilobyte kept of each
connection is 4.6 MiB by then."""

TABLE = Slack(0.15, 8)
"""Clients come and go by chance."""


class Verdict(NamedTuple):
    before: float
    after: float
    allowed: float

    @property
    def flat(self) -> bool:
        return self.after <= self.allowed


def judge(curve: Sequence[float], slack: Slack) -> Verdict:
    """Samples at even times, in order."""
    if len(curve) < LEAST:
        raise ValueError(f"{len(curve)} samples say nothing about a curve; it takes {LEAST}")
    quarter = len(curve) // 4
    before, after = median(curve[quarter : 2 * quarter]), median(curve[-quarter:])
    return Verdict(before, after, before + max(slack.share * before, slack.least))
