"""The audit of real brokers, in two clusters: clean; and with brokers that do some events wrong, just these."""

import asyncio
import json
import os
from pathlib import Path
from time import monotonic, sleep, time_ns

import pytest

import mercast as client
from mercast.broker.local import Local
from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files

pytestmark = pytest.mark.trial

DROPPED, DOUBLED, MISDELIVERED = 13, 14, 15
EVENTS = 40
WHERES = ("n < 30", "n BETWEEN 10 AND 30.5 AND s LIKE 'a%'")


async def _play(brokers, folder, skipped):
    """A subscriber at each broker, a publisher at the first of each cluster; the ids of the subscribers, by broker."""
    async with client.connect(brokers[1].client) as one, client.connect(brokers[3].client) as other:
        readers = {id: client.connect(broker.client) for id, broker in brokers.brokers.items()}
        for reader in readers.values():
            await reader.__aenter__()
        try:
            subscriptions = [await reader.subscribe("quote", where) for reader in readers.values() for where in WHERES]
            for publisher in (one, other):
                await publisher.advertise("quote")
            # Clocks are compared as exactly as brokers measure, which on a busy machine is not very.
            await asyncio.to_thread(_tick, folder, list(readers))
            for publisher in (one, other):
                await publisher.publish_many([("quote", {"n": n, "s": "ab" if n % 2 else "b"}) for n in range(EVENTS)])
            for place, subscription in enumerate(subscriptions):
                await _read(subscription, _due(WHERES[place % 2]) - skipped)
            await asyncio.to_thread(_tick, folder, list(readers))
            return {id: reader.id for id, reader in readers.items()}
        finally:
            for reader in readers.values():
                await reader.__aexit__(None, None, None)


def _due(where):
    return set(range(30)) if where == WHERES[0] else set(range(11, 31, 2))


async def _read(subscription, wanted):
    """Until these have come twice, from both publishers."""
    left = [*wanted, *wanted]
    async with asyncio.timeout(60):
        while left:
            event = await anext(subscription)
            if event.attributes["n"] in left:
                left.remove(event.attributes["n"])


def _tick(folder, ids):
    """Until each has ticked a second later: so that it is known that nothing came later, and who was there still."""
    later, end = time_ns() // 1000 + 1_000_000, monotonic() + 60
    while any(_last_tick(folder / f"mercast.taps-{id}.jsonl") < later for id in ids):
        assert monotonic() < end
        sleep(0.1)


def _last_tick(file):
    """A line may not be whole yet."""
    lines = file.read_text().splitlines()[:-1]
    return max((at for line in lines for at in json.loads(line).get("tick", {}).get("at", ())), default=0)


def _run(spark, folder, skipped=frozenset()):
    taps = ["--taps", f"file://{folder}"]
    with Local(2, clusters=2, edges=1, strategy="merc", matcher="scan", options=taps) as brokers:
        ids = asyncio.run(_play(brokers, folder, skipped))
    return ids, audit(spark, from_files(spark, str(folder)), Setting(grace=0.3))


def test_brokers_that_do_all_right_are_found_clean(spark, tmp_path):
    _, report = _run(spark, tmp_path)
    assert (report.named, report.unknown, report.grey) == ([], {}, {})
    assert (report.events, report.right) == (2 * EVENTS, 2 * 4 * (30 + 10))
    assert report.exit_code(0) == 0


def test_just_what_brokers_do_wrong_is_found(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "misbehaviour"), prepend=os.pathsep)
    ids, report = _run(spark, tmp_path, {DROPPED, MISDELIVERED})
    wrong = {(one.what, one.event[0], _number(one), one.broker, one.client) for one in report.named}
    expected = set()
    for publisher in (1, 3):
        for broker, id in ids.items():
            expected.add(("missing", publisher, DROPPED, broker, id))
            expected.add(("doubled", publisher, DOUBLED, broker, id))
            expected.add(("missing", publisher, MISDELIVERED, broker, id))
            expected.add(("undue", publisher, MISDELIVERED, broker, "somebody"))
    assert wrong == expected, (report.grey, report.unknown, report.skew_us)
    assert all(one.last == one.broker for one in report.named)  # each broker had it, and did it wrong


def _number(named):
    return json.loads(named.attributes)["n"]
