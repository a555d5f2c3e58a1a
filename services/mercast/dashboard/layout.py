"""Where brokers are drawn: each cluster by forces between its brokers, the clusters side by side, all within
a square of side 1.

A picture that jumps cannot be read: it is worked out anew only when brokers come or go for good, or when many links
have moved, and then from where things were.
"""

from collections.abc import Iterable, Mapping
from math import cos, pi, sin, sqrt
from typing import NamedTuple

import networkx as nx

Place = tuple[float, float]
Pair = tuple[int, int]

_MOVED = 0.2
"""Share of links that have changed before the picture does."""

_MARGIN = 0.06
_FILLED = 0.82
"""Of the radius of a circle: brokers have a size too."""
_WHOLE = 0.5
"""The radius of the only cluster."""
_ITERATIONS = 80
_DIGITS = 4
_PAIR = 2
"""Clusters that lie side by side, not one above the other."""


class Circle(NamedTuple):
    """A cluster."""

    name: str
    x: float
    y: float
    radius: float


class Drawn(NamedTuple):
    places: dict[int, Place]
    clusters: list[Circle]


class Layout:
    def __init__(self) -> None:
        self._clusters: dict[int, str] = {}
        self._links: set[Pair] = set()
        self.drawn = Drawn({}, [])

    def fits(self, clusters: Mapping[int, str], links: Iterable[Pair]) -> bool:
        """Whether these may be drawn as they are."""
        if clusters != self._clusters:
            return False
        now = set(links)
        return len(now ^ self._links) <= _MOVED * max(1, len(self._links))

    def draw(self, clusters: Mapping[int, str], links: Iterable[Pair]) -> Drawn:
        """The cluster of each broker, and links. May take a while where there are hundreds."""
        pairs = set(links)
        # From a picture of other links, forces seldom find the way out.
        before = self.drawn if len(pairs & self._links) * 2 >= len(pairs) else Drawn({}, [])
        circles = _circles(clusters)
        places: dict[int, Place] = {}
        for circle in circles:
            members = sorted(id for id, name in clusters.items() if name == circle.name)
            inside = [pair for pair in pairs if clusters.get(pair[0]) == clusters.get(pair[1]) == circle.name]
            places |= _inside(circle, members, inside, before)
        self._clusters, self._links = dict(clusters), pairs
        self.drawn = Drawn(places, circles)
        return self.drawn


def _circles(clusters: Mapping[int, str]) -> list[Circle]:
    """Their areas are as the numbers of their brokers; around a middle, the largest circles that do not touch."""
    names = sorted(set(clusters.values()))
    if len(names) <= 1:
        return [Circle(name, 0.5, 0.5, _WHOLE) for name in names]
    sizes = {name: sqrt(sum(one == name for one in clusters.values())) for name in names}
    largest = max(sizes.values())
    share = sin(pi / len(names))
    radius = share / (1 + share) / 2 * 0.94
    """Of the largest: n circles in a ring within one of radius 1/2."""
    middle = 0.5 - share / (1 + share) / 2
    found = []
    for place, name in enumerate(names):
        angle = -pi / 2 + 2 * pi * (place + (0.5 if len(names) == _PAIR else 0)) / len(names)
        mine = max(0.45, sizes[name] / largest) * radius
        found.append(Circle(name, _round(0.5 + middle * cos(angle)), _round(0.5 + middle * sin(angle)), _round(mine)))
    return _centred(found)


def _centred(circles: list[Circle]) -> list[Circle]:
    """Three in a ring reach further up than down."""
    highest, lowest = min(one.y - one.radius for one in circles), max(one.y + one.radius for one in circles)
    return [one._replace(y=_round(one.y + (1 - highest - lowest) / 2)) for one in circles]


def _inside(circle: Circle, members: list[int], links: list[Pair], before: Drawn) -> dict[int, Place]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(members)
    graph.add_edges_from(sorted(links))
    known = {id: before.places[id] for id in members if id in before.places}
    if len(members) == 1:
        return {members[0]: (circle.x, circle.y)}
    start = known if len(known) == len(members) else None
    iterations = _ITERATIONS if start is None else _ITERATIONS // 2
    begin = start or nx.circular_layout(graph)
    found = nx.spring_layout(
        graph, pos=begin, iterations=iterations, seed=1, k=2.2 / sqrt(len(members)), method="force"
    )
    places = {id: (float(x), float(y)) for id, (x, y) in found.items()}
    return _stretched(places) if circle.radius == _WHOLE else _scaled(circle, places)


def _stretched(places: Mapping[int, Place]) -> dict[int, Place]:
    """A cluster that is alone has the whole square."""
    columns = zip(*places.values(), strict=True)
    (left, width), (top, height) = ((min(one), max(one) - min(one) or 1.0) for one in columns)
    room = 1 - 2 * _MARGIN
    return {
        id: (_round(_MARGIN + room * (x - left) / width), _round(_MARGIN + room * (y - top) / height))
        for id, (x, y) in places.items()
    }


def _scaled(circle: Circle, places: Mapping[int, Place]) -> dict[int, Place]:
    """Into the circle, with the farthest near its rim."""
    x = sum(one for one, _ in places.values()) / len(places)
    y = sum(one for _, one in places.values()) / len(places)
    farthest = max(sqrt((a - x) ** 2 + (b - y) ** 2) for a, b in places.values()) or 1.0
    scale = circle.radius * _FILLED / farthest
    return {
        id: (_round(circle.x + (a - x) * scale), _round(circle.y + (b - y) * scale)) for id, (a, b) in places.items()
    }


def _round(number: float) -> float:
    return round(number, _DIGITS)
