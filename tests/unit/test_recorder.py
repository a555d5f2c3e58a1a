"""What a live broker writes down, and what it does when it cannot."""

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.main import StartError, running
from mercast.broker.recorder import Recorder
from mercast.protocol.stimuli import LinkUp, Publish, Tick
from mercast.routing.recording import Replayed, replay

FULL = Path("/dev/full")


def run(file, *some):
    """A broker that takes these. What was in the file while it ran; what it has logged; how much was published."""

    async def turns(record):
        broker = Broker(BrokerConfig(id=1, matcher="scan"))
        broker.record(record)
        broker.begin(lambda _address: None, lambda _address, _reason: None)
        for stimulus in some:
            broker.take(stimulus)
            await asyncio.sleep(0)
        return broker.counters.published

    with capture_logs() as logs, closing(Recorder(file)) as record:
        published = asyncio.run(turns(record))
        lines = file.read_text().splitlines(keepends=True) if file.is_file() else []
    return lines, logs, published


def publish(number):
    return Publish("c.1", number, "quote", {"price": number}, 0)


def test_every_turn_is_in_the_file_at_once(tmp_path):
    file = tmp_path / "record"
    lines, *_ = run(file, Tick(), publish(1))
    assert replay(lines) == Replayed(2)


def test_what_happens_before_all_has_begun_is_written_down(tmp_path):
    """A neighbour may call as soon as it is listened to."""
    file = tmp_path / "record"

    async def early(record):
        broker = Broker(BrokerConfig(id=1, matcher="scan"))
        broker.record(record)
        broker.take(LinkUp(2, 1, 1))
        await asyncio.sleep(0)
        broker.begin(lambda _address: None, lambda _address, _reason: None)

    with closing(Recorder(file)) as record:
        asyncio.run(early(record))
    assert replay(file.read_text().splitlines(keepends=True)) == Replayed(1)


def test_a_restart_goes_on_in_the_file(tmp_path):
    file = tmp_path / "record"
    run(file, publish(1))
    lines, *_ = run(file, publish(1), publish(2))
    assert replay(lines) == Replayed(3)
    with file.open("a") as more:
        more.write('{"now":1')
    lines, *_ = run(file, publish(1))
    assert replay(lines) == Replayed(4, cut=(7,))


def test_a_full_disk_ends_the_recording_and_nothing_else():
    _, logs, published = run(FULL, *map(publish, range(1, 4)))
    assert published == 3
    told = {"event": "recording has ended", "log_level": "error", "file": "/dev/full"}
    assert logs == [told | {"reason": "No space left on device"}]


def test_a_defect_is_where_the_replay_stops(tmp_path):
    file = tmp_path / "record"
    broken = LinkUp([2], 1)
    lines, logs, _ = run(file, Tick(), broken, Tick())
    assert [one["event"] for one in logs] == ["defect"]
    assert replay(lines).difference[2:] == (
        broken,
        (),
        ("raised TypeError: unsupported operand type(s) for >>: 'list' and 'int'",),
    )


def test_a_file_that_cannot_be_opened_is_told_at_the_start(tmp_path):
    async def start():
        async with running(BrokerConfig(id=1, record="/proc/x")):
            pass

    with pytest.raises(StartError) as raised:
        asyncio.run(start())
    assert str(raised.value) == "cannot record to /proc/x: No such file or directory; choose another file with --record"
