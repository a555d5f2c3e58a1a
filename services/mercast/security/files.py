import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path

_SECRET, _PUBLIC = 0o600, 0o644


def replace_file(file: Path, data: bytes, *, secret: bool = False) -> None:
    """All at once: nobody reads half of it. A symlink stays, what it leads to is replaced."""
    whole = file.resolve()
    new = whole.with_name(f".{whole.name}.new")
    new.unlink(missing_ok=True)
    mode = _SECRET if secret else _PUBLIC
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        out.write(data)
    new.replace(whole)


@contextmanager
def alone_with(file: Path) -> Iterator[None]:
    """Whoever else wants to change it waits. The folder is what is locked: the file itself is replaced."""
    folder = os.open(file.resolve().parent, os.O_RDONLY)
    try:
        flock(folder, LOCK_EX)
        yield
    finally:
        os.close(folder)
