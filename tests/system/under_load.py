"""Clients at every broker that publish and subscribe all through a fault, and a ledger of what was due and what came.

with Mesh(4, RING, options=OPTIONS) as mesh, Load(mesh, RING) as load:
    load.fault(brokers=[2])
    …
    load.judge()
"""

import asyncio
from collections import Counter
from itertools import pairwise, product
from threading import Thread
from time import monotonic

import networkx as nx
from live import PATIENCE, ask, linked, rss, until

import mercast
from mercast.client.errors import ConnectionLost, NotAnswered

RING = [(1, 2), (2, 3), (3, 4), (4, 1)]

HEART_BEAT, MISSES, HANDSHAKE = 0.5, 4, 1.0
OPTIONS = ["--heart-beat", str(HEART_BEAT), "--misses", str(MISSES), "--handshake-seconds", str(HANDSHAKE)]

RESERVE = 5.0
"""Seconds, for a loaded machine."""

ROUTE_CHANGE = HEART_BEAT * (MISSES + 1.5) + 2 * HEART_BEAT + RESERVE
"""Seconds after a fault until all events go around it: silence is noticed at a heart-beat, news that went astray is
told anew after two."""

IN_FLIGHT = RESERVE
"""Seconds that an event may have been on its way when a fault met it."""

AROUND = {"around_faults": ROUTE_CHANGE}
"""For the audit: what a fault may cost. Links are missed some time after it, so that is time enough before it, too."""
SEVERED = {"around_faults": 10 * ROUTE_CHANGE}
"""Some cannot reach each other until all is over."""

MOST_GROWTH = 64 * 1024 * 1024
"""Bytes of a broker's memory."""

_PACE = 0.01
"""Seconds between two events of a publisher."""
_GROUPS = 4
_LAST = -1
"""The group of each publisher's last event: everybody wants it."""


class Publisher:
    def __init__(self, home, client, payload):
        self.home, self.client, self._payload = home, client, payload
        self.sent = []
        """When each event was published."""
        self.unknown = set()
        """Those that no broker has acknowledged: they may have arrived or not."""
        self.over = False

    async def run(self):
        while not self.over:
            await self.publish(len(self.sent) % _GROUPS)
            await asyncio.sleep(_PACE)

    async def publish(self, group):
        n = len(self.sent)
        self.sent.append(monotonic())
        try:
            await self.client.publish("tick", {"by": self.home, "n": n, "group": group}, self._payload)
        except (ConnectionLost, NotAnswered):
            self.unknown.add(n)


class Subscriber:
    """Wants all groups but one."""

    def __init__(self, home, stream):
        self.home, self.stream = home, stream
        self.since = 0.0
        """Before that it may have been unknown to some."""
        self.got = Counter()
        self.undue = []

    @staticmethod
    def where(home):
        return f"group <> {home % _GROUPS}"

    def due(self, n):
        return n % _GROUPS != self.home % _GROUPS

    async def run(self):
        async for event in self.stream:
            said = event.attributes
            if said["group"] == self.home % _GROUPS:
                self.undue.append(said)
            self.got[said["by"], said["n"]] += 1


class Load:
    def __init__(self, mesh, links, payload=500):
        self._payload = bytes(payload)
        self.mesh, self.links = mesh, {tuple(sorted(link)) for link in links}
        self._graph = nx.Graph(self.links)
        self.publishers, self.subscribers = [], []
        self._early = []
        """Subscriptions that are taken back during the fault."""
        self._tasks = []
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        self._do(self._begin)
        self.flows()
        return self

    def __exit__(self, *_):
        self._do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, what, *about):
        return asyncio.run_coroutine_threadsafe(what(*about), self._loop).result(2 * PATIENCE)

    async def _begin(self):
        for home, broker in self.mesh.brokers.items():
            self.publishers.append(Publisher(home, await mercast.connect(broker.client), self._payload))
            subscriber = await mercast.connect(broker.client)
            self._early.append(await subscriber.subscribe("tick", "by < 0"))
            self._add(home, subscriber, await subscriber.subscribe("tick", Subscriber.where(home)))
        for publisher in self.publishers:
            await publisher.client.advertise("tick")
        self._working = [asyncio.create_task(publisher.run()) for publisher in self.publishers]

    def _add(self, home, client, stream):
        subscriber = Subscriber(home, stream)
        subscriber.client = client
        self.subscribers.append(subscriber)
        self._tasks.append(asyncio.create_task(subscriber.run()))
        return subscriber

    async def _end(self):
        for task in (*self._working, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._working, *self._tasks, return_exceptions=True)
        for client in {one.client for one in (*self.publishers, *self.subscribers)}:
            await client.close()

    # -- while it runs -----------------------------------------------------------------------------------------------

    def flows(self, but=()):
        """Wait until all publishers, but those at some brokers, have got on."""
        some = [(one, len(one.sent)) for one in self.publishers if one.home not in but]
        until(lambda: all(len(one.sent) > before + 20 for one, before in some), "all publishers get on")

    def all_arrives(self):
        """Wait until nothing is missing of what has been published."""
        now = monotonic()
        until(
            lambda: not any(time <= now for times in self._lost().values() for time in times),
            lambda: f"all arrives: {[(pair, len(some), some[0] - now) for pair, some in self._lost().items()]}",
        )

    def fault(self, links=(), brokers=()):
        """From now on these are not what they should be."""
        self._away, self._broken = set(brokers), {tuple(sorted(link)) for link in links}
        self._left = nx.Graph(self._graph)
        self._left.remove_edges_from(self._broken)
        self._left.remove_nodes_from(self._away)
        self._memory = {broker.id: rss(broker.pid) for broker in self.mesh.brokers.values()}
        self._at = monotonic()

    def noticed(self):
        """Wait until all others know. Then, out of reach of some, clients come and go."""
        self._until_linked(self._left)
        self.churn()

    def churn(self):
        """At every broker that is there, subscriptions come and go; events flow on."""
        self._do(self._churn)
        self.flows(self._away)

    def _until_linked(self, graph):
        """Wait until each broker of it sees what is left of the overlay around it."""
        expected = {id: _links(graph, id) for id in graph}
        until(
            lambda: all(linked(self.mesh[id]) == links for id, links in expected.items()),
            lambda: f"{expected}: {[(id, linked(self.mesh[id])) for id in graph]}",
        )

    async def _churn(self):
        for subscriber, early in zip(list(self.subscribers), list(self._early), strict=True):
            if subscriber.home not in self._away:
                await early.cancel()
                self._early.remove(early)
                where = Subscriber.where(subscriber.home)
                late = await subscriber.client.subscribe("tick", where, settled=False)
                self._add(subscriber.home, subscriber.client, late).since = float("inf")

    # -- afterwards --------------------------------------------------------------------------------------------------

    def judge(self):
        """The fault is over: all must be as if it had never been, and what was lost in between is accounted for."""
        healed = monotonic()
        self._until_linked(self._graph)
        until(self._tables_are_right, lambda: f"tables: {self._tables()}")
        whole = monotonic()
        for subscriber in self.subscribers:
            subscriber.since = min(subscriber.since, whole)
        self.flows()
        self._do(self._finish)
        last = {(one.home, len(one.sent) - 1) for one in self.publishers}
        until(lambda: not self._missing(last), lambda: f"the last events: {self._missing(last)}")
        assert not [(one.home, one.undue) for one in self.subscribers if one.undue]
        assert not [(one.home, key) for one in self.subscribers for key, times in one.got.items() if times > 1]
        lost = self._lost()
        for (one, other), times in sorted(lost.items()):
            until_when = {"spared": None, "around": self._at + ROUTE_CHANGE, "severed": whole}[self._fate(one, other)]
            told = f"{len(times)} from {one} to {other}: {times[0] - self._at:+.2f} to {times[-1] - self._at:+.2f} s"
            assert until_when is not None, f"nothing is in the way, and yet: {told}"
            assert self._at - IN_FLIGHT < times[0], told
            assert times[-1] < until_when, told
        grown = max(rss(broker.pid) - self._memory[broker.id] for broker in self.mesh.brokers.values())
        assert grown < MOST_GROWTH, grown
        print(f"\n{self._told(lost)}; whole {whole - healed:.2f} s after it ended; memory {grown / 2**20:+.1f} MiB")

    def _told(self, lost):
        parts = []
        for fate in ("around", "severed"):
            times = [time for pair, some in lost.items() if self._fate(*pair) == fate for time in some]
            window = f" until {max(times) - self._at:.2f} s after the fault" if times else ""
            parts.append(f"{len(times)} lost{window} ({fate})")
        return f"of {sum(len(one.sent) for one in self.publishers)} events: {', '.join(parts)}"

    async def _finish(self):
        for publisher in self.publishers:
            publisher.over = True
        await asyncio.gather(*self._working)
        for publisher in self.publishers:
            await publisher.publish(_LAST)

    def _missing(self, last):
        return {one.home: last - one.got.keys() for one in self.subscribers if last - one.got.keys()}

    def _lost(self):
        """When what was published, by where from and where to."""
        lost = {}
        for publisher, subscriber in product(self.publishers, self.subscribers):
            for n, at in enumerate(publisher.sent[:-1]):
                missing = subscriber.due(n) and not subscriber.got[publisher.home, n]
                if missing and at > subscriber.since and n not in publisher.unknown:
                    lost.setdefault((publisher.home, subscriber.home), []).append(at)
        return {pair: sorted(times) for pair, times in lost.items()}

    def _fate(self, one, other):
        """What the fault means for events from one broker to another."""
        if {one, other} & self._away or not nx.has_path(self._left, one, other):
            return "severed"
        paths = nx.all_shortest_paths(self._graph, one, other)
        met = any(
            set(path) & self._away or {tuple(sorted(hop)) for hop in pairwise(path)} & self._broken for path in paths
        )
        return "around" if met else "spared"

    def _tables(self):
        return {id: ask(broker, "tables?full=1")["full"] for id, broker in self.mesh.brokers.items()}

    def _tables_are_right(self):
        """Every client is somewhere, and each broker knows of the others' clients what they have, and nothing else."""
        tables = self._tables()
        kinds = {"advertisement": len(self.publishers), "subscription": len(self.subscribers) + len(self._early)}
        own = {
            id: {(id, kind, *_what(row)) for kind in kinds for row in table[f"{kind}s"]["rows"]}
            for id, table in tables.items()
        }
        there = Counter(kind for rows in own.values() for _, kind, *_ in rows)
        heard = {
            id: {(row["broker"], row["kind"], *_what(row)) for row in table["heard"]["rows"]}
            for id, table in tables.items()
        }
        return there == kinds and all(
            heard[id]
            == {row for other, rows in own.items() if other != id for row in rows if self._concerns(id, row, own[id])}
            for id in tables
        )

    def _concerns(self, _id, row, own):
        """Whoever has a publisher wants to know of subscriptions; of publishers, everybody."""
        return row[1] == "advertisement" or any(kind == "advertisement" for _, kind, *_ in own)


def _links(graph, id):
    near = graph.subgraph(nx.node_connected_component(graph, id))
    return {tuple(sorted(link)) for link in near.edges}


def _what(row):
    return row["client"], row["request"], row["type"], row["filter"]
