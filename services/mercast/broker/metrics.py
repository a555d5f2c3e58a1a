"""Metrics for Prometheus, read from plain numbers when they are asked for: nothing is done for them on the way of an
event."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate
from time import time

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mercast import __version__
from mercast.broker.lag import BOUNDS, LagProbe
from mercast.broker.observed import Observed, ObservedLink, ObservedSession
from mercast.broker.overview import readiness
from mercast.limits import DEFAULTS


def registry(broker: Observed, lag: LagProbe) -> CollectorRegistry:
    """All metrics of a broker and of its process."""
    made = CollectorRegistry()
    made.register(BrokerCollector(broker, lag))
    ProcessCollector(registry=made)
    return made


class BrokerCollector(Collector):
    def __init__(self, broker: Observed, lag: LagProbe) -> None:
        self._broker, self._lag = broker, lag

    def describe(self) -> Iterable[Metric]:
        """Nothing beforehand: registering must not read a broker that is still being made."""
        return ()

    def collect(self) -> Iterator[Metric]:
        config = self._broker.config
        labels = {"version": __version__, "strategy": config.strategy, "cluster": config.cluster}
        yield InfoMetricFamily("mercast_build", "The version that runs, and what it runs as.", labels)
        yield from self._events()
        yield from self._connections()
        yield from self._taps()
        yield from self._overlay()
        yield from self._limits()
        yield from self._loop()

    def _events(self) -> Iterator[Metric]:
        counters, core = self._broker.counters, self._broker.core
        for name, what, value in (
            ("published", "Events of local clients that were accepted.", counters.published),
            ("received", "Events that came from neighbours.", counters.received),
            ("forwarded", "Events that were sent to neighbours, each counted once per neighbour.", counters.forwarded),
            ("delivered", "Events that were sent to clients, each counted once per client.", counters.delivered),
            ("matched", "Events that met a table with filters in it.", core.work.matches),
            ("carried", "Events that this broker, as an edge, took from one cluster to others.", core.carried),
        ):
            yield CounterMetricFamily(f"mercast_events_{name}", what, value)
        yield _counters("mercast_events_dropped", "Events that went no further.", "reason", counters.dropped)

    def _taps(self) -> Iterator[Metric]:
        taps = self._broker.taps
        if taps is not None:
            shipper = taps.shipper
            yield CounterMetricFamily("mercast_tap_rows_shipped", "Rows that the taps have shipped.", shipper.shipped)
            yield CounterMetricFamily("mercast_tap_rows_lost", "Rows that the taps have lost.", shipper.lost)
            waits, most = "Bytes of tap messages that wait to be shipped.", "How many may wait."
            yield GaugeMetricFamily("mercast_tap_buffer_bytes", waits, shipper.bytes)
            yield GaugeMetricFamily("mercast_tap_buffer_limit_bytes", most, shipper.most_bytes)

    def _connections(self) -> Iterator[Metric]:
        counters, broker = self._broker.counters, self._broker
        refused = "Publishes and other requests of local clients that were not accepted."
        yield CounterMetricFamily("mercast_requests_refused", refused, counters.refused)
        slow = "Clients that were disconnected because they did not read."
        yield CounterMetricFamily("mercast_slow_clients", slow, counters.slow_clients)
        denied = "Connections that were refused or cut off."
        yield _counters("mercast_connections_denied", denied, "code", counters.denied)
        forbidden = "Requests that a client's token does not allow."
        yield _counters("mercast_requests_denied", forbidden, "request", counters.forbidden)
        slowed = "Times that a publisher was not read for a while, for it published too fast."
        yield CounterMetricFamily("mercast_publishers_slowed", slowed, counters.slowed)
        too_fast = "Publishes that were refused, by the limit that they broke."
        yield _counters("mercast_events_refused", too_fast, "reason", counters.too_fast)
        moved = "Times that clients were told to go to other brokers because of the age of their connections."
        yield CounterMetricFamily("mercast_clients_moved", moved, counters.moved)
        yield from self._security()
        of_clients = {"in": counters.bytes_from_clients, "out": counters.bytes_to_clients}
        of_peers = {"in": counters.bytes_from_peers, "out": counters.bytes_to_peers}
        yield _counters("mercast_client_bytes", "Bytes read from and written to clients.", "direction", of_clients)
        yield _counters("mercast_peer_bytes", "Bytes read from and written to other brokers.", "direction", of_peers)
        yield GaugeMetricFamily("mercast_clients", "Clients connected.", len(broker.sessions))
        waiting = "Bytes that wait to be written to clients, all together."
        yield GaugeMetricFamily("mercast_client_queued_bytes", waiting, sum(_queued(broker.sessions)))
        waiting = "Bytes that wait to be written to neighbours, all together."
        yield GaugeMetricFamily("mercast_link_queued_bytes", waiting, sum(_queued(broker.links)))

    def _security(self) -> Iterator[Metric]:
        again = "Times that tokens and certificates were read again."
        yield _counters("mercast_reloads", again, "outcome", self._broker.counters.reloads)
        ends = GaugeMetricFamily(
            "mercast_certificate_expiry_seconds", "How long a certificate is still good.", labels=["certificate"]
        )
        for key, when in self._broker.security.expiry.items():
            ends.add_metric([key], when - time())
        yield ends

    def _overlay(self) -> Iterator[Metric]:
        broker, core = self._broker, self._broker.core
        yield GaugeMetricFamily("mercast_ready", "1 while clients should come here.", readiness(broker)["ready"])
        yield GaugeMetricFamily("mercast_links", "Links to neighbours.", len(broker.links))
        members = GaugeMetricFamily("mercast_members", "Brokers known to be of the cluster.", labels=["cluster"])
        in_reach = "Brokers of the cluster that can be reached, this one included."
        reachable = GaugeMetricFamily("mercast_brokers_reachable", in_reach, labels=["cluster"])
        ends = ["cluster", "neighbour"]
        rtt = GaugeMetricFamily("mercast_link_rtt_seconds", "To a neighbour and back.", labels=ends)
        ahead = "How far a neighbour's clock is ahead, give or take half of the RTT."
        offset = GaugeMetricFamily("mercast_link_clock_offset_seconds", ahead, labels=ends)
        for named, cluster in zip(broker.config.clusters(), core.clusters, strict=True):
            members.add_metric([named.name], len(broker.members[cluster.place]))
            reachable.add_metric([named.name], len(cluster.state.reachable))
            for who, neighbour in cluster.neighbourhood.neighbours.items():
                if neighbour.rtt is not None and neighbour.clock_offset is not None:
                    rtt.add_metric([named.name, str(who)], neighbour.rtt)
                    offset.add_metric([named.name, str(who)], neighbour.clock_offset)
        yield from (members, reachable, rtt, offset)
        subscriptions, advertisements = len(core.clients.subscriptions), len(core.clients.advertisements)
        yield GaugeMetricFamily("mercast_subscriptions", "Subscriptions of local clients.", subscriptions)
        yield GaugeMetricFamily("mercast_advertisements", "Advertisements of local clients.", advertisements)
        refused = "Messages with control state that was not taken in, for its broker had as much kept here as it may."
        yield CounterMetricFamily("mercast_control_refused", refused, core.exchange.refused)

    def _limits(self) -> Iterator[Metric]:
        """The use of a limit that each connection has to itself is that of the one nearest to it."""
        broker, core, config = self._broker, self._broker.core, self._broker.config
        queued = max(_queued(broker.sessions), default=0), max(_queued(broker.links), default=0)
        said = [one.size for one in core.exchange.said.values()]
        subscriptions, advertisements, client_bytes = core.clients.most_of_one()
        now = broker.now()
        limit = GaugeMetricFamily("mercast_limit", "What may be.", labels=["name"])
        used = GaugeMetricFamily("mercast_limit_used", "How much of it there is.", labels=["name"])
        for name, most, use in (
            ("max_clients", config.max_clients, len(broker.sessions)),
            ("max_peers", config.max_peers, len(broker.calls)),
            ("client_queue_bytes", config.client_queue_bytes, queued[0]),
            ("link_queue_bytes", config.link_queue_bytes, queued[1]),
            ("handshake_seconds", config.handshake_seconds, now - min(broker.strangers.values(), default=now)),
            ("subscriptions", DEFAULTS.subscriptions, subscriptions),
            ("advertisements", DEFAULTS.advertisements, advertisements),
            ("client_bytes", DEFAULTS.client_bytes, client_bytes),
            ("brokers", DEFAULTS.brokers, max(len(one.state) for one in core.clusters)),
            ("hops", core.hop_limit, core.most_hops),
            ("peer_items", config.peer_items, max((items for items, _ in said), default=0)),
            ("peer_bytes", config.peer_bytes, max((size for _, size in said), default=0)),
            ("all_peer_items", config.all_peer_items, core.exchange.said_by_all.items),
            ("all_peer_bytes", config.all_peer_bytes, core.exchange.said_by_all.bytes),
            ("parked", DEFAULTS.parked, len(core.parked)),
            ("parked_bytes", DEFAULTS.parked_bytes, core.parked.bytes),
            ("types", DEFAULTS.types, len(core.declared.types.declared)),
            ("declarations", DEFAULTS.declarations, len(core.declared.statements)),
        ):
            limit.add_metric([name], most)
            used.add_metric([name], use)
        yield limit
        yield used

    def _loop(self) -> Iterator[Metric]:
        worst = "The latest that the event loop was since these metrics were last read."
        yield GaugeMetricFamily("mercast_loop_lag_max_seconds", worst, self._lag.take_worst())
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(self._lag.buckets), strict=True))
        late = "How late the event loop was, looked at ten times a second."
        yield HistogramMetricFamily("mercast_loop_lag_seconds", late, buckets, self._lag.total)
        defects = "Exceptions that should not have been; the log has them."
        yield CounterMetricFamily("mercast_defects", defects, self._broker.counters.defects)


def _counters(name: str, what: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, what, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _queued(some: Mapping[str, ObservedSession] | Mapping[int, ObservedLink]) -> Iterator[int]:
    return (one.queued for one in some.values())
