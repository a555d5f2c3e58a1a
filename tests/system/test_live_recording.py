"""What live brokers record replays to the same effects."""

import pytest
from live import PATIENCE, Mesh, mercast

from mercast import Refused, blocking

LINE = [(1, 2), (2, 3)]
"""Publisher at one end, subscriber at the other; through the broker between them events only pass."""


@pytest.mark.slow
def test_recordings_replay(tmp_path):
    def file(id):
        return tmp_path / f"broker-{id}.jsonl"

    with Mesh(3, LINE, matcher="index", each=lambda id: ["--record", file(id)]) as mesh:
        with blocking.connect(mesh[1].client) as publisher, blocking.connect(mesh[3].client) as subscriber:
            publisher.declare("quote", {"price": "int", "nested.flag": "bool"})
            events = subscriber.subscribe("quote", "price < 50")
            gone = subscriber.subscribe("quote", "price BETWEEN 10 AND 20 AND NOT nested.flag")
            outcomes = publisher.publish_many(
                ("quote", {"price": price, "nested": {"flag": price % 2 == 0}}, bytes([price, 255]))
                for price in range(100)
            )
            assert [outcome.destinations for outcome in outcomes] == [1] * 50 + [0] * 50
            with pytest.raises(Refused, match="price"):
                publisher.publish("quote", {"price": "dear"})
            assert [events.get(PATIENCE).attributes["price"] for _ in range(50)] == list(range(50))
            gone.cancel()
            traced = publisher.trace("quote", {"price": 1})
            assert {traced.get(PATIENCE).broker for _ in range(4)} == {1, 2, 3}
        for id in mesh.brokers:
            mesh.terminate(id)

    for id in (1, 2, 3):
        done = mercast("lab", "replay", file(id))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(" stimuli, same effects\n")
        assert int(done.stdout.split()[0]) == len(file(id).read_text().splitlines()) - 1
