"""How the demo ends, whatever happens: no process that it started is left.

Ctrl-C while there is load means that this was enough: the audit and the report follow. At any other time, and by
SIGTERM or a terminal that is closed, everything is stopped at once; when that is asked for again, by SIGKILL.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from mercast.processes import adopt_orphans, kill_descendants, strike_descendants

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """`with Ending() as ending`: around everything."""

    def __init__(self) -> None:
        self.early = False
        """Whether somebody has had enough of the load."""
        self._patient = self._stopping = False

    def __enter__(self) -> "Ending":
        adopt_orphans()
        self._before = {number: signal.signal(number, self._hear) for number in _SIGNALS}
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        asked, self._stopping = self._stopping, True
        kill_descendants()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if asked and not isinstance(error, KeyboardInterrupt):  # what went wrong is that everything was stopped
            raise KeyboardInterrupt from error

    @contextmanager
    def by_ctrl_c(self) -> Iterator[None]:
        """Here Ctrl-C sets `early` and does nothing else; but for the first time only."""
        self._patient = True
        try:
            yield
        finally:
            self._patient = False

    def _hear(self, number: int, _: FrameType | None) -> None:
        if number == signal.SIGINT and self._patient:
            self.early, self._patient = True, False
        elif not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt
        else:
            strike_descendants()
