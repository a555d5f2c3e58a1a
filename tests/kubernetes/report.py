"""docs/kubernetes-faults.md: a table of what was seen in the last run of each fault, written by the run itself."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

_DOCUMENT = Path(__file__).parents[2] / "docs/kubernetes-faults.md"
_BEGIN = Path(__file__).parent / "faults.md"
_OTHERS = """
## What else was seen

| what | seen |
|---|---|
"""


@dataclass
class Row:
    name: str
    seen: str
    whole: float
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
            wrong |= {"lost": self.lost, "users_lost": self.users_lost}
        assert not any(wrong.values()), f"{self.name}: {wrong}; {self}"
        assert self.right, "nothing was due to anybody: this shows nothing"

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
    """What was measured, kept beside the images so that one fault can be run again by itself."""

    def __init__(self, kept: Path, anew: bool, **about: object) -> None:
        """`anew` forgets what was measured before."""
        self._kept, self._about = kept, about
        self._rows: dict[str, dict[str, object]] = {}
        self._others: dict[str, str] = {}
        if kept.exists() and not anew:
            found = json.loads(kept.read_text())
            self._rows, self._others = found["rows"], found["others"]

    def add(self, row: Row) -> None:
        self._rows[row.name] = asdict(row)
        self._write()

    def tell(self, what: str, seen: str) -> None:
        self._others[what] = seen
        self._write()

    def _write(self) -> None:
        self._kept.parent.mkdir(parents=True, exist_ok=True)
        self._kept.write_text(json.dumps({"rows": self._rows, "others": self._others}, indent=1))
        rows = "".join(Row(**row).line() for row in self._rows.values())  # type: ignore[arg-type]
        others = "".join(f"| {what} | {seen} |\n" for what, seen in self._others.items())
        when = datetime.now(UTC).strftime("%Y-%m-%d")
        text = _BEGIN.read_text().format(**self._about) + rows + (_OTHERS + others if others else "")
        _DOCUMENT.write_text(f"{text}\nMeasured on {when}.\n")
