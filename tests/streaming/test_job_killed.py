"""`mercast metrics`, from a real Kafka to Parquet and back to Kafka, after kill -9."""

import signal
import subprocess
import sys
from contextlib import contextmanager

from in_kafka import figures_in, got, make_topics, put
from system.live import until
from written import by_key, history_in, known_windows

from mercast.processes import end_with_parent
from mercast_streaming import synthetic
from mercast_streaming.synthetic import Setting

PATIENCE = 600.0


def test_killed_and_started_again(kafka, tmp_path):
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
    history = history_in(str(tmp_path / "history"))
    assert len(history) == len(values)
    assert synthetic.differences(known_windows(by_key(history)), taps.known) == []


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
