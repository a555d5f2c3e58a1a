"""The job, from a real Kafka to Parquet and back to Kafka: whole, after a failure, and after kill -9."""

import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime

from in_kafka import figures_in, got, make_topics, put
from system.live import until

from mercast.processes import end_with_parent
from mercast_streaming import live, synthetic
from mercast_streaming.synthetic import Message, Setting

PATIENCE = 120.0


def known_windows(found):
    """Without the window of the row that only closed the others, and without what has no broker."""
    return {key: row for key, row in found.items() if key[1] is not None}


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
    with _running(live.start(spark, setting, lambda rows: seen.update(_by_key(rows)))) as query:
        until(lambda: not query.isActive or taps.known.keys() <= seen.keys(), "all windows", PATIENCE)
        assert query.exception() is None
        assert any(
            progress.observedMetrics[live.PROBLEMS].asDict() == {"count": 1, "sample": "{no JSON"}
            for progress in query.recentProgress
        )
    assert synthetic.differences(known_windows(seen), taps.known) == []
    history = _history(spark, setting.history)
    assert len(history) == len(set(map(synthetic.key_of, history)))
    assert synthetic.differences(known_windows(_by_key(history)), taps.known) == []
    after = got(kafka, "whole")
    assert sorted(after[len(before) : 2 * len(before)]) == sorted(before)  # the batch that failed, again
    assert synthetic.differences(known_windows(figures_in(value for _, value in after)), taps.known) == []
    assert sum(row["malformed"] for row in history if row["cluster"] is None) == 1


def test_killed_and_started_again(spark, kafka, tmp_path):
    made = Setting(seconds=40, rate=50)
    taps = synthetic.make(made)
    make_topics(kafka, "killed")
    command = [
        sys.executable, "-m", "mercast", "metrics", "--kafka", kafka, "--prefix", "killed", "--from", "earliest",
        "--every", "0.1", "--checkpoint", str(tmp_path / "checkpoint"), "--history", str(tmp_path / "history"),
        "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    ]  # fmt: skip
    # Each part is shorter than the watermark: whichever partition is read first, nothing is late.
    size = len(taps.messages) // 10
    first, *others = (taps.messages[start : start + size] for start in range(0, len(taps.messages), size))
    put(kafka, "killed", first)
    with _started(command, tmp_path / "first.log") as job:
        for part in others[:3]:
            put(kafka, "killed", part)
        until(lambda: got(kafka, "killed") or job.poll() is not None, "first figures", PATIENCE)
        put(kafka, "killed", others[3])  # so that it is at work
        job.send_signal(signal.SIGKILL)
        job.wait()
    before = got(kafka, "killed")
    for part in others[4:]:
        put(kafka, "killed", part)
    put(kafka, "killed", synthetic.ending(made))
    with _started(command, tmp_path / "second.log") as job:
        # What it says on its output it has written, to the topic and to the history.
        logs = tmp_path / "first.log", tmp_path / "second.log"
        until(
            lambda: taps.known.keys() <= figures_in(_lines(*logs)).keys() or job.poll() is not None,
            lambda: (tmp_path / "second.log").read_text()[-2000:],
            PATIENCE,
        )
        job.send_signal(signal.SIGINT)
        assert job.wait(PATIENCE) == 0, (tmp_path / "second.log").read_text()[-2000:]
    after = got(kafka, "killed")
    assert after[: len(before)] == before != after
    values = {}
    for key, value in after:
        assert values.setdefault(key, value) == value
    assert synthetic.differences(known_windows(figures_in(values.values())), taps.known) == []
    history = _history(spark, str(tmp_path / "history"))
    assert len(history) == len(values)
    assert synthetic.differences(known_windows(_by_key(history)), taps.known) == []


@contextmanager
def _running(query):
    try:
        yield query
    finally:
        query.stop()


@contextmanager
def _started(command, log):
    with log.open("wb") as said:
        job = subprocess.Popen(command, stdout=said, stderr=said, preexec_fn=end_with_parent)
    try:
        yield job
    finally:
        job.kill()
        job.wait()


def _lines(*logs):
    """Whole ones, of figures."""
    return [line for log in logs for line in log.read_text().splitlines(keepends=True) if line[0] + line[-1] == "{\n"]


def _by_key(rows):
    return {synthetic.key_of(row): row for row in rows}


def _history(spark, folder):
    """As they were written; Spark gives times without a zone, in this machine's."""
    return [
        {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.asDict().items()}
        for row in spark.read.parquet(folder).drop("query", "batch").collect()
    ]
