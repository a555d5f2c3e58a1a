"""Running experiments and writing down what came of them.

An experiment that breaks is a result too: what it found until then stays, a last row says what happened, and the
others are run all the same.
"""

import traceback
from time import perf_counter
from typing import Any

from mercast.lab import line, lists, load, organise, robustness, tables  # noqa: F401 - importing them registers their experiments
from mercast.lab.experiment import EXPERIMENTS, Row, Setting


def run(claim: str, setting: Setting) -> dict[str, Any]:
    """The result of one claim, as it is written to files."""
    started = perf_counter()
    rows, figures, error = [], [], ""
    try:
        for found in EXPERIMENTS[claim].run(setting):
            if isinstance(found, Row):
                rows.append(found._asdict())
            else:
                figures.append(found.plain())
    except Exception as broke:  # whatever it is, the claims after this one shall be run
        reason = f"the experiment broke: {type(broke).__name__}: {broke}"
        rows.append(Row("error", "", "", "differs", reason)._asdict())
        error = traceback.format_exc()
    quick = " --quick" if setting.scale == "quick" else ""
    return {
        "claim": claim,
        "title": EXPERIMENTS[claim].title,
        "rows": rows,
        "seed": setting.seed,
        "scale": setting.scale,
        "command": f"mercast lab run {claim}{quick} --seed {setting.seed}",
        "seconds": round(perf_counter() - started, 2),
        **({"figures": figures} if figures else {}),
        **({"error": error} if error else {}),
    }


def claims() -> list[str]:
    """All claims, in the order of their letters and numbers."""
    return sorted(EXPERIMENTS, key=lambda claim: (claim[0], int(claim[1:])))
