"""The yardsticks: a bare forwarder, and a chain of them.

A forwarder reads frames in large reads, looks each one's destination list up among splits made beforehand, writes a new
header (hops, list) and sends one batch to each neighbour for each read. It does nothing else: no matching, no windows
of seen events, no links that come and go, no limits.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from mercast_loadtest.bench.dialects import Bare
from mercast_loadtest.bench.processes import Helper, begun, say

Splits = dict[bytes, list[tuple[str, bytes]]]
"""By list: each neighbour (its address), with its part of the list."""

_FORWARDERS = 3


class Forwarder(asyncio.Protocol):
    def __init__(self, splits: Splits, neighbours: dict[str, asyncio.WriteTransport]) -> None:
        self._splits, self._neighbours, self._rest = splits, neighbours, b""

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        batches: dict[str, list[bytes]] = {address: [] for address in self._neighbours}
        head, at, end = Bare.HEAD, 0, len(data)
        while at + head.size <= end:
            length, kind, hops, size = head.unpack_from(data, at)
            after = at + 4 + length
            if after > end:
                break
            begin = at + head.size + size
            for address, part in self._splits[data[at + head.size : begin]]:
                header = head.pack(length - size + len(part), kind, hops + 1, len(part))
                batches[address] += (header, part, data[begin:after])
            at = after
        self._rest = data[at:]
        for address, batch in batches.items():
            if batch:
                self._neighbours[address].write(b"".join(batch))


async def _forward(splits: Splits) -> None:
    loop = asyncio.get_running_loop()
    neighbours: dict[str, asyncio.WriteTransport] = {}
    for address in {address for split in splits.values() for address, _ in split}:
        host, _, port = address.rpartition(":")
        neighbours[address], _ = await loop.create_connection(asyncio.Protocol, host, int(port))
    server = await loop.create_server(lambda: Forwarder(splits, neighbours), "127.0.0.1", 0)
    say(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await server.serve_forever()


def main() -> None:
    told = begun()
    splits = {
        bytes.fromhex(destinations): [(address, bytes.fromhex(part)) for address, part in split]
        for destinations, split in told["splits"].items()
    }
    run(_forward(splits))


def run(work: Any) -> None:
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


@contextmanager
def chain(lists: Sequence[bytes], sink: str, length: int = _FORWARDERS) -> Iterator[tuple[str, list[Helper]]]:
    """So many forwarders in a line before a sink: the address of the first, and all of them in order."""
    with ExitStack() as ends:
        address, forwarders = sink, list[Helper]()
        for _ in range(length):
            splits = {one.hex(): [[address, one.hex()]] for one in lists}
            forwarder = ends.enter_context(Helper("bare", splits=splits))
            address = forwarder.hear()
            forwarders.insert(0, forwarder)
        yield address, forwarders


if __name__ == "__main__":
    main()
