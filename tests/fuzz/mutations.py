"""Damage: one conversation made from others, by a seed alone. The same seed, the same bytes."""

import random
from collections.abc import Callable

import orjson
from fuzz.conversations import CLOSE, DEAF, DECODER, LISTEN, RESET, Conversation, is_tame
from fuzz.seeds import recorded, seeds
from wire_strategies import JUNK, places, put_at

from mercast.wire.frames import FRAME_BYTES, HEADER, HELLO_BYTES, frame

MOST_BYTES = 4 * 1024 * 1024
"""That one conversation says in all, so that many can be had."""

_LENGTHS = (0, 1, 4, HELLO_BYTES, HELLO_BYTES + 1, FRAME_BYTES, FRAME_BYTES + 1, 2**31 - 1, 2**31, 2**32 - 1)
_NUMBERS = (b"\xff" * 2, b"\xff" * 4, b"\xff" * 8, b"\x7f\xff", b"\x7f\xff\xff\xff", b"\x80" + bytes(3), bytes(4))
_TIMES = (2, 3, 10, 100, 1000, 20_000)
_DRIPPED = 150
"""Bytes that are said one by one."""

_HUGE = ([0] * 20_000, "x" * 70_000, {f"a{n}": n for n in range(3000)}, 10**30, [[1, 1]] * 5000, "NOT " * 5000)

Mutation = Callable[[random.Random, Conversation], Conversation]


def mutated(seed: str, port: str) -> Conversation:
    """A conversation with this port; its note says what was done, and by which seed."""
    rng = random.Random(f"{port} {seed}")
    while True:
        one = rng.choice(seeds()[port])
        kinds = [rng.choice(list(MUTATIONS)) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        one = _done(rng, one, kinds)._replace(note=f"{'+'.join(kinds)} by seed {seed}")
        if is_tame(one) and sum(len(piece) * times for piece, times in one.pieces) <= MOST_BYTES:
            return one


def mutated_frame(seed: str) -> Conversation:
    """One frame, for the decoders."""
    rng = random.Random(seed)
    one = Conversation(DECODER, "", ((rng.choice(recorded()), 1),))
    kinds = [rng.choice(_OF_BYTES) for _ in range(rng.choice((1, 1, 2, 3)))]
    return _done(rng, one, kinds)._replace(note=f"{'+'.join(kinds)} by seed {seed}")


def _done(rng: random.Random, one: Conversation, kinds: list[str]) -> Conversation:
    for kind in kinds:
        if one.pieces:
            one = MUTATIONS[kind](rng, one)
            one = one._replace(pieces=tuple((piece, times) for piece, times in one.pieces if piece))
    return one


# -- one piece changes ------------------------------------------------------------------------------------------------


def _one_piece(change: Callable[[random.Random, bytes], bytes]) -> Mutation:
    """Usually not the first, which is the handshake: it lets the others in."""

    def mutate(rng: random.Random, one: Conversation) -> Conversation:
        at = rng.randrange(rng.random() < 0.8 and len(one.pieces) > 1, len(one.pieces))
        pieces = list(one.pieces)
        pieces[at] = change(rng, pieces[at][0]), pieces[at][1]
        return one._replace(pieces=tuple(pieces))

    return mutate


def _is_frame(piece: bytes) -> bool:
    return len(piece) >= HEADER.size and HEADER.unpack_from(piece)[0] == len(piece) - 4


def _body(change: Callable[[random.Random, bytes], bytes]) -> Callable[[random.Random, bytes], bytes]:
    """Inside a frame, whose length stays right; what is none is changed anywhere."""

    def inside(rng: random.Random, piece: bytes) -> bytes:
        return frame(piece[4], change(rng, piece[5:])) if _is_frame(piece) else change(rng, piece)

    return inside


def _flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(rng: random.Random, data: bytes) -> bytes:
    begin, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return rng.choice((data[:begin], data[end:], data[:begin] + data[end:]))


def _lie(rng: random.Random, piece: bytes) -> bytes:
    """About lengths: of the frame, or somewhere inside."""
    if _is_frame(piece) and rng.random() < 0.5:
        length = rng.choice((*_LENGTHS, len(piece) - 5, len(piece) - 3, len(piece) + 20))
        return HEADER.pack(max(0, length), piece[4]) + piece[5:]
    number, at = rng.choice(_NUMBERS), rng.randrange(len(piece) + 1)
    return piece[:at] + number + piece[at + len(number) :]


def _junk(rng: random.Random, body: bytes, junk: object = None) -> bytes:
    """Something else at one place of a JSON body; other bodies get noise."""
    begin = max(0, body.find(b"{"))
    try:
        plain = orjson.loads(body[begin:])
        at = rng.choice(list(places(plain)))
        return body[:begin] + orjson.dumps(put_at(plain, at, rng.choice(JUNK) if junk is None else junk))
    except (orjson.JSONDecodeError, TypeError):
        return _noise(rng, body)


def _huge(rng: random.Random, body: bytes) -> bytes:
    huge = rng.choice(_HUGE)
    if huge == 10**30:  # which orjson does not write
        digits = [at for at, byte in enumerate(body) if chr(byte).isdigit()]
        at = rng.choice(digits or [0])
        return body[:at] + b"9" * rng.choice((20, 400, 5000)) + body[at:]
    return _junk(rng, body, huge)


def _noise(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 4, 100, 5000))) + data[at + rng.randrange(9) :]


# -- the order, the pace and the end change ---------------------------------------------------------------------------


def _splice(rng: random.Random, one: Conversation) -> Conversation:
    """The beginning of this one and the end of another, cut between frames or within one."""
    pieces, other = one.pieces, rng.choice(rng.choice(list(seeds().values()))).pieces
    if rng.random() < 0.5:
        return one._replace(pieces=pieces[: rng.randrange(1, len(pieces) + 1)] + other[rng.randrange(len(other)) :])
    (head, _), (tail, _) = rng.choice(pieces), rng.choice(other)
    both = head[: rng.randrange(len(head) + 1)] + tail[rng.randrange(len(tail) + 1) :]
    return one._replace(pieces=(*pieces[:1], (both, 1)))


def _reorder(rng: random.Random, one: Conversation) -> Conversation:
    fixed = rng.random() < 0.8
    rest = list(one.pieces[fixed:])
    rng.shuffle(rest)
    return one._replace(pieces=one.pieces[:fixed] + tuple(rest))


def _repeat(rng: random.Random, one: Conversation) -> Conversation:
    at = rng.randrange(len(one.pieces))
    piece = one.pieces[at][0]
    times = max(1, min(rng.choice(_TIMES), MOST_BYTES // 2 // max(1, len(piece))))
    return one._replace(pieces=(*one.pieces[:at], (piece, times), *one.pieces[at + 1 :]))


def _drip(rng: random.Random, one: Conversation) -> Conversation:
    """Byte by byte, from somewhere on: often within the handshake, which may take its time up to a limit."""
    data = b"".join(piece for piece, _ in one.pieces)[:MOST_BYTES]
    begin = rng.randrange(max(1, len(data) - _DRIPPED)) if rng.random() < 0.5 else 0
    slow = tuple((data[at : at + 1], 1) for at in range(begin, min(begin + _DRIPPED, len(data))))
    head = ((data[:begin], 1),) if begin else ()
    rest = data[begin + _DRIPPED :]
    return one._replace(pieces=(*head, *slow, *(((rest, 1),) if rest else ())), pause=rng.choice((0.0, 0.001, 0.01)))


def _hang_up(rng: random.Random, one: Conversation) -> Conversation:
    """In the midst of something, the handshake more often than not."""
    data = b"".join(piece for piece, _ in one.pieces)[:MOST_BYTES]
    most = len(one.pieces[0][0]) if rng.random() < 0.6 else len(data)
    return one._replace(pieces=((data[: rng.randrange(most + 1)], 1),), end=rng.choice((CLOSE, RESET)))


def _end(rng: random.Random, one: Conversation) -> Conversation:
    return one._replace(end=rng.choice((LISTEN, CLOSE, RESET, DEAF)))


MUTATIONS: dict[str, Mutation] = {
    "flip": _one_piece(_body(_flip)),
    "flip anywhere": _one_piece(_flip),
    "truncate": _one_piece(_body(_truncate)),
    "truncate anywhere": _one_piece(_truncate),
    "lie": _one_piece(_lie),
    "junk": _one_piece(_body(_junk)),
    "huge": _one_piece(_body(_huge)),
    "noise": _one_piece(_body(_noise)),
    "splice": _splice,
    "reorder": _reorder,
    "repeat": _repeat,
    "drip": _drip,
    "hang up": _hang_up,
    "end": _end,
}

_OF_BYTES = ("flip", "flip anywhere", "truncate", "truncate anywhere", "lie", "junk", "huge", "noise")
