"""How far a long run is: a line on the terminal; elsewhere a plain one now and then."""

import time

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Show:
    def __init__(self, console, seconds, plain):
        """`seconds` are those that it takes; `plain` those between two lines where there is no terminal."""
        self._console, self._plain, self._began, self._said = console, plain, time.monotonic(), 0.0
        columns = TimeElapsedColumn(), BarColumn(bar_width=20), TextColumn("{task.description}")
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("starting brokers", total=seconds)

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def tell(self, what):
        """A line that stays."""
        self._console.print(f"{self._passed:6.0f} s  {what}", markup=False, soft_wrap=True)

    def look(self, what):
        """How far it is."""
        self._bar.update(self._task, completed=self._passed, description=what)
        if not self._console.is_terminal and self._passed - self._said >= self._plain:
            self._said = self._passed
            self.tell(what)

    @property
    def _passed(self):
        return time.monotonic() - self._began
