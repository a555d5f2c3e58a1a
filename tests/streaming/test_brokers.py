"""Live metrics of real brokers: their figures are what the clients counted themselves, whatever the strategy."""

import asyncio
from contextlib import ExitStack
from time import time

import pytest
from system.live import Mesh, until

import mercast as client
from mercast_streaming import live

STRATEGIES = ("ddbr", "fbr", "flooding", "merc")
EVENTS = 300
PATIENCE = 600.0


async def _play(brokers):
    """Events at the first broker, every third one for a client at the last; how many that one got."""
    async with client.connect(brokers[3].client) as there, client.connect(brokers[1].client) as here:
        subscription = await there.subscribe("quote", "price >= 0")
        await here.publish_many([("quote", {"price": -1 if n % 3 else n}) for n in range(EVENTS)])
        got = 0
        async for _ in subscription:
            got += 1
            if got == EVENTS // 3:
                return got


def _shipped(brokers):
    """All rows about events; then only ticks come, and the first of them that counts all events is among three."""
    for _ in range(3):
        before = {broker.admin: broker.metric("mercast_tap_rows_shipped_total") for broker in brokers}
        for broker in brokers:
            until(
                lambda broker=broker, before=before: (
                    broker.metric("mercast_tap_rows_shipped_total") > before[broker.admin]
                    and broker.metric("mercast_tap_buffer_bytes") == 0
                ),
                "rows are shipped",
            )


def test_figures_are_what_clients_counted(spark, kafka, tmp_path):
    setting = live.Setting(
        kafka=kafka, taps="brokers.taps", metrics="brokers.metrics", beginning="earliest", once=True, window=1,
        checkpoint=str(tmp_path / "checkpoint"),
    )  # fmt: skip
    got, options = {}, ["--taps", f"kafka://{kafka}", "--taps-prefix", "brokers"]
    with ExitStack() as ends:
        meshes = {
            strategy: ends.enter_context(Mesh(3, [(1, 2), (2, 3)], strategy=strategy, options=options))
            for strategy in STRATEGIES
        }
        for strategy, mesh in meshes.items():
            got[strategy] = asyncio.run(_play(mesh))
        closed = time() + setting.window + setting.watermark
        until(lambda: time() > closed, "the watermark of ticks is past the windows of all events")
        _shipped([broker for mesh in meshes.values() for broker in mesh.brokers.values()])
    seen = []
    query = live.start(spark, setting, seen.extend)
    assert query.awaitTermination(int(PATIENCE))
    for strategy in STRATEGIES:
        whole = [row for row in seen if row["strategy"] == strategy and row["broker"] is None]
        total = {
            name: sum(row[name] for row in whole)
            for name in (
                "published", "all_published", "deliveries", "all_delivered", "doubled_receipts", "doubled_deliveries",
                "late", "ahead", "malformed", "negative_latencies", "tap_lost", "dropped",
            )
        }  # fmt: skip
        counted = {"published": EVENTS, "all_published": EVENTS} | dict.fromkeys(("deliveries", "all_delivered"), 100)
        assert got[strategy] == 100
        assert total == dict.fromkeys(total, 0) | counted, strategy
        assert all(row["latency_p50_us"] > 0 for row in whole if row["deliveries"])
        interested = sum(row["accuracy"] * row["receipts"] for row in whole if row["receipts"])
        assert interested == pytest.approx(100)
        # The broker in the middle passes on what the last one wants; flooding brings everything to both.
        assert sum(row["receipts"] for row in whole) == (2 * EVENTS if strategy == "flooding" else 200)
        if strategy in ("ddbr", "merc"):
            reached, entries = (sum(row[f"entries_{name}"] for row in whole) for name in ("reached", "made"))
            assert reached == entries == 100
        per_broker = [row for row in seen if row["strategy"] == strategy and row["broker"] == 3]
        assert sum(row["deliveries"] for row in per_broker) == 100
