"""The client for threads, and for gevent: the same as in `aio.py`, on plain sockets."""

import queue
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import Any, Self

from mercast.client import arguments, brokers
from mercast.client.address import Address
from mercast.client.errors import Closed, ConnectionLost, MercastError, NotAnswered, NotSettled
from mercast.client.event import NO_ATTRIBUTES, Event, Hop, Receipt, ToPublish, encode
from mercast.client.options import LINGER, SETTLE_WITHIN, TICK, Options, encode_all, options, types_of
from mercast.client.reasons import lost, no_broker, no_talk, unheard, unreached
from mercast.client.seen import Handed
from mercast.client.session import BEAT, SILENCE, Session
from mercast.client.standing import BUFFER_BYTES, Advertised, Declared, Handle, Standing, Wanted, log
from mercast.client.stream import Stream, open_stream
from mercast.content.values import Attributes
from mercast.wire.events import PLAIN_BYTES
from mercast.wire.frames import ProtocolError

_GOODBYE = 1.0
"""Seconds for the last words to get out."""


def connect(
    url: str | Iterable[str] | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | bool | None = None,
    name: str | None = None,
    timeout: float = 10.0,
) -> "Client":
    """A client of the brokers, connected: `with mercast.blocking.connect() as c`. Parameters as `mercast.connect`."""
    return Client(options(url, token, tls, name, timeout))


class Client:
    """May be used by many threads at once."""

    def __init__(self, how: Options) -> None:
        self._how = how
        self._brokers = brokers.Brokers(how.addresses)
        self.lock = threading.RLock()
        """Guards all state; nobody holds it while waiting for the network."""
        self._ready = threading.Condition(self.lock)
        """There is a current connection, or there will be none."""
        self._wanting = threading.Condition(self.lock)
        """Another connection is wanted."""
        self._room = threading.Condition(self.lock)
        """Reading may go on."""
        self._standing = Standing()
        self._handed: Handed[Wanted] = Handed()
        self._live: list[_Connection] = []
        """One; two while this client moves from one broker to another."""
        self._current: _Connection | None = None
        self._last = how.addresses[0]
        self._why = ""
        self._hops: Callable[[Hop], None] | None = None
        self._introduced: dict[str, threading.Event] = {}
        """Types that this client has published; set, once they are advertised."""
        self._pace = brokers.Pace()
        self._closed = False
        first = self._dial(self._brokers.at_first())
        self._adopt(first)
        self._make_current(first)
        threading.Thread(target=self._keep, name="mercast: keeps the connection", daemon=True).start()
        threading.Thread(target=self._watch, name="mercast: watches connections", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- what it is for ----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str | None:
        """What the broker calls this client: the publisher of its events. None while there is no connection."""
        current = self._current
        return current.session.welcome.client if current and current.session.welcome else None

    @property
    def broker(self) -> int | None:
        """The broker that is used now."""
        current = self._current
        return current.session.welcome.broker if current and current.session.welcome else None

    def publish(
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
        self._introduce((type,))
        [outcome] = self._publish([content])
        if isinstance(outcome, MercastError):
            raise outcome
        return outcome

    def publish_many(self, events: Iterable[ToPublish | tuple[Any, ...]]) -> list[Receipt | MercastError]:
        """Publish many events at once, each as (type, attributes, payload, content type, trace) or the first of these.

        For each a receipt, or, where `publish` would have raised it, the error.
        """
        events = list(events)
        contents = encode_all(events)
        self._introduce(types_of(events, contents))
        return self._publish(contents)

    def advertise(self, type: str, where: str | None = None, *, settled: bool = True) -> "Advertisement":
        """Say what will be published; what lies outside is refused. Without, a type is advertised by its first event.

        Waits until all brokers concerned know (NotSettled, if some do not in time), unless `settled` is False.
        """
        advertisement = Advertisement(self, type, where, Future(), settled)
        self._stand(advertisement)
        return advertisement

    def subscribe(
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
        subscription = Subscription(self, type, where, echo, buffer, self._standing.full, Future(), settled)
        self._stand(subscription)
        return subscription

    def declare(
        self, name: str, attributes: Mapping[str, str], parent: str | None = None, *, open: bool = False
    ) -> None:
        """Declare a type: its attributes, each int, float, bool or string; and what it inherits from.

        Its events have no other attributes, unless it is `open`.
        """
        self._stand(Declared(name, attributes, parent, open, Future()))

    def trace(
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
        self._introduce((type,))
        hops: queue.SimpleQueue[Hop] = queue.SimpleQueue()
        with self.lock:
            self._hops = hops.put
            for connection in self._live:
                connection.session.hops = self._hops
        [outcome] = self._publish([content], traced=True)
        if isinstance(outcome, MercastError):
            raise outcome
        return Trace(outcome, hops)

    def drain(self) -> None:
        """Wait until all that was published is acknowledged, then leave."""
        with self.lock:
            idle = [connection.session.idle() for connection in self._live]
        for future in idle:
            self._answered(future)
        self.close()

    def close(self) -> None:
        """Leave. Subscriptions end; publishes that are not acknowledged yet are told that they are not."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self._standing.end(Closed("the client was closed"))
            for condition in (self._ready, self._wanting, self._room):
                condition.notify_all()
            live = list(self._live)
        for connection in live:
            connection.leave()

    # -- calls -------------------------------------------------------------------------------------------------------

    def _connected(self) -> "_Connection":
        """The current connection, once there is one. The lock is held."""
        if self._current is None or self._closed:
            self._ready.wait_for(lambda: self._current is not None or self._closed, self._how.timeout)
            if self._closed:
                raise Closed("the client was closed; connect anew")
            if self._current is None:
                raise self._without_connection()
        return self._current

    def _without_connection(self) -> MercastError:
        return ConnectionLost(f"no connection to a broker for {self._how.timeout:g} s: {self._why}")

    def _publish(self, contents: Sequence[bytes | MercastError], traced: bool = False) -> list[Receipt | MercastError]:
        with self.lock:
            connection = self._connected()
            batch = connection.session.publish(contents, traced)
            self._look_at(connection)
        connection.flush()
        outcomes: list[Receipt | MercastError] = self._answered(batch.future)
        return outcomes

    def _introduce(self, types: Iterable[str]) -> None:
        """A type is advertised on its first use: until that is settled, its events would find nobody."""
        for type in types:
            with self.lock:
                known = self._introduced.get(type)
                if known is None and self._standing.advertises:
                    continue
                mine = known is None
                settled = self._introduced[type] = known or threading.Event()
            if not mine:
                settled.wait(self._how.timeout)
                continue
            try:
                self._stand(Advertisement(self, type, "", Future(), True, True))
            except MercastError:  # the publish will tell
                self._introduced.pop(type, None)
            finally:
                settled.set()

    def _stand(self, handle: Handle) -> None:
        """Ask for something that stands; if that fails, it does not."""
        with self.lock:
            self._connected()
            self._standing.add(handle)
            live = list(self._live)
            for connection in live:
                connection.session.ask([handle])
                self._look_at(connection)
        for connection in live:
            connection.flush()
        patience = self._how.timeout + (SETTLE_WITHIN if handle.waits_for_settled else 0)
        try:
            missing = self._answered(handle.first, patience)
            if missing and handle.insists:
                raise NotSettled(str(handle), missing)
        except BaseException:
            self._take_back(handle)
            raise

    def _take_back(self, handle: Handle) -> list[Any]:
        with self.lock:
            self._standing.remove(handle)
            live = list(self._live)
            taken = [connection.session.undo(handle) for connection in live]
            for connection in live:
                self._look_at(connection)
        for connection in live:
            connection.flush()
        return taken

    def cancel(self, handle: Handle) -> None:
        """Take back what stands. That a broker is lost meanwhile takes it back as well."""
        for answer in self._take_back(handle):
            self._answered(answer)

    def _answered(self, future: Any, patience: float | None = None) -> Any:
        seconds = self._how.timeout if patience is None else patience
        try:
            return future.result(seconds)
        except MercastError:
            raise
        except TimeoutError:
            if self._current is None:
                raise self._without_connection() from None
            raise NotAnswered(f"no answer within {seconds:g} s") from None

    # -- connections -------------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """Sees to it that there is a connection."""
        while True:
            with self.lock:
                self._wanting.wait_for(lambda: self._closed or self._is_wanting())
                old = self._current
            if self._closed:
                return
            self._renew(old)

    def _watch(self) -> None:
        """Sees to it that brokers are alive, while this client moves too."""
        while True:
            with self.lock:
                if self._wanting.wait_for(lambda: self._closed, TICK):
                    return
            self._tick()

    def _is_wanting(self) -> bool:
        return self._current is None or self._current.session.moving is not None

    def _renew(self, old: "_Connection | None") -> None:
        """Change to another connection. The old one, if there still is one, is used until the new one is settled."""
        new = self._dial_until_answered(old)
        if new is None:
            return
        self._adopt(new)
        if old is not None:
            with self.lock:
                settled = new.session.settled()
            with suppress(MercastError):
                self._answered(settled, self._how.timeout + SETTLE_WITHIN)
            if new.session.drained and old.lost is None:
                new.leave()  # no better than where this client is
        if not self._make_current(new):
            return
        if old is not None and old.lost is None:
            with self.lock:
                idle = old.session.idle()
            with suppress(MercastError):
                self._answered(idle)
            with self.lock:
                self._wanting.wait_for(lambda: self._closed or old.lost is not None, LINGER)
            old.leave()

    def _dial_until_answered(self, old: "_Connection | None") -> "_Connection | None":
        """None if the client was closed meanwhile."""
        while True:
            with self.lock:
                if self._closed or self._wanting.wait_for(lambda: self._closed, self._pace.wait(monotonic())):
                    return None
                moving = (old.session.moving if old is not None else None) or ()
                leaving = old.session if old is not None and old.lost is None and old.session.drained else None
                addresses = self._brokers.again(self._last, moving)
            try:
                return self._dial(addresses, leaving)
            except MercastError as reason:
                self._why = str(reason)
                log.info("%s", reason)
            finally:
                self._pace.tried(monotonic())

    def _dial(self, addresses: Iterable[Address], leaving: Session | None = None) -> "_Connection":
        """The first broker that answers, but not the one that is being left while that is still there."""
        reasons: dict[Address, MercastError] = {}
        for address in addresses:
            try:
                connection = self._greet(address)
            except MercastError as reason:
                reasons[address] = reason
                continue
            if leaving is None or not connection.session.is_with(leaving):
                return connection
            reasons[address] = ConnectionLost("it has asked this client to go elsewhere")
            connection.stream.close()
        raise no_broker(reasons)

    def _greet(self, address: Address) -> "_Connection":
        by = monotonic() + self._how.timeout
        session = Session(self._how.name, self._how.token, Future, self._handed)
        try:
            tls = self._how.tls_for(address)
            stream = open_stream(address, tls, self._how.timeout)
        except OSError as error:
            raise ConnectionLost(unreached(address, error, self._how.timeout)) from None
        try:
            stream.write(session.take(), self._how.timeout)
            while session.welcome is None:
                data = stream.read(max(0.0, by - monotonic()))
                if not data:
                    raise ConnectionResetError
                session.receive(data)
                if session.last_words is not None:
                    raise session.last_words
        except BaseException as error:
            stream.close()
            if isinstance(error, ProtocolError):
                raise ConnectionLost(lost(address, no_talk(error))) from None
            if isinstance(error, MercastError) or not isinstance(error, OSError):
                raise
            if isinstance(error, TimeoutError):
                raise ConnectionLost(unreached(address, error, self._how.timeout)) from None
            raise ConnectionLost(unheard(address, tls is not None, str(error))) from None
        return _Connection(self, address, session, stream, self._how.timeout)

    def _adopt(self, connection: "_Connection") -> None:
        """A new connection, which is to be told all that stands."""
        welcome = connection.session.welcome
        assert welcome is not None
        with self.lock:
            self._last = connection.address
            self._brokers.learn(connection.address, welcome.brokers)
            self._live.append(connection)
            connection.session.hops = self._hops
            connection.session.ask(self._standing.all())
        log.info("connected to broker %s at %s as %s", welcome.broker, connection.address, welcome.client)
        connection.start()
        connection.flush()

    def _make_current(self, connection: "_Connection") -> bool:
        """Whether it is: not if it was lost before."""
        with self.lock:
            if connection.lost is None:
                self._current = connection
                self._ready.notify_all()
            if self._closed:
                connection.stream.abort()
            return connection.lost is None

    def gone(self, connection: "_Connection", why: str) -> None:
        """A connection has ended. The lock is held."""
        if connection in self._live:
            self._live.remove(connection)
        if connection is self._current and not self._closed:
            self._current, self._why = None, why
            if self._live:  # on the move already
                self._make_current(self._live[-1])
            else:
                self._wanting.notify_all()
                log.warning("%s; connecting again", why)

    def _look_at(self, connection: "_Connection") -> None:
        """A request was made: reading must go on, and numbers may come to their end. The lock is held."""
        self._room.notify_all()
        self.look_at(connection)

    def look_at(self, connection: "_Connection") -> None:
        """Is it time to go? The lock is held."""
        if connection.session.moving is not None:
            self._wanting.notify_all()

    def hold(self, connection: "_Connection") -> None:
        """Until there is room in all subscriptions, or somebody waits for an answer, which may lie behind."""
        with self.lock:
            while self._standing.full and not (connection.session.waiting or connection.lost or self._closed):
                connection.holding = True
                self._room.wait()
            connection.holding = False

    def make_room(self) -> None:
        with self.lock:
            self._room.notify_all()

    def _tick(self) -> None:
        now = monotonic()
        with self.lock:
            live = list(self._live)
            ended = self._standing.tick(now, self._how.timeout)
        for connection in live:
            connection.tick(now)
        for handle in ended:
            self._take_back(handle)


class _Connection:
    """A socket for a session, with a thread that reads."""

    def __init__(self, client: Client, address: Address, session: Session, stream: Stream, timeout: float) -> None:
        self.address, self.session, self.stream = address, session, stream
        self.lost: str | None = None
        """Why it has ended."""
        self.holding = False
        self._client, self._timeout = client, timeout
        self._sending = threading.Lock()
        """Held while writing, so that frames stay whole; taken before the client's lock, never after."""
        self._heard = monotonic()
        self._reader = threading.Thread(target=self._read, name=f"mercast: reads from {address}", daemon=True)

    def start(self) -> None:
        self._reader.start()

    def flush(self) -> None:
        """Send what there is to send; what others ask for meanwhile goes along."""
        with self._sending:
            with self._client.lock:
                data = self.session.take() if self.lost is None else b""
            try:
                if data:
                    self.stream.write(data, self._timeout)
            except OSError as error:
                self._end(error)
                self.stream.abort()

    def tick(self, now: float) -> None:
        if self.holding:
            self._heard = now  # it is this side that does not listen
        elif now - self._heard > SILENCE:
            self._end(f"not a word for {SILENCE:g} s")
            self.stream.abort()
        elif now - self._heard > BEAT:
            with self._client.lock:
                self.session.ask_for_life()
            self.flush()

    def leave(self) -> None:
        """Say goodbye."""
        with self._client.lock:
            self.session.leave()
        self.flush()
        self._end("closed by this client")
        self.stream.end()
        started = self._reader.ident is not None
        if started and self._reader is not threading.current_thread():
            self._reader.join(_GOODBYE)
        self.stream.abort()

    def _read(self) -> None:
        why: object = None
        try:
            while data := self.stream.read():
                self._heard = monotonic()
                with self._client.lock:
                    self.session.receive(data)
                    self._client.look_at(self)
                self.flush()
                self._client.hold(self)
        except OSError as error:
            why = error
        except ProtocolError as error:
            why = no_talk(error)
        finally:
            self._end(why)
            self.stream.abort()  # who is writing may stop
            with self._sending:
                self.stream.close()

    def _end(self, why: object) -> None:
        with self._client.lock:
            if self.lost is None:
                self.lost = lost(self.address, self.session.last_words or why)
                self.session.lost(self.lost)
                self._client.gone(self, self.lost)
                self._client.make_room()


class Advertisement(Advertised):
    """Stands until `cancel`."""

    def __init__(
        self, client: Client, type: str, where: str | None, future: "Future[Any]", settled: bool, implied: bool = False
    ) -> None:
        super().__init__(type, where, future, settled, implied)
        self._client = client

    def cancel(self) -> None:
        self._client.cancel(self)


class Subscription(Wanted):
    __doc__ = Wanted.__doc__

    def __init__(self, client: Client, *how: Any) -> None:
        super().__init__(*how)
        self._client = client
        self._something = threading.Condition(client.lock)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        with self._client.lock:
            while (event := self.take()) is None:
                self._something.wait()
            return event

    def get(self, timeout: float | None = None) -> Event:
        """The next event; NotAnswered if none comes in time, Closed if none will come."""
        patience = arguments.patience(timeout)
        by = None if patience is None else monotonic() + patience
        try:
            with self._client.lock:
                while (event := self.take()) is None:
                    left = None if by is None else by - monotonic()
                    if left is not None and left <= 0:
                        raise NotAnswered(f"no event within {timeout:g} s")
                    self._something.wait(left)
                return event
        except StopIteration:
            raise Closed(f"{self} has ended") from None

    def cancel(self) -> None:
        """No more events; those that are here may still be taken."""
        with self._client.lock:
            self.end()
        self._client.cancel(self)

    def wake(self) -> None:
        self._something.notify_all()

    def make_room(self) -> None:
        self._client.make_room()


class Trace:
    """What becomes of a traced event: reports as they come in, without an end."""

    def __init__(self, receipt: Receipt, hops: "queue.SimpleQueue[Hop]") -> None:
        self.receipt = receipt
        self._hops = hops

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Hop:
        return self._hops.get()

    def get(self, timeout: float | None = None) -> Hop:
        """The next report; NotAnswered if none comes in time."""
        try:
            return self._hops.get(timeout=arguments.patience(timeout))
        except queue.Empty:
            raise NotAnswered(f"no report within {timeout:g} s") from None
