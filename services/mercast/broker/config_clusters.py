"""The clusters that a broker is in, and how to find the others there.

Most brokers are in one. An edge broker joins others too: what is said of one of these in `members`, `seeds` and `links`
begins with its name and a slash, as in `backbone/7=10.0.0.7:7471`; all else is of the broker's own cluster, its home.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from mercast.broker.addresses import PEER_PORT, Address, parse_address
from mercast.content.rules import ALL, Rules, check_pattern
from mercast.limits import DEFAULTS
from mercast.overlay.split import BROKER

MOST_ID = BROKER - 1
"""The largest number of a broker: the last that an entry of a destination list can hold means no broker."""

MOST_CLUSTER = 0xFFFF
"""The largest number of a cluster: events carry two bytes for each that they have crossed."""

_LINK = re.compile(r"\d{1,5}-\d{1,5}", re.ASCII)

_ENDS = 2
"""Of a link."""

_DENIED = "!"


class ClusterConfig(NamedTuple):
    name: str
    number: int
    members: dict[int, Address]
    seeds: list[str]
    links: list[tuple[int, ...]]


def read_clusters(
    home: tuple[str, int], joins: list[str], members: list[str], seeds: list[str], links: list[str]
) -> tuple[ClusterConfig, ...]:
    """The home first. Everything has been checked."""
    return tuple(
        ClusterConfig(
            name,
            number,
            read_members(_of(name, home[0], members)),
            _of(name, home[0], seeds),
            [tuple(map(int, link.split("-"))) for link in _of(name, home[0], links)],
        )
        for name, number in {home[0]: home[1], **read_joins(joins)}.items()
    )


def _of(cluster: str, home: str, entries: Iterable[str]) -> list[str]:
    return [rest for name, rest in map(in_cluster, entries) if (name or home) == cluster]


def in_cluster(entry: str) -> tuple[str, str]:
    """The name of the cluster that an entry is of, empty for the home; and the rest."""
    name, _, rest = entry.rpartition("/")
    return name, rest


def read_joins(joins: Iterable[str]) -> dict[str, int]:
    """Numbers by name. ValueError says what would be right."""
    found: dict[str, int] = {}
    for join in joins:
        name, _, number = join.rpartition("=")
        if not name or "/" in name or len(name) > DEFAULTS.name_length or not (number.isascii() and number.isdigit()):
            raise ValueError(f"{join!r} is not a cluster to join: write name=number, such as backbone=1000")
        if int(number) > MOST_CLUSTER:
            raise ValueError(f"{join!r}: clusters have numbers from 0 to {MOST_CLUSTER}")
        if name in found or int(number) in found.values():
            raise ValueError(f"{join!r} comes twice: a cluster has a name and a number of its own")
        found[name] = int(number)
    return found


def read_members(listed: Iterable[str]) -> dict[int, Address]:
    members: dict[int, Address] = {}
    for member in listed:
        who, equals, address = member.partition("=")
        if not equals or not (who.isascii() and who.isdigit()) or int(who) > MOST_ID:
            raise ValueError(f"{member!r} is not a member: write id=host:port, such as 2=127.0.0.1:{PEER_PORT}")
        if int(who) in members:
            raise ValueError(f"broker {int(who)} is given twice")
        members[int(who)] = reachable(address, PEER_PORT)
    return members


def check_members(listed: list[str]) -> list[str]:
    """The same, in full."""
    names = dict.fromkeys(name for name, _ in map(in_cluster, listed))
    return [
        f"{name}/{who}={address}" if name else f"{who}={address}"
        for name in names
        for who, address in read_members(_of(name, "", listed)).items()
    ]


def check_seeds(seeds: list[str]) -> list[str]:
    found = ((name, reachable(rest, PEER_PORT)) for name, rest in map(in_cluster, seeds))
    return [f"{name}/{address}" if name else str(address) for name, address in found]


def check_links(links: list[str]) -> list[str]:
    for _, link in map(in_cluster, links):
        ends = {int(end) for end in link.split("-")} if _LINK.fullmatch(link) else set()
        if len(ends) != _ENDS or max(ends) > MOST_ID:
            raise ValueError(f"{link!r} is not a link: write id-id of two brokers, such as 1-2")
    return links


def reachable(text: str, default_port: int) -> Address:
    """An address that others connect to."""
    address = parse_address(text, default_port)
    if address.port == 0 or address.is_everywhere:
        raise ValueError(f"{text!r} is nowhere to connect to: it must name one host and a port other than 0")
    return address


def read_rules(patterns: Iterable[str]) -> Rules:
    """What edges carry: patterns of types, and such with a `!` before them for what they do not."""
    allow = [check_pattern(one) for one in patterns if not one.startswith(_DENIED)]
    deny = [check_pattern(one.removeprefix(_DENIED)) for one in patterns if one.startswith(_DENIED)]
    if wrong := [one for one in deny if one.startswith(_DENIED)]:
        raise ValueError(f"{_DENIED + wrong[0]!r} is not a pattern: one ! says what is not carried")
    return Rules(tuple(allow) or (ALL,) * bool(deny), tuple(deny))


def unfit(
    home: tuple[str, int], joins: list[str], strategy: str, listed: dict[str, list[str]]
) -> Iterable[tuple[str, str]]:
    """What does not go together: the key, and what is wrong with it."""
    others = read_joins(joins)
    if others and strategy != "merc":
        yield (
            "joins",
            f"strategy {strategy} knows one cluster only: events cross from one to another by --strategy merc",
        )
    if home[0] in others or home[1] in others.values():
        yield (
            "joins",
            f"{home[0]!r} with number {home[1]} is the broker's own cluster: others have other names and numbers",
        )
    for key, entries in listed.items():
        for name, _ in map(in_cluster, entries):
            if name and name not in others and name != home[0]:
                yield key, f"{name!r} is no cluster that this broker joins: write joins = ['{name}=number'] too"
