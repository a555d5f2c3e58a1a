"""Taps into files: one for each topic, a message in each line. When one is full the next begins; the oldest goes."""

import asyncio
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from mercast.taps.settings import TapSettings
from mercast.taps.shipper import Shipper

_TOGETHER = 64
"""Messages that are written at once."""


class FileShipper(Shipper):
    def __init__(self, settings: TapSettings, broker: int) -> None:
        super().__init__(settings.where, settings.buffer_bytes)
        self._folder, self._broker = settings.folder, broker
        self._most, self._files = settings.file_bytes, settings.files

    async def run(self) -> None:
        while True:
            parcels = [await self.next()]
            while self._waiting and len(parcels) < _TOGETHER:
                parcels.append(self._waiting.popleft())
            for topic in {parcel.topic for parcel in parcels}:
                some = [parcel for parcel in parcels if parcel.topic == topic]
                try:
                    await asyncio.to_thread(self._append, topic, b"".join(parcel.value + b"\n" for parcel in some))
                except OSError as error:
                    self.failed(str(error), *some)
                except BaseException:
                    self.failed("the broker stops", *some)
                    raise
                else:
                    self.arrived(*some)

    def _append(self, topic: str, lines: bytes) -> None:
        """All of it or nothing: a disk may be full."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / f"{topic}-{self._broker}.jsonl"
        size = file.stat().st_size if file.exists() else 0
        if size and size + len(lines) > self._most:
            self._rotate(file)
            size = 0
        try:
            with file.open("ab") as out:
                out.write(lines)
        except OSError:
            with suppress(OSError), file.open("rb+") as out:
                out.truncate(size)
            raise

    def _rotate(self, file: Path) -> None:
        """The newest of the old ones is .1"""
        old = [file, *(file.with_name(f"{file.name}.{number}") for number in range(1, self._files))]
        for before, after in reversed(list(pairwise(old))):
            if before.exists():
                before.replace(after)
        if len(old) == 1:
            file.unlink()
