"""docs/taps.md, made from the definition of the rows: python -m mercast.taps.document > FILE."""

import sys
from collections.abc import Iterable

from mercast.protocol.columns import COLUMNS, CONTROL_ROWS, HEADER, TAP_ROWS, VERSION, Column
from mercast.protocol.repeated import FROM, MOST_LAID_OUT, MOST_ROWS, OF, ROWS, RUNS
from mercast.protocol.tap_messages import MOST_BYTES

_HEAD = f"""\
# Taps

Made by `make docs` from the definition of the rows (`protocol/rows.py`).

A broker can tell what it did: to Kafka (`mercast broker --taps kafka://host:9092`) or into files
(`--taps file:///var/log/mercast/taps`). `mercast kafka` runs a Kafka on this machine for those who have none.
`sampling` says which share of the events is told of: the same ones at every broker, by a hash of the publisher's broker
and of the time at which that read them. What it read together is told of together, or not at all: under load hundreds
of events that follow each other, else each by itself. Traced events are always told of. A tap never slows routing: what
it cannot ship in time it loses, and that shows as a gap in its numbers. All keys are in
[configuration.md](configuration.md).

## Topics

| topic | holds | key |
|---|---|---|
| `mercast.taps` | rows about events, and ticks | none: all rows of an event lie in one partition |
| `mercast.control` | rows about control state, never sampled | the number of the broker |
| `mercast.metrics` | what Spark makes of them, compacted | window, strategy, cluster, broker |

Brokers make them when they start, as `mercast taps init` does; what is there already stays as it is. If the topic of
taps has another number of partitions than `taps_partitions` says, that is an error: readers rely on all rows of an
event being in one.

Control rows are written as things change, and again all together at the start of a broker and every ten minutes,
between two rows `snapshot`. So a reader that starts later knows everything after ten minutes.

## Messages

A message is one JSON object: its header, and under the name of each kind the rows of that kind, as columns. A column
is an array with a value for each row; or, of rows about events, it is written as runs, under `{RUNS}`, where the same
value follows itself: `{OF}` has the values, and `{ROWS}` for how many rows each stands. The numbers of events are also
written as runs that rise, with `{FROM}` in the place of `{OF}`: the first, and how many rows it is until one does not
follow the one before. A kind without rows is left out. In files, each message is a line.

```json
{{"version":{VERSION},"broker":3,"incarnation":1763380000000,"cluster":"default","strategy":"ddbr","first":120,"count":8,
 "dropped":{{"{RUNS}":{{"event_sequence":{{"{FROM}":[7,12],"{ROWS}":[4,4]}},"event_broker":{{"{OF}":[1],"{ROWS}":[8]}},
 "event_incarnation":{{"{OF}":[1763380000001],"{ROWS}":[8]}},"time":{{"{OF}":[1763380005000000,1763380005000400],"{ROWS}":[3,5]}},
 "why":{{"{OF}":["no route"],"{ROWS}":[8]}},"at":{{"{OF}":[1763380006000000],"{ROWS}":[8]}}}}}}}}
```

Messages of versions 1 and 2, which had no runs, and none that rise, are read as well.

Times are whole microseconds since 1970. Each broker in each of its incarnations numbers the rows of each topic and
partition from 0; lost rows use up numbers. Where nothing follows what was lost, a message without rows does. A message
has at most {MOST_BYTES:,} bytes and {MOST_ROWS:,} rows; a row that is larger on its own is told without attributes
and filter. Spark's jobs set a message aside if it says that it has more, or if a column would take more than
{MOST_LAID_OUT // 2**20} MiB when its runs are laid out.

Readers skip columns and kinds that they do not know and take absent columns for null; they set messages of a higher
version aside. What taps may hold of attributes, filters and client ids is configured (`taps_attributes`,
`taps_filters`, `taps_clients`: `all`, `none`, or a list); the rest is null.
"""

_PART = """
### {kind}

{about}

"""


def document() -> str:
    parts = [_HEAD, "\n### The header\n\n", *_table(HEADER), "\n## Rows about events and brokers\n"]
    parts += _parts(TAP_ROWS)
    parts += ["\n## Rows about control state\n", *_parts(CONTROL_ROWS)]
    return "".join(parts)


def _parts(rows: dict[str, type]) -> Iterable[str]:
    for kind, row in rows.items():
        yield _PART.format(kind=kind, about=row.__doc__)
        yield from _table(COLUMNS[kind])


def _table(columns: Iterable[Column]) -> Iterable[str]:
    yield "| column | kind | null | meaning |\n|---|---|---|---|\n"
    for column in columns:
        null = "may be" if column.nullable else ""
        yield f"| `{column.name}` | {column.kind} | {null} | {column.meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(document())
