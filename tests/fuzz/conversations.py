"""What is said to a port of a broker: pieces of bytes one after the other, and how the connection ends. Kept as text.

    # client: a word about it
    @ pause 0.01
    @ end reset
    0000003e01…
    0000000303 *200

A `#` begins a conversation: the port, and a note. Each other line is a piece: hex, and how often it is said. What came
to light together stands in one file, one conversation after the other.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from mercast.wire.frames import HEADER, Kind

CORPUS = Path(__file__).parent / "corpus"
RECORDED = Path(__file__).parents[1] / "wire" / "corpus"

CLIENT, PEER, ADMIN, DECODER = PORTS = ("client", "peer", "admin", "decoder")
"""The last is no port: frames that a decoder is given in this process."""

CLUSTER = "fuzz"
NOWHERE = "127.0.0.1:1"
"""The only address that is ever told to a broker: it would call any other."""

LISTEN, CLOSE, RESET, DEAF = ENDS = ("listen", "close", "reset", "deaf")
"""Hear what there is to hear, then close; close at once; the same without a word of TCP; say all without reading."""


class Conversation(NamedTuple):
    port: str
    note: str
    pieces: tuple[tuple[bytes, int], ...]
    pause: float = 0.0
    """Seconds after each piece."""
    end: str = LISTEN


def conversation(port: str, note: str, *pieces: bytes) -> Conversation:
    return Conversation(port, note, tuple((piece, 1) for piece in pieces))


# -- as text -----------------------------------------------------------------------------------------------------------


def to_text(conversations: list[Conversation]) -> str:
    return "".join(f"{line}\n" for one in conversations for line in _lines(one))


def _lines(one: Conversation) -> Iterator[str]:
    yield f"# {one.port}: {one.note}"
    if one.pause:
        yield f"@ pause {one.pause}"
    if one.end != LISTEN:
        yield f"@ end {one.end}"
    for piece, times in one.pieces:
        yield piece.hex() + (f" *{times}" if times > 1 else "")


def from_text(text: str) -> list[Conversation]:
    found: list[Conversation] = []
    for line in filter(None, text.splitlines()):
        mark, _, rest = line.partition(" ")
        if mark == "#":
            port, _, note = rest.partition(": ")
            found.append(Conversation(port, note, ()))
            continue
        last = found.pop()
        if mark == "@":
            what, _, value = rest.partition(" ")
            last = last._replace(pause=float(value)) if what == "pause" else last._replace(end=value)
        else:
            last = last._replace(pieces=(*last.pieces, (bytes.fromhex(mark), int(rest[1:] or 1))))
        found.append(last)
    if any(one.port not in PORTS or one.end not in ENDS for one in found):
        raise ValueError(f"conversations are with one of {', '.join(PORTS)}, and end with one of {', '.join(ENDS)}")
    return found


def files(folder: Path = CORPUS) -> list[Path]:
    return sorted(folder.glob("*/*.txt"))


# -- what a broker may make of it --------------------------------------------------------------------------------------


def frames(one: Conversation) -> Iterator[tuple[int, bytes]]:
    """As a broker cuts them, if it takes all of it."""
    data, at = b"".join(piece for piece, _ in one.pieces), 0
    while at + HEADER.size <= len(data):
        length, kind = HEADER.unpack_from(data, at)
        yield kind, data[at + HEADER.size : at + 4 + length]
        at += 4 + max(length, 1)


def is_believed(one: Conversation) -> bool:
    """Whether it is from a broker, as far as another can tell: what it says then counts, and may do harm to routes."""
    kind, body = next(frames(one), (0, b""))
    said = _json(body) if one.port == PEER and kind == Kind.HELLO else None
    return isinstance(said, dict) and said.get("role") in ("broker", "asking")


def is_tame(one: Conversation) -> bool:
    """Whether it names no address that a broker might call."""
    told = (_json(body) for kind, body in frames(one) if kind in (Kind.HELLO, Kind.MEMBERS))
    return one.port != PEER or all(":" not in text or text == NOWHERE for said in told for text in _texts(said))


def _json(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _texts(said: object) -> Iterator[str]:
    waiting = [said]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
