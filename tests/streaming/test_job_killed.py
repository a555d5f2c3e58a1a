"""`mercast metrics`, from a real Kafka to Parquet and back to Kafka, after kill -9."""

import signal

from in_kafka import figures_in, got, job, lines, make_topics, parts, put, started
from system.live import until
from written import written_once

from mercast_streaming import synthetic
from mercast_streaming.synthetic import Setting

PATIENCE = 600.0


def test_killed_and_started_again(kafka, tmp_path):
    made = Setting(seconds=40, rate=50)
    taps = synthetic.make(made)
    make_topics(kafka, "killed")
    command = job(kafka, "killed", tmp_path)
    first, *others = parts(taps.messages)
    put(kafka, "killed", first)
    with started(command, tmp_path / "first.log") as running:
        for part in others[:3]:
            put(kafka, "killed", part)
        until(lambda: got(kafka, "killed") or running.poll() is not None, "first figures", PATIENCE)
        put(kafka, "killed", others[3])  # so that it is at work
        running.send_signal(signal.SIGKILL)
        running.wait()
    before = got(kafka, "killed")
    for part in others[4:]:
        put(kafka, "killed", part)
    put(kafka, "killed", synthetic.ending(made))
    with started(command, tmp_path / "second.log") as running:
        # What it says on its output it has written, to the topic and to the history.
        logs = tmp_path / "first.log", tmp_path / "second.log"
        until(
            lambda: taps.known.keys() <= figures_in(lines(*logs)).keys() or running.poll() is not None,
            lambda: (tmp_path / "second.log").read_text()[-2000:],
            PATIENCE,
        )
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == 0, (tmp_path / "second.log").read_text()[-2000:]
    after = got(kafka, "killed")
    assert after[: len(before)] == before != after
    written_once(after, str(tmp_path / "history"), taps.known)
