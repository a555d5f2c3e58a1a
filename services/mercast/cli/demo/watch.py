"""Looks at everything again and again while the demo runs, and keeps the story of it."""

import os
from collections.abc import Callable

from mercast.cli.demo import fault
from mercast.cli.demo.figures import Figures
from mercast.cli.demo.page import Page
from mercast.cli.demo.stage import Stage
from mercast.cli.demo.story import Sample, Story
from mercast.processes import descendants, memory_bytes

_SAMPLE, _WEIGH = 1.0, 3.0
"""Seconds from one sample of rates to the next; likewise of memory, which costs more."""


class Watch:
    def __init__(self, stage: Stage, page: Page, story: Story, tell: Callable[[str], None]) -> None:
        self._stage, self._page, self.story, self._tell = stage, page, story, tell
        self.figures = Figures(None if stage.spark is None else stage.spark.out)
        self._sampled = self._weighed = float("-inf")

    def look(self) -> None:
        """PartError, if something has ended that should not have."""
        self._stage.check()
        story, now = self.story, self.story.now
        self.figures.look()
        if story.figures_after is None and self.figures.points("latency_p50_us"):
            story.figures_after = now
            self._tell("Spark's first figures are there: percentiles, duplication, routing accuracy")
        if fault.look(self._page, story):
            self._tell("the page shows it dead")
        if now - self._sampled >= _SAMPLE and self._page.pulse:
            self._sampled = now
            story.samples.append(self._sample(now))
            if story.load_after is None and story.samples[-1].published:
                story.load_after = now
                self._tell("events are published")
        if now - self._weighed >= _WEIGH:
            self._weighed = now
            story.remember(weigh(self._stage))

    def _sample(self, now: float) -> Sample:
        up = self._page.up
        return Sample(now, self._page.rate("published", up), self._page.rate("delivered", up), len(up))


def weigh(stage: Stage) -> dict[str, int]:
    """Bytes of memory of all processes, by what they are part of."""
    found = {"this command": memory_bytes(os.getpid())}
    for part, name in stage.parts().items():
        found[name] = sum(map(memory_bytes, (part, *descendants(part))))
    return found
