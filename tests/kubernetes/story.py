"""One fault under load: what is published meanwhile, what comes of it, what brokers and dashboard say; the judgement.

    with stories("an edge pod is killed", may_lose=True) as fault:
        fault.begins()
        …

Events may be lost from shortly before a fault until ways around it are found, if the fault is one that may lose
any; never before or after, and none twice.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from archives import Images
from chart import Release
from cluster import Cluster, tell
from load import PUBLISHERS, SUBSCRIBERS, Auditor, Load
from report import Row, Table
from watching import Member, Watch, members

IN_FLIGHT = 2.0
"""Seconds that an event may have been on its way when a fault met it."""
ROUTE_CHANGE = 15.0
"""Seconds after which all events go around a fault: heart-beats are missed (3 s) and, on a loaded machine, more."""
_MARGIN = 6.0
"""Seconds of load before a fault."""
_AFTERWARDS = 12.0
"""Seconds of load after all was whole again."""
_MOST = 900
_LATE = 3.0
"""Seconds that the page may be behind."""
_SOON = 8.0
"""Seconds that a broker is away, that the page may not have missed it yet: it waits for some ticks."""


class Fault:
    def __init__(self, load: Load, watch: Watch, there: list[Member]) -> None:
        self._load, self._watch, self._there = load, watch, there
        self.notes: list[str] = []
        self.began = self.ended = self._known = 0.0
        self._users_know = False

    def begins(self, tell_users: bool = True) -> float:
        self._users_know = tell_users
        if tell_users:
            self._load.fault()
        self.began = self.ended = time.time()
        return self.began

    def ends(self) -> None:
        """What was done to it is over; without this, it was over at once."""
        self.ended = time.time()
        if self._users_know:
            self._load.fault()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def was_missed(self, member: Member) -> str:
        """When it did not answer, when it was ready again, and when the page said that it was not up: which it must
        unless it was back soon."""

        def ready(line: dict[str, Any]) -> bool:
            said = line["brokers"][member.name]
            return said is not None and bool(said["readyz"])

        gone = self._noticed(lambda line: not ready(line), f"{member.name} is not ready")
        back = self.until(ready, f"{member.name} is ready again", self.began + gone)
        looks = [line for line in self._watch.seen(self.began) if line["at"] <= self.began + back + _LATE]
        dead = [line["at"] - self.began for line in looks if self._watch.shown(line, member) not in ("up", None)]
        assert dead or back - gone < _SOON, f"{member.name} was away for {back - gone:.0f} s, and up on the page"
        shown = f"dead on the dashboard after {dead[0]:.1f} s" if dead else "too soon to be dead on the dashboard"
        return f"no answer after {gone:.1f} s, ready again after {back:.1f} s, {shown}"

    def _noticed(self, holds: Callable[[dict[str, Any]], bool], what: str) -> float:
        at = self._watch.until(holds, self.began, what)
        self._known = max(self._known, at)
        return at - self.began

    def until(
        self, holds: Callable[[dict[str, Any]], bool], what: str, since: float | None = None, within: float = 180
    ) -> float:
        """Seconds after the fault began that it first was so."""
        return self._watch.until(holds, since or self.began, what, within) - (self.began or time.time())

    def sum(self, name: str, line: dict[str, Any] | None = None) -> float:
        """Of all brokers, as they say it."""
        line = line or self._watch.seen(time.time() - 5)[-1]
        return sum(said.get(name, 0.0) for said in line["brokers"].values() if said)

    def most_away(self) -> int:
        """How many members of one kind in one cluster were not ready at the same time, since the fault began."""
        most = 0
        for line in self._watch.seen(self.began):
            away = Counter()
            for one in self._there:
                said = line["brokers"][one.name]
                away[one.cluster, one.role] += said is None or not said["readyz"]
            most = max(most, *away.values())
        return most

    def up_on_page(self) -> float:
        """Share of the watcher's looks at which the page showed all members as up, since the fault began."""
        looks = self._watch.seen(self.began)
        up = [all(self._watch.shown(line, one) == "up" for one in self._there) for line in looks]
        return sum(up) / len(up)

    def none_answers(self, some: list[Member]) -> float:
        """Seconds until none of these did, and the page said of none that it is up."""

        def gone(line: dict[str, Any]) -> bool:
            shown = {self._watch.shown(line, one) for one in some}
            return not shown & {"up", None} and all(line["brokers"][one.name] is None for one in some)

        return self._noticed(gone, f"no answer of {', '.join(one.name for one in some)}")

    def there_are(self, there: list[Member]) -> None:
        """From now on these are the members."""
        self._there = there

    def whole(self) -> float:
        """When all were there again, after the fault was over, and was seen."""
        return self._watch.until(
            lambda line: self._watch.whole(line, self._there), max(self.ended, self._known), "all is whole again", 400
        )

    def publishes(self) -> None:
        """Wait until the load's users are there."""

        def begun(line: dict[str, Any]) -> bool:
            return sum(said["clients"] for said in line["brokers"].values() if said) >= PUBLISHERS + SUBSCRIBERS

        self._watch.until(begun, time.time(), "load has begun")


class Stories:
    """The release that faults happen to, and the table they are told in."""

    def __init__(self, cluster: Cluster, release: Release, watch: Watch, images: Images, table: Table) -> None:
        self.cluster, self.release, self.watch, self.images, self.table = cluster, release, watch, images, table
        self.members = members(watch.numbers, 2, 2)
        self.node = "node-1" if cluster.own else ""
        self.auditor = Auditor(release, images.spark, self.node)
        self.auditor.start()

    @contextmanager
    def __call__(self, name: str, *, may_lose: bool = False, route_change: float = ROUTE_CHANGE) -> Iterator[Fault]:
        began = time.time()
        self.watch.until(lambda line: self.watch.whole(line, self.members), began, "all is whole before", 400)
        load = Load(self.release, self.images.mercast, _MOST, self.node)
        load.start()
        fault = Fault(load, self.watch, self.members)
        fault.publishes()
        since = time.time()
        time.sleep(_MARGIN)
        tell(f"{name}: load has begun")
        yield fault
        assert fault.began, "the fault has not begun"
        whole = fault.whole()
        tell(f"{name}: whole {whole - fault.began:.1f} s after it began")
        time.sleep(_AFTERWARDS)
        until = time.time()
        load.stop()
        came = load.result()
        found = self.auditor.audit(since, until)
        row = self._judged(name, fault, whole, until - since, came, found, route_change)
        tell(f"{name}: {row}")
        row.check(may_lose)
        self.table.add(row)

    def _judged(
        self,
        name: str,
        fault: Fault,
        whole: float,
        seconds: float,
        came: dict[str, Any],
        found: dict[str, Any],
        route_change: float,
    ) -> Row:
        lost = sorted(one["time"] / 1e6 for one in found["named"] if one["what"] == "missing")
        first, last = fault.began - IN_FLIGHT, fault.ended + route_change
        beyond = [at for at in lost if not first <= at <= last]
        return Row(
            name=name,
            seen="; ".join(fault.notes),
            whole=whole - fault.began,
            seconds=seconds,
            published=came["published"],
            right=found["right"],
            lost=found["missing"] - len(beyond),
            lost_until=max(at - fault.began for at in lost) if lost else None,
            beyond=len(beyond),
            doubled=found["doubled"] + came["doubled"],
            undue=found["undue"] + came["undue"],
            unknown=sum(found["unknown"].values()),
            users_lost=came["missing_around_faults"],
            users_beyond=came["missing"],
        )
