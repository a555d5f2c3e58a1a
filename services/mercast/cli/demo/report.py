"""The report: a short text, which is also the last word on the terminal, and one HTML page with plots.

Both end with what was delivered, doubled and missing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from mercast.cli.demo.figures import Figures
from mercast.cli.demo.outcome import Tally, of_audit, of_load
from mercast.cli.demo.parts import Part
from mercast.cli.demo.possible import Possible
from mercast.cli.demo.stage import BROKERS, CLUSTERS, EDGES, Setting
from mercast.cli.demo.story import Story
from mercast.lab.experiment import Figure, Series
from mercast.lab.page import page, place_of, table

_MS, _GB = 1_000, 1e9


@dataclass(frozen=True)
class Outcome:
    text: str
    as_promised: bool


class Report:
    def __init__(
        self, setting: Setting, possible: Possible, story: Story, figures: Figures, audit: Part | None
    ) -> None:
        self._setting, self._story, self._figures = setting, story, figures
        self._missing = list(possible.missing)
        self._load: dict[str, Any] = json.loads((setting.folder / "load.json").read_text())
        counted = of_load(self._load)
        found = self._audited(audit)
        self._tallies = [counted] if found is None else [found, counted]
        self._as_promised = all(one.as_promised for one in self._tallies) and (audit is None or found is not None)

    def _audited(self, audit: Part | None) -> Tally | None:
        if audit is None:
            return None
        found = of_audit(self._setting.folder / "audit.json", audit.status or 0)
        if found is None:
            self._missing.append(f"the audit failed; its log:\n{audit.tail()}")
        return found

    def write(self) -> Outcome:
        folder = self._setting.folder
        text = "\n".join(self._lines())
        (folder / "report.txt").write_text(text + "\n")
        (folder / "report.html").write_text(self._html())
        return Outcome(text, self._as_promised)

    # -- in words ------------------------------------------------------------------------------------------------------

    def _lines(self) -> list[str]:
        facts = [*self._facts(), ("report", str(self._setting.folder / "report.html"))]
        return ["", self._heading(), *map(_line, facts), "", *map(_line, self._last())]

    def _heading(self) -> str:
        return "as promised" if self._as_promised else "NOT AS PROMISED"

    def _last(self) -> list[tuple[str, str]]:
        """What it comes down to, by whom it is known best."""
        best = self._tallies[0]
        excused = f" (and {best.excused:,} around the kill, which that explains)" if best.excused else ""
        counts = ("delivered", best.delivered), ("doubled", best.doubled), ("missing", best.missing)
        return [(name, f"{count:,}{excused if name == 'missing' else ''}") for name, count in counts]

    def _facts(self) -> list[tuple[str, str]]:
        story, told = self._story, self._load
        when = datetime.fromtimestamp(story.started, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        facts = [
            ("run", f"{when} UTC, {story.took:.0f} s in all"),
            ("brokers", f"{CLUSTERS} clusters of {BROKERS} under MERC, {EDGES} edges each, joined by a backbone"),
            ("load", f"{told['published']:,} quotes of {self._setting.publishers} publishers for "
                     f"{self._setting.subscribers} subscribers with {self._setting.filters} filters each"),
            ("up", self._ups()),
        ]  # fmt: skip
        late = [told["latency_ms"][name] for name in ("p50", "p95", "p99")]
        if None not in late:
            values = ", ".join(f"{one:.1f}" for one in late)
            facts.append(("latency", f"p50, p95, p99 {values} ms, from the call of publish to the subscriber"))
        if story.killed is not None:
            facts.append(("fault", self._fault()))
        facts.append(("memory", self._memory()))
        facts += [(one.by.removeprefix("the "), _in_words(one)) for one in self._tallies]
        return facts + [("without", one) for one in self._missing]

    def _ups(self) -> str:
        story = self._story
        moments = [
            ("the page", story.page_after),
            ("the load", story.load_after),
            ("Spark's figures", story.figures_after),
        ]
        return ", ".join(f"{name} after {at:.1f} s" for name, at in moments if at is not None)

    def _fault(self) -> str:
        killed = self._story.killed
        assert killed is not None
        seen = "" if killed.shown_after is None else f", shown dead by the page {killed.shown_after:.1f} s later"
        return f"broker {killed.broker}, an edge of {killed.cluster}, killed at {killed.at:.1f} s{seen}"

    def _memory(self) -> str:
        memory = self._story.memory
        parts = ", ".join(f"{name} {size / _GB:.2f}" for name, size in sorted(memory.items(), key=lambda one: -one[1]))
        return f"at most {sum(memory.values()) / _GB:.2f} GB ({parts})"

    # -- in pictures ---------------------------------------------------------------------------------------------------

    def _html(self) -> str:
        figures = self._plots()
        drawn = "\n".join(place_of(figure, number) for number, figure in enumerate(figures))
        verdict = f'<span class="verdict {"match" if self._as_promised else "differs"}">{self._heading()}</span>'
        facts = _rows(self._facts())
        news = _rows((f"{at:.1f} s", told) for at, told in self._story.news)
        counts = "\n".join(map(_tally_row, self._tallies))
        names = ("", "delivered", "doubled", "missing", "around the kill", "undue", "unknown")
        body = f"""<h1>mercast demo</h1>
<p>{verdict}</p>
{table(("", ""), facts, "facts")}
<section><h2>What happened</h2><div class="figures">{drawn}</div></section>
<section><h2>When</h2>{table(("", ""), news, "facts")}</section>
<section><h2>Who counted what</h2>{table(names, counts, "compared")}<p class="again">{self._links()}</p></section>
<section><h2>In the end</h2>{table(("", ""), _rows(self._last()), "facts")}</section>"""
        return page("mercast demo", body, figures)

    def _links(self) -> str:
        """To what was written beside it."""
        beside = {"load.html": "Locust's report", "audit.html": "the audit", "logs/": "all logs"}
        there = {file: name for file, name in beside.items() if (self._setting.folder / file).exists()}
        return " · ".join(f'<a href="{file}">{name}</a>' for file, name in there.items())

    def _plots(self) -> list[dict[str, Any]]:
        samples = self._story.samples
        rates = [
            Series("published", [(one.at, one.published) for one in samples]),
            Series("delivered", [(one.at, one.delivered) for one in samples]),
        ]
        plots = [
            Figure("Events a second, as the page showed them", "seconds", "events/s", rates),
            Figure("Brokers up", "seconds", "brokers", [Series("up", [(one.at, one.up) for one in samples])]),
        ]
        late = {name: f"latency_{name}_us" for name in ("p50", "p95", "p99")}
        ratios = {name: name for name in ("accuracy", "completeness")}
        plots += [
            Figure("Latency by Spark, the highest of any cluster", "seconds", "ms", self._of_all(late, 1 / _MS)),
            Figure("Latency by Spark, 95th percentile", "seconds", "ms", self._by_cluster("latency_p95_us", 1 / _MS)),
            Figure("Routing accuracy and completeness by Spark", "seconds", "share", self._of_all(ratios)),
            Figure("Routing accuracy by Spark", "seconds", "share", self._by_cluster("accuracy")),
        ]
        return [one.plain() | {"marks": self._marks()} for one in plots if any(some.points for some in one.series)]

    def _of_all(self, names: dict[str, str], scale: float = 1) -> list[Series]:
        return [Series(name, self._points(figure, scale)) for name, figure in names.items()]

    def _by_cluster(self, figure: str, scale: float = 1) -> list[Series]:
        return [Series(name, self._points(figure, scale, name)) for name in self._figures.clusters]

    def _points(self, figure: str, scale: float, cluster: str = "") -> list[tuple[float, float]]:
        started = self._story.started
        return [(at - started, value * scale) for at, value in self._figures.points(figure, cluster)]

    def _marks(self) -> list[list[Any]]:
        killed = self._story.killed
        return [] if killed is None else [[killed.at, f"edge {killed.broker} killed"]]


def _line(fact: tuple[str, str]) -> str:
    return f"{fact[0] + ':':12} {fact[1]}"


def _in_words(one: Tally) -> str:
    counts = [(one.delivered, "delivered"), (one.doubled, "doubled"), (one.missing, "missing"), (one.undue, "undue")]
    counts += [(count, what) for count, what in ((one.excused, "around the kill"), (one.unknown, "not known")) if count]
    return ", ".join(f"{count:,} {what}" for count, what in counts) + ("" if one.enough else ": too much is not known")


def _tally_row(one: Tally) -> str:
    counts = (one.delivered, one.doubled, one.missing, one.excused, one.undue, one.unknown)
    cells = "".join(f'<td class="number">{count:,}</td>' for count in counts)
    return f"<tr><td>{escape(one.by)}</td>{cells}</tr>"


def _rows(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"<tr><td>{escape(name)}</td><td>{escape(told)}</td></tr>" for name, told in pairs)
