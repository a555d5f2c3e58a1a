"""What came of it: who counted what. The audit found it out from the taps, the load from what its subscribers got."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AROUND_FAULT = 5.0
"""Seconds before and after the kill in which events need not arrive."""

_CLEAN, _WRONG, _TOO_LITTLE = 0, 1, 2
"""Exit statuses of the audit."""


@dataclass(frozen=True)
class Tally:
    by: str
    delivered: int
    doubled: int
    missing: int
    """Away from the fault."""
    excused: int
    """Not delivered, which the fault explains."""
    undue: int
    unknown: int = 0
    enough: bool = True
    """Whether so much is known that this can be relied upon."""

    @property
    def as_promised(self) -> bool:
        return self.enough and not (self.doubled or self.missing or self.undue)


def of_audit(file: Path, status: int) -> Tally | None:
    """None if there is no result."""
    if status not in (_CLEAN, _WRONG, _TOO_LITTLE):
        return None
    told = json.loads(file.read_text())
    return Tally(
        "the audit", told["right"], told["doubled"], told["missing"], sum(told["grey"].values()), told["undue"],
        sum(told["unknown"].values()), status != _TOO_LITTLE,
    )  # fmt: skip


def of_load(told: dict[str, Any]) -> Tally:
    counts = (told[name] for name in ("delivered", "doubled", "missing", "missing_around_faults", "undue"))
    return Tally("the subscribers", *counts)
