"""Recorded frames (corpus/): each still says what it said, and what is canonical is still written so.

`kind`, `says` and, for broker-to-broker frames, `me` stand in the companion of each file. `says` is null for what is
skipped. `canonical` says whether our own encoders write these very bytes.

Frames in `newer/` are as a newer build may write them: each says what its namesake in v1 says, and more.
"""

import hashlib
import json
from pathlib import Path

import orjson
import pytest

from mercast.protocol.messages import Forward
from mercast.protocol.plain import from_plain, to_plain
from mercast.wire import hello, replies, requests
from mercast.wire.events import Passing, encode_content
from mercast.wire.frames import FRAME_BYTES, Framing, Kind, frame
from mercast.wire.peers import decode_message, encode_message

CORPUS = Path(__file__).parent / "corpus"
RECORDED = sorted(CORPUS.glob("v*/*.hex"))
NEWER = sorted(CORPUS.glob("newer/*.hex"))
CLIENT, TIME = "c.1", 1


def bytes_of(file):
    lines = file.read_text().splitlines()
    assert lines[0].startswith("# ")
    return bytes.fromhex("".join(line for line in lines if not line.startswith("#")))


def as_recorded(said, recorded):
    """Without the fields that there were not yet."""
    if isinstance(said, dict) and isinstance(recorded, dict):
        return {name: as_recorded(one, recorded[name]) for name, one in said.items() if name in recorded}
    if isinstance(said, list) and isinstance(recorded, list) and len(said) == len(recorded):
        return [as_recorded(*pair) for pair in zip(said, recorded, strict=True)]
    return said


# -- reading ---------------------------------------------------------------------------------------------------------


def read_publish(body):
    asked = requests.read_publish(CLIENT, body, TIME)
    assert (asked.client, asked.time) == (CLIENT, TIME)
    said = to_plain(asked)
    return {name: said[name] for name in said if name not in ("is", "client", "time")}


def read_event(body):
    arrived = replies.read_event(body)
    return {"subscriptions": list(arrived.subscriptions), "event": to_plain(arrived.event)}


def read_receipts(body):
    first, counts = replies.read_receipts(body)
    return {"first": first, "counts": counts}


def read_message(kind, body, me):
    message = decode_message(kind, body, me)
    if isinstance(message, Forward) and isinstance(message.packets, Passing):
        return {"passing": to_plain(message._replace(packets=tuple(message.packets)))}
    return to_plain(message)


def read(kind, body, me):
    match kind:
        case Kind.HELLO | Kind.ERROR | Kind.ANSWER | Kind.SETTLED | Kind.REPORTED | Kind.DRAIN | Kind.MEMBERS:
            return hello.read_json(body)
        case Kind.PING | Kind.PONG:
            return body.hex()
        case Kind.PUBLISH:
            return read_publish(body)
        case Kind.EVENT:
            return read_event(body)
        case Kind.RECEIPTS:
            return read_receipts(body)
        case Kind.FORWARD | Kind.MESSAGE | Kind.ORGANISE:
            return read_message(kind, body, me)
    return to_plain(requests.read_request(kind, CLIENT, body) or decode_message(kind, body, me))


# -- writing ---------------------------------------------------------------------------------------------------------


def write_publish(said):
    asked = from_plain(said | {"is": "Publish", "client": CLIENT, "time": TIME})
    content = encode_content(asked.type, asked.attributes, asked.payload, asked.content_type, asked.trace)
    return requests.publish(asked.request, content, asked.traced)


def write_subscribe(said):
    asked = from_plain(said)
    return requests.subscribe(asked.request, asked.type, str(asked.filter), asked.echo)


def write_advertise(said):
    asked = from_plain(said)
    return requests.advertise(asked.request, asked.type, str(asked.filter))


def write_declare(said):
    asked = from_plain(said)
    name, parent, attributes, open_ = (getattr(asked.declaration, f) for f in ("name", "parent", "attributes", "open"))
    return requests.declare(asked.request, name, parent, {a: kind.value for a, kind in attributes.items()}, open_)


WRITERS = {
    Kind.HELLO: lambda said: hello.hello(**said),
    Kind.ERROR: lambda said: hello.refusal(**said),
    Kind.PING: lambda said: frame(Kind.PING, bytes.fromhex(said)),
    Kind.PONG: lambda said: frame(Kind.PONG, bytes.fromhex(said)),
    Kind.PUBLISH: write_publish,
    Kind.SUBSCRIBE: write_subscribe,
    Kind.UNSUBSCRIBE: lambda said: requests.unsubscribe(said["request"], said["subscribed"]),
    Kind.ADVERTISE: write_advertise,
    Kind.UNADVERTISE: lambda said: requests.unadvertise(said["request"], said["advertised"]),
    Kind.DECLARE: write_declare,
    Kind.LEAVE: lambda _: requests.leave(),
    Kind.EVENT: lambda said: replies.event(from_plain(said["event"]), said["subscriptions"]),
    Kind.RECEIPTS: lambda said: replies.receipts(**said),
    Kind.ANSWER: lambda said: replies.answer(**said),
    Kind.SETTLED: lambda said: replies.settled(**said),
    Kind.REPORTED: lambda said: replies.reported(said["broker"], from_plain(said["row"])),
    Kind.DRAIN: lambda said: replies.drain(**said),
    Kind.FORWARD: lambda said: encode_message(from_plain(said)),
    Kind.MESSAGE: lambda said: encode_message(from_plain(said)),
    Kind.ORGANISE: lambda said: encode_message(from_plain(said)),
    Kind.MEMBERS: lambda said: frame(Kind.MEMBERS, orjson.dumps(said)),
}


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_recorded_frame_says_what_it_said(file):
    recorded, companion = bytes_of(file), json.loads(file.with_suffix(".json").read_text())
    ((kind, body),) = Framing(FRAME_BYTES).feed(recorded)
    named = companion["kind"]
    assert kind == (Kind[named] if isinstance(named, str) else named)
    said = read(kind, body, companion.get("me", 0))
    assert as_recorded(json.loads(json.dumps(said)), companion["says"]) == companion["says"]
    if companion["canonical"]:
        assert WRITERS[kind](companion["says"]) == recorded


def test_every_kind_is_recorded_as_we_write_it():
    canonical = [json.loads(file.with_suffix(".json").read_text()) for file in RECORDED]
    assert {one["kind"] for one in canonical if one["canonical"]} == {kind.name for kind in Kind}
    assert WRITERS.keys() == set(Kind)


def understood(file, me):
    """What those who read such a frame make of it."""
    ((kind, body),) = Framing(FRAME_BYTES).feed(bytes_of(file))
    match kind:
        case Kind.HELLO | Kind.ERROR | Kind.MEMBERS:
            return kind, {name: one for name, one in hello.read_json(body).items() if name != "of_the_next"}
        case Kind.ANSWER:
            return kind, replies.read_answer(body)
        case Kind.SETTLED:
            return kind, replies.read_settled(body)
        case Kind.REPORTED:
            return kind, replies.read_reported(body)
        case Kind.DRAIN:
            return kind, replies.read_drain(body)
    return kind, read(kind, body, me)


@pytest.mark.parametrize("file", NEWER, ids=lambda file: file.stem)
def test_what_a_newer_build_says_beside_is_skipped(file):
    before = CORPUS / "v1" / file.name
    me = json.loads(before.with_suffix(".json").read_text()).get("me", 0)
    assert understood(file, me) == understood(before, me)
    assert len(bytes_of(file)) > len(bytes_of(before))


def test_all_that_can_be_said_beside_is_recorded():
    """PING, PONG and RECEIPTS have no room for more."""
    canonical = {file.name for file in RECORDED if json.loads(file.with_suffix(".json").read_text())["canonical"]}
    assert {file.name for file in NEWER} == {name for name in canonical if not name.endswith(FIXED)}
    kinds = {bytes_of(file)[4] for file in NEWER}
    assert kinds == set(Kind) - {Kind.PING, Kind.PONG, Kind.RECEIPTS}


FIXED = ("-ping.hex", "-pong.hex", "-receipts.hex")


@pytest.mark.parametrize("version", sorted(path for path in CORPUS.iterdir()), ids=lambda version: version.name)
def test_no_file_was_edited(version):
    """A new file adds its line: `sha256sum FILE >> SHA256SUMS`. No line ever changes."""
    listed = dict(line.split()[::-1] for line in (version / "SHA256SUMS").read_text().splitlines())
    files = [file for file in version.iterdir() if file.name != "SHA256SUMS"]
    assert listed == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
