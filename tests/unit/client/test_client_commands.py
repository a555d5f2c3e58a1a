"""pub, sub and trace as a user types them, against a broker of few words."""

import json
import os
import signal
import subprocess
import sys

import pytest
from commands import run
from scripted_broker import PATIENCE, Broker, event

from mercast.cli.asking import parse_value, write_value
from mercast.content.event import EventId
from mercast.protocol.rows import Copied, Delivered, Published
from mercast.wire import hello, replies
from mercast.wire.frames import Kind
from mercast.wire.requests import read_publish


@pytest.fixture
def broker():
    with Broker() as broker:
        yield broker


def command(broker, *arguments):
    environment = os.environ | {"MERCAST_URL": broker.address, "MERCAST_TOKEN": "secret"}
    return [sys.executable, "-m", "mercast.cli", *arguments], environment


def mercast(broker, *arguments, stdin=""):
    return run(*arguments, env=command(broker)[1], input=stdin)


def started(broker, *arguments):
    typed, environment = command(broker, *arguments)
    return subprocess.Popen(typed, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# -- pub ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (0, "accepted, 0 destinations: nobody subscribes to stock.quote\n"),
        (1, "accepted, 1 destination\n"),
        (2, "accepted, 2 destinations\n"),
    ],
)
def test_pub(broker, found, says):
    broker.answers[Kind.PUBLISH] = lambda request, _: replies.receipts(request, [found])
    done = mercast(broker, "pub", "stock.quote", "symbol=ACME", "price=99", "change=-0.5", "up=false", "day='7'")
    assert (done.returncode, done.stdout, done.stderr) == (0, says, "")
    assert broker.asked(Kind.HELLO)["token"] == "secret"
    asked = read_publish("me", broker.wait_for(Kind.PUBLISH), 0)
    assert asked.attributes == {"symbol": "ACME", "price": 99, "change": -0.5, "up": False, "day": "7"}


def test_pub_with_a_payload(broker, tmp_path):
    file = tmp_path / "payload"
    file.write_bytes(b"\x00\xff")
    for arguments, payload in (
        (["--payload", "text"], b"text"),
        (["--payload", b"\xff"], b"\xff"),
        (["--payload-file", str(file)], b"\x00\xff"),
    ):
        done = mercast(broker, "pub", "stock.quote", *arguments, "--content-type", "a/b")
        assert done.returncode == 0, done.stderr
        asked = read_publish("me", broker.wait_for(Kind.PUBLISH), 0)
        assert (asked.payload, asked.content_type) == (payload, "a/b")


def test_pub_of_many(broker):
    lines = [
        '{"type": "a", "attributes": {"x": 1}, "payload": "p"}',
        "",
        '{"attributes": {"x": 2}, "payload_base64": "AP8="}',
        "not JSON",
        '{"attributes": {"x": [1]}}',
        '{"payload": 1}',
        "[]",
    ]
    done = mercast(broker, "pub", "stock.quote", "--file", "-", stdin="\n".join(lines))
    assert (done.returncode, done.stdout) == (1, "2 accepted, 2 destinations in all, 4 refused\n")
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["line 4", "line 5", "line 6", "line 7"]
    asked = [read_publish("me", broker.wait_for(Kind.PUBLISH), 0) for _ in range(2)]
    assert [(one.type, one.payload) for one in asked] == [("a", b"p"), ("stock.quote", b"\x00\xff")]
    done = mercast(broker, "pub", "--file", "-", stdin=lines[0])
    assert (done.returncode, done.stdout) == (0, "1 accepted, 1 destinations in all\n")


def test_pub_tells_in_json_what_became_of_the_event(broker):
    done = mercast(broker, "pub", "stock.quote", "price=1", "--json")
    assert (done.returncode, done.stdout) == (0, '{"accepted":1,"refused":0,"destinations":1}\n')
    broker.answers[Kind.PUBLISH] = lambda request, _: replies.answer(request, "outside of what is advertised")
    done = mercast(broker, "pub", "stock.quote", "--json")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout) == {
        "accepted": 0,
        "refused": 1,
        "destinations": 0,
        "reason": "outside of what is advertised",
    }


def test_pub_tells_in_json_what_became_of_each_of_many(broker, tmp_path):
    file = tmp_path / "events"
    file.write_text('{"attributes": {"x": 1}}\n{"attributes": 5}\n\n[]\n{"attributes": {"x": 2}}\n')
    done = mercast(broker, "pub", "stock.quote", "--file", str(file), "--json")
    assert (done.returncode, done.stderr) == (1, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["accepted"], one["refused"], one["destinations"], one.get("line")) for one in told] == [
        (1, 0, 1, None),
        (0, 1, 0, 2),
        (0, 1, 0, 4),
        (1, 0, 1, None),
    ]
    assert "not an event" in told[2]["reason"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["stock.quote", "price"], "'price' is not an attribute: write name=value"),
        (["stock.quote", "x=1", "x=2"], "attribute 'x' is given twice"),
        ([], "which type? Write: mercast pub stock.quote symbol=ACME price=99"),
        (["a", "x=1", "--file", "-"], "with --file, attributes and payloads come from the file"),
        (["a", "--payload", "x", "--payload-file", "y"], "not both"),
        (["a", "--payload-file", "/no/such/file"], "/no/such/file: No such file or directory"),
        (["a", "--url", "http://x"], "'http://x' is not the address of a broker"),
        (["a", "--url", "a..b:7470"], "'a..b:7470' is not the address of a broker"),
        (["a", "--token", b"\xff"], "a token: character 1 is half of a surrogate pair"),
    ],
)
def test_pub_says_what_is_wrong(broker, arguments, says):
    done = mercast(broker, "pub", *arguments)
    assert done.returncode == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_refused(broker):
    broker.answers[Kind.PUBLISH] = lambda request, _: replies.answer(request, "outside of what is advertised")
    done = mercast(broker, "pub", "stock.quote")
    assert (done.returncode, done.stderr) == (1, "mercast pub: outside of what is advertised\n")
    broker.answers[Kind.HELLO] = lambda *_: hello.refusal("token", "the token is wrong")
    done = mercast(broker, "sub", "stock.quote")
    assert done.returncode == 1
    assert done.stderr == f"mercast sub: the broker at {broker.address} refuses: the token is wrong\n"


@pytest.mark.parametrize("which", ["pub", "sub", "trace"])
def test_no_broker_there(broker, which):
    broker.stop()
    done = mercast(broker, which, "stock.quote")
    assert done.returncode == 1
    assert done.stderr == f"no broker answers at {broker.address}; start one with: mercast local 3\n"


def test_something_else_there(broker):
    broker.answers[Kind.HELLO] = lambda *_: b"HTTP/1.1 400 Bad Request"
    done = mercast(broker, "pub", "stock.quote")
    assert done.returncode == 1
    assert f"mercast pub: no broker answers at {broker.address}: " in done.stderr
    assert "does not speak as a broker does" in done.stderr


# -- sub ---------------------------------------------------------------------------------------------------------------


def test_sub_shows_events(broker):
    running = started(broker, "sub", "stock.quote", "price < 100", "--count", "3")
    asked = broker.asked(Kind.SUBSCRIBE)
    assert (asked["type"], asked["filter"]) == ("stock.quote", "price < 100")
    broker.say(
        replies.event(event(1, symbol="ACME", price=99, up=True), [1]),
        replies.event(event(2, note="two words", n="7", payload=b"hello"), [1]),
        replies.event(event(3, payload=b"\x00\xff"), [1]),
    )
    out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0
    assert out.splitlines() == [
        "stock.quote symbol=ACME price=99 up=true",
        "stock.quote note='two words' n='7' | hello",
        "stock.quote | 2 bytes",
    ]
    assert err.splitlines() == [
        f"connected to broker 1 at {broker.address} as me.1",
        "the subscription to stock.quote where price < 100 is settled",
    ]


def test_sub_as_json(broker):
    running = started(broker, "sub", "--json", "--count", "2")
    assert broker.asked(Kind.SUBSCRIBE)["type"] is None
    broker.say(*(replies.event(event(n, price=1.5, payload=p), [1]) for n, p in ((1, b"text"), (2, b"\xff"))))
    out, _ = running.communicate(timeout=PATIENCE)
    text, data = map(json.loads, out.splitlines())
    assert text == {
        "type": "stock.quote",
        "attributes": {"price": 1.5},
        "payload": "text",
        "content_type": "application/octet-stream",
        "time": 123,
        "publisher": "someone.1",
        "id": [9, 1, 1],
    }
    assert data["payload_base64"] == "/w=="


def test_sub_ends_well_by_ctrl_c(broker):
    running = started(broker, "sub", "stock.quote")
    broker.wait_for(Kind.SUBSCRIBE)
    broker.say(replies.event(event(1), [1]))
    assert running.stdout.readline() == "stock.quote\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (0, "")
    assert "Traceback" not in err
    broker.wait_for(Kind.LEAVE)


def test_sub_ends_well_when_nobody_reads_it(broker):
    running = started(broker, "sub", "stock.quote")
    broker.wait_for(Kind.SUBSCRIBE)
    running.stdout.close()
    broker.say(replies.event(event(1), [1]))
    assert running.wait(PATIENCE) == 0
    assert "Traceback" not in running.stderr.read()
    running.stderr.close()


def test_sub_goes_on_after_a_lost_connection_and_says_so(broker):
    running = started(broker, "sub", "stock.quote", "--count", "1")
    broker.wait_for(Kind.SUBSCRIBE)
    broker.cut()
    broker.wait_for(Kind.SUBSCRIBE)
    broker.say(replies.event(event(1), [1]))
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (0, "stock.quote\n")
    assert f"the connection to {broker.address} was lost; connecting again\n" in err
    assert err.count("connected to broker 1") == 2


def test_sub_counts_from_one(broker):
    done = mercast(broker, "sub", "--count", "0")
    assert (done.returncode, done.stderr) == (1, "mercast sub: --count is at least 1\n")


# -- trace -------------------------------------------------------------------------------------------------------------


def rows(broker):
    id_ = EventId(1, 1, 1)
    told = (
        (1, Published(id_, 5, "stock.quote", {}, 1, 0, 0)),
        (2, Copied(id_, 5, 1, 1, 1, 1, False)),
        (3, Copied(id_, 5, 2, 2, 1, 1, True)),
        (3, Delivered(id_, 5, "sub.1", (1,), 2)),
    )
    broker.answers[Kind.PUBLISH] = lambda request, _: (
        replies.receipts(request, [1]) + b"".join(replies.reported(*one) for one in told)
    )


def test_trace(broker):
    rows(broker)
    done = mercast(broker, "trace", "stock.quote", "price=1", "--wait", "1.5")
    assert done.returncode == 0, done.stderr
    first, *hops = done.stdout.splitlines()
    assert first == "accepted, 1 destination"
    assert [line[:60].rstrip() for line in hops] == [
        "broker 1: published, 1 other broker, 0 clients here",
        "  broker 2: 1 hop, from broker 1, passes by",
        "    broker 3: 2 hops, from broker 2",
        "    broker 3: delivered to sub.1",
    ]
    assert all(line.endswith(" ms") for line in hops)


def test_trace_as_json(broker):
    rows(broker)
    done = mercast(broker, "trace", "stock.quote", "--json", "--wait", "1.5")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["broker"], one["kind"], one["event"]) for one in told] == [
        (1, "published", [1, 1, 1]),
        (2, "received", [1, 1, 1]),
        (3, "received", [1, 1, 1]),
        (3, "delivered", [1, 1, 1]),
    ]


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("TRUE", True),
        ("ACME", "ACME"),
        ("'5'", "5"),
        ('"a b"', "a b"),
        ("", ""),
        ("nan", "nan"),
        ("1_0", "1_0"),
        ("'", "'"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_values(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)
    assert parse_value(write_value(value)) == value
