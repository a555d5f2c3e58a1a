"""Running experiments and writing down what came of them."""

from time import perf_counter
from typing import Any

from mercast.lab import lists, load, robustness, tables  # noqa: F401 - importing them registers their experiments
from mercast.lab.experiment import EXPERIMENTS, Setting


def run(claim: str, setting: Setting) -> dict[str, Any]:
    """The result of one claim, as it is written to files."""
    started = perf_counter()
    rows = [row._asdict() for row in EXPERIMENTS[claim].run(setting)]
    quick = " --quick" if setting.scale == "quick" else ""
    return {
        "claim": claim,
        "title": EXPERIMENTS[claim].title,
        "rows": rows,
        "seed": setting.seed,
        "scale": setting.scale,
        "command": f"mercast lab run {claim}{quick} --seed {setting.seed}",
        "seconds": round(perf_counter() - started, 2),
    }


def claims() -> list[str]:
    """All claims, in the order of their letters and numbers."""
    return sorted(EXPERIMENTS, key=lambda claim: (claim[0], int(claim[1:])))


def markdown(results: list[dict[str, Any]]) -> str:
    lines = ["# Scoreboard", "", "| claim | setting | paper | ours | verdict | |", "|---|---|---|---|---|---|"]
    for result in results:
        for row in result["rows"]:
            cells = (
                f"{result['claim']} {row['name']}",
                result["title"],
                row["paper"],
                row["ours"],
                row["verdict"],
                row["why"],
            )
            lines.append("| " + " | ".join(cells) + " |")
    commands = sorted({f"`{result['command']}` ({result['seconds']} s)" for result in results})
    return "\n".join([*lines, "", "Run again: " + ", ".join(commands), ""])
