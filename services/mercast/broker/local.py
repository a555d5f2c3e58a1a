"""Brokers as processes of this machine: for `mercast local`, system tests and benches. No asyncio.

All that was started ends with the `with` block, and with the thread that started it if that is killed.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any
from urllib.request import urlopen

from mercast.broker.nursery import Child, Nursery
from mercast.processes import end_with_parent, free_addresses

Link = tuple[int, int]

PROFILE = "MERCAST_PROFILE"
"""Names a folder: brokers run under cProfile and write `broker-<id>.prof` there when they stop."""

CLUSTER, BACKBONE = "cluster", "backbone"
"""Names of several clusters: cluster-1, cluster-2, …; and of the one that their edges are in."""

_POLL = 0.05
_ANSWER_WITHIN, _TELL_WITHIN = 1.0, 60.0
"""Seconds: for one who is asked again and again; and for one whose answer is waited for, on a loaded machine."""
_STOP_WITHIN = 10.0
_TOLD = 2_000
"""Characters of a broker's log in an error."""


class NotReady(Exception):  # noqa: N818 - reads better where it is caught
    """A broker did not start; the end of its log says why."""


@dataclass
class Broker:
    id: int
    client: str
    peer: str
    admin: str
    """Addresses, as host:port."""
    log: Path
    cluster: int = 1
    """Which of the clusters it is in."""
    edge: bool = False
    """Whether it is in the backbone too."""
    process: "Child | subprocess.Popen[bytes] | None" = None

    @property
    def pid(self) -> int:
        if self.process is None:
            raise NotReady(f"broker {self.id} is not running")
        return self.process.pid

    def metric(self, name: str) -> float:
        """Of a metric without labels, as its admin port tells it."""
        with urlopen(f"http://{self.admin}/metrics", timeout=_TELL_WITHIN) as answer:
            lines: list[str] = answer.read().decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

    def tail(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-_TOLD:] if self.log.exists() else ""


class Local:
    """`with Local(3, [(1, 2), (2, 3)]) as brokers: brokers[1].client …`; numbered from 1.

    Without links, the brokers construct the overlay themselves. Of several clusters each has so many brokers, and the
    first of them are the edges, which are joined by a backbone. `options` are further flags of `mercast broker`;
    `addresses` gives the three of a broker, in place of free ones. They are forked from `nursery` if one is there
    already, which goes on when they end.
    """

    def __init__(
        self,
        brokers: int,
        links: Iterable[Link] | None = None,
        *,
        clusters: int = 1,
        edges: int = 0,
        strategy: str = "ddbr",
        matcher: str = "index",
        options: Sequence[str] = (),
        folder: Path | None = None,
        addresses: Callable[[int], tuple[str, str, str]] | None = None,
        ready_within: float = 60.0,
        nursery: Nursery | None = None,
    ) -> None:
        self._links = None if links is None else list(links)
        self._options = ["--strategy", strategy, "--matcher", matcher, *options]
        self._own_nursery = nursery is None
        self._nursery = nursery or Nursery(prepared=matcher == "index")
        self._ready_within = ready_within
        self._ends = ExitStack()
        self._folder = folder
        self._addresses = addresses
        self._clusters, self._edges, self._size = clusters, edges, brokers
        self._ids = range(1, clusters * brokers + 1)
        self.brokers: dict[int, Broker] = {}

    def __getitem__(self, id: int) -> Broker:
        return self.brokers[id]

    @property
    def pid(self) -> int:
        """Of the process that has started all brokers."""
        return self._nursery.pid

    def __enter__(self) -> "Local":
        with ExitStack() as ends:
            if self._own_nursery:
                ends.enter_context(self._nursery)
            ends.callback(self.stop)
            folder = self._folder or Path(ends.enter_context(TemporaryDirectory(prefix="mercast-")))
            free = iter(free_addresses(0 if self._addresses else 3 * len(self._ids)))
            for id in self._ids:
                client, peer, admin = self._addresses(id) if self._addresses else (next(free), next(free), next(free))
                self.brokers[id] = Broker(id, client, peer, admin, folder / f"broker-{id}.log", *self._place(id))
            for id in self._ids:
                self.start(id)
            for id in self._ids:
                self.wait_ready(id)
            self.wait_whole()
            self._ends = ends.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def _place(self, id: int) -> tuple[int, bool]:
        """Its cluster, and whether it is an edge."""
        cluster, place = divmod(id - 1, self._size)
        return cluster + 1, self._clusters > 1 and place < self._edges

    def start(self, id: int) -> None:
        """At the same addresses as before; does not wait."""
        broker = self.brokers[id]
        folder = os.environ.get(PROFILE)
        if folder is None:
            broker.process = self._nursery.start(self._flags(broker), broker.log)
            return
        profiled = [sys.executable, "-m", "cProfile", "-o", str(Path(folder) / f"broker-{id}.prof"), "-m", "mercast"]
        with broker.log.open("ab") as log:
            broker.process = subprocess.Popen(
                [*profiled, "broker", *self._flags(broker)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,
            )

    def _flags(self, broker: Broker) -> list[str]:
        members = [f"{one.id}={one.peer}" for one in self.brokers.values() if one.cluster == broker.cluster]
        flags = ["--id", str(broker.id), *self._options]
        if self._clusters > 1:
            flags += ["--cluster", f"{CLUSTER}-{broker.cluster}", "--cluster-number", str(broker.cluster)]
        if broker.edge:
            flags += ["--joins", f"{BACKBONE}={self._clusters + 1}"]
            members += [f"{BACKBONE}/{one.id}={one.peer}" for one in self.brokers.values() if one.edge]
        flags += ["--members", ",".join(members)]
        flags += ["--listen", broker.client, "--peer-listen", broker.peer, "--admin-listen", broker.admin]
        if self._links is not None:
            flags += ["--links", ",".join(f"{one}-{other}" for one, other in self._links)]
        return flags

    def wait_ready(self, id: int) -> None:
        """Until the broker says that it is ready; NotReady if it ends instead, or takes too long."""
        broker = self.brokers[id]
        self._wait_until(broker, "is not ready", partial(_is_ready, broker))

    def wait_whole(self) -> None:
        """Until every broker that runs reaches all the others of its clusters that do: a link may be up before all have
        heard of it."""
        running = [broker for broker in self.brokers.values() if broker.process is not None]
        edges = {broker.id for broker in running if broker.edge}
        for broker in running:
            ids = {one.id for one in running if one.cluster == broker.cluster}
            reaches = partial(_reaches, broker, [ids, edges] if broker.edge else [ids])
            self._wait_until(
                broker, f"does not reach all of {sorted(ids | edges) if broker.edge else sorted(ids)}", reaches
            )

    def _wait_until(self, broker: Broker, not_yet: str, holds: Callable[[], bool]) -> None:
        until = monotonic() + self._ready_within
        while not holds():
            if broker.process is None or broker.process.poll() is not None:
                raise NotReady(f"broker {broker.id} has ended; its log:\n{broker.tail()}")
            if monotonic() > until:
                late = f"broker {broker.id} {not_yet} after {self._ready_within:.0f} s"
                raise NotReady(f"{late}; its log:\n{broker.tail()}")
            sleep(_POLL)

    def wait(self, tell: Callable[[str], None]) -> None:
        """Until all brokers have ended, each by itself: NotReady says how the last one did, and the others are told."""
        running = dict(self.brokers)
        while True:
            for broker in list(running.values()):
                status = 0 if broker.process is None else broker.process.poll()
                if status is not None:
                    del running[broker.id]
                    how = signal.Signals(-status).name if status < 0 else f"exit status {status}"
                    if not running:
                        raise NotReady(
                            f"broker {broker.id}, the last one, has ended ({how}); its log:\n{broker.tail()}"
                        )
                    tell(f"broker {broker.id} has ended ({how}); the others go on")
            sleep(_POLL)

    def kill(self, id: int) -> None:
        """By SIGKILL: nothing is said to anybody."""
        self._end([self.brokers[id]], signal.SIGKILL)

    def terminate(self, id: int) -> None:
        """By SIGTERM, as an operator would; SIGKILL if that does not help."""
        self._end([self.brokers[id]], signal.SIGTERM)

    def restart(self, id: int) -> None:
        """At the same addresses; ends it first if it runs, and waits until it is ready."""
        self.terminate(id)
        self.start(id)
        self.wait_ready(id)

    def stop(self) -> None:
        """All at once: no use in letting clients go elsewhere."""
        self._end(list(self.brokers.values()), signal.SIGINT)

    def _end(self, brokers: list[Broker], by: signal.Signals) -> None:
        processes = [broker.process for broker in brokers if broker.process is not None]
        for process in processes:
            process.send_signal(by)
        until = monotonic() + _STOP_WITHIN
        for process in processes:
            try:
                process.wait(max(0.0, until - monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for broker in brokers:
            broker.process = None


def _asked(broker: Broker) -> dict[str, Any] | None:
    """The overlay as the broker's admin port tells it; None if nothing is told yet."""
    try:
        with urlopen(f"http://{broker.admin}/overlay", timeout=_ANSWER_WITHIN) as answer:
            said: dict[str, Any] = json.load(answer)
            return said
    except (OSError, ValueError):
        return None


def _is_ready(broker: Broker) -> bool:
    """Whether this very process says so: another one may have been at the address before."""
    said = _asked(broker)
    return said is not None and said["broker"].get("pid") == broker.pid and bool(said["broker"]["ready"])


def _reaches(broker: Broker, members: list[set[int]]) -> bool:
    """In each of its clusters."""
    said = _asked(broker)
    views = [said, *said.get("others", [])] if said else []
    known = [{one["id"] for one in view["overlay"]["brokers"] if one["reachable"]} for view in views]
    return len(known) >= len(members) and all(map(set.issubset, members, known))
