"""`mercast doctor` on stand-ins for brokers: what it finds, what it writes, and what it does without."""

import asyncio
import json
import socket
import tarfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import time

import pytest
from observed import Link, Member, Pair, Session, StandIn, answering, served

from mercast.broker.about import NOT_SHOWN, configuration, without_passwords
from mercast.broker.addresses import Address
from mercast.broker.config import BrokerConfig
from mercast.broker.last_stimuli import LastStimuli
from mercast.broker.reloading import Reloading
from mercast.cli import admin_port
from mercast.cli.admin_port import NotServed, fetch
from mercast.cli.doctor.command import doctor
from mercast.cli.doctor.findings import Finding, findings
from mercast.cli.doctor.visit import Visit, visit
from mercast.protocol.messages import Record
from mercast.protocol.stimuli import Publish, Tick
from mercast.security.state import Security
from mercast.security.tokens import hash_of


def standing(pair=None, **more):
    broker = StandIn(BrokerConfig(id=1), (pair or Pair()).cores[1], **more)
    broker.last_stimuli.begin(broker.core)
    return broker


def seen(capsys, *admins, **how):
    """Exit status, and what it prints as JSON."""
    with pytest.raises(SystemExit) as done:
        doctor(*map(str, admins), json=True, **how)
    return int(done.value.code), json.loads(capsys.readouterr().out)


def unpacked(file):
    with tarfile.open(file) as tar:
        return {one.name.removeprefix("mercast-doctor/"): tar.extractfile(one).read() for one in tar}


# -- what it finds -----------------------------------------------------------------------------------------------------


def test_nothing_is_wrong(capsys, tmp_path):
    with served(standing()) as address:
        status, said = seen(capsys, address, output=tmp_path / "x.tar.gz")
        with pytest.raises(SystemExit) as done:
            doctor(f"http://{address}/", output=tmp_path / "y.tgz")
    assert (status, said["findings"]) == (0, [])
    assert said["brokers"][0]["broker"]["id"] == 1
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith(f"broker 1 of cluster default at {address}: ready, 0.1.0, up for ")
    told = (
        f"written to {tmp_path / 'y.tgz'}: 9 files; attributes of events are in it (--without-stimuli leaves them out)"
    )
    assert rest == ["", "no problems", "", "no notes", "", told]
    assert done.value.code == 0


def found(broker, *others):
    """By what is said, the level and what to do."""
    with ExitStack() as stack:
        addresses = [stack.enter_context(served(one)) for one in (broker, *others)]
        visits = [visit(address, "", True) for address in addresses]
    return [(one.level, one.where, one.what) for one in findings(visits)]


def test_what_is_wrong_now():
    pair = Pair()
    pair.measure(rtt=0.010, clock_offset=-0.2)
    pair.hear_of(Record(2, 200, 7, (0,), ((1, 1), (3, 1))), Record(3, 300, 2, (0,), ()))
    broker = standing(
        pair,
        not_ready="not linked to broker 7 yet",
        members=({2: Member("h:1", "h:2"), 7: Member("h:1", "h:2")},),
        sessions={"c.1": Session("c.1", "h:3", int(0.9 * 8 * 1024 * 1024))},
        security=Security(expiry={"tls_cert": time() + 86_400, "peer_cert": time() - 86_400, "peer_ca": time() + 2e6}),
    )
    broker.counters.defects = 2
    assert found(broker) == [
        ("problem", "broker 1", "not ready: not linked to broker 7 yet"),
        ("problem", "broker 1", "out of reach: broker 3, 7"),
        ("problem", "broker 1", "the clock of broker 2 is 200 ms behind its own"),
        ("problem", "broker 1", "the certificate tls_cert ends in 1.0 days"),
        ("problem", "broker 1", "the certificate peer_cert ended 1.0 days ago"),
        ("problem", "broker 1", "client_queue_bytes: 7,549,747 of 8,388,608 in use"),
        ("problem", "broker 1", "2 defects of mercast itself"),
    ]


def test_clocks_as_far_apart_as_they_can_be_known_are_well():
    pair = Pair()
    pair.measure(rtt=0.5, clock_offset=0.3)
    assert found(standing(pair)) == []


def test_what_has_been_is_a_note():
    broker = standing(links={2: Link("h:9", 70)})
    broker.counters.dropped.update({"no route": 3, "of another age": 1})
    broker.counters.denied.update({"version": 2, "draining": 5})
    broker.counters.slow_clients, broker.counters.reloads["failed"] = 4, 1
    assert found(broker) == [
        ("note", "broker 1", "tokens and certificates could not be read again"),
        ("note", "broker 1", "4 clients were disconnected because they did not read"),
        ("note", "broker 1", "2 connections refused or cut off: version"),
        ("note", "broker 1", "3 events dropped: no route"),
        ("note", "broker 1", "1 events dropped: of another age"),
    ]


def told(id, version="0.1.0", wire=(1, 1), strategy="ddbr", cluster="default"):
    """What a broker of whatever version answers."""
    broker = {"id": id, "version": version, "strategy": strategy, "cluster": cluster, "ready": True, "reason": ""}
    broker["uptime_seconds"] = 1
    overlay = {"broker": broker, "members": [], "links": [], "overlay": {"brokers": [], "links": []}}
    said = {"overlay.json": overlay, "versions.json": {"broker": id, "wire": wire}}
    return Visit(Address("h", id), {name: json.dumps(one).encode() for name, one in said.items()})


def test_brokers_that_do_not_go_together():
    do = "upgrade one broker after the other until they do not"
    differ = Finding("note", "all", "versions differ (broker 1: 0.1.0, broker 2: 0.2.0)", do)
    assert findings([told(1), told(2)]) == []
    assert findings([told(1), told(2, "0.2.0", (1, 2))]) == [differ]
    wire, note = findings([told(1), told(2, "0.2.0", (2, 3))])
    assert wire[:3] == ("problem", "broker 1 and broker 2", "no common version of the wire (1 to 1, 2 to 3)")
    assert note == differ
    (strategies,) = findings([told(1), told(2, strategy="fbr")])
    assert strategies[:3] == ("problem", "broker 1 and broker 2", "one cluster, but two strategies (ddbr, fbr)")
    assert findings([told(1), told(2, strategy="fbr", cluster="other")]) == []


# -- what cannot be had ------------------------------------------------------------------------------------------------


def test_an_older_broker_answers_less(capsys, tmp_path):
    overlay = told(4).files["overlay.json"]
    answers = {"/overlay": (200, {}, overlay), "/metrics": (200, {}, b"\xff"), "/tables?full=1": (200, {}, b"[]")}
    with answering(answers) as (address, _):
        status, said = seen(capsys, address, output=tmp_path / "x.tgz")
    assert status == 0
    strange = "what answers at {} for /{} is not what a broker says"
    missing = {
        "metrics.txt": strange.format(address, "metrics"),
        "config.json": "404 Not Found",
        "versions.json": "404 Not Found",
        "tables.json": strange.format(address, "tables?full=1"),
        "stimuli.jsonl": "404 Not Found",
    }
    assert said["brokers"][0]["missing"] == missing
    assert [one["what"] for one in said["findings"]] == [
        f"{file} could not be fetched: {why}" for file, why in missing.items()
    ]
    files = unpacked(tmp_path / "x.tgz")
    assert files["not-fetched.txt"].decode().splitlines() == [
        f"{address}: {file}: {why}" for file, why in missing.items()
    ]
    assert [name for name in files if "/" in name] == [f"broker-4-at-127.0.0.1-{address.port}/overlay.json"]


def odd(**more):
    """An overlay with something in it that no broker says."""
    said = json.loads(told(4).files["overlay.json"])
    for path, value in more.items():
        *way, last = path.split("__")
        part = said
        for step in way:
            part = part[step]
        part[last] = value
    return json.dumps(said).encode()


LINK = {"neighbour": 2, "clock_offset_ms": None, "rtt_ms": 1.0}
STRANGE = {
    "a path": odd(broker__id="../../../../tmp/x"),
    "yes": odd(broker__id=True),
    "colours": odd(broker__cluster="\x1b[31mred"),
    "a long text": odd(broker__reason="x" * 1_000_000),
    "another version": odd(broker__version=1),
    "a huge number": odd(broker__id=10**4000),
    "an abyss": b'{"broker":' * 100_000,
    "nothing": odd(broker={}),
    "no members": odd(members=[[]]),
    "words for a clock": odd(links=[LINK | {"clock_offset_ms": "late"}]),
    "brokers by name": odd(overlay__brokers={"1": True}),
}


@pytest.mark.parametrize("overlay", STRANGE.values(), ids=STRANGE)
def test_what_no_broker_says_does_not_stop_the_rest(overlay, capsys, tmp_path):
    with answering({"/overlay": (200, {}, overlay)}) as (strange, _), served(standing()) as address:
        status, said = seen(capsys, strange, address, output=tmp_path / "x.tgz")
    assert status == 1
    assert said["brokers"][0]["missing"]["overlay.json"].endswith("is not what a broker says")
    assert [bool(one["broker"]) for one in said["brokers"]] == [False, True]
    assert said["findings"][0]["do"].startswith("see what listens there")
    folders = {name.split("/")[0] for name in unpacked(tmp_path / "x.tgz") if "/" in name}
    assert folders == {f"broker-1-at-127.0.0.1-{address.port}"}


def test_nothing_is_printed_that_a_terminal_would_obey(capsys, tmp_path):
    metrics = b'# TYPE mercast_events_dropped_total counter\nmercast_events_dropped_total{reason="\x1b[31m"} 3\n'
    wire = json.dumps({"broker": 4, "wire": ["\x1b[31m", 1]}).encode()
    answers = {"/overlay": odd(), "/metrics": metrics, "/versions": wire}
    served_here = answering({path: (200, {}, said) for path, said in answers.items()})
    with served_here as (address, _), pytest.raises(SystemExit):
        doctor(str(address), output=tmp_path / "x.tgz")
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert said.count("is not what a broker says") == 2
    assert "attributes of events" not in said, "none were had"
    assert b"could not be had" in unpacked(tmp_path / "x.tgz")["README.txt"]


def test_the_dead_and_the_silent_do_not_stop_the_rest(capsys, tmp_path, monkeypatch):
    with (
        socket.socket() as dead,
        socket.create_server(("127.0.0.1", 0)) as silent,
        served(standing()) as address,
    ):
        dead.bind(("127.0.0.1", 0))
        others = [f"127.0.0.1:{one.getsockname()[1]}" for one in (dead, silent)]
        monkeypatch.setattr(admin_port, "_SECONDS", 0.2)
        _, said = seen(capsys, *others, output=tmp_path / "x.tgz")
        monkeypatch.setattr(admin_port, "_SECONDS", 30.0)
        status, with_one = seen(capsys, others[0], address, output=tmp_path / "y.tgz")
    no_answer = "no broker answers at {}; is its admin port open? (mercast broker --admin-listen …)"
    assert [one["what"] for one in said["findings"]] == [no_answer.format(one) for one in others]
    assert status == 1
    assert [bool(one["broker"]) for one in with_one["brokers"]] == [False, True]
    assert len([name for name in unpacked(tmp_path / "y.tgz") if "/" in name]) == 6


def test_the_token_goes_to_admin_ports_and_nowhere_else(capsys, tmp_path):
    broker = standing(security=Security(admin=hash_of("s3cret")))
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    with served(broker) as address:
        status, said = seen(capsys, address, output=tmp_path / "x.tgz")
        assert (status, said["brokers"][0]["broker"]) == (1, None)
        assert "asks for a token: give it with --admin-token" in said["findings"][0]["what"]
        assert said["findings"][0]["do"] == "ask the operator of the broker for its admin_token"
        for number, token in enumerate(("s3cret", str(file))):
            assert seen(capsys, address, admin_token=token, output=tmp_path / f"{number}.tgz")[0] == 0
    with (
        answering({}) as (other, asked),
        answering({"/overlay": (302, {"Location": f"http://{other}/"}, b"")}) as (here, _),
    ):
        with pytest.raises(NotServed) as raised:
            fetch(here, "overlay", "s3cret")
        assert raised.value.why == "302 Found"
        assert asked == []


# -- what it writes ----------------------------------------------------------------------------------------------------


def test_the_bundle(capsys, tmp_path):
    broker = standing()
    broker.last_stimuli = LastStimuli(2, 10_000)
    broker.last_stimuli.begin(broker.core)
    for stimulus in (Tick(), Tick(), Publish("c.1", 1, "quote", {"name": "an attribute"}, 0, b"a payload")):
        broker.last_stimuli.add(0.0, stimulus, 0)
    with served(broker) as address:
        seen(capsys, address, output=tmp_path / "x.tgz")
        seen(capsys, address, output=tmp_path / "y.tgz", without_stimuli=True)
    assert (tmp_path / "x.tgz").stat().st_mode & 0o777 == 0o600
    files = unpacked(tmp_path / "x.tgz")
    manifest = json.loads(files["manifest.json"])
    folder = f"broker-1-at-127.0.0.1-{address.port}"
    assert manifest["brokers"] == [
        {"admin": str(address), "folder": folder, "missing": {}, "stimuli_before": 1},
    ]
    assert {name: one["bytes"] for name, one in manifest["files"].items()} == {
        name: len(data) for name, data in files.items() if name != "manifest.json"
    }
    assert "orjson" in manifest["with"]["packages"]
    assert json.loads(files[f"{folder}/versions.json"])["wire"] == [1, 1]
    head, _, last = files[f"{folder}/stimuli.jsonl"].decode().splitlines()
    assert json.loads(head)["gone"] == 1
    assert "an attribute" in last
    assert b"a payload".hex() not in last
    without = unpacked(tmp_path / "y.tgz")
    assert files.keys() - without.keys() == {f"{folder}/stimuli.jsonl"}
    assert json.loads(without["manifest.json"])["stimuli"] is False
    assert b"left out, as asked for" in without["README.txt"]
    assert not [name for name, data in without.items() if b"an attribute" in data]


def test_none_kept_is_told(capsys, tmp_path):
    with served(replace(standing(), last_stimuli=None)) as address:
        status, said = seen(capsys, address, output=tmp_path / "x.tgz")
    assert status == 0
    assert said["brokers"][0]["missing"] == {"stimuli.jsonl": "404 Not Found"}


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"output": "x.zip"}, "--output: x.zip: it will be a .tar.gz, and should be named so"),
        ({"output": "no/x.tgz"}, "--output: there is no folder no that can be written to"),
        ({"output": "there.tgz"}, "there.tgz cannot be written: File exists"),
        ({"admins": ["::1"]}, "'::1' is not an address: IPv6 goes in brackets; write host:port, such as [::1]:7472"),
        ({"admins": ["ftp://h:1"]}, "'ftp://h:1' is not an address: it has a scheme"),
        ({"admins": ["http://me:s3cret@h:1"]}, "there is no user or password in the address of an admin port"),
        (
            {"admin_token": "./no"},
            "--admin-token: there is no file of that name; a token",
        ),
    ],
)
def test_mistakes(how, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.tgz").write_text("before")
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        admins = how.pop("admins", [f"127.0.0.1:{dead.getsockname()[1]}"])
        output = Path(how.pop("output", "x.tgz"))
        with pytest.raises(SystemExit) as raised:
            doctor(*admins, output=output, **how)
    assert str(raised.value).startswith(f"mercast doctor: {says}")
    assert "s3cret" not in str(raised.value)
    assert (tmp_path / "there.tgz").read_text() == "before"
    assert list(tmp_path.iterdir()) == [tmp_path / "there.tgz"]


# -- configuration -----------------------------------------------------------------------------------------------------


def test_a_token_is_not_shown_and_the_path_of_its_file_is(tmp_path):
    file = tmp_path / "token"
    file.write_text("s3cret")
    shown = {}
    for name, token in (("itself", "s3cret"), ("in a file", str(file)), ("none", "")):
        broker = replace(standing(), config=BrokerConfig(id=1, admin_token=token))
        shown[name] = configuration(broker)["config"]["admin_token"]
    assert shown == {"itself": NOT_SHOWN, "in a file": str(file), "none": ""}


def test_every_key_is_shown():
    config = configuration(standing())["config"]
    assert config.keys() == BrokerConfig.model_fields.keys()
    assert (config["id"], config["client_queue_bytes"], config["seeds"]) == (1, 8 * 1024 * 1024, [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:s3cret@host:1/x", "https://…@host:1/x"),
        ("a, http://s3cret@h", "a, http://…@h"),
        ("http://host/a@b", "http://host/a@b"),
        ("me@host", "me@host"),
    ],
)
def test_passwords_in_urls_are_not_shown(text, shown):
    assert without_passwords(text) == shown


def test_after_a_reload_the_files_that_count_are_shown(tmp_path):
    before, after = tmp_path / "before.yaml", tmp_path / "after.yaml"
    for file in (before, after):
        file.write_text("tokens:\n")
    broker = replace(standing(), config=BrokerConfig(id=1, tokens=before))

    async def reload():
        await Reloading(broker, lambda: BrokerConfig(id=1, tokens=after, degree=8)).read_all()

    asyncio.run(reload())
    config = configuration(broker)["config"]
    assert (config["tokens"], config["degree"]) == (str(after), 6)
