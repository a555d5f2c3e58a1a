"""An edge that was just started does not know yet who is beyond it: what it is to carry waits until it does.

That is so when brokers of all its clusters were met, each has said everything, and all that others were told because of
it is settled: so advertisements have crossed, and the subscriptions that they concern have come back. It takes no
longer than an event waits for a route: somebody may never answer, or a cluster be away altogether.
"""

from collections.abc import Collection, Sequence

from mercast.overlay.cluster import Cluster
from mercast.overlay.exchange import NEVER, TOLD, Exchange


class Learning:
    def __init__(self, clusters: Sequence[Cluster], exchange: Exchange, lasts: float) -> None:
        """For so many seconds at most, from when it has met the first."""
        self._clusters, self._exchange, self._lasts = clusters, exchange, lasts
        self._until = NEVER
        self._asked = False
        """Whether all have said everything, and what came of it is waited for."""
        self.is_over = len(clusters) == 1

    def ends(self, now: float, partly: Collection[int]) -> bool:
        """Whether it does, now that these peers, of those within reach, have not said everything."""
        met = [len(cluster.state.reachable) > 1 for cluster in self._clusters]
        if any(met) and self._until == NEVER:
            self._until = now + self._lasts
        if all(met) and not partly and not self._asked:
            self._asked = True
            self._exchange.await_told(now)
        self.is_over = self._until <= now or (self._asked and not self._exchange.is_open(TOLD))
        return self.is_over

    def next_deadline(self) -> float:
        return NEVER if self.is_over else self._until
