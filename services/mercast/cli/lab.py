"""`mercast lab`: the papers' claims, run again."""

import json as json_module
import sys
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console
from rich.table import Table

app = App(name="lab", help="Run the papers' claims again.")
console = Console()
progress = Console(stderr=True)


@app.command(name="list")
def list_claims() -> None:
    """The claims that can be run."""
    from mercast.lab.experiment import EXPERIMENTS
    from mercast.lab.scoreboard import claims

    for claim in claims():
        console.print(f"{claim:4} {EXPERIMENTS[claim].title}", highlight=False)


@app.command
def run(claim: str, *, quick: bool = False, seed: int = 1, json: Path | None = None) -> None:
    """Run one claim.

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
    result = _run(claim.upper(), quick, seed)
    _show([result])
    if json is not None:
        json.write_text(json_module.dumps(result, indent=2) + "\n")


@app.command
def report(*, quick: bool = False, seed: int = 1, json: Path | None = None, markdown: Path | None = None) -> None:
    """Run all claims, and show paper and ours side by side.

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
    """
    from mercast.lab import scoreboard

    results = [_run(claim, quick, seed) for claim in scoreboard.claims()]
    _show(results)
    if json is not None:
        json.write_text(json_module.dumps(results, indent=2) + "\n")
    if markdown is not None:
        markdown.write_text(scoreboard.markdown(results))


def _run(claim: str, quick: bool, seed: int) -> dict[str, Any]:
    from mercast.lab import scoreboard
    from mercast.lab.experiment import Setting

    if claim not in scoreboard.claims():
        sys.exit(f"mercast lab: there is no claim {claim}; there are {', '.join(scoreboard.claims())}")
    with progress.status(f"{claim} …") as status:
        setting = Setting(seed, "quick" if quick else "full", lambda doing: status.update(f"{claim}: {doing}"))
        return scoreboard.run(claim, setting)


def _show(results: list[dict[str, Any]]) -> None:
    table = Table(title="paper and ours", title_justify="left")
    for heading in ("claim", "", "paper", "ours", "verdict", "why"):
        table.add_column(heading)
    colours = {"match": "green", "holds": "green", "differs": "red"}
    for result in results:
        for row in result["rows"]:
            verdict = f"[{colours[row['verdict']]}]{row['verdict']}"
            table.add_row(result["claim"], row["name"], row["paper"], row["ours"], verdict, row["why"])
        table.add_section()
    console.print(table)
