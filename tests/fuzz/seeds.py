"""What mutations begin with: the corpus of this folder, and the recorded frames of the wire, each after a handshake."""

from collections.abc import Iterator
from functools import cache

from fuzz.conversations import (
    CLIENT,
    CLUSTER,
    CORPUS,
    NOWHERE,
    PEER,
    RECORDED,
    Conversation,
    conversation,
    files,
    from_text,
)

from mercast.wire.frames import Kind, frame
from mercast.wire.hello import VERSIONS, hello

STRANGER = 7
"""The number of a broker that is none."""

CLIENT_HELLO = hello(mercast=VERSIONS, role="client", name="fuzz", token="")
PEER_HELLO = hello(
    mercast=VERSIONS, role="broker", broker=STRANGER, incarnation=1, cluster=CLUSTER, strategy="ddbr",
    peer=NOWHERE, clients=NOWHERE, members=[[STRANGER, NOWHERE, NOWHERE, 1]],
)  # fmt: skip

_FROM_CLIENTS, _FROM_BROKERS = range(Kind.PUBLISH, Kind.EVENT), range(Kind.FORWARD, Kind.FORWARD + 16)


@cache
def recorded() -> tuple[bytes, ...]:
    """The recorded frames, without the addresses in them."""
    return tuple(
        _homeless(bytes.fromhex("".join(line for line in file.read_text().splitlines() if not line.startswith("#"))))
        for file in sorted(RECORDED.glob("*/*.hex"))
    )


def _homeless(said: bytes) -> bytes:
    body = said[5:]
    for number in (1, 2):
        for port in (7470, 7471):
            body = body.replace(f"10.0.0.{number}:{port}".encode(), NOWHERE.encode())
    return frame(said[4], body)


@cache
def seeds() -> dict[str, tuple[Conversation, ...]]:
    """By port."""
    found = [one for file in files() for one in from_text(file.read_text())] + list(_greeted())
    return {port: tuple(one for one in found if one.port == port) for port in {one.port for one in found}}


def _greeted() -> Iterator[Conversation]:
    for said in recorded():
        if said[4] not in _FROM_BROKERS:
            yield conversation(CLIENT, "recorded", CLIENT_HELLO, said)
        if said[4] not in _FROM_CLIENTS:
            yield conversation(PEER, "recorded", PEER_HELLO, said)
    by = {kinds: [said for said in recorded() if said[4] in kinds] for kinds in (_FROM_CLIENTS, _FROM_BROKERS)}
    yield conversation(CLIENT, "all that clients say", CLIENT_HELLO, *by[_FROM_CLIENTS])
    yield conversation(PEER, "all that brokers say", PEER_HELLO, *by[_FROM_BROKERS])


__all__ = ["CLIENT_HELLO", "CORPUS", "PEER_HELLO", "STRANGER", "recorded", "seeds"]
