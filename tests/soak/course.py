"""What operators and accidents do meanwhile: a broker is restarted every so often, and one killed now and then."""

import asyncio
import signal
import subprocess
from time import monotonic

from soak.fault import Fault

from mercast.broker.local import NotReady

EVERY = 60.0
"""Seconds from one restart to the next, unless told otherwise."""

KILLS = 3
"""A kill after so many restarts."""

_STOPS_WITHIN = 30.0
_FAULT = 4.0
"""Seconds that a fault is given by itself; it waits for others as long as that takes."""

_LOOK = 0.1


class Course:
    def __init__(self, mesh, restarted, load, watch, tell):
        self._mesh, self._restarted, self._load, self._watch, self._tell = mesh, restarted, load, watch, tell
        self._began = monotonic()
        self._away = set()
        """Brokers that are not running, as they should not be."""
        self._disturbances = []
        """(from, to), by the clock of the loop; without an end while it goes on."""
        self.windows = []
        """The same as the ledger wants it."""
        self.events = []
        """(seconds, what happened), for the plot."""
        self.restarts = self.kills = 0
        self.problems = []

    async def run(self, seconds, every=EVERY):
        try:
            await self._run(seconds, every)
        except (NotReady, OSError, subprocess.TimeoutExpired) as error:
            self.problems.append(str(error))

    async def _run(self, seconds, every):
        end = monotonic() + seconds
        while monotonic() + every < end:
            await asyncio.sleep(every)
            await self._restart(self._restarted[self.restarts % len(self._restarted)])
            if self.restarts % KILLS == 1 and monotonic() + every / 2 < end:
                await asyncio.sleep(every / 2)
                await self._kill(self._restarted[self.restarts % len(self._restarted)])  # not the one just restarted
        await asyncio.sleep(max(0.0, end - monotonic()))

    def disturbed(self, since):
        """Whether a broker was killed, or missing because of that, since this time of the loop."""
        return any(end is None or end >= since for _, end in self._disturbances)

    def ended(self):
        """Brokers that have ended though nobody told them to."""
        return [
            f"broker {broker.id} has ended by itself; its log:\n{broker.tail()}"
            for broker in self._mesh.brokers.values()
            if broker.id not in self._away and broker.process is not None and broker.process.poll() is not None
        ]

    async def _restart(self, id):
        self._note(f"broker {id} is restarted (SIGTERM)")
        self._away.add(id)
        process = self._mesh[id].process
        process.send_signal(signal.SIGTERM)
        status = await asyncio.to_thread(process.wait, _STOPS_WITHIN)
        if status != 0:
            self.problems.append(f"broker {id} ends with status {status} after SIGTERM")
        self._mesh.start(id)
        self._away.discard(id)
        while not await self._watch.is_ready(id):
            if ended := self.ended():
                raise NotReady(ended[0])
            await asyncio.sleep(_LOOK)
        self.restarts += 1

    async def _kill(self, id):
        loop = asyncio.get_running_loop()
        self._note(f"broker {id} is killed (SIGKILL)")
        self._away.add(id)
        self._disturbances.append((loop.time(), None))
        fault = Fault(self._mesh, id, self._load, self._watch, self._tell)
        await fault.run(_FAULT)
        self.windows.append(fault.window)
        self._disturbances[-1] = self._disturbances[-1][0], loop.time()
        self._away.discard(id)
        self.kills += 1

    def _note(self, what):
        self.events.append((monotonic() - self._began, what))
        self._tell(what)
