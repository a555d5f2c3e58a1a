"""The job, from a real Kafka to Parquet and back to Kafka: whole, and after a failure."""

from contextlib import contextmanager
from dataclasses import replace
from time import time

import pytest
from in_kafka import figures_in, got, make_topics, put
from system.live import until
from written import by_key, history_in, known_windows

from mercast_streaming import live, synthetic
from mercast_streaming.checkpoint import Checkpoint, CheckpointError
from mercast_streaming.synthetic import SECOND, Message, Setting

PATIENCE = 600.0


def test_figures_are_right_and_a_batch_that_fails_is_replayed(spark, kafka, tmp_path):
    made = Setting(seconds=20, rate=100, clusters={"alpha": "merc", "beta": "flooding"})
    taps = synthetic.make(made)
    setting = live.Setting(
        kafka=kafka, taps="whole.taps", metrics="whole.metrics", beginning="earliest", every=0.1,
        checkpoint=str(tmp_path / "checkpoint"), history=str(tmp_path / "history"),
    )  # fmt: skip
    make_topics(kafka, "whole")
    half = len(taps.messages) // 2
    garbage = Message(taps.messages[half].at, 1, b"{no JSON")
    put(kafka, "whole", taps.messages[:half])

    def fail(rows):
        raise RuntimeError("after all was written, before the batch was done")

    with _running(live.start(spark, setting, fail)) as query:
        until(lambda: not query.isActive, "the job fails", PATIENCE)
        assert "after all was written" in str(query.exception())
    before = got(kafka, "whole")
    assert before

    put(kafka, "whole", [garbage, *taps.messages[half:], *synthetic.ending(made)])
    seen = {}
    with _running(live.start(spark, setting, lambda rows: seen.update(by_key(rows)))) as query:
        until(lambda: not query.isActive or taps.known.keys() <= seen.keys(), "all windows", PATIENCE)
        assert query.exception() is None
        assert any(
            progress.observedMetrics[live.PROBLEMS].asDict() == {"count": 1, "sample": "{no JSON"}
            for progress in query.recentProgress
        )
    assert synthetic.differences(known_windows(seen), taps.known) == []
    with pytest.raises(CheckpointError, match="begun with windows of 5 s: go on with --window 5"):
        live.start(spark, replace(setting, window=10))
    history = history_in(setting.history)
    assert len(history) == len(set(map(synthetic.key_of, history)))
    assert synthetic.differences(known_windows(by_key(history)), taps.known) == []
    after = got(kafka, "whole")
    assert sorted(after[len(before) : 2 * len(before)]) == sorted(before)  # the batch that failed, again
    assert synthetic.differences(known_windows(figures_in(value for _, value in after)), taps.known) == []
    assert sum(row["malformed"] for row in history if row["cluster"] is None) == 1


def test_a_checkpoint_keeps_since_when_windows_are_told(spark, tmp_path):
    """However often it is gone on from: whatever is told of a window is told again alike."""
    place = f"file://{tmp_path}/checkpoint/"
    assert [Checkpoint(spark, place, 5).since(now) for now in (7, 8, 0)] == [7, 7, 7]
    assert Checkpoint(spark, str(tmp_path / "other"), 10).since(0) == 0
    (tmp_path / "failed/offsets").mkdir(parents=True)
    assert Checkpoint(spark, str(tmp_path / "failed"), 5).since(9) == 0
    with pytest.raises(CheckpointError):
        Checkpoint(spark, str(tmp_path / "failed"), 10)


def test_a_job_that_begins_amid_a_window_begins_with_the_next_one(spark, kafka, tmp_path):
    """The topic is read from what comes after it has begun: some of these windows had begun by then."""
    setting = live.Setting(
        kafka=kafka, taps="amid.taps", metrics="amid.metrics", every=0.1, checkpoint=str(tmp_path / "checkpoint")
    )
    make_topics(kafka, "amid")
    seen = {}
    with _running(live.start(spark, setting, lambda rows: seen.update(by_key(rows)))) as query:
        until(lambda: query.lastProgress is not None, "it reads", PATIENCE)
        made = Setting(start=(int(time()) // 5 - 1) * 5 * SECOND, seconds=120, rate=10, clusters={"alpha": "merc"})
        taps = synthetic.make(made)
        put(kafka, "amid", [*taps.messages, *synthetic.ending(made)])
        last = max(start for start, *_ in taps.known)
        until(lambda: not query.isActive or last in {start for start, *_ in seen}, "all windows", PATIENCE)
        assert query.exception() is None
    since = Checkpoint(spark, setting.checkpoint, setting.window).since(0)
    assert made.start < since
    assert {key for key in taps.known if key[0] >= since} == seen.keys() & taps.known.keys() != set()
    assert min(start for start, *_ in seen) >= since


@contextmanager
def _running(query):
    try:
        yield query
    finally:
        query.stop()
