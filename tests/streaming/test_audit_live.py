"""The audit of real brokers, in two clusters: clean; and with brokers that do some events wrong, just these."""

import asyncio
import json
import os
from pathlib import Path
from time import monotonic, sleep, time_ns

import mercast as client
from mercast.broker.local import Local
from mercast_streaming.audit.job import Setting, audit
from mercast_streaming.audit.reading import from_files

DROPPED, DOUBLED, MISDELIVERED, MISROUTED = 13, 14, 15, 35
EVENTS = 40
WHERES = {"n < 30": set(range(30)), "n BETWEEN 10 AND 30.5 AND s LIKE 'a%'": set(range(11, 31, 2))}
"""What every subscriber asks for, and the events that are due."""
LAST = {3: {1, 2}, 6: {4, 5}}
"""The last broker of each cluster asks for one event more. If that is misrouted, these have it, and are as near."""


async def _play(brokers, folder, skipped):
    """A subscriber at each broker, a publisher at the first of each cluster; the ids of the subscribers, by broker."""
    async with client.connect(brokers[1].client) as one, client.connect(brokers[4].client) as other:
        readers = {id: client.connect(broker.client) for id, broker in brokers.brokers.items()}
        for reader in readers.values():
            await reader.__aenter__()
        try:
            due = {}
            for id, reader in readers.items():
                asked = WHERES | ({f"n = {MISROUTED}": {MISROUTED}} if id in LAST else {})
                due |= {await reader.subscribe("quote", where): wanted for where, wanted in asked.items()}
            for publisher in (one, other):
                await publisher.advertise("quote")
            # Clocks are compared as exactly as brokers measure.
            await asyncio.to_thread(_tick, folder, list(readers))
            for publisher in (one, other):
                await publisher.publish_many([("quote", {"n": n, "s": "ab" if n % 2 else "b"}) for n in range(EVENTS)])
            for subscription, wanted in due.items():
                await _read(subscription, wanted - skipped)
            await asyncio.to_thread(_tick, folder, list(readers))
            return {id: reader.id for id, reader in readers.items()}
        finally:
            for reader in readers.values():
                await reader.__aexit__(None, None, None)


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
    lines = file.read_text().splitlines()[:-1] if file.exists() else []
    return max((at for line in lines for at in json.loads(line).get("tick", {}).get("at", ())), default=0)


def _run(auditing, folder, skipped=frozenset()):
    taps = ["--taps", f"file://{folder}"]
    with Local(3, clusters=2, edges=1, strategy="merc", matcher="scan", options=taps) as brokers:
        ids = asyncio.run(_play(brokers, folder, skipped))
    return ids, audit(auditing, from_files(auditing, str(folder)), Setting(grace=0.3))


def test_brokers_that_do_all_right_are_found_clean(auditing, tmp_path):
    _, report = _run(auditing, tmp_path)
    assert (report.named, report.unknown, report.grey) == ([], {}, {})
    assert (report.events, report.right) == (2 * EVENTS, 2 * (6 * (30 + 10) + len(LAST)))
    assert report.exit_code(0) == 0


def test_just_what_brokers_do_wrong_is_found(auditing, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent / "misbehaviour"), prepend=os.pathsep)
    ids, report = _run(auditing, tmp_path, {DROPPED, MISDELIVERED, MISROUTED})
    wrong = {(one.what, one.event[0], _number(one), one.broker, one.client) for one in report.named}
    expected = set()
    for publisher in (1, 4):
        for broker, id in ids.items():
            expected.add(("missing", publisher, DROPPED, broker, id))
            expected.add(("doubled", publisher, DOUBLED, broker, id))
            expected.add(("missing", publisher, MISDELIVERED, broker, id))
            expected.add(("undue", publisher, MISDELIVERED, broker, "somebody"))
        expected |= {("missing", publisher, MISROUTED, broker, ids[broker]) for broker in LAST}
    assert wrong == expected, (report.grey, report.unknown, report.skew_us)
    for one in report.named:  # each broker had it, and did it wrong; but for those that never got it
        assert one.last in (LAST[one.broker] if _number(one) == MISROUTED else {one.broker})


def _number(named):
    return json.loads(named.attributes)["n"]
