"""A broker of few words on a real socket: it answers as it is told to, and remembers what it was asked."""

import queue
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

import orjson

from mercast.content.event import Event, EventId
from mercast.wire import hello, replies
from mercast.wire.frames import Framing, Kind, frame

PATIENCE = 60
"""Seconds for what must happen soon."""


def event(number=1, type="stock.quote", payload=b"", broker=9, **attributes):
    return Event(EventId(broker, 1, number), type, attributes, 123, "someone.1", payload=payload)


class Broker:
    def __init__(self, number=1, incarnation=1, others=()):
        self.number, self.incarnation, self.others = number, incarnation, list(others)
        self.answers = {
            Kind.HELLO: self.welcome,
            Kind.PUBLISH: lambda request, _: replies.receipts(request, [1]),
            **dict.fromkeys(
                (Kind.SUBSCRIBE, Kind.ADVERTISE, Kind.DECLARE, Kind.UNSUBSCRIBE, Kind.UNADVERTISE),
                lambda request, _: replies.answer(request) + replies.settled(request, []),
            ),
        }
        self.heard = queue.Queue()
        self._talks = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def welcome(self, *_):
        who = {"broker": self.number, "incarnation": self.incarnation, "brokers": self.others}
        return hello.hello(mercast=1, client=f"me.{self.number}", version="0.1.0", **who)

    # -- for tests -------------------------------------------------------------------------------------------------

    def wait_for(self, kind):
        """The body of the next frame of this kind; others before it are passed over."""
        while True:
            found, body = self.heard.get(timeout=PATIENCE)
            if found == kind:
                return body

    def asked(self, kind):
        return orjson.loads(self.wait_for(kind))

    def say(self, *frames):
        """To the newest client."""
        self._talks[-1].sendall(b"".join(frames))

    def cut(self):
        """All connections, without a word."""
        for talk in self._talks:
            with suppress(OSError):
                talk.shutdown(socket.SHUT_RDWR)

    def reset(self):
        """The newest connection, rudely."""
        self._talks[-1].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._talks[-1].close()

    def stop(self):
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.cut()

    # -- at work -----------------------------------------------------------------------------------------------------

    def _accept(self):
        with suppress(OSError):
            while True:
                talk, _ = self._socket.accept()
                self._talks.append(talk)
                threading.Thread(target=self._serve, args=(talk,), daemon=True).start()

    def _serve(self, talk):
        framing = Framing(limit=1 << 26)
        with talk, suppress(OSError):
            while data := talk.recv(1 << 18):
                for kind, body in framing.feed(data):
                    try:
                        talk.sendall(self._answer(kind, body) or b"")
                    finally:
                        self.heard.put((kind, body))
                    if kind == Kind.LEAVE:
                        return

    def _answer(self, kind, body):
        make: Callable | None = self.answers.get(kind)
        if make is None:
            return b""
        if kind == Kind.PUBLISH:
            return make(int.from_bytes(body[:4], "big"), body)
        if kind == Kind.PING:
            return frame(Kind.PONG, body)
        said = orjson.loads(body)
        return make(said.get("request"), said)
