"""A network between brokers that can fail: a proxy before every peer port.

A cut way carries nothing: what was said waits, as TCP would resend it, and comes late when the way is healed, the end
of a connection too. So stale words reach a broker as they do when a real network comes back.
"""

import asyncio
import json
import socket
from contextlib import suppress
from threading import Thread

from mercast.processes import free_addresses
from mercast.wire.frames import FRAME_BYTES, HEADER, Framing, Kind, frame

_CHUNK = 64 * 1024
_AHEAD = 16
"""Chunks of one connection that are on their way in one direction."""


class Network:
    """`with Network(4) as network, Mesh(4, **network.how()) as mesh: … network.cut(1, 2)`."""

    def __init__(self, brokers, repeats=()):
        """On the ways of `repeats`, events come twice."""
        ids = range(1, brokers + 1)
        found = iter(free_addresses(4 * brokers))
        self._own = {id: (next(found), next(found), next(found)) for id in ids}
        """What brokers listen at: clients, peers, admin."""
        self._front = {id: next(found) for id in ids}
        """What brokers know each other by."""
        self._cut = set()
        self._delay = 0.0
        self._rates = {}
        self._repeats = set(repeats)
        self._changed = asyncio.Event()
        self._pipes = set()
        self._servers = []
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)

    def how(self, each=lambda _: []):
        """For `Mesh`."""

        def addresses(id):
            client, _, admin = self._own[id]
            return client, self._front[id], admin

        def flags(id):
            return ["--peer-listen", self._own[id][1], "--peer-advertise", self._front[id], *each(id)]

        return {"addresses": addresses, "each": flags}

    def __enter__(self):
        self._thread.start()
        for id in self._front:
            self._do(self._serve, id)
        return self

    def __exit__(self, *_):
        self._do(self._end)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- what happens to it ------------------------------------------------------------------------------------------

    def cut(self, *ways):
        """Ways are pairs: (1, 2) is what broker 1 says to broker 2, and not the other way round."""
        self._do(self._change, self._cut | set(ways), self._delay)

    def heal(self):
        self._do(self._change, set(), 0.0)

    def slow_down(self, seconds):
        """So long for every word."""
        self._do(self._change, self._cut, seconds)

    def narrow(self, one, other, rate):
        """So many bytes a second on this way, and no more."""
        self._rates[one, other] = rate

    def close(self, one, other):
        """The connections between two brokers end: both sides notice."""
        self._do(self._close, {one, other})

    @property
    def waiting(self):
        """Calls that have not got through: most of the callers have given up since."""
        return sum(pipe.there is None for pipe in self._pipes)

    async def _change(self, cut, delay):
        self._cut, self._delay = cut, delay
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _close(self, ends):
        for pipe in [pipe for pipe in self._pipes if {pipe.caller, pipe.called} == ends]:
            pipe.abort()

    def _do(self, what, *about):
        return asyncio.run_coroutine_threadsafe(what(*about), self._loop).result()

    # -- connections -------------------------------------------------------------------------------------------------

    async def _serve(self, id):
        host, port = self._front[id].split(":")
        serve = asyncio.start_server(lambda *streams: self._carry(id, *streams), host, int(port), limit=_CHUNK)
        self._servers.append(await serve)
        for listener in self._servers[-1].sockets:  # so that what is slow here is soon noticed there
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _CHUNK)

    async def _carry(self, called, reader, writer):
        """One connection, from its first HELLO, which says who calls."""
        pipe = _Pipe(called, writer)
        self._pipes.add(pipe)
        try:
            header = await reader.readexactly(HEADER.size)
            first = header + await reader.readexactly(HEADER.unpack(header)[0] - 1)
            pipe.caller = json.loads(first[HEADER.size :])["broker"]
            await self._passable(pipe.caller, called)
            back, pipe.there = await asyncio.open_connection(*self._own[called][1].split(":"), limit=_CHUNK)
            await asyncio.gather(
                self._pump(pipe.caller, called, reader, pipe.there, first),
                self._pump(called, pipe.caller, back, writer),
            )
        except (OSError, EOFError):
            pass  # whoever was there has gone, or nobody is
        finally:
            pipe.abort()
            self._pipes.discard(pipe)

    async def _passable(self, one, other):
        while (one, other) in self._cut:
            await self._changed.wait()

    async def _pump(self, one, other, reader, writer, first=b""):
        """What one says to the other, its end included."""
        flying = asyncio.Queue(_AHEAD)
        framing = Framing(FRAME_BYTES)

        async def read():
            data = first
            while True:
                if (one, other) in self._repeats:
                    data = b"".join(frame(*one) * (1 + (one[0] == Kind.FORWARD)) for one in framing.feed(data))
                await flying.put((self._loop.time() + self._delay, data))
                try:
                    data = await reader.read(_CHUNK)
                except OSError:
                    data = b""
                if not data:
                    await flying.put((self._loop.time() + self._delay, None))
                    return

        async def write():
            while True:
                when, data = await flying.get()
                await asyncio.sleep(when - self._loop.time())
                await self._passable(one, other)
                if data is None:
                    writer.close()
                    return
                with suppress(OSError):  # the other end has gone: it says so on the other way
                    if not writer.is_closing():
                        writer.write(data)
                        await writer.drain()
                if (one, other) in self._rates:
                    await asyncio.sleep(len(data) / self._rates[one, other])

        await asyncio.gather(read(), write())

    async def _end(self):
        for server in self._servers:
            server.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


class _Pipe:
    def __init__(self, called, here):
        self.caller, self.called, self.here, self.there = None, called, here, None

    def abort(self):
        for writer in (self.here, self.there):
            if writer is not None:
                writer.transport.abort()
