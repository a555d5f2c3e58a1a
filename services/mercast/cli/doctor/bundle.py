"""The bundle: a .tar.gz with a manifest, readable by its owner alone."""

import json
import os
import tarfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from mercast.broker.about import versions
from mercast.cli.doctor.findings import Finding
from mercast.cli.doctor.visit import STIMULI, Visit

_FOLDER = "mercast-doctor"
_OWNER_ONLY = 0o600

README = """\
What mercast doctor has heard from running brokers.

manifest.json     what is here, with sizes and SHA-256; who made it, with which versions; what was found
not-fetched.txt   what could not be had, and why
<broker>/         a folder for each broker that answered:
  config.json     its configuration; tokens are left out, of files only the paths are there
  overlay.json    the overlay as it sees it
  tables.json     sizes of its tables, and up to 1,000 rows of each: filters, names and addresses of clients
  metrics.txt     as for Prometheus
  versions.json   of mercast, the wire, Python and packages
  stimuli.jsonl   {stimuli}
"""

WITH_STIMULI = """\
what happened to it last, for: mercast lab replay stimuli.jsonl
                  Types and attributes of events are in it, and names of clients; of payloads only the length.
                  If its first line says "gone", the broker had done more before: then it can only be read."""

NO_STIMULI = "could not be had (not-fetched.txt)"

WITHOUT_STIMULI = "left out, as asked for (--without-stimuli)"


def write(file: Path, made: datetime, visits: Sequence[Visit], found: Sequence[Finding], stimuli: bool) -> int:
    """How many files are in it; `stimuli` says whether they were asked for. OSError if it cannot be written, or is
    there already."""
    told = [f"{visit.address}: {name}: {why}\n" for visit in visits for name, why in visit.missing.items()]
    had = any(STIMULI in visit.files for visit in visits)
    of_stimuli = WITH_STIMULI if had else NO_STIMULI if stimuli else WITHOUT_STIMULI
    files = {
        "README.txt": README.format(stimuli=of_stimuli).encode(),
        "not-fetched.txt": "".join(told).encode(),
        **dict(_of_brokers(visits)),
    }
    manifest = {
        "made": made.isoformat(timespec="seconds"),
        "with": versions(),
        "stimuli": had,
        "brokers": [_broker(visit) for visit in visits],
        "findings": [finding._asdict() for finding in found],
        "files": {name: {"bytes": len(data), "sha256": sha256(data).hexdigest()} for name, data in files.items()},
    }
    files = {"manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False).encode() + b"\n"} | files
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as out:
        try:
            with tarfile.open(fileobj=out, mode="w:gz") as tar:
                for name, data in files.items():
                    tar.addfile(_entry(name, len(data), made), BytesIO(data))
        except OSError:
            file.unlink()  # half of it is of no use
            raise
    return len(files)


def _of_brokers(visits: Sequence[Visit]) -> Iterator[tuple[str, bytes]]:
    for visit in visits:
        for name, data in visit.files.items():
            yield f"{folder(visit)}/{name}", data


def _broker(visit: Visit) -> dict[str, Any]:
    about = {"admin": str(visit.address), "folder": folder(visit) if visit.files else None, "missing": visit.missing}
    if STIMULI in visit.files:
        first = json.loads(visit.files[STIMULI].partition(b"\n")[0])
        about["stimuli_before"] = first.get("gone", 0)
    return about


def folder(visit: Visit) -> str:
    """Two brokers may be of one number: in different clusters, or by mistake."""
    return f"{visit.name} at {visit.address}".translate(_PLAIN)


_PLAIN = str.maketrans({" ": "-", ":": "-", "[": "", "]": ""})


def _entry(name: str, size: int, made: datetime) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
    entry.size, entry.mode, entry.mtime = size, _OWNER_ONLY, int(made.timestamp())
    return entry
