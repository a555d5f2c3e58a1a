"""A broker as admin HTTP sees it: a real core, with stand-ins for its connections; and its admin port, in a thread."""

import asyncio
import threading
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from time import monotonic

from mercast.broker.addresses import Address
from mercast.broker.admin import Admin
from mercast.broker.config import BrokerConfig
from mercast.broker.counters import Counters
from mercast.broker.last_stimuli import LastStimuli
from mercast.overlay.neighbourhood import FLOODED
from mercast.protocol import stimuli
from mercast.protocol.effects import Send
from mercast.protocol.messages import Record, Update
from mercast.routing.core import Core
from mercast.routing.strategies import STRATEGIES
from mercast.security.state import Security


@dataclass
class Session:
    name: str
    address: str
    queued: int = 0


@dataclass
class Link:
    address: str
    queued: int = 0
    version: int = 1
    received: int = 0


@dataclass
class Member:
    peer: str
    clients: str
    also_in: tuple[str, ...] = ()
    incarnation: int = 1


@dataclass
class StandIn:
    config: BrokerConfig
    core: Core
    counters: Counters = field(default_factory=Counters)
    sessions: dict[str, Session] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)
    members: tuple[dict[int, Member], ...] = field(default_factory=lambda: ({},))
    security: Security = field(default_factory=Security)
    paces: dict[bytes, object] = field(default_factory=dict)
    calls: set[object] = field(default_factory=set)
    strangers: dict[object, float] = field(default_factory=dict)
    last_stimuli: LastStimuli | None = field(default_factory=lambda: LastStimuli(10, 1000))
    taps: object = None
    draining: bool = False
    started: float = field(default_factory=monotonic)
    not_ready: str = ""

    def now(self):
        return self.started

    def ready(self):
        return not self.not_ready, self.not_ready


class Pair:
    """Cores 1 and 2, linked; what one says, the other hears at once."""

    def __init__(self, strategy="ddbr"):
        self.cores = {me: STRATEGIES[strategy](me, me * 100) for me in (1, 2)}
        self.now = 0.0
        self._all((me, stimuli.LinkUp(3 - me, 1)) for me in self.cores)

    def tell(self, me, stimulus):
        self._all([(me, stimulus)])

    def _all(self, happening):
        waiting = deque(happening)
        while waiting:
            who, what = waiting.popleft()
            for effect in self.cores[who].handle(self.now, what):
                if isinstance(effect, Send):
                    waiting.append((effect.neighbour, stimuli.Received(who, effect.messages)))

    def measure(self, rtt, clock_offset):
        """As heart-beats between the two would, were time to pass."""
        neighbour = self.cores[1].neighbourhood.neighbours[2]
        neighbour.rtt, neighbour.clock_offset = rtt, clock_offset

    def hear_of(self, *records: Record):
        self.tell(1, stimuli.Received(2, (Update(FLOODED, 0, records),)))


@contextmanager
def served(broker):
    """The admin address, while it is open."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []

    async def run():
        admin, stop = Admin(broker), asyncio.Event()
        found.append((await admin.start(Address("127.0.0.1", 0)), stop))
        ready.set()
        await stop.wait()
        await admin.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield found[0][0]
    finally:
        if found:
            loop.call_soon_threadsafe(found[0][1].set)
        thread.join(30)
        loop.close()


@contextmanager
def answering(answers, otherwise=(404, {}, b"no")):
    """Something at an admin address that answers these paths with (status, headers, body); what is asked is kept."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            status, headers, body = answers.get(self.path, otherwise)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Address("127.0.0.1", server.server_port), asked
        finally:
            server.shutdown()
            thread.join()
