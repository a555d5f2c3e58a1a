"""Figures that a job has written, as tests compare them."""

from datetime import UTC, datetime

from in_kafka import figures_in
from pyarrow.dataset import dataset

from mercast_streaming import synthetic


def known_windows(found):
    """Without the window of the row that only closed the others, and without what has no broker."""
    return {key: row for key, row in found.items() if key[1] is not None}


def by_key(rows):
    return {synthetic.key_of(row): row for row in rows}


def history_in(folder):
    """All that was written there as Parquet; times in it have no zone, and are UTC."""
    return [
        {name: value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in dataset(folder, format="parquet").to_table().to_pylist(maps_as_pydicts="strict")
    ]


def written_once(said, history, known):
    """Each figure that is known, in the topic (with the same value whenever it was said) and in the history."""
    values = {}
    for key, value in said:
        assert values.setdefault(key, value) == value
    assert synthetic.differences(known_windows(figures_in(values.values())), known) == []
    rows = history_in(history)
    assert len(rows) == len(values)
    assert synthetic.differences(known_windows(by_key(rows)), known) == []
