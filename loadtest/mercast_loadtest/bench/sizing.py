"""docs/sizing.md, made from what `make bench` measured: python -m mercast_loadtest.bench.sizing FOLDER FILE.

The folder has a JSON file of each bench. Words are in sizing.md beside this file; its figures come from there, or are
worked out from them here. So the document says what this build does, on the machine that it names.
"""

import json
import os
import platform
import sys
from math import ceil
from pathlib import Path
from typing import Any

BENCHES = ("all", "hop", "chain", "forward", "line", "crowd", "idle", "taps", "metrics", "audit")

_MIB = 1024 * 1024
_HALF = 0.5
"""The share of a processor that a broker should take."""
_ASKED = {"events": 10_000, "share": 0.2, "clients": 20_000, "subscriptions": 100_000}
"""Of the example: events a second, the share of brokers that want each, clients, all their subscriptions."""


_ENOUGH = (
    "{brokers} brokers then work {busy:.0%} of the time each; {fewer} would {busier:.0%}. Half is enough, for bursts "
    "and for the absence of one. Have one more, for upgrades.\n"
    "- Each takes {mib:,} MiB, of which {connections:,.0f} are for {clients:,.0f} connections by TLS: "
    "`brokers.resources.limits.memory={limit}Mi` leaves as much again for queues."
)
_NEVER_ENOUGH = (
    "No number of brokers is enough: each wants its share of all events, and {brokers:,} would still work {busy:.0%} "
    "of the time. Several clusters, or subscribers gathered by what they want, would be."
)


def document(measured: dict[str, Any]) -> str:
    template = Path(__file__).with_suffix(".md").read_text()
    return template.format_map(measured | _derived(measured) | {"asked": _ASKED, "example": _example(measured)})


def _derived(measured: dict[str, Any]) -> dict[str, Any]:
    line, audit, idle, crowd = (measured[name] for name in ("line", "audit", "idle", "crowd"))
    ddbr, merc = line["index"]["ddbr"], line["index"]["merc"]
    costs = {"hop": measured["hop"], "crowd": crowd} | measured["forward"]
    return {
        "machine": f"{os.cpu_count()} processors ({platform.machine()}, Python {platform.python_version()})",
        "half": {name: _HALF * 1e6 / costs[name]["cpu_us_per_event"] for name in ("hop", "crowd", "same", "varied")},
        "indexes": "\n".join(map(_index_row, measured["all"])),
        "mib": {"alone": idle["before_bytes"] / _MIB},
        "kib": {
            "idle": idle["bytes_per_connection"] / 1024,
            "tls": idle["tls_bytes_per_connection"] / 1024,
            "subscriber": crowd["bytes_per_subscriber"] / 1024,
        },
        "matches": {"ddbr": sum(ddbr["matches_per_event"]), "merc": sum(merc["matches_per_event"])},
        "merc_cpu": merc["cpu_us_in_all"] / ddbr["cpu_us_in_all"],
        "taps_sides": "\n".join(
            f"| {name} | {side['ratio']:.2f} | {side['brokers_ratio']:.2f} |"
            for name, side in measured["taps"]["sides"].items()
        ),
        "tap_bytes": 1e6 * audit["tap_megabytes"] / audit["events"],
        "deliveries": audit["pairs"] / audit["events"],
    }


def _index_row(one: dict[str, Any]) -> str:
    time, memory = one["us_per_event"]["mean"], one["memory_bytes"] / 1e6
    changes = f"{one['build_seconds']:.1f} | {one['longest_change_ms']:.0f}"
    return f"| {one['name'].removesuffix(' filters')} | {time:.0f} | {memory:,.0f} | {changes} |"


def _example(measured: dict[str, Any]) -> dict[str, Any]:
    """How many brokers the example needs, and what each takes."""
    hop, crowd = measured["hop"]["cpu_us_per_event"], measured["crowd"]
    index = min(measured["all"], key=lambda one: abs(_filters(one) - _ASKED["subscriptions"]))
    publishing = hop + index["us_per_event"]["mean"]
    copy = hop + measured["forward"]["varied"]["cpu_us_per_event"]

    def busy(brokers: int) -> float:
        wanted = (1 - 1 / brokers) * _ASKED["share"]
        return float(_ASKED["events"] * (publishing / brokers + wanted * copy) / 1e6)

    most = 1_000  # beyond which one more makes no difference: each broker wants its share of all events
    brokers = next((count for count in range(2, most) if busy(count) <= _HALF), most)
    told = _ENOUGH if busy(brokers) <= _HALF else _NEVER_ENOUGH
    each = _ASKED["clients"] / brokers
    clients = each * measured["idle"]["tls_bytes_per_connection"]
    # The first subscription of a client counts its connection, which the others have already.
    subscription = max(0.0, crowd["bytes_per_subscriber"] - crowd["bytes_per_connection"])
    subscribed = _ASKED["subscriptions"] / brokers * subscription
    memory = measured["idle"]["before_bytes"] + index["memory_bytes"] + clients + subscribed
    found = {"brokers": brokers, "busy": busy(brokers), "fewer": brokers - 1, "busier": busy(brokers - 1)}
    found |= {"mib": ceil(memory / _MIB), "limit": ceil(2 * memory / _MIB / 64) * 64}
    enough = told.format(**found, clients=each, connections=clients / _MIB)
    return {"like": index["name"], "publishing": publishing, "enough": enough}


def _filters(result: dict[str, Any]) -> int:
    return int(result["name"].removesuffix(" filters").rpartition(", ")[2].replace(",", ""))


def main(folder: Path, file: Path) -> None:
    missing = [name for name in BENCHES if not (folder / f"{name}.json").is_file()]
    if missing:
        sys.exit(f"{folder} has no figures of {', '.join(missing)}: make bench has them")
    file.write_text(document({name: json.loads((folder / f"{name}.json").read_text()) for name in BENCHES}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
