"""The asyncio client behind plain calls, so that one test holds for both clients."""

import asyncio
import threading

import uvloop

import mercast
from mercast import blocking

PATIENCE = 60


class Loop:
    def __init__(self, kind):
        self.loop = uvloop.new_event_loop() if kind == "uvloop" else asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class Plain:
    """Anything of asyncio's client: its coroutines are waited for, what they return is treated the same."""

    def __init__(self, thing, loop):
        self.thing, self._loop = thing, loop

    def __getattr__(self, name):
        found = getattr(self.thing, name)
        if not callable(found):
            return found

        def call(*args, **named):
            async def run():
                result = found(*args, **named)
                return await result if asyncio.iscoroutine(result) else result

            return self._wrap(self._loop.run(run()))

        return call

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._loop.run(self.thing.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def _wrap(self, result):
        return Plain(result, self._loop) if type(result).__module__ == "mercast.client.aio" else result


def connect(kind, loop, *args, **named):
    if kind == "blocking":
        return blocking.connect(*args, **named)

    async def opened():
        return await mercast.connect(*args, **named)

    return Plain(loop.run(opened()), loop)
