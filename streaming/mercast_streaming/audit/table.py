"""Small tables that the driver knows, for Spark to join with."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it


def table(spark: SparkSession, columns: Mapping[str, str], rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Columns by their names, with their types; structs in them are mappings.

    It goes as a text, which Spark reads itself: of what `createDataFrame` makes, a Python process tells at every use.
    """
    text = json.dumps([dict(zip(columns, row, strict=True)) for row in rows])
    types = ", ".join(f"{name}: {type_}" for name, type_ in columns.items())
    return spark.range(1).select(F.inline(F.from_json(F.lit(text), f"array<struct<{types}>>")))
