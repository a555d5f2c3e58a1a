"""What live brokers record replays to the same effects."""

import signal

import pytest
from live import PATIENCE, Lone, Mesh, end, mercast, until

from mercast import Refused, blocking
from mercast.processes import free_addresses

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


def publish(broker, count):
    with blocking.connect(broker.client) as client:
        for price in range(count):
            client.publish("quote", {"price": price})


def test_a_recording_outlives_the_broker(tmp_path):
    """Killed without a word, and started again with the same file."""
    file = tmp_path / "record.jsonl"
    with Lone(tmp_path / "log", 1, "--record", file) as broker:
        publish(broker, 50)
        until(lambda: '["price",49]' in file.read_text(), "the last event is written down")
        assert end(broker.process, signal.SIGKILL) == -signal.SIGKILL
    with file.open("a") as more:
        more.write('{"now":1')
    with Lone(tmp_path / "log of the second", 1, "--record", file) as broker:
        publish(broker, 5)
        assert end(broker.process) == 0
    lines = file.read_text().splitlines()
    done = mercast("lab", "replay", file)
    assert (done.returncode, done.stderr) == (0, "")
    (cut,) = (number for number, line in enumerate(lines, 1) if line == '{"now":1')
    assert done.stdout.splitlines() == [
        f"line {cut} is cut off, as when a broker is killed or its disk is full; all before it counts",
        f"{sum('stimulus' in line for line in lines)} stimuli, same effects",
    ]


def test_a_full_disk_ends_only_the_recording(tmp_path):
    with Lone(tmp_path / "log", 1, "--record", "/dev/full") as broker:
        publish(broker, 300)
        broker.says("recording has ended", "/dev/full", "No space left on device")
        assert end(broker.process) == 0
        assert broker.told().count("recording has ended") == 1
        assert "Traceback" not in broker.told()


def test_a_record_that_cannot_be_opened():
    client, peer, admin = free_addresses(3)
    where = ["--listen", client, "--peer-listen", peer, "--admin-listen", admin]
    done = mercast("broker", "--id", 1, "--matcher", "scan", *where, "--record", "/proc/x")
    said = "mercast: cannot record to /proc/x: No such file or directory; choose another file with --record\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
