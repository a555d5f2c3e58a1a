"""The overlay that follows from a member list."""

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercast.overlay.construct import neighbours

members = st.sets(st.integers(0, 2**15 - 1), min_size=1, max_size=40)


def links(some, degree=6):
    return {frozenset((one, other)) for one in some for other in neighbours(some, one, degree)}


@given(members, st.sampled_from([2, 4, 6]))
def test_connected_symmetric_and_of_bounded_degree(some, degree):
    graph = nx.Graph([tuple(link) for link in links(some, degree)])
    graph.add_nodes_from(some)
    assert nx.is_connected(graph)
    for one in some:
        assert len(neighbours(some, one, degree)) <= degree
        assert all(one in neighbours(some, other, degree) for other in neighbours(some, one, degree))


@given(members, st.integers(0, 2**15 - 1))
def test_a_newcomer_changes_little(some, newcomer):
    before, after = links(some - {newcomer}), links(some | {newcomer})
    assert len({link for link in before - after if newcomer not in link}) <= 3
    assert len({link for link in after - before if newcomer not in link}) == 0


@pytest.mark.parametrize(("count", "diameter"), [(10, 3), (100, 5), (700, 7)])
def test_the_diameter_is_small(count, diameter):
    assert nx.diameter(nx.Graph([tuple(link) for link in links(range(count))])) <= diameter
