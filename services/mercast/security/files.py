import os
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
