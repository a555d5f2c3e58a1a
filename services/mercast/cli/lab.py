"""`mercast lab`: the papers' claims, run again; and recorded runs of brokers."""

import difflib
import json as json_module
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from cyclopts import App
from rich.console import Console
from rich.table import Table
from rich.text import Text

app = App(name="lab", help="Run the papers' claims again, or what a broker has recorded.")
console = Console()

_SHOWN = 1000
"""Characters of a stimulus in a tail; some hold thousands of zeros in place of a payload."""

_COLOURS = {"match": "green", "holds": "cyan", "differs": "red"}


@app.command(name="list")
def list_claims() -> None:
    """The claims that can be run."""
    from mercast.lab.experiment import EXPERIMENTS
    from mercast.lab.scoreboard import claims

    for claim in claims():
        console.print(f"{claim:4} {EXPERIMENTS[claim].title}", highlight=False, markup=False, soft_wrap=True)


@app.command
def run(claim: str, *, quick: bool = False, seed: int = 1, json: Path | None = None) -> None:
    """Run one claim.

    Exit status: 0 if it ran, whatever its verdicts (that something differs is a result), 1 if it broke.

    Parameters
    ----------
    claim
        Its name, such as A9; `mercast lab list` names them all.
    quick
        A small variant, in seconds.
    seed
        Seed of all chance in it.
    json
        Write the result to this file too.
    """
    from mercast.lab import scoreboard

    _check_places(json)
    name = claim.upper()
    if name not in scoreboard.claims():
        _stop(f"there is no claim {claim}; there are {', '.join(scoreboard.claims())}")
    results: list[dict[str, Any]] = []
    try:
        _run([name], quick, seed, results)
    finally:
        _show(results)
        if json is not None and results:
            _write_json(json, results[0])
    sys.exit(_broken(results))


@app.command
def report(
    *,
    quick: bool = False,
    seed: int = 1,
    json: Path | None = None,
    markdown: Path | None = None,
    html: Path | None = None,
) -> None:
    """Run all claims, and show paper and ours side by side.

    Exit status: 0 if all ran, whatever their verdicts (that something differs is a result), 1 if one broke; the others
    are run and written all the same.

    Parameters
    ----------
    quick
        Small variants, in seconds.
    seed
        Seed of all chance in them.
    json
        Write the results to this file too.
    markdown
        Write the scoreboard to this file too.
    html
        Write the scoreboard with its plots to this file too: one page that needs no network.
    """
    from mercast.lab import report, scoreboard

    _check_places(json, markdown, html)
    if html is not None:
        import plotly  # type: ignore[import-untyped]  # noqa: F401 - missing, it is better missed now than after the run
    results: list[dict[str, Any]] = []
    try:
        _run(scoreboard.claims(), quick, seed, results)
    finally:  # interrupted too: what has been run shall not be lost
        _show(results)
        if json is not None:
            _write_json(json, results)
        if markdown is not None:
            markdown.write_text(report.markdown(results), encoding="utf-8")
        if html is not None:
            html.write_text(report.html(results), encoding="utf-8")
    if not (json or markdown or html):
        console.print("To keep this: --html FILE (with plots), --markdown FILE, --json FILE", style="dim")
    sys.exit(_broken(results))


@app.command
def replay(file: Path) -> None:
    """Drive a fresh broker through a recorded run, and compare what it does.

    Exit status: 0 if all effects are the same, 1 if not (the first difference is shown), 2 if the file is not a
    recording or is damaged. A last line that was cut off when the broker was killed is told, and is no damage.

    The last stimuli of a broker, from a bundle of `mercast doctor`, may be the tail of its run: no fresh broker knows
    what that one knew before. They are only shown, and the exit status is 3.

    Parameters
    ----------
    file
        Lines of JSON, as a recorded broker wrote them, or stimuli.jsonl of a bundle.
    """
    from mercast.routing.recording import RecordingError, Tail, replay

    try:
        with file.open(encoding="utf-8") as lines:
            replayed = replay(lines)
    except OSError as error:
        _stop(f"{file}: {error.strerror}", 2)
    except UnicodeDecodeError:
        _stop(f"{file}: not a recording: it is not text", 2)
    except Tail as tail:
        _show_tail(file, tail)
    except RecordingError as error:
        _stop(f"{file}: not a whole recording: {error}", 2)
    for number in replayed.cut:
        _say(f"line {number} is cut off, as when a broker is killed or its disk is full; all before it counts")
    if replayed.difference is None:
        same = "as many effects after each; which they were was not kept" if replayed.counted else "same effects"
        _say(f"{replayed.stimuli} stimuli, {same}")
        return
    line, now, stimulus, recorded, found = replayed.difference
    _say(f"{replayed.stimuli - 1} stimuli, same effects; then, at line {line}, time {now}, other effects after")
    _say(f"  {stimulus}")
    for part in difflib.unified_diff(recorded, found, "recorded", "found", lineterm="", n=len(recorded)):
        if not part.startswith("@@"):
            _say(part)
    sys.exit(1)


def _show_tail(file: Path, why: Exception) -> NoReturn:
    """What happened, to be read by people."""
    from mercast.protocol.stimuli import Batch
    from mercast.routing.recording import RecordingError, stimuli_in

    try:
        with file.open(encoding="utf-8") as lines:
            for now, stimulus in stimuli_in(lines):
                when = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
                for one in stimulus.stimuli if isinstance(stimulus, Batch) else (stimulus,):
                    _say(f"{when} {str(one)[:_SHOWN]}")
    except RecordingError as error:
        _stop(f"{file}: {error}", 2)
    _stop(f"{file}: {why}. It cannot be replayed, only read; for a replay, start the broker with --record FILE", 3)


def _run(claims: list[str], quick: bool, seed: int, results: list[dict[str, Any]]) -> None:
    """Adds the result of each claim as it is found."""
    from mercast import garbage
    from mercast.cli.progress import Steps
    from mercast.lab import report, scoreboard
    from mercast.lab.experiment import Setting

    garbage.seldom()
    with Steps(claims) as steps:
        for claim in steps:
            result = scoreboard.run(claim, Setting(seed, "quick" if quick else "full", steps.doing))
            results.append(result)
            steps.done(f"{report.tally([result])}{', BROKE' if 'error' in result else ''}, {result['seconds']} s")


def _show(results: list[dict[str, Any]]) -> None:
    table = Table(title="paper and ours", title_justify="left")
    for heading in ("claim", "", "paper", "ours", "verdict", "why"):
        table.add_column(heading)
    for result in results:
        for row in result["rows"]:
            verdict = Text(row["verdict"], _COLOURS[row["verdict"]])
            cells = (result["claim"], row["name"], row["paper"], row["ours"])
            table.add_row(*map(Text, cells), verdict, Text(row["why"]))
        table.add_section()
    console.print(table)


def _broken(results: list[dict[str, Any]]) -> int:
    broken = [result for result in results if "error" in result]
    for result in broken:
        Console(stderr=True).print(result["error"], markup=False, highlight=False, soft_wrap=True)
    return 1 if broken else 0


def _check_places(*places: Path | None) -> None:
    """Before any work is done: whether its results can be written."""
    for place in places:
        if place is None:
            continue
        if not place.parent.is_dir():
            _stop(f"there is no folder {place.parent} to write to")
        if place.is_dir():
            _stop(f"{place} is a folder: name a file in it")
        if not os.access(place if place.exists() else place.parent, os.W_OK):
            _stop(f"{place} cannot be written to")


def _write_json(place: Path, content: Any) -> None:
    place.write_text(json_module.dumps(content, indent=2) + "\n", encoding="utf-8")


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _stop(reason: str, status: int = 1) -> NoReturn:
    Console(stderr=True).print(f"mercast lab: {reason}", markup=False, highlight=False, soft_wrap=True)
    sys.exit(status)
