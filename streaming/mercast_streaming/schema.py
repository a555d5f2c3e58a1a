"""What Spark reads of a tap message: made from the one definition of its columns (`mercast.protocol.columns`)."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import COLUMNS, EVENT_ROWS, HEADER, Kind
from mercast.protocol.repeated import MOST_LAID_OUT, MOST_ROWS, OF, ROWS, RUNS

CORRUPT = "_corrupt"
"""Where `from_json` puts the text of what it could not read."""

_TYPES: dict[Kind, T.DataType] = {
    "int": T.LongType(),
    "bool": T.BooleanType(),
    "string": T.StringType(),
    "ints": T.ArrayType(T.LongType()),
    "counts": T.MapType(T.StringType(), T.LongType()),
}


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
        runs = T.StructType([T.StructField(name, _runs(type_)) for name, type_ in read.items()])
        fields.append(T.StructField(RUNS, runs))
    return T.StructType(fields)


def _runs(values: T.ArrayType) -> T.StructType:
    return T.StructType([T.StructField(OF, values), T.StructField(ROWS, T.ArrayType(T.IntegerType()))])


def laid_out(message: str, kind: str, names: Iterable[str]) -> Column:
    """Rows of a kind as arrays of the same length, whichever of them were written as runs; null if there are none, or
    if they are too much (`too_much`)."""
    rows, names = f"{message}.{kind}", list(names)
    if kind not in EVENT_ROWS:
        return F.when(~_any_too_much(rows, kind, names), F.col(rows))
    struct = F.struct(*(_column(rows, name).alias(name) for name in names))
    return F.when(F.col(rows).isNotNull() & ~_any_too_much(rows, kind, names), struct)


def too_much(message: str, read: Mapping[str, Iterable[str]]) -> Column:
    """Whether some rows say that they are more than a message may have: laid out, they might fill the memory."""
    return reduce(Column.__or__, (_any_too_much(f"{message}.{kind}", kind, names) for kind, names in read.items()))


def _any_too_much(rows: str, kind: str, names: Iterable[str]) -> Column:
    kinds = {column.name: column.kind for column in COLUMNS[kind]}
    return reduce(Column.__or__, (_too_much(rows, kind in EVENT_ROWS, name, kinds[name]) for name in names))


def _too_much(rows: str, has_runs: bool, name: str, kind: Kind) -> Column:
    more = F.coalesce(F.size(f"{rows}.{name}") > MOST_ROWS, F.lit(False))
    if not has_runs:
        return more
    values, counts = (F.col(f"{rows}.{RUNS}.{name}.{part}") for part in (OF, ROWS))
    counts = F.transform(counts, lambda count: F.greatest(count, F.lit(0)).cast("bigint"))
    found = [(counts, MOST_ROWS)]
    if kind in _WEIGH:
        found.append((F.zip_with(values, counts, lambda value, count: count * _WEIGH[kind](value)), MOST_LAID_OUT))
    for numbers, most in found:
        added = F.aggregate(numbers, F.lit(0).cast("bigint"), lambda before, one: before + F.coalesce(one, F.lit(0)))
        more |= F.coalesce(added > most, F.lit(False))
    return more


_WEIGH: dict[Kind, Callable[[Column], Column]] = {"string": F.octet_length, "ints": lambda ints: 8 * F.size(ints)}
"""Bytes of a value, where it may have many."""


def _column(rows: str, name: str) -> Column:
    values, counts = (F.col(f"{rows}.{RUNS}.{name}.{part}") for part in (OF, ROWS))
    each = F.zip_with(values, counts, lambda value, count: F.array_repeat(value, count))
    return F.coalesce(f"{rows}.{name}", F.flatten(each))
