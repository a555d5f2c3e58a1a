"""What the page gets: of all that is known, in two small messages; where brokers are drawn; what is missing."""

import pytest
from orjson import loads
from test_dashboard_brokers import counters, said, tick

from mercast.dashboard.brokers import DEAD, UNKNOWN, UP
from mercast.dashboard.layout import Layout
from mercast.dashboard.load import Choice
from mercast.dashboard.missing import AWAY, EMPTY, OFF, THERE, Source, missing
from mercast.dashboard.view import BROKER_FIELDS, HALF, State
from mercast.protocol import rows


def seen(state, now):
    """As the server does it each second."""
    state.look(now, int(now * 1_000))
    unlaid = state.unlaid()
    if unlaid:
        state.layout.draw(*unlaid)
        state.look(now, int(now * 1_000))
    return loads(state.overlay()), loads(state.pulse(Choice(), {}))


def ring(many, now=1.0):
    state = State()
    state.told.kafka = Source(THERE, "k:1")
    for id in range(1, many + 1):
        before, after = (id - 2) % many + 1, id % many + 1
        state.brokers.take_control(said(id, rows.Linked(before, 1), rows.Linked(after, 1)), now)
        state.brokers.take_tap(said(id, tick(published=2 * id)), now)
    state.told.last_tap = now
    state.told.connected, state.told.confirmed = -100.0, 1e9
    return state


def test_overlay_and_pulse_of_a_ring_in_which_one_dies():
    state = ring(4)
    overlay, pulse = seen(state, 1.0)
    assert [one[:4] for one in overlay["brokers"]] == [[id, "west", "ddbr", False] for id in range(1, 5)]
    assert [one[:4] for one in overlay["links"]] == [[1, 2, UP, 1], [1, 4, UP, 1], [2, 3, UP, 1], [3, 4, UP, 1]]
    assert pulse["brokers"]["3"][BROKER_FIELDS.index("published")] == 3.0
    assert (pulse["load"]["published"], len(pulse["links"])) == (10.0, 4)
    places, version = [one[4:] for one in overlay["brokers"]], state.version
    seen(state, 2.0)
    assert state.version == version  # nothing has changed: the overlay is not sent again
    for id in (1, 2, 4):
        state.brokers.take_tap(said(id, tick()), 8.0)
    overlay, pulse = seen(state, 8.0)
    assert [pulse["brokers"][str(id)][0] for id in range(1, 5)] == [UP, UP, DEAD, UP]
    assert [one[2] for one in overlay["links"]] == [UP, UP, DEAD, DEAD]
    assert [one[4:] for one in overlay["brokers"]] == places  # the picture does not jump
    state.brokers.take_control(said(1, rows.Unlinked(2), at=9), 8.0)
    assert seen(state, 8.0)[0]["links"][0][2] == HALF


def test_when_all_are_silent_nobody_is_dead_before_kafka_has_answered():
    state = ring(3)
    state.told.connected, state.told.confirmed = -100.0, 0.5
    states = lambda now: {one[0] for one in seen(state, now)[1]["brokers"].values()}  # noqa: E731
    assert states(1.0) == {UP}
    assert states(8.0) == {UNKNOWN}
    state.told.confirmed = 7.9
    assert states(8.0) == {DEAD}
    state.told.connected = 7.9  # it was away: brokers may not know yet that it is back
    assert states(8.0) == {UNKNOWN}


def test_about_one_broker():
    state = ring(3)
    state.brokers.take_counters(counters(1, links=[(2, 5), (3, 0)]), 1.0)
    state.brokers.take_counters(counters(1, links=[(2, 15), (3, 0)]), 2.0)
    seen(state, 2.0)
    told = state.broker(1)
    assert (told["state"], told["by"], told["held"]["subscriptions"]) == (UP, "admin", 3)
    assert [(one["id"], one["in"], one["queued_bytes"]) for one in told["neighbours"]] == [(2, 10.0, 7), (3, 0.0, 7)]
    assert state.broker(9) is None


def test_a_pulse_is_as_large_as_the_overlay_whatever_happens():
    state = ring(100)
    sizes = [len(state.overlay()) + len(state.pulse(Choice(), {})) for _ in [seen(state, 1.0)]]
    for second in range(2, 30):
        for id in range(1, 101):
            state.brokers.take_tap(
                said(id, tick(published=10**6, delivered=10**7, dropped={"no route": 5})), float(second)
            )
        seen(state, float(second))
        sizes.append(len(state.pulse(Choice(), {})))
    assert max(sizes) < 20_000


@pytest.mark.parametrize("clusters", [1, 2, 3, 7])
def test_brokers_are_drawn_within_their_clusters_and_these_apart(clusters):
    names = {id: f"c{id % clusters}" for id in range(12 * clusters)}
    links = [(id, (id + clusters) % len(names)) for id in names]
    drawn = Layout().draw(names, links)
    assert len(set(drawn.places.values())) == len(names)
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in drawn.places.values())
    circles = {circle.name: circle for circle in drawn.clusters}
    if clusters > 1:
        for id, (x, y) in drawn.places.items():
            circle = circles[names[id]]
            assert (x - circle.x) ** 2 + (y - circle.y) ** 2 <= circle.radius**2
        for one in drawn.clusters:
            for other in drawn.clusters:
                apart = ((one.x - other.x) ** 2 + (one.y - other.y) ** 2) ** 0.5
                assert one == other or apart >= one.radius + other.radius


KAFKA, ADMIN = "127.0.0.1:9092", "127.0.0.1:7472"


@pytest.mark.parametrize(
    ("kafka", "taps", "metrics", "admin", "commands"),
    [
        (AWAY, EMPTY, EMPTY, AWAY, [("mercast local",)]),
        (OFF, EMPTY, EMPTY, OFF, [("mercast local",)]),
        (AWAY, EMPTY, EMPTY, THERE,
         [("mercast kafka", f"mercast local --taps kafka://{KAFKA}", f"mercast metrics --kafka {KAFKA}")]),
        (EMPTY, EMPTY, EMPTY, THERE, [(f"mercast local --taps kafka://{KAFKA}", f"mercast metrics --kafka {KAFKA}")]),
        (THERE, THERE, EMPTY, AWAY, [(f"mercast metrics --kafka {KAFKA}",)]),
        (THERE, THERE, THERE, THERE, []),
    ],
)  # fmt: skip
def test_what_is_missing_and_the_commands_that_start_it(kafka, taps, metrics, admin, commands):
    found = missing(Source(kafka, KAFKA), taps, metrics, Source(admin, ADMIN))
    assert [one.commands for one in found] == commands
