"""What is to be seen in what brokers have answered: problems of now, and notes of what was; each with what to do."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from mercast.cli.admin_port import NotOurs
from mercast.cli.doctor.visit import Visit

_DAY = 86_400.0
_EXPIRES_SOON = 14 * _DAY
_NEAR = 0.8
"""Of a limit."""
_CLOCKS_APART = 100.0
"""Milliseconds; latency across brokers is wrong by as much."""


class Finding(NamedTuple):
    level: Literal["problem", "note"]
    where: str
    what: str
    do: str


def findings(visits: Sequence[Visit]) -> list[Finding]:
    """Problems first."""
    found = [finding for visit in visits for finding in _of_one(visit)]
    found += _of_all([visit for visit in visits if visit.overlay])
    return sorted(found, key=lambda finding: finding.level != "problem")


def _of_one(visit: Visit) -> Iterator[Finding]:
    if not visit.overlay:
        why = next(iter(visit.missing.values()))
        yield Finding("problem", visit.name, why, visit.advice or NotOurs.do)
        return
    for about in (_state, _reach, _clocks, _certificates, _limits, _counts):
        for level, what, do in about(visit):
            yield Finding(level, visit.name, what, do)


Said = Iterator[tuple[Literal["problem", "note"], str, str]]


def _state(visit: Visit) -> Said:
    me = (visit.overlay or {})["broker"]
    if not me["ready"]:
        yield "problem", f"not ready: {me['reason']}", "clients should not come here until it is"
    for file, why in visit.missing.items():
        yield "note", f"{file} could not be fetched: {why}", "the bundle goes without it"


def _reach(visit: Visit) -> Said:
    seen = visit.overlay or {}
    known = {one["id"]: one["reachable"] for one in seen["overlay"]["brokers"]}
    lost = {one["id"] for one in seen["members"] if not known.get(one["id"])}
    lost |= {id for id, reachable in known.items() if not reachable}
    if lost:
        who = ", ".join(map(str, sorted(lost)))
        yield "problem", f"out of reach: broker {who}", "see whether it runs, and whether its peer port can be reached"


def _clocks(visit: Visit) -> Said:
    for link in (visit.overlay or {})["links"]:
        apart, rtt = link["clock_offset_ms"], link["rtt_ms"]
        if apart is not None and abs(apart) - (rtt or 0.0) / 2 > _CLOCKS_APART:
            ahead = "ahead of" if apart > 0 else "behind"
            what = f"the clock of broker {link['neighbour']} is {abs(apart):.0f} ms {ahead} its own"
            yield "problem", what, "have both machines set their clocks (NTP)"


def _certificates(visit: Visit) -> Said:
    for key, seconds in visit.metrics.get("mercast_certificate_expiry_seconds", {}).items():
        if seconds < _EXPIRES_SOON:
            ends = f"ends in {seconds / _DAY:.1f} days" if seconds > 0 else f"ended {-seconds / _DAY:.1f} days ago"
            yield "problem", f"the certificate {key} {ends}", "put a new one in its place: it is read while brokers run"


def _limits(visit: Visit) -> Said:
    limits, used = (visit.metrics.get(name, {}) for name in ("mercast_limit", "mercast_limit_used"))
    for name, most in limits.items():
        if used.get(name, 0.0) >= _NEAR * most:
            what = f"{name}: {used[name]:,.0f} of {most:,.0f} in use"
            yield "problem", what, _NEARLY_FULL.get(name, "find out who needs so much, or raise the limit")


_NEARLY_FULL = {
    "client_queue_bytes": "a subscriber reads too slowly, and will be disconnected",
    "link_queue_bytes": "a neighbour takes events too slowly: publishers wait, then events are dropped",
    "max_clients": "add brokers, or raise max_clients",
}


def _counts(visit: Visit) -> Said:
    """Since the broker's start."""
    if defects := visit.number("mercast_defects_total"):
        yield "problem", f"{defects:.0f} defects of mercast itself", "look for Traceback in the log, and report it"
    if visit.metrics.get("mercast_reloads_total", {}).get("failed"):
        what = "tokens and certificates could not be read again"
        yield "note", what, "the log says what is wrong; what was read before counts"
    if slow := visit.number("mercast_slow_clients_total"):
        yield "note", f"{slow:.0f} clients were disconnected because they did not read", "make them read faster"
    for code, count in _some(visit, "mercast_connections_denied_total"):
        do = _DENIED.get(code, "the log says who and why")
        if code not in _USUAL:
            yield "note", f"{count:.0f} connections refused or cut off: {code}", do
    for reason, count in _some(visit, "mercast_events_dropped_total"):
        do = _DROPPED.get(reason, "the log and the metrics say when")
        yield "note", f"{count:.0f} events dropped: {reason}", do


def _some(visit: Visit, metric: str) -> Iterable[tuple[str, float]]:
    return [(label, value) for label, value in visit.metrics.get(metric, {}).items() if value]


_USUAL = ("draining",)

_DENIED = {
    "certificate": "a broker shows a certificate of another cluster or role: make it one with mercast cert",
    "cluster": "a broker of another cluster calls: look at its members and seeds",
    "full": "more came than max_clients or max_peers allow",
    "identity": "two brokers have the same id: give each its own",
    "protocol": "somebody spoke something else at this port",
    "slow": "a neighbour did not read: see whether its machine is overloaded",
    "strategy": "brokers of one cluster must have the same strategy",
    "tls": "TLS could not be agreed on: compare certificates and CAs on both sides",
    "token": "clients came without a token that this broker knows",
    "version": "its wire version and this one's have nothing in common: upgrade the older",
}

_DROPPED = {
    "hop limit": "events went in circles: report it, with bundles of all brokers",
    "link down": "they were on their way when a link went down",
    "link queue full": "a neighbour took events too slowly: more brokers, or fewer events",
    "no route": "their destination was out of reach for longer than wait_for_route",
    "repeat": "further copies of events that were here: none was delivered twice",
    "stale": "they came later than this broker remembers: see whether a link is very slow",
    "unreadable": "a client or an older broker made them: see where they come from",
}


def _of_all(visits: Sequence[Visit]) -> Iterator[Finding]:
    versions = {visit.name: (visit.overlay or {})["broker"]["version"] for visit in visits}
    if len(set(versions.values())) > 1:
        told = ", ".join(f"{name}: {version}" for name, version in versions.items())
        yield Finding(
            "note", "all", f"versions differ ({told})", "upgrade one broker after the other until they do not"
        )
    for one, other in combinations(visits, 2):
        mine, theirs = ((visit.overlay or {})["broker"] for visit in (one, other))
        if mine["cluster"] == theirs["cluster"]:
            yield from _of_two(one, other)


def _of_two(one: Visit, other: Visit) -> Iterator[Finding]:
    both = f"{one.name} and {other.name}"
    strategies = [(visit.overlay or {})["broker"]["strategy"] for visit in (one, other)]
    if len(set(strategies)) > 1:
        what = f"one cluster, but two strategies ({', '.join(strategies)})"
        yield Finding("problem", both, what, "give both the same: until then they refuse each other")
    ranges = [visit.versions["wire"] for visit in (one, other) if "wire" in visit.versions]
    if len(ranges) > 1 and max(low for low, _ in ranges) > min(high for _, high in ranges):
        what = f"no common version of the wire ({', '.join(f'{low} to {high}' for low, high in ranges)})"
        yield Finding("problem", both, what, "upgrade the older, one version at a time")
