"""Messages of taps that were kept: the files that brokers write, or Parquet with the columns topic, partition and
value, both as `mercast audit --from` reads them. Read from the newest on, for a bounded time."""

import time
from collections.abc import Iterator
from pathlib import Path

WITHIN = 20.0
"""Seconds."""

_PARQUET = ".parquet"


class Older:
    def __init__(self, folder: Path, prefix: str, within: float = WITHIN) -> None:
        self.folder, self._topic, self._within = folder, f"{prefix}.taps", within
        self.whole = True
        """Whether all was read."""

    def __iter__(self) -> Iterator[bytes]:
        until = time.monotonic() + self._within
        messages = self._parquet() if self.folder.name.endswith(_PARQUET) else self._lines()
        for message in messages:
            if time.monotonic() > until:
                self.whole = False
                return
            yield message

    def _lines(self) -> Iterator[bytes]:
        files = [file for file in self.folder.rglob(f"{self._topic}-*.jsonl*") if file.is_file()]
        for file in sorted(files, key=lambda file: -file.stat().st_mtime):
            with file.open("rb") as lines:
                yield from lines

    def _parquet(self) -> Iterator[bytes]:
        import pyarrow.compute as pc  # tens of megabytes, and seldom wanted
        import pyarrow.dataset as ds

        of_taps = pc.field("topic") == self._topic
        for batch in ds.dataset(self.folder, format="parquet").to_batches(columns=["value"], filter=of_taps):
            for value in batch.column("value"):
                text = value.as_py()
                yield text.encode() if isinstance(text, str) else text
