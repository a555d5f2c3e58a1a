"""What `--record` writes: one line for each turn, in the file before the next turn begins, so that it outlives a crash.

A restart goes on in the same file. Trouble with the disk ends the recording and nothing else.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import structlog

from mercast.protocol.effects import Effect
from mercast.protocol.stimuli import Stimulus
from mercast.routing import recording
from mercast.routing.core import Core

log = structlog.get_logger()


class Recorder:
    def __init__(self, file: Path) -> None:
        """OSError if it cannot be opened."""
        self._file = file
        self._out = file.open("ab", buffering=0)

    def begin(self, core: Core) -> None:
        """After an empty line, if there is something before: a crash may have cut that off in the midst of a line."""
        self._write(("\n" if os.fstat(self._out.fileno()).st_size else "") + recording.header(core))

    def add(self, now: float, stimulus: Stimulus, effects: Sequence[Effect]) -> None:
        if not self._out.closed:
            self._write(recording.entry(now, stimulus, effects))

    def close(self) -> None:
        try:
            self._out.close()
        except OSError as error:
            self._tell(error)

    def _write(self, line: str) -> None:
        rest = memoryview(f"{line}\n".encode())
        try:
            while rest:
                rest = rest[self._out.write(rest) :]
        except OSError as error:
            self._tell(error)
            self.close()

    def _tell(self, error: OSError) -> None:
        log.error("recording has ended", file=str(self._file), reason=error.strerror or str(error))
