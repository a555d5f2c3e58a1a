"""Notices that files have changed: written anew, replaced, or reached by a symlink that leads elsewhere now."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Sight: TypeAlias = tuple[tuple[str, int, int, int] | None, ...]

LOOK = 0.5
"""Seconds between two looks."""


class Watch:
    """A change is told once it has come to rest: certificate and key are two files, and written one by one."""

    def __init__(self, files: Iterable[Path | None]) -> None:
        self.see(files)

    def see(self, files: Iterable[Path | None]) -> None:
        """These, as they are now: what was read after this, and is changed later, will be told."""
        self._files = [file for file in files if file is not None]
        self._known = self._last = _look(self._files)

    def go_back_to(self, files: Iterable[Path | None]) -> None:
        """What was to be read instead is not right. Of files that stay the same, what was seen before that counts: they
        may have been put right meanwhile."""
        seen = dict(zip(self._files, self._known, strict=True))
        self._files = [file for file in files if file is not None]
        self._known = self._last = tuple(seen[file] if file in seen else _sight(file) for file in self._files)

    def changed(self) -> bool:
        now = _look(self._files)
        rests, self._last = now == self._last, now
        if not rests or now == self._known:
            return False
        self._known = now
        return True


def _look(files: list[Path]) -> Sight:
    return tuple(map(_sight, files))


def _sight(file: Path) -> tuple[str, int, int, int] | None:
    """None if there is nothing to be seen."""
    try:
        where, seen = os.path.realpath(file), file.stat()
    except OSError:
        return None
    return where, seen.st_ino, seen.st_mtime_ns, seen.st_size
