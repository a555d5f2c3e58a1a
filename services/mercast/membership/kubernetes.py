"""The members of a cluster as the Kubernetes API knows them: pods by their labels, listed once and then watched.

What the API says is a hint, like a list of members: whom to call, and where. Who is alive the overlay knows. While the
API is away, the last view stays. An edge looks into other namespaces too, for the edges of other clusters.
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, NamedTuple

import structlog

from mercast.membership.kubernetes_api import GONE, NOT_FOUND, Api, ApiError, connected
from mercast.membership.pods import (
    CLUSTER,
    EDGE,
    INSTANCE,
    NAME,
    ROLE,
    MembershipError,
    Pod,
    is_there,
    read_pod,
    same_id,
    same_number,
)

log = structlog.get_logger()

_SOON, _LATE = 0.1, 10.0
"""Seconds between two tries: they double from the first to the second, and begin anew when one has done some good."""

_WATCH = 120
"""Seconds that a watch lasts: one that is dead without a word is noticed then."""

_RESYNC = 600.0
"""Seconds between two lists, though nothing was missed as far as anybody knows."""

_WAIT = 5.0
"""Seconds that the first list is waited for, once the API has been asked: then a broker is ready without it."""

_SAID = 1_000
"""Mistakes that are remembered, so that each is logged once."""

_HOME = "home"


class Me(NamedTuple):
    """The broker that asks."""

    id: int
    namespace: str
    pod: str
    number: int
    """Of its cluster."""
    edge: bool
    ids_per_cluster: int
    peer_port: int
    labels: str = ""
    """Selects the members of its own cluster; by default its own pod's labels do."""
    backbone: tuple[str, ...] = ()
    """Namespaces with edges of other clusters."""


class View(NamedTuple):
    """Peer addresses by id."""

    home: dict[int, str]
    backbone: dict[int, str]


class Kubernetes:
    def __init__(self, me: Me, tell: Callable[[View], None], resync: float = _RESYNC) -> None:
        self._me, self._tell, self._resync = me, tell, resync
        self._pods: dict[str, dict[str, Pod]] = {}
        """By what was looked for and by name, as they were last seen."""
        self._unlisted = {_HOME, *map(_edges_in, me.backbone)}
        """What the API has not answered yet."""
        self._asked_at: float | None = None
        """When that began."""
        self._clash = ""
        """That this broker is part of."""
        self._said: set[str] = set()
        self._away: dict[str, str] = {}
        """Why the API is of no use, by what was looked for."""

    def lacks(self) -> str:
        """Why this broker cannot know its place yet; empty if it can, or has waited for long enough."""
        if self._clash:
            return self._clash
        waits = self._asked_at is None or monotonic() < self._asked_at + _WAIT
        if not self._unlisted or not waits:
            return ""
        return ": ".join(("the Kubernetes API has not said yet who is there", *list(self._away.values())[:1]))

    async def run(self) -> None:
        wait, self._asked_at = _SOON, monotonic()
        while True:
            try:
                async with connected() as api:
                    await self._follow(api)
            except ApiError as error:  # a pod's credentials may come late
                self._went_away(_HOME, str(error))
            except Exception:  # a defect of ours, or of the library: nobody else would notice
                log.exception("defect: the Kubernetes API is asked anew")
            wait = await _pause(wait)

    # -- asking ------------------------------------------------------------------------------------------------------

    async def _follow(self, api: Api) -> None:
        labels = await self._own_labels(api)
        edges = f"{NAME}={labels.get(NAME, 'mercast')},{ROLE}={EDGE}"
        looks = [self._keep(api, _HOME, self._me.namespace, self._me.labels or _selector(labels))]
        looks += [self._keep(api, _edges_in(one), one, edges) for one in self._me.backbone]
        async with asyncio.TaskGroup() as group:
            for look in looks:
                group.create_task(look)

    async def _own_labels(self, api: Api) -> dict[str, str]:
        wait = _SOON
        while True:
            try:
                pod = await api.pod(self._me.namespace, self._me.pod)
                labels: dict[str, str] = pod["metadata"].get("labels") or {}
                if self._me.labels or CLUSTER in labels:
                    return labels
                reason = f"pod {self._me.pod} has no label {CLUSTER}: give it one, or kubernetes_labels"
            except ApiError as error:
                reason = str(error)
                if error.status == NOT_FOUND:
                    reason += ": kubernetes_pod (POD_NAME) and kubernetes_namespace (POD_NAMESPACE) say who this is"
            self._went_away(_HOME, reason)
            wait = await _pause(wait)

    async def _keep(self, api: Api, what: str, namespace: str, selector: str) -> None:
        """What is there, as long as the broker runs."""
        wait, version, listed = _SOON, "", 0.0
        while True:
            began, good = monotonic(), False
            try:
                if not version or began > listed + self._resync:
                    items, version = await api.pods(namespace, selector)
                    listed = began
                    self._listed(what, items)
                async for kind, pod in api.changes(namespace, selector, version, _WATCH):
                    version, good = pod["metadata"]["resourceVersion"], True
                    self._changed(what, kind, pod)
            except ApiError as error:
                version = ""
                if error.status != GONE:  # which is how it says that a list is due
                    self._went_away(what, str(error))
            except (KeyError, TypeError, AttributeError) as error:
                version = ""
                self._went_away(what, f"what the Kubernetes API answers cannot be read: {error!r}")
            wait = await _pause(_SOON if good or monotonic() > began + _LATE else wait)

    # -- what is there -----------------------------------------------------------------------------------------------

    def _listed(self, what: str, items: Iterable[dict[str, Any]]) -> None:
        self._came(what)
        self._unlisted.discard(what)
        self._pods[what] = {pod.name: pod for pod in map(self._read, items) if pod is not None}
        self._look()

    def _changed(self, what: str, kind: str, about: dict[str, Any]) -> None:
        if kind == "BOOKMARK":
            return
        self._pods[what].pop(about["metadata"]["name"], None)
        pod = None if kind == "DELETED" else self._read(about)
        if pod is not None:
            self._pods[what][pod.name] = pod
        self._look()

    def _read(self, about: dict[str, Any]) -> Pod | None:
        if not is_there(about):
            return None
        try:
            return read_pod(about, self._me.ids_per_cluster, self._me.peer_port)
        except MembershipError as error:
            self._say(str(error))
            return None

    def _look(self) -> None:
        """Tell whom to call. Of two that have the same number neither is: nobody knows which of them is right."""
        me = self._me
        pods = {pod for some in self._pods.values() for pod in some.values()}
        ids, numbers = dict(same_id(pods)), dict(same_number(pods))
        self._clash = self._unlike_me(pods) or ids.get(me.id, "") or numbers.get(me.number, "")
        for wrong in (*filter(None, [self._clash]), *ids.values(), *numbers.values()):
            self._say(wrong)
        others = [one for one in pods if one.id != me.id and one.id not in ids and one.address]
        mine = {pod[:2] for pod in self._pods.get(_HOME, {}).values()}
        home = {one.id: one.address for one in others if one[:2] in mine}
        self._tell(View(home, {one.id: one.address for one in others if one.edge} if me.edge else {}))

    def _unlike_me(self, pods: Iterable[Pod]) -> str:
        """What the own pod's labels say otherwise than the configuration."""
        for pod in pods:
            if pod[:2] == (self._me.namespace, self._me.pod) and pod.id != self._me.id:
                role = EDGE if pod.edge else "broker"
                return (
                    f"broker {self._me.id} is {pod}, which by its labels is {role} {pod.id} of the cluster with number "
                    f"{pod.number}: cluster_number and joins must fit the labels"
                )
        return ""

    # -- what is logged ----------------------------------------------------------------------------------------------

    def _say(self, wrong: str) -> None:
        if wrong not in self._said:
            if len(self._said) >= _SAID:
                self._said.clear()
            self._said.add(wrong)
            log.error("pods that do not go together", reason=wrong)

    def _went_away(self, what: str, reason: str) -> None:
        if what not in self._away:
            log.warning("the Kubernetes API is of no use now: what it said last counts", asked=what, reason=reason)
        self._away[what] = reason

    def _came(self, what: str) -> None:
        if self._away.pop(what, None):
            log.info("the Kubernetes API answers again", asked=what)


def _edges_in(namespace: str) -> str:
    return f"edges in {namespace}"


def _selector(labels: dict[str, str]) -> str:
    """Brokers and edges of the cluster that a pod is in."""
    own = (f"{key}={labels[key]}" for key in (NAME, INSTANCE, CLUSTER) if key in labels)
    return ",".join((*own, f"{ROLE} in (broker,{EDGE})"))


async def _pause(wait: float) -> float:
    """The next one."""
    await asyncio.sleep(wait * random.uniform(0.5, 1.5))
    return min(2 * wait, _LATE)
