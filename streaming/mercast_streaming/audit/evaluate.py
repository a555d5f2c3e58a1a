"""Which questions each event answers: all of them put to all events of their types, in one projection of Spark.

A question is a type and a WHERE text that somebody has subscribed (or advertised) with; however many have, it is put
once, and similar ones stand behind what all of them imply (near.py). The projection is thousands of small expressions,
which Spark interprets (`SETTINGS`): with a thousand filters and 50,000 events that took 43 s of processor time where
compiled ones took 111 s. With many more events the two were not compared.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from mercast_streaming.audit.near import Group, together
from mercast_streaming.audit.translate import BOOL, FLOAT, INT, KINDS, STRING, TYPES, Columns, text, translate
from mercast_streaming.audit.where import Where, WhereError, names_of, read
from mercast_streaming.schema import CORRUPT

SETTINGS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Looking for what thousands of expressions have in common takes longer than all of them.
    "spark.sql.subexpressionElimination.enabled": "false",
    # Spark would write out every plan whole, for a page that is not served.
    "spark.sql.maxPlanStringLength": "10000",
}

_GROUP = 50
"""Expressions put together first: a tree, for Spark's planner is slow with very wide ones."""


class Question(NamedTuple):
    type: str | None
    """None: any."""
    where: str


@dataclass(frozen=True)
class Questions:
    """Numbered, read, and those that cannot be answered set aside."""

    asked: dict[Question, int]
    read: dict[int, Where]
    unreadable: dict[int, str] = field(default_factory=dict)
    """Why not, by number: a text that is no filter, or that asks for what taps do not hold."""

    @property
    def asking(self) -> set[int]:
        """Those that ask for any attribute."""
        return {number for number, where in self.read.items() if names_of(where)}

    @property
    def names(self) -> list[str]:
        """All attributes that are asked for."""
        return sorted(set[str]().union(*map(names_of, self.read.values())))


def questions(asked: Iterable[Question], held: Collection[str] | None = None) -> Questions:
    """`held`: the attributes that the taps hold, if they do not hold all."""
    numbers = {question: number for number, question in enumerate(dict.fromkeys(asked))}
    known: dict[int, Where] = {}
    unreadable: dict[int, str] = {}
    for question, number in numbers.items():
        try:
            where = read(question.where)
        except WhereError as error:
            unreadable[number] = f"WHERE {question.where}: {error}"
            continue
        missing = sorted(names_of(where) - set(held)) if held is not None else []
        if missing:
            unreadable[number] = f"WHERE {question.where}: taps do not hold {', '.join(missing)}"
        else:
            known[number] = where
    return Questions(numbers, known, unreadable)


def kinds(events: DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Which values each attribute has, as Spark calls it: BIGINT, STRING, …, or VARIANT if there are several."""
    if not names:
        return {}
    values = _read(names, [T.VariantType()] * len(names))
    each = (F.expr(f"schema_of_variant_agg(_values._{place})").alias(f"_{place}") for place in range(len(names)))
    found = events.select(values.alias("_values")).agg(*each).first()
    return dict(zip(names, found or (), strict=True))


def typed(events: DataFrame, of: Mapping[str, str]) -> DataFrame:
    """With a column for each kind of values that these attributes have (`kinds`), without the text that they are from.

    `told` says whether there was such a text, and one with these kinds only.
    """
    types = [_TYPES.get(kind.partition("(")[0], T.VariantType()) for kind in of.values()]
    kept = [name for name in events.columns if name != "attributes"]
    read_ = events.select(
        *kept, F.col("attributes").isNotNull().alias("_there"), _read(list(of), types).alias("_values")
    )
    told = F.expr(f"_there AND _values._{len(of)} IS NULL").alias("told")
    read_ = read_.select(*kept, told, *(F.col(f"_values._{place}") for place in range(len(of))))
    variants = [place for place, type_ in enumerate(types) if isinstance(type_, T.VariantType)]
    read_ = read_.select("*", *(F.expr(f"schema_of_variant(_{place})").alias(f"_kind{place}") for place in variants))
    columns = [
        F.expr(how.format(place)).alias(column(place, kind))
        for place, given in enumerate(of.values())
        for kind, how in _columns(given).items()
    ]
    return read_.select(*kept, "told", *columns)


def _read(names: Sequence[str], types: Sequence[T.DataType]) -> Column:
    """Attributes by their places, for Spark does not tell names apart that differ by case; last, what does not fit."""
    fields = [T.StructField(name, type_) for name, type_ in zip(names, types, strict=True)]
    schema = T.StructType([*fields, T.StructField(CORRUPT, T.StringType())])
    by_place = [T.StructField(f"_{place}", field.dataType) for place, field in enumerate(schema.fields)]
    return F.from_json("attributes", schema, {"columnNameOfCorruptRecord": CORRUPT}).cast(T.StructType(by_place))


_TYPES: dict[str, T.DataType] = {
    "BIGINT": T.LongType(),
    "STRING": T.StringType(),
    "BOOLEAN": T.BooleanType(),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), T.StringType()),  # as it is written: there may be ints among them
    "VOID": T.StringType(),
}
"""By the kinds of an attribute's values, what it is read as; as a variant, if they are several."""

_FLOATS = "(contains(_{0}, '.') OR contains(_{0}, 'e') OR contains(_{0}, 'E'))"
_IS = {
    INT: "_kind{0} = 'BIGINT'",
    FLOAT: "(_kind{0} = 'DOUBLE' OR _kind{0} LIKE 'DECIMAL%')",
    STRING: "_kind{0} = 'STRING'",
    BOOL: "_kind{0} = 'BOOLEAN'",
}


def _columns(given: str) -> dict[str, str]:
    """The columns that there are for such values, and how they are got from what was read."""
    match given.partition("(")[0]:
        case "VOID":
            return {}
        case "BIGINT":
            return {INT: "_{0}"}
        case "STRING":
            return {STRING: "_{0}"}
        case "BOOLEAN":
            return {BOOL: "_{0}"}
        case "DOUBLE" | "FLOAT" | "DECIMAL":
            return {
                INT: f"CASE WHEN NOT {_FLOATS} THEN CAST(_{{0}} AS BIGINT) END",
                FLOAT: f"CASE WHEN {_FLOATS} THEN CAST(_{{0}} AS DOUBLE) END",
            }
        case _:
            get = "CASE WHEN {} THEN try_variant_get(_{{0}}, '$', '{}') END"
            return {kind: get.format(_IS[kind], TYPES[kind]) for kind in KINDS}


def column(place: int, kind: str) -> str:
    return f"{kind}{place}"


def answered(
    events: DataFrame, asked: Questions, of: Mapping[str, str], subtypes: Mapping[str, Collection[str]]
) -> DataFrame:
    """Events with `answers`, the numbers of the questions that are true of them; `attributes` are used up.

    `of` has the kinds of the attributes that are asked for. Of an event whose attributes were not told only questions
    that ask for none are answered.
    """
    places = {name: place for place, name in enumerate(of)}
    there = {(name, kind) for name, given in of.items() for kind in _columns(given)}

    def columns(name: str, kind: str) -> str:
        return column(places[name], kind) if (name, kind) in there else f"CAST(NULL AS {TYPES[kind]})"

    by_need: dict[tuple[str | None, bool], dict[int, Where]] = {}
    for question, number in asked.asked.items():
        if number in asked.read:
            where = asked.read[number]
            by_need.setdefault((question.type, bool(names_of(where))), {})[number] = where
    parts = []
    for (type_, asks), filters in by_need.items():
        needs = ["told"] if asks else []
        if type_ is not None:
            types = ", ".join(f"'{text(one)}'" for one in sorted({type_, *subtypes.get(type_, ())}))
            needs.append(f"type IN ({types})")
        groups = [_cases(group, filters, columns) for group in together(filters)]
        parts.append(f"IF({' AND '.join(needs) or 'TRUE'}, {_together(groups)}, '')")
    kept = [name for name in events.columns if name != "attributes"]
    # As text first, with a comma after each: the cheapest way to gather a few of very many.
    found = typed(events, of).select(*kept, "told", F.expr(_together(parts or ["''"])).alias("_found"))
    numbers = F.expr("CASE WHEN _found = '' THEN array() ELSE split(substr(_found, 1, length(_found) - 1), ',') END")
    return found.select(*kept, "told", numbers.cast("array<int>").alias("answers"))


def _cases(group: Group, filters: Mapping[int, Where], columns: Columns) -> str:
    each = [
        _cases(one, filters, columns)
        if isinstance(one, Group)
        else f"IF({translate(filters[one], columns)}, '{one},', '')"
        for one in group.of
    ]
    implied = "TRUE" if group.implied is None else translate(group.implied, columns)
    return f"IF({implied}, {_together(each)}, '')"


def _together(parts: Sequence[str]) -> str:
    while len(parts) > _GROUP:
        parts = [_together(parts[at : at + _GROUP]) for at in range(0, len(parts), _GROUP)]
    return f"concat({', '.join(parts)})"
