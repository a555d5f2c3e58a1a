"""`mercast metrics` goes on, as the same process, after Kafka was killed by kill -9 and started again where it was."""

import json
import signal
import socket
from select import select

from in_kafka import ends, figures_in, got, job, lines, make_topics, parts, put, started
from system.live import until
from written import written_once

from mercast.kafka import Kafka
from mercast.processes import free_addresses, in_use
from mercast_streaming import synthetic
from mercast_streaming.synthetic import Setting

PATIENCE = 240.0


def test_the_job_outlives_its_kafka(tmp_path):
    made = Setting(seconds=40, rate=50)
    taps = synthetic.make(made)
    first, *others = parts(taps.messages)
    address = free_addresses(1)[0]
    log, command = tmp_path / "job.log", job(address, "away", tmp_path)
    with Kafka(int(address.rpartition(":")[2]), tmp_path / "kafka") as kafka:
        make_topics(address, "away")
        put(address, "away", first)
        with started(command, log) as running:

            def lives():
                assert running.poll() is None, f"the job has ended: {_tail(log)}"
                return True

            for part in others[:3]:
                put(address, "away", part)
            until(lambda: lives() and got(address, "away"), lambda: f"first figures: {_tail(log)}", PATIENCE)
            before = got(address, "away")
            put(address, "away", others[3])
            there, pid = ends(address, "away"), kafka.pid
            until(
                lambda: lives() and _begun(tmp_path / "checkpoint") == there,
                lambda: f"it is at work on what was put last: {_tail(log)}",
                PATIENCE,
            )
            kafka.kill()
            until(lambda: not in_use(address), "nobody listens where Kafka was", PATIENCE)
            _turn_away_from(address, lives)
            kafka.start()
            assert (kafka.address, kafka.pid != pid) == (address, True)
            assert ends(address, "away") == there
            assert got(address, "away")[: len(before)] == before
            for part in others[4:]:
                put(address, "away", part)
            put(address, "away", synthetic.ending(made))
            # What it says on its output it has written, to the topic and to the history.
            until(
                lambda: lives() and taps.known.keys() <= figures_in(lines(log)).keys(),
                lambda: f"all windows: {_tail(log)}",
                PATIENCE,
            )
            running.send_signal(signal.SIGINT)
            assert running.wait(PATIENCE) == 0, _tail(log)
        after = got(address, "away")
    assert after[: len(before)] == before != after
    written_once(after, str(tmp_path / "history"), taps.known)


def _turn_away_from(address, lives):
    """Once, so that the job has noticed: nobody else comes to this port."""
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))) as door:
        until(lambda: lives() and select([door], [], [], 0)[0], "the job looks for the Kafka that is away", PATIENCE)
        door.accept()[0].close()


def _begun(checkpoint):
    """Up to where, in each partition, the newest batch reads, which may not be done."""
    batches = [file for file in (checkpoint / "offsets").glob("[0-9]*") if file.name.isdecimal()]
    newest = max(batches, key=lambda file: int(file.name))
    return {int(number): end for number, end in json.loads(newest.read_text().splitlines()[-1])["away.taps"].items()}


def _tail(log):
    return log.read_text()[-2000:]
