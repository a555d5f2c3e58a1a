"""What Spark reads of a tap message: made from the one definition of its columns (`mercast.protocol.columns`)."""

from collections.abc import Iterable, Mapping

from pyspark.sql import types as T  # noqa: N812 - as everybody calls it

from mercast.protocol.columns import COLUMNS, HEADER, Kind

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
    return T.StructType([T.StructField(name, type_) for name, type_ in columns.items() if name in names])
