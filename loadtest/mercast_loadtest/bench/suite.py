"""All benches, one process each: memory is measured on a fresh process, and none warms the next one's caches."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mercast_loadtest.bench.report import console

MATCHING = (
    ("uniform", 10_000),
    ("uniform", 100_000),
    ("stock", 100_000),
    ("zipf", 10_000),
    ("zipf", 100_000),
    ("uniform", 1_000_000),
)


def run_all(largest: int) -> list[dict[str, Any]]:
    return [_run(workload, filters) for workload, filters in MATCHING if filters <= largest]


def _run(workload: str, filters: int) -> dict[str, Any]:
    console.print(f"matching: {workload}, {filters:,} filters …")
    with TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        bench = [sys.executable, "-m", "mercast.cli", "bench", "matching", "--json", str(file)]
        asked = ["--workload", workload, "--filters", str(filters)]
        subprocess.run([*bench, *asked], check=True, stdout=subprocess.DEVNULL)
        result: dict[str, Any] = json.loads(file.read_text())
        return result
