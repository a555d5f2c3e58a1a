"""A client's connection, with a stand-in for the network: the order of answers, and when nothing is read."""

import asyncio
import threading

import pytest

from mercast.broker import main
from mercast.broker.admission import paces_for
from mercast.broker.broker import Broker
from mercast.broker.config import BrokerConfig
from mercast.broker.outgoing import PRESSED, TOO_FAST
from mercast.broker.rates import BURST, LONGEST
from mercast.broker.reloading import Reloading
from mercast.broker.sessions import Session
from mercast.client.event import ToPublish, encode
from mercast.security.state import Security
from mercast.security.tokens import hash_of, read_tokens, with_token
from mercast.wire import replies, requests
from mercast.wire.frames import FRAME_BYTES, Framing, Kind
from mercast.wire.hello import VERSIONS, hello

TOKEN = "a token"
PATIENCE = 60
EVENT = encode(ToPublish("quote", {"price": 1}))


class Network:
    """Keeps what is written, and whether it is to be read."""

    def __init__(self):
        self.framing, self.said, self.reading, self.closed = Framing(FRAME_BYTES), [], True, False

    def write(self, data):
        self.said += self.framing.feed(data)

    def pause_reading(self):
        assert self.reading
        self.reading = False

    def resume_reading(self):
        assert not self.reading
        self.reading = True

    def get_write_buffer_size(self):
        return 0

    def get_extra_info(self, what):
        return self if what == "socket" else None

    def setsockopt(self, *_): ...

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close


class Clock:
    """Timers ring when the test says so."""

    def __init__(self, loop, monkeypatch):
        self.now, self.timers = loop.time(), []
        monkeypatch.setattr(loop, "time", lambda: self.now)
        monkeypatch.setattr(loop, "call_later", self._later)

    def _later(self, seconds, call, *arguments):
        timer = asyncio.TimerHandle(self.now + seconds, call, arguments, asyncio.get_running_loop())
        self.timers.append(timer)
        return timer

    def until(self, when):
        while due := [one for one in self.timers if one.when() <= when and not one.cancelled()]:
            first = min(due, key=asyncio.TimerHandle.when)
            self.timers.remove(first)
            self.now = max(self.now, first.when())
            first._run()
        self.now = when


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def connected(token="", rules=None, rates=None, **config):
    broker = Broker(BrokerConfig(id=1, **config))
    if token:
        broker.security = Security(tokens=read_tokens(with_token("", "feed", token, rules or {}, rates)))
    broker.welcoming = True
    session, network = Session(broker, set()), Network()
    session.connection_made(network)
    session.data_received(hello(mercast=VERSIONS, role="client", name="c", token=token))
    return broker, session, network


async def turn():
    """All that was read is handled."""
    for _ in range(3):
        await asyncio.sleep(0)


def answers(network):
    return [replies.read_answer(body) for kind, body in network.said if kind == Kind.ANSWER]


def publishes(first, count):
    return b"".join(requests.publish(number, EVENT) for number in range(first, first + count))


def acknowledged(network):
    found = [replies.read_receipts(body) for kind, body in network.said if kind == Kind.RECEIPTS]
    return [first + at for first, counts in found for at in range(len(counts))]


def test_answers_come_in_the_order_of_their_requests(loop):
    """Though some are refused as they are read, some by the token, and some by the core."""

    async def story():
        broker, session, network = connected(TOKEN, {"subscribe": ["quote"], "publish": ["quote"]})
        session.data_received(
            requests.subscribe(1, "quote", "", True)
            + requests.subscribe(2, "quote", "price <", True)
            + requests.subscribe(3, "bond", "", True)
            + publishes(4, 1)
            + requests.publish(5, encode(ToPublish("bond", {})))
            + requests.unsubscribe(6, 99)
            + requests.subscribe(7, "quote", "price < 1", True)
        )
        await turn()
        told = answers(network)
        assert [request for request, _ in told] == [1, 2, 3, 5, 6, 7]
        assert [bool(why) for _, why in told] == [False, True, True, True, True, False]
        assert acknowledged(network) == [4]
        assert broker.counters.refused == 4
        assert broker.counters.forbidden == {"subscribe": 1, "publish": 1}

    loop.run_until_complete(story())


def test_long_filters_do_not_pile_up_until_the_next_turn(loop):
    """A loop may read many times before it does anything else."""

    async def many():
        _, session, network = connected()
        await turn()
        values = ", ".join(map(str, range(8_000)))
        for number in range(1, 10):
            session.data_received(requests.subscribe(number, "quote", f"price IN ({values})", True))
        assert len(answers(network)) >= 5
        await turn()
        assert [request for request, _ in answers(network)] == list(range(1, 10))

    loop.run_until_complete(many())


def test_whoever_is_held_for_two_reasons_goes_on_when_both_are_gone(loop):
    async def story():
        _, session, network = connected()
        for first, second in ((PRESSED, TOO_FAST), (TOO_FAST, PRESSED)):
            session.hold(first, True)
            session.hold(second, True)
            session.hold(second, True)
            session.hold(first, False)
            assert not network.reading
            session.hold(second, False)
            session.hold(second, False)
            assert network.reading

    loop.run_until_complete(story())


def test_too_fast_is_slowed_and_nothing_is_lost_or_out_of_order(loop, monkeypatch):
    async def story():
        broker, session, network = connected(publish_events_per_second=10)
        clock = Clock(loop, monkeypatch)
        clock.until(clock.now + BURST)
        session.data_received(publishes(1, 30) + requests.subscribe(31, "quote", "price <", True))
        await turn()
        assert acknowledged(network) == list(range(1, 12))
        assert not network.reading
        assert answers(network) == [], "it was asked for after the events that wait"
        assert broker.counters.slowed == 1
        clock.until(clock.now + 3)
        await turn()
        assert acknowledged(network) == list(range(1, 31))
        assert [request for request, _ in answers(network)] == [31]
        assert network.reading
        assert not broker.counters.too_fast

    loop.run_until_complete(story())


def test_full_links_hold_up_what_waits_for_its_rate(loop, monkeypatch):
    async def story():
        _, session, network = connected(publish_events_per_second=10)
        clock = Clock(loop, monkeypatch)
        clock.until(clock.now + BURST)
        session.data_received(publishes(1, 20))
        await turn()
        session.hold(PRESSED, True)
        clock.until(clock.now + 3)
        await turn()
        assert acknowledged(network) == list(range(1, 12))
        session.hold(PRESSED, False)
        assert not network.reading
        clock.until(clock.now + 3)
        await turn()
        assert acknowledged(network) == list(range(1, 21))
        assert network.reading

    loop.run_until_complete(story())


def test_too_fast_for_too_long_is_refused_by_name(loop, monkeypatch):
    async def story():
        broker, session, network = connected(publish_events_per_second=10)
        clock = Clock(loop, monkeypatch)
        clock.until(clock.now + BURST)
        session.data_received(publishes(1, 200))
        clock.until(clock.now + 10)
        await turn()
        accepted, refused = acknowledged(network), answers(network)
        assert 50 < len(accepted) < 80
        assert [request for request, _ in refused] == list(range(len(accepted) + 1, 201))
        assert {why for _, why in refused} == {
            "this client publishes more than 10 events a second (publish_events_per_second); refused until it is slower"
        }
        assert broker.counters.too_fast == {"client publish_events_per_second": len(refused)}
        assert network.reading
        session.data_received(publishes(201, 5))
        await turn()
        assert acknowledged(network)[-5:] == list(range(201, 206))

    loop.run_until_complete(story())


def test_coming_again_brings_no_burst(loop):
    async def story():
        for _ in range(3):
            _, session, network = connected(publish_events_per_second=10)
            session.data_received(publishes(1, 30))
            await turn()
            assert acknowledged(network) == [1]
            session.connection_lost(None)

    loop.run_until_complete(story())


def test_a_token_keeps_its_pace_when_files_are_read_again_unless_its_rate_is_another(loop, tmp_path):
    async def story():
        async def written(rate, name="feed"):
            limits = {"publish_events_per_second": rate}
            file.write_text(with_token("", name, TOKEN, {"publish": ["*"]}, limits))
            await reloading.read_all()
            [pace] = paces_for(broker, broker.security.tokens.find(hash_of(TOKEN)))
            return pace

        file = tmp_path / "tokens.yaml"
        file.write_text("tokens: {}")
        broker = Broker(BrokerConfig(id=1, matcher="scan", tokens=file))
        reloading = Reloading(broker)
        first = await written(10)
        assert await written(10) is first
        assert await written(20) is not first
        file.write_text("tokens: {}")
        await reloading.read_all()
        assert not broker.paces

    loop.run_until_complete(story())


def test_files_are_read_beside_the_loop_and_one_after_the_other(loop, tmp_path, monkeypatch):
    """Here nothing is read before the loop has gone on: in the loop, this would stand still for ever."""
    went_on, reads = threading.Event(), []

    async def story():
        def read(config):
            reads.append((config.tokens, threading.current_thread() is threading.main_thread()))
            assert went_on.wait(PATIENCE)
            return security(config)

        files = [tmp_path / f"{number}.yaml" for number in range(3)]
        for number, file in enumerate(files):
            file.write_text(with_token("", "feed", TOKEN, {"publish": ["*"]}, {"publish_events_per_second": number}))
        later = iter(files[1:])
        broker = Broker(BrokerConfig(id=1, matcher="scan", tokens=files[0]))
        reloading = Reloading(broker, lambda: BrokerConfig(id=1, matcher="scan", tokens=next(later)))
        security = BrokerConfig.security
        monkeypatch.setattr(BrokerConfig, "security", read)
        watching = asyncio.create_task(reloading.watch())
        reloading.hang_up()
        while not reads:
            await asyncio.sleep(0)
        reloading.hang_up()  # while the one before is under way
        went_on.set()
        while broker.counters.reloads["done"] < 2:
            await asyncio.sleep(0.01)
        watching.cancel()
        assert reads == [(file, False) for file in files[1:]]
        assert broker.security.tokens.find(hash_of(TOKEN)).publish_events_per_second == 2
        assert broker.config.tokens == files[2]

    loop.run_until_complete(asyncio.wait_for(story(), PATIENCE))


def test_a_token_whose_limit_is_gone_lets_what_waits_go_on(loop, monkeypatch):
    async def story():
        every = {"publish": ["*"]}
        broker, session, network = connected(TOKEN, every, {"publish_bytes_per_second": 100})
        clock = Clock(loop, monkeypatch)
        session.data_received(publishes(1, 100))
        await turn()
        assert 0 < len(acknowledged(network)) < 10
        broker.paces.clear()
        broker.security = Security(tokens=read_tokens(with_token("", "feed", TOKEN, every)))
        assert broker.security.tokens.find(hash_of(TOKEN)).publish_bytes_per_second == 0
        session.judge_anew()
        clock.until(clock.now + LONGEST)
        await turn()
        assert acknowledged(network) == list(range(1, 101))
        assert network.reading

    loop.run_until_complete(story())


def test_whoever_has_been_here_for_long_is_told_where_else_to_go(loop, monkeypatch):
    async def story():
        clock = Clock(loop, monkeypatch)
        broker, _, network = connected(max_connection_seconds=100)
        clock.until(clock.now + 100)
        assert network.said[-1][0] == Kind.HELLO, "there is no other broker"
        monkeypatch.setattr(broker, "other_brokers", lambda: ["there:1"])
        clock.until(clock.now + 100)
        kind, body = network.said[-1]
        assert (kind, replies.read_drain(body)) == (Kind.DRAIN, ("there:1",))
        assert broker.counters.moved >= 1

    loop.run_until_complete(story())


def test_any_age_will_do_unless_it_is_limited(loop, monkeypatch):
    async def story():
        clock = Clock(loop, monkeypatch)
        broker, _, network = connected()
        monkeypatch.setattr(broker, "other_brokers", lambda: ["there:1"])
        clock.until(clock.now + 1e6)
        assert [kind for kind, _ in network.said] == [Kind.HELLO]

    loop.run_until_complete(story())


def test_clients_wait_for_a_broker_that_is_not_part_of_the_overlay_yet(loop, monkeypatch):
    """It would know of nobody else's advertisements, and call a subscription settled that has reached no one."""
    monkeypatch.setattr(main, "_LOOK", 0)

    async def story():
        broker, live, network = Broker(BrokerConfig(id=1)), set(), Network()
        ready = [False]
        broker.readiness = lambda: (ready[0], "")
        session = Session(broker, live)
        session.connection_made(network)
        welcoming = asyncio.create_task(main._welcome(broker, live))
        said = hello(mercast=VERSIONS, role="client", name="c") + requests.subscribe(1, "quote", "", True)
        session.data_received(said[:20])
        await turn()
        assert not network.reading
        session.data_received(said[20:])  # was read before that could be stopped
        await turn()
        assert (network.said, broker.sessions) == ([], {})
        ready[0] = True
        await welcoming
        await turn()
        assert network.reading
        assert [kind for kind, _ in network.said] == [Kind.HELLO, Kind.ANSWER, Kind.SETTLED]

    loop.run_until_complete(story())
