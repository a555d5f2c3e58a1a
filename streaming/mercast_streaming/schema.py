"""What Spark reads of a tap message: made from the one definition of its columns (`mercast.protocol.columns`)."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import COLUMNS, EVENT_ROWS, HEADER, Kind
from mercast.protocol.repeated import FROM, MOST_LAID_OUT, MOST_ROWS, OF, ROWS, RUNS

CORRUPT = "_corrupt"
"""Where `from_json` puts the text of what it could not read."""

_TYPES: dict[Kind, T.DataType] = {
    "int": T.LongType(),
    "bool": T.BooleanType(),
    "string": T.StringType(),
    "ints": T.ArrayType(T.LongType()),
    "counts": T.MapType(T.StringType(), T.LongType()),
}


_ROWS = T.StructField(ROWS, T.ArrayType(T.IntegerType()))
RISING = frozenset(column.name for columns in COLUMNS.values() for column in columns if column.rises)
"""Names of columns whose runs may rise."""


def message_schema(read: Mapping[str, Iterable[str]]) -> T.StructType:
    """Of a message's header, and of those columns of its rows that are named by kind; others are skipped unread."""
    fields = [T.StructField(column.name, _TYPES[column.kind]) for column in HEADER]
    fields += [T.StructField(kind, _rows(kind, set(names))) for kind, names in read.items()]
    return T.StructType([*fields, T.StructField(CORRUPT, T.StringType())])


def _rows(kind: str, names: set[str]) -> T.StructType:
    columns = {column.name: T.ArrayType(_TYPES[column.kind]) for column in COLUMNS[kind]}
    if not names <= columns.keys():
        raise ValueError(f"rows of kind {kind} have no column {', '.join(sorted(names - columns.keys()))}")
    read = {name: type_ for name, type_ in columns.items() if name in names}
    fields = [T.StructField(name, type_) for name, type_ in read.items()]
    if kind in EVENT_ROWS:
        runs = T.StructType([T.StructField(name, _runs(type_, name in RISING)) for name, type_ in read.items()])
        fields.append(T.StructField(RUNS, runs))
    return T.StructType(fields)


def _runs(values: T.ArrayType, rise: bool) -> T.StructType:
    names = (OF, FROM) if rise else (OF,)
    return T.StructType([*(T.StructField(name, values) for name in names), _ROWS])


def laid_out(message: str, kind: str, names: Iterable[str]) -> Column:
    """Rows of a kind as arrays of the same length, whichever of them were written as runs; null if there are none. Only
    for messages that are not `too_much`."""
    rows = f"{message}.{kind}"
    if kind not in EVENT_ROWS:
        return F.col(rows)
    struct = F.struct(*(_column(rows, name).alias(name) for name in names))
    return F.when(F.col(rows).isNotNull(), struct)


def too_much(message: str, read: Mapping[str, Iterable[str]]) -> Column:
    """Whether a column says what no message may have: laid out, it might fill the memory."""
    plain, runs, weights = [F.lit(0)], [F.lit(0)], [F.lit(0)]
    for kind, names in read.items():
        plain += [F.size(f"{message}.{kind}.{name}") for name in names]
        for column in COLUMNS[kind] if kind in EVENT_ROWS else ():
            if column.name in names:
                values, counts = (F.col(f"{message}.{kind}.{RUNS}.{column.name}.{part}") for part in (OF, ROWS))
                runs.append(_added(counts, MOST_ROWS))
                if column.kind in _WEIGH:
                    weights.append(_added(F.zip_with(values, counts, _WEIGH[column.kind]), MOST_LAID_OUT))
    most = ((plain, MOST_ROWS), (runs, MOST_ROWS), (weights, MOST_LAID_OUT))
    return reduce(Column.__or__, (F.greatest(F.lit(0), *found) > limit for found, limit in most))


def _added(numbers: Column, most: int) -> Column:
    """What they come to; a number below 0 is more than the most, as it cannot be."""

    def add(before: Column, one: Column) -> Column:
        return before + F.when(one < 0, most + 1).otherwise(F.coalesce(one, F.lit(0)))

    return F.aggregate(numbers, F.lit(0).cast("bigint"), add)


_WEIGH: dict[Kind, Callable[[Column, Column], Column]] = {
    "string": lambda text, many: many.cast("bigint") * F.octet_length(text),
    "ints": lambda ints, many: many.cast("bigint") * 8 * F.size(ints),
}
"""Bytes of a value that stands for so many rows, where it may have many."""


def _column(rows: str, name: str) -> Column:
    def runs(values: str, stands_for: Callable[[Column, Column], Column]) -> Column:
        said, counts = (F.col(f"{rows}.{RUNS}.{name}.{part}") for part in (values, ROWS))
        return F.flatten(F.zip_with(said, counts, stands_for))

    laid = [F.col(f"{rows}.{name}"), runs(OF, lambda value, count: F.array_repeat(value, count))]
    if name in RISING:
        laid.append(runs(FROM, _rising))
    return F.coalesce(*laid)


def _rising(value: Column, count: Column) -> Column:
    return F.when(count > 0, F.sequence(value, value + count - 1)).otherwise(F.array().cast("array<bigint>"))
