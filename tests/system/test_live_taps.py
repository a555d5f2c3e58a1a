"""Taps of real brokers in a real Kafka, and in files."""

import asyncio
from uuid import uuid4

import pytest
from live import Mesh, ask, mercast, until
from tapped import of_files, of_kafka

import mercast as client
from mercast.kafka import Kafka
from mercast.processes import free_addresses
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity

pytestmark = pytest.mark.slow

LINE = [(1, 2), (2, 3)]


async def _play(brokers, count, first=0):
    """Events at the first broker, every second one for a client at the last; how many that one got."""
    async with client.connect(brokers[3].client) as there, client.connect(brokers[1].client) as here:
        subscription = await there.subscribe("quote", "price >= 0")
        await here.publish_many([("quote", {"price": n if n % 2 else -n - 1}) for n in range(first, first + count)])
        got = 0
        async for _ in subscription:
            got += 1
            if got == count // 2:
                return got


def _shipped(brokers):
    """Until nothing waits: rows are encoded some times a second."""
    for broker in brokers.brokers.values():
        _ticks_shipped(broker, broker.metric("mercast_tap_rows_shipped_total") + 1)


def _ticks_shipped(broker, before):
    until(
        lambda: (
            broker.metric("mercast_tap_rows_shipped_total") > before and broker.metric("mercast_tap_buffer_bytes") == 0
        ),
        "ticks have been shipped, and what came before them",
    )


@pytest.fixture
def taps(kafka):
    prefix = f"test-{uuid4().hex}"  # other workers have this Kafka too
    return ["--taps", f"kafka://{kafka}", "--taps-prefix", prefix], prefix


@pytest.mark.parametrize("strategy", ["ddbr", "fbr", "flooding", "merc"])
def test_rows_say_what_clients_saw(kafka, taps, strategy):
    options, prefix = taps
    with Mesh(3, LINE, strategy=strategy, options=options) as brokers:
        got = asyncio.run(_play(brokers, 400))
        _shipped(brokers)
    said = of_kafka(kafka, f"{prefix}.taps", f"{prefix}.control")
    assert said.gaps() == {}
    assert len(said.rows("published", 1)) == 400
    assert len(said.rows("delivered", 3)) == got == 200
    assert all(row["at"] >= row["time"] and row["copy"] == 1 for row in said.rows("delivered"))
    received = said.rows("received", 3)
    assert sum(row["interested"] for row in received) == 200
    assert len(received) == (400 if strategy == "flooding" else 200)
    made = sum(row["destinations"] for row in said.rows("published")) + sum(
        row["made"] for row in said.rows("received")
    )
    if strategy in ("ddbr", "merc"):
        assert made == sum(row["taken"] for row in said.rows("received")) == 200
    ticks = said.rows("tick", 1)
    assert sum(row["published"] for row in ticks) == 400
    assert {row["tap_lost"] for row in ticks} == {0}


def test_control_rows_and_snapshots(kafka, taps):
    options, prefix = taps
    with Mesh(3, LINE, options=options) as brokers:
        asyncio.run(_play(brokers, 4))
        _shipped(brokers)
    said = of_kafka(kafka, f"{prefix}.control")
    (subscribed,) = said.rows("subscribed", 3)
    assert (subscribed["type"], subscribed["filter"], subscribed["echo"]) == ("quote", "price >= 0", True)
    (settled,) = said.rows("settled", 3)
    assert (settled["request"], settled["missing"]) == (subscribed["request"], [])
    assert len(said.rows("unsubscribed", 3)) == 1
    assert {row["neighbour"] for row in said.rows("linked", 2)} == {1, 3}
    begin, end = said.rows("snapshot", 1)
    assert (begin["ends"], end["ends"]) == (False, True)


def test_what_may_not_be_held_is_not(kafka, taps):
    options, prefix = taps
    hidden = ["--taps-attributes", "none", "--taps-filters", "none", "--taps-clients", "none"]
    with Mesh(3, LINE, options=[*options, *hidden]) as brokers:
        asyncio.run(_play(brokers, 4))
        _shipped(brokers)
    said = of_kafka(kafka, f"{prefix}.taps", f"{prefix}.control")
    assert {(row["attributes"], row["publisher"]) for row in said.rows("published")} == {(None, None)}
    assert {row["client"] for row in said.rows("delivered")} == {None}
    assert {(row["filter"], row["client"]) for row in said.rows("subscribed")} == {(None, None)}


def test_kafka_comes_late_goes_and_comes_back():
    (address,) = free_addresses(1)
    with Mesh(3, LINE, options=["--taps", f"kafka://{address}"]) as brokers:
        assert asyncio.run(_play(brokers, 100)) == 50
        with Kafka(int(address.rpartition(":")[2])) as kafka:
            _shipped(brokers)
            said = of_kafka(address, "mercast.taps")
            assert (len(said.rows("published", 1)), said.gaps()) == (100, {})
            kafka.stop()
            assert asyncio.run(_play(brokers, 100, 100)) == 50
            until(lambda: "cannot be shipped" in brokers[1].tail(), "the broker notices that Kafka is away")
            kafka.start()
            _shipped(brokers)
            assert asyncio.run(_play(brokers, 100, 200)) == 50
            _shipped(brokers)
            lost = {id: broker.metric("mercast_tap_rows_lost_total") for id, broker in brokers.brokers.items()}
            said = of_kafka(address, "mercast.taps", "mercast.control")
            missing = {id: sum(n for key, n in said.gaps().items() if key[2] == id) for id in lost}
            assert missing == lost
            assert len(said.rows("published", 1)) >= 300 - lost[1]
        for broker in brokers.brokers.values():
            words = broker.log.read_text()
            assert words.count("taps are shipped") <= 4  # not at each attempt; a busy Kafka may be lost once more
            assert '"level": "error"' not in words


def test_what_does_not_fit_is_lost_and_counted():
    (address,) = free_addresses(1)
    with Mesh(1, [], options=["--taps", f"kafka://{address}", "--taps-buffer-bytes", "1MiB"]) as brokers:

        async def publish():
            async with client.connect(brokers[1].client) as here:
                for _ in range(30):
                    await here.publish_many([("quote", {"text": "x" * 100})] * 500)

        asyncio.run(publish())
        until(lambda: brokers[1].metric("mercast_tap_rows_lost_total") > 0, "rows are lost")
        assert brokers[1].metric("mercast_tap_buffer_bytes") <= 1024 * 1024
        assert ask(brokers[1], "overlay")["broker"]["ready"]
        with Kafka(int(address.rpartition(":")[2])):
            _shipped(brokers)
            _shipped(brokers)  # a gap that nothing follows is told of after that
            said = of_kafka(address, "mercast.taps", "mercast.control")
            assert sum(said.gaps().values()) == brokers[1].metric("mercast_tap_rows_lost_total")


def _secured(folder):
    """Settings of a Kafka that wants TLS from both sides, and a name and a password."""
    make_ca(folder)
    for name in ("kafka", "broker"):
        make_certificate(folder, name, Identity("default", "broker"), ["127.0.0.1"])
    ca, certificate, key = ((folder / name).read_text() for name in ("ca.pem", "kafka.pem", "kafka.key"))
    users = 'username="kafka" password="its own" user_kafka="its own" user_taps="let me in"'
    secured = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:PLAINTEXT",  # the first is but a name here
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": ca,
        "ssl.endpoint.identification.algorithm": "",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
    }
    return {name: value.replace("\n", "\\n") for name, value in secured.items()}


def test_by_tls_and_with_a_password(tmp_path):
    files = {flag: tmp_path / name for flag, name in (("ca", "ca.pem"), ("cert", "broker.pem"), ("key", "broker.key"))}
    with Kafka(settings=_secured(tmp_path)) as kafka:
        shown = [word for flag, file in files.items() for word in (f"--taps-tls-{flag}", str(file))]
        who = ["--taps-sasl-mechanism", "PLAIN", "--taps-sasl-user", "taps", "--taps-sasl-password", "let me in"]
        options = ["--taps", f"kafka://{kafka.address}", "--taps-tls", *shown, *who]
        with Mesh(3, LINE, options=options) as brokers:
            asyncio.run(_play(brokers, 100))
            _shipped(brokers)
            assert brokers[1].metric("mercast_tap_rows_lost_total") == 0
        with Mesh(1, options=[*options[:-1], "wrong"]) as refused:
            log = refused[1].log
            until(lambda: "taps cannot be shipped" in log.read_text(), "the log says that Kafka refuses")


def test_topics_are_made_once_and_wrong_ones_are_refused(kafka, tmp_path, monkeypatch):
    monkeypatch.setenv("MERCAST_TAPS_PREFIX", f"init-{uuid4().hex}")
    where = f"kafka://{kafka}"
    assert mercast("taps", "init", where).stdout.count(": made") == 3
    assert mercast("taps", "init", where).stdout.count(": was there") == 3
    monkeypatch.setenv("MERCAST_TAPS_PARTITIONS", "3")
    refused = mercast("taps", "init", where)
    assert refused.returncode == 1
    assert "has 4 partitions and not 3: set taps_partitions to 4" in refused.stderr


def test_the_same_rows_in_files(tmp_path):
    with Mesh(3, LINE, options=["--taps", f"file://{tmp_path}/taps"]) as brokers:
        got = asyncio.run(_play(brokers, 100))
        _shipped(brokers)
    said = of_files(tmp_path / "taps", "mercast.taps", "mercast.control")
    assert said.gaps() == {}
    assert (len(said.rows("published", 1)), len(said.rows("delivered", 3))) == (100, got)
    assert {row["by"] for row in said.rows("snapshot")} == {1, 2, 3}
