"""The client for asyncio."""

import asyncio
import ssl
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

from mercast.client import arguments, brokers
from mercast.client.address import Address
from mercast.client.errors import Closed, ConnectionLost, MercastError, NotAnswered, NotSettled
from mercast.client.event import NO_ATTRIBUTES, Event, Hop, Receipt, ToPublish, encode
from mercast.client.options import LINGER, SETTLE_WITHIN, TICK, Options, encode_all, options, types_of
from mercast.client.reasons import lost, no_broker, no_talk, unheard, unreached
from mercast.client.seen import Handed
from mercast.client.session import BEAT, SILENCE, Session
from mercast.client.standing import BUFFER_BYTES, Advertised, Declared, Handle, Standing, Wanted, log
from mercast.content.values import Attributes
from mercast.wire.events import PLAIN_BYTES
from mercast.wire.frames import ProtocolError


def connect(
    url: str | Iterable[str] | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | bool | None = None,
    name: str | None = None,
    timeout: float = 10.0,
) -> "Client":
    """A client of the brokers: `async with mercast.connect() as c`, or `c = await mercast.connect()`.

    Parameters
    ----------
    url
        `mercast://host:port` (`mercasts://` for TLS) of one or more brokers, tried in this order; others are learned
        from them. Without it MERCAST_URL counts, or this machine.
    token
        What the brokers ask for; without it MERCAST_TOKEN counts.
    tls
        How to speak TLS; True for Python's defaults.
    name
        What brokers call this client by, with a number after it.
    timeout
        Seconds that a call waits for a connection, and for its answer.
    """
    return Client(options(url, token, tls, name, timeout))


class Client:
    def __init__(self, how: Options) -> None:
        self._how = how
        self._brokers = brokers.Brokers(how.addresses)
        self._standing = Standing()
        self._handed: Handed[Wanted] = Handed()
        self._live: list[_Connection] = []
        """One; two while this client moves from one broker to another."""
        self._current: _Connection | None = None
        self._ready = asyncio.Event()
        """Whether there is a current connection."""
        self._wanting = asyncio.Event()
        """Whether another is wanted: it was lost, or its broker has asked for it."""
        self._last = how.addresses[0]
        self._why = "not connected yet"
        self._pace = brokers.Pace()
        self._keeper: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._hops: Callable[[Hop], None] | None = None
        self._introduced: dict[str, asyncio.Task[None] | None] = {}
        """Types that this client has published; while the first event waits to be sent, with what it waits for."""
        self._closed = False

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        self._check_open()
        if self._keeper is None:
            connection = await self._dial(self._brokers.at_first())
            self._adopt(connection)
            self._make_current(connection)
            self._keeper = asyncio.create_task(self._keep(), name="mercast: keeps the connection")
            self._watcher = asyncio.create_task(self._watch(), name="mercast: watches connections")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # -- what it is for ----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str | None:
        """What the broker calls this client: the publisher of its events. None while there is no connection."""
        welcome = self._current and self._current.session.welcome
        return welcome.client if welcome else None

    @property
    def broker(self) -> int | None:
        """The broker that is used now."""
        welcome = self._current and self._current.session.welcome
        return welcome.broker if welcome else None

    async def publish(
        self,
        type: str,
        attributes: Attributes = NO_ATTRIBUTES,
        payload: bytes = b"",
        content_type: str = PLAIN_BYTES,
        trace: str | None = None,
    ) -> Receipt:
        """Publish an event; the receipt says how many destinations were found.

        Refused if the broker does not take it, Unacknowledged if the connection was lost before it said so; such
        an event is not sent again. `trace` is the W3C `traceparent`.
        """
        content = encode(ToPublish(type, attributes, payload, content_type, trace))
        await self._introduce((type,))
        connection = await self._connected()
        [outcome] = await self._publish(connection, [content])
        if isinstance(outcome, MercastError):
            raise outcome
        return outcome

    async def publish_many(self, events: Iterable[ToPublish | tuple[Any, ...]]) -> list[Receipt | MercastError]:
        """Publish many events at once, each as (type, attributes, payload, content type, trace) or the first of these.

        For each a receipt, or, where `publish` would have raised it, the error.
        """
        events = list(events)
        contents = encode_all(events)
        await self._introduce(types_of(events, contents))
        return await self._publish(await self._connected(), contents)

    async def advertise(self, type: str, where: str | None = None, *, settled: bool = True) -> "Advertisement":
        """Say what will be published; what lies outside is refused. Without, a type is advertised by its first event.

        Waits until all brokers concerned know (NotSettled, if some do not in time), unless `settled` is False.
        """
        advertisement = Advertisement(self, type, where, self._future(), settled)
        await self._stand(advertisement)
        return advertisement

    async def subscribe(
        self,
        type: str | None = None,
        where: str | None = None,
        *,
        echo: bool = True,
        settled: bool = True,
        buffer: int = BUFFER_BYTES,
    ) -> "Subscription":
        """Subscribe to events of a type and its subtypes (None: of any) that a condition holds for; then iterate.

        Waits until all brokers concerned know: no event from then on is missed while nothing breaks. NotSettled, if
        some do not in time; with `settled=False` it waits for the broker's word only. `echo` is whether this client's
        own events are wanted too. `buffer` bounds the bytes of events that wait to be taken; `Subscription` says
        what happens when it is full.
        """
        subscription = Subscription(self, type, where, echo, buffer, self._standing.full, self._future(), settled)
        await self._stand(subscription)
        return subscription

    async def declare(
        self, name: str, attributes: Mapping[str, str], parent: str | None = None, *, open: bool = False
    ) -> None:
        """Declare a type: its attributes, each int, float, bool or string; and what it inherits from.

        Its events have no other attributes, unless it is `open`.
        """
        await self._stand(Declared(name, attributes, parent, open, self._future()))

    async def trace(
        self,
        type: str,
        attributes: Attributes = NO_ATTRIBUTES,
        payload: bytes = b"",
        content_type: str = PLAIN_BYTES,
    ) -> "Trace":
        """Publish an event that every broker on its way reports about.

        One at a time: reports of an event that was traced before may be among them.
        """
        content = encode(ToPublish(type, attributes, payload, content_type))
        await self._introduce((type,))
        connection = await self._connected()
        hops: asyncio.Queue[Hop] = asyncio.Queue()
        self._hops = hops.put_nowait
        connection.session.hops = self._hops
        [outcome] = await self._publish(connection, [content], traced=True)
        if isinstance(outcome, MercastError):
            raise outcome
        return Trace(outcome, hops)

    async def drain(self) -> None:
        """Wait until all that was published is acknowledged, then leave."""
        await asyncio.gather(*(self._answered(connection.session.idle()) for connection in self._live))
        await self.close()

    async def close(self) -> None:
        """Leave. Subscriptions end; publishes that are not acknowledged yet are told that they are not."""
        if self._closed:
            return
        self._closed = True
        tasks = [task for task in (self._keeper, self._watcher) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._standing.end(Closed("the client was closed"))
        self._ready.set()  # who waits for a connection shall see that there will be none
        await asyncio.gather(*(connection.leave() for connection in self._live))

    # -- calls -------------------------------------------------------------------------------------------------------

    async def _connected(self) -> "_Connection":
        """The current connection, once there is one that takes more."""
        connection = self._current
        if connection is None or not connection.writable.is_set() or self._closed:
            try:
                async with asyncio.timeout(self._how.timeout):
                    connection = await self._writable()
            except TimeoutError:
                raise self._without_connection() from None
        return connection

    async def _writable(self) -> "_Connection":
        while True:
            self._check_open()
            if self._keeper is None:
                raise Closed("not connected: write `async with mercast.connect() as c`")
            await self._ready.wait()
            self._check_open()
            connection = self._current
            if connection is not None:
                await connection.writable.wait()
                if connection is self._current:
                    return connection

    def _without_connection(self) -> MercastError:
        if self._current is not None:
            return NotAnswered(f"the broker has not read what it was sent for {self._how.timeout:g} s")
        return ConnectionLost(f"no connection to a broker for {self._how.timeout:g} s: {self._why}")

    async def _publish(
        self, connection: "_Connection", contents: Sequence[bytes | MercastError], traced: bool = False
    ) -> list[Receipt | MercastError]:
        batch = connection.session.publish(contents, traced)
        connection.flush_soon()
        return cast("list[Receipt | MercastError]", await self._answered(batch.future))

    async def _introduce(self, types: Iterable[str]) -> None:
        """A type is advertised on its first use: until that is settled, its events would find nobody."""
        for type in types:
            if type in self._introduced:
                advertising = self._introduced[type]
            elif self._standing.advertises:
                continue
            else:
                implied = Advertisement(self, type, "", self._future(), True, True)
                advertising = self._introduced[type] = asyncio.create_task(self._stand(implied))
                advertising.add_done_callback(partial(self._introduced_now, type))
            if advertising is not None:
                with suppress(MercastError):  # the publish will tell
                    await asyncio.shield(advertising)

    def _introduced_now(self, type: str, advertising: "asyncio.Task[None]") -> None:
        if advertising.cancelled() or advertising.exception() is not None:
            self._introduced.pop(type, None)
        else:
            self._introduced[type] = None

    async def _stand(self, handle: Handle) -> None:
        """Ask for something that stands; if that fails, it does not."""
        await self._connected()
        self._standing.add(handle)
        for connection in self._live:
            connection.session.ask([handle])
            connection.flush_soon()
        patience = self._how.timeout + (SETTLE_WITHIN if handle.waits_for_settled else 0)
        try:
            missing = await self._answered(handle.first, patience)
            if missing and handle.insists:
                raise NotSettled(str(handle), missing)
        except BaseException:
            self._take_back(handle)
            raise

    def _take_back(self, handle: Handle) -> list[asyncio.Future[None]]:
        self._standing.remove(handle)
        taken = [connection.session.undo(handle) for connection in self._live]
        for connection in self._live:
            connection.flush_soon()
        return taken

    async def cancel(self, handle: Handle) -> None:
        """Take back what stands. That a broker is lost meanwhile takes it back as well."""
        answers = self._take_back(handle)
        for answer in answers:
            await self._answered(answer)

    async def _answered(self, future: "asyncio.Future[Any]", patience: float | None = None) -> Any:
        seconds = self._how.timeout if patience is None else patience
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            raise (
                self._without_connection() if self._current is None else NotAnswered(f"no answer within {seconds:g} s")
            ) from None

    def _future(self) -> "asyncio.Future[Any]":
        return asyncio.get_running_loop().create_future()

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("the client was closed; connect anew")

    # -- connections -------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Sees to it that there is a connection."""
        while True:
            await self._wanting.wait()
            self._wanting.clear()
            if self._current is None or self._current.session.moving is not None:
                await self._renew(self._current)

    async def _watch(self) -> None:
        """Sees to it that brokers are alive, while this client moves too."""
        while True:
            await asyncio.sleep(TICK)
            self._tick()

    async def _renew(self, old: "_Connection | None") -> None:
        """Change to another connection. The old one, if there still is one, is used until the new one is settled."""
        new = await self._dial_until_answered(old)
        self._adopt(new)
        if old is not None:
            with suppress(MercastError):
                await self._answered(new.session.settled(), self._how.timeout + SETTLE_WITHIN)
            if new.session.drained and old.lost is None:
                await new.leave()  # no better than where this client is
        if new.lost is not None:
            self._wanting.set()
            return
        self._make_current(new)
        if old is not None and old.lost is None:
            with suppress(MercastError):
                await self._answered(old.session.idle())
            await old.linger()
            await old.leave()

    async def _dial_until_answered(self, old: "_Connection | None") -> "_Connection":
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._pace.wait(now()))
            moving = (old.session.moving if old is not None else None) or ()
            leaving = old.session if old is not None and old.lost is None and old.session.drained else None
            try:
                return await self._dial(self._brokers.again(self._last, moving), leaving)
            except MercastError as reason:
                self._why = str(reason)
                log.info("%s", reason)
            finally:
                self._pace.tried(now())

    async def _dial(self, addresses: Iterable[Address], leaving: Session | None = None) -> "_Connection":
        """The first broker that answers, but not the one that is being left while that is still there."""
        reasons: dict[Address, MercastError] = {}
        for address in addresses:
            try:
                connection = await self._greet(address)
            except MercastError as reason:
                reasons[address] = reason
                continue
            if leaving is None or not connection.session.is_with(leaving):
                return connection
            reasons[address] = ConnectionLost("it has asked this client to go elsewhere")
            await connection.leave()
        raise no_broker(reasons)

    async def _greet(self, address: Address) -> "_Connection":
        connection = _Connection(self, address, Session(self._how.name, self._how.token, self._future, self._handed))
        try:
            async with asyncio.timeout(self._how.timeout):
                await asyncio.get_running_loop().create_connection(
                    lambda: connection, address.host, address.port, ssl=self._how.tls_for(address)
                )
                await connection.greeted
        except BaseException as error:
            connection.abort()
            if isinstance(error, MercastError) or not isinstance(error, OSError):
                raise
            raise ConnectionLost(unreached(address, error, self._how.timeout)) from None
        return connection

    def _adopt(self, connection: "_Connection") -> None:
        """A new connection, which is to be told all that stands."""
        welcome = connection.session.welcome
        assert welcome is not None
        self._last = connection.address
        self._brokers.learn(connection.address, welcome.brokers)
        self._live.append(connection)
        connection.session.hops = self._hops
        connection.session.ask(self._standing.all())
        connection.flush_soon()
        log.info("connected to broker %s at %s as %s", welcome.broker, connection.address, welcome.client)

    def _make_current(self, connection: "_Connection") -> None:
        self._current = connection
        self._ready.set()
        self.look_at(connection)  # it may have been told to go before

    def gone(self, connection: "_Connection", why: str) -> None:
        """A connection has ended."""
        if connection in self._live:
            self._live.remove(connection)
        if connection is self._current and not self._closed:
            self._current, self._why = None, why
            self._ready.clear()
            if self._live:  # on the move already
                self._make_current(self._live[-1])
            else:
                self._wanting.set()
                log.warning("%s; connecting again", why)

    def look_at(self, connection: "_Connection") -> None:
        """Something was read: is it time to go?"""
        if connection.session.moving is not None and connection is self._current and not self._closed:
            self._wanting.set()

    def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self._live):
            connection.tick(now)
        for handle in self._standing.tick(now, self._how.timeout):
            self._take_back(handle)

    @property
    def full(self) -> bool:
        """Whether a subscription has no room for more."""
        return bool(self._standing.full)

    def make_room(self) -> None:
        if not self._standing.full:
            for connection in self._live:
                connection.throttle()


class _Connection(asyncio.Protocol):
    """A socket for a session."""

    def __init__(self, client: Client, address: Address, session: Session) -> None:
        self.address, self.session = address, session
        self.lost: str | None = None
        """Why it has ended."""
        self.writable = asyncio.Event()
        self.writable.set()
        self._client = client
        self._loop = asyncio.get_running_loop()
        self.greeted: asyncio.Future[None] = self._loop.create_future()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._heard = self._loop.time()
        self._flushing = self._holding = False

    # -- asyncio's calls ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        session = self.session
        try:
            session.receive(data)
        except ProtocolError as error:
            self._end(no_talk(error))
            self.abort()
            return
        self._flush()
        if not self.greeted.done() and (session.welcome is not None or session.last_words is not None):
            self._greet()
        self._client.look_at(self)
        self.throttle()

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error)
        if not self._over.done():
            self._over.set_result(None)

    # -- the client's ------------------------------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """What is asked for in one turn of the loop goes out in one write."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)
            self.throttle()

    def throttle(self) -> None:
        """Read no more while a subscription is full, unless somebody waits for an answer, which may lie behind."""
        hold = self._client.full and not self.session.waiting
        if hold is not self._holding and self._transport is not None:
            self._holding = hold
            self._heard = self._loop.time()
            if hold:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def tick(self, now: float) -> None:
        if self._holding:
            return  # it is this side that does not listen
        if now - self._heard > SILENCE:
            self._end(f"not a word for {SILENCE:g} s")
            self.abort()
        elif now - self._heard > BEAT:
            self.session.ask_for_life()
            self._flush()

    async def linger(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                await asyncio.shield(self._over)

    async def leave(self) -> None:
        """Say goodbye."""
        self.session.leave()
        self._flush()
        self._end("closed by this client")
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(_GOODBYE):
                    await asyncio.shield(self._over)
            except TimeoutError:
                self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _greet(self) -> None:
        if self.session.last_words is not None:
            self.greeted.set_exception(self.session.last_words)
        else:
            self.greeted.set_result(None)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self.lost is None:
            data = self.session.take()
            if data:
                self._transport.write(data)

    def _end(self, why: object) -> None:
        if self.lost is None:
            if self.greeted.done() or self._transport is None or isinstance(why, str):
                self.lost = lost(self.address, self.session.last_words or why)
            else:
                self.lost = unheard(self.address, self._transport.get_extra_info("ssl_object") is not None, why)
            self.session.lost(self.lost)
            self.writable.set()
            if not self.greeted.done():
                self.greeted.set_exception(ConnectionLost(self.lost))
                self.greeted.exception()  # seen, even if nobody waits for it any longer
            self._client.gone(self, self.lost)


_GOODBYE = 1.0
"""Seconds for the last words to get out."""


class Advertisement(Advertised):
    """Stands until `cancel`."""

    def __init__(
        self,
        client: Client,
        type: str,
        where: str | None,
        future: "asyncio.Future[Any]",
        settled: bool,
        implied: bool = False,
    ) -> None:
        super().__init__(type, where, future, settled, implied)
        self._client = client

    async def cancel(self) -> None:
        await self._client.cancel(self)


class Subscription(Wanted):
    __doc__ = Wanted.__doc__

    def __init__(self, client: Client, *how: Any) -> None:
        super().__init__(*how)
        self._client = client
        self._waiters: list[asyncio.Future[None]] = []

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            event = self.take()
            while event is None:
                await self._something()
                event = self.take()
        except StopIteration:
            raise StopAsyncIteration from None
        return event

    async def get(self, timeout: float | None = None) -> Event:
        """The next event; NotAnswered if none comes in time, Closed if none will come."""
        try:
            async with asyncio.timeout(arguments.patience(timeout)):
                return await anext(self)
        except StopAsyncIteration:
            raise Closed(f"{self} has ended") from None
        except TimeoutError:
            raise NotAnswered(f"no event within {timeout:g} s") from None

    async def cancel(self) -> None:
        """No more events; those that are here may still be taken."""
        self.end()
        await self._client.cancel(self)

    async def _something(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)

    def wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def make_room(self) -> None:
        self._client.make_room()


class Trace:
    """What becomes of a traced event: reports as they come in, without an end."""

    def __init__(self, receipt: Receipt, hops: "asyncio.Queue[Hop]") -> None:
        self.receipt = receipt
        self._hops = hops

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Hop:
        return await self._hops.get()

    async def get(self, timeout: float | None = None) -> Hop:
        """The next report; NotAnswered if none comes in time."""
        try:
            async with asyncio.timeout(arguments.patience(timeout)):
                return await self._hops.get()
        except TimeoutError:
            raise NotAnswered(f"no report within {timeout:g} s") from None
