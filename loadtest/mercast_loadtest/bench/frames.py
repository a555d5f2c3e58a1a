"""Frames of one length in one array: a run of them is made ready at once, so the load costs next to nothing."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mercast_loadtest.bench.quotes import DUE_BYTES


@dataclass(frozen=True)
class Frames:
    rows: npt.NDArray[np.uint8]
    """A frame each."""
    number_at: int | None
    """Where a frame has its request number, four bytes; None if it has none."""
    due_at: int
    """Where the time it was due is, eight bytes."""

    @classmethod
    def of(cls, frames: list[bytes], number_at: int | None, after: int = 0) -> "Frames":
        """`after` bytes follow the event's content, at the end of which the time is."""
        if len({len(frame) for frame in frames}) != 1:
            raise ValueError("frames of one array have one length")
        rows = np.frombuffer(b"".join(frames), np.uint8).reshape(len(frames), -1)
        return cls(rows, number_at, rows.shape[1] - after - DUE_BYTES)

    def run(self, first: int, count: int, due: int) -> bytes:
        """So many frames, with request numbers from `first` on; they come round again and again."""
        numbers = np.arange(first, first + count)
        run = self.rows[numbers % len(self.rows)]
        if self.number_at is not None:
            run[:, self.number_at : self.number_at + 4] = numbers.astype(">u4").view(np.uint8).reshape(count, 4)
        run[:, self.due_at : self.due_at + DUE_BYTES] = np.frombuffer(due.to_bytes(DUE_BYTES, "big"), np.uint8)
        return run.tobytes()

    def save(self, file: Path) -> None:
        at = -1 if self.number_at is None else self.number_at
        with file.open("wb") as out:
            np.savez(out, rows=self.rows, places=np.array([at, self.due_at]))

    @classmethod
    def load(cls, file: Path) -> "Frames":
        with np.load(file) as data:
            number_at, due_at = data["places"].tolist()
            return cls(data["rows"], None if number_at < 0 else number_at, due_at)
