"""docs/kubernetes-faults.md: a table of what was seen in the last run of each fault, written by the run itself once all
tests have passed."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from load import RATE

_DOCUMENT = Path(__file__).parents[2] / "docs/kubernetes-faults.md"
_BEGIN = Path(__file__).parent / "faults.md"
_OTHERS = """
## What else was seen

| what | seen |
|---|---|
"""


_LEAST = {False: 0.85, True: 0.6}
"""Of what is to be published, what must have been; less, if a fault may also cut publishers off."""


@dataclass
class Row:
    name: str
    seen: str
    whole: float
    seconds: float
    """Of load."""
    published: int
    right: int
    lost: int
    lost_until: float | None
    """Seconds after the fault began that the last lost event was published."""
    beyond: int
    doubled: int
    undue: int
    unknown: int
    users_lost: int
    users_beyond: int

    def check(self, may_lose: bool) -> None:
        wrong = {name: getattr(self, name) for name in ("beyond", "doubled", "undue", "users_beyond")}
        if not may_lose:
            wrong |= {"lost": self.lost, "users_lost": self.users_lost, "unknown": self.unknown}
        assert not any(wrong.values()), f"{self.name}: {wrong}; {self}"
        assert self.right > self.unknown, f"the taps say too little: this shows nothing; {self}"
        assert self.published > _LEAST[may_lose] * RATE * self.seconds, f"publishers stood still; {self}"

    def line(self) -> str:
        due = self.right + self.lost + self.beyond
        until = "" if self.lost_until is None else f"{self.lost_until:.1f}"
        cells = [
            self.name, self.seen, f"{self.whole:.1f}", f"{self.published:,}", f"{due:,}",
            str(self.lost), until, str(self.beyond), str(self.doubled), str(self.unknown),
            f"{self.users_lost}, {self.users_beyond}",
        ]  # fmt: skip
        return f"| {' | '.join(cells)} |\n"


class Table:
    """What was measured, kept beside the images: of a whole run, what failed can be run again by itself."""

    def __init__(self, kept: Path, about: dict[str, object]) -> None:
        self._kept, self._about = kept, about
        self._rows: dict[str, dict[str, object]] = {}
        self._others: dict[str, str] = {}
        self._owed: set[str] | None = None
        """Tests of a whole run that have not passed yet; None: nothing is known of one."""

    def begin(self, tests: Sequence[str]) -> None:
        """A whole run: what was measured before is forgotten."""
        self._owed = set(tests)

    def go_on(self, tests: Sequence[str]) -> None:
        """These only, with what is kept, if that is of a whole run."""
        if self._kept.exists():
            found = json.loads(self._kept.read_text())
            self._rows, self._others, self._owed = found["rows"], found["others"], {*found["owed"], *tests}

    def add(self, row: Row) -> None:
        self._rows[row.name] = asdict(row)

    def tell(self, what: str, seen: str) -> None:
        self._others[what] = seen

    def passed(self, test: str) -> None:
        if self._owed is not None:
            self._owed.discard(test)

    def end(self) -> str:
        """What to say of it."""
        rows = "".join(Row(**row).line() for row in self._rows.values())  # type: ignore[arg-type]
        others = "".join(f"| {what} | {seen} |\n" for what, seen in self._others.items())
        text = rows + (_OTHERS + others if others else "")
        if self._owed is None:
            return f"{text}\n{_DOCUMENT.name} stays as it was: there was no whole run before"
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        kept = {"rows": self._rows, "others": self._others, "owed": sorted(self._owed)}
        self._kept.write_text(json.dumps(kept, indent=1))
        if self._owed:
            return f"{text}\n{_DOCUMENT.name} stays as it was: {len(self._owed)} tests of a whole run have not passed"
        when = datetime.now(UTC).strftime("%Y-%m-%d")
        _DOCUMENT.write_text(f"{_BEGIN.read_text().format(**self._about)}{text}\nMeasured on {when}.\n")
        return f"{_DOCUMENT.name} is written"
