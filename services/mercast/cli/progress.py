"""Progress of long runs, on standard error: a moving line on a terminal, now and then a plain one elsewhere."""

from collections.abc import Callable, Iterable, Iterator
from time import monotonic

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

PATIENCE = 10.0
"""Seconds without a word before a plain line says what is going on."""


class Steps:
    """Several steps one after the other: which of how many, since when, and what the one at work is doing."""

    def __init__(self, names: Iterable[str], clock: Callable[[], float] = monotonic) -> None:
        self._names = list(names)
        self._console = Console(stderr=True, highlight=False)
        self._clock = clock
        self._bar = Progress(
            SpinnerColumn(),
            *(BarColumn(bar_width=20), MofNCompleteColumn(), TimeElapsedColumn()),
            TextColumn("{task.description}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=len(self._names))
        self._place, self._name = 0, ""
        self._began = self._said = clock()

    def __enter__(self) -> "Steps":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __iter__(self) -> Iterator[str]:
        for name in self._names:
            self._place, self._name = self._place + 1, name
            self.doing("")
            yield name
            self._bar.advance(self._task)

    def doing(self, what: str) -> None:
        """What the step at work is at."""
        doing = f"{self._name}: {what}" if what else self._name
        self._bar.update(self._task, description=escape(doing))
        if not self._console.is_terminal and self._clock() - self._said >= PATIENCE:
            self._say(doing)

    def done(self, what: str) -> None:
        """What came of the step at work; this line stays."""
        self._say(f"{self._name}: {what}")

    def _say(self, what: str) -> None:
        self._said = self._clock()
        place = f"{self._place}/{len(self._names)}"
        self._console.print(f"{place:>5} {self._said - self._began:7.1f} s  {what}", markup=False, soft_wrap=True)
