"""The filters that are folded into the index, laid out for the inner loop: slots, checks, bitmaps."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from mercast.content.filter import Filter
from mercast.content.values import INT_MAX, INT_MIN
from mercast.limits import Limits
from mercast.matching.bitmaps import Bitmaps, build
from mercast.matching.codes import KINDS, STRING, Strings
from mercast.matching.coding import Coding
from mercast.matching.slots import (
    CHECK,
    SLOT,
    Array,
    Check,
    Growing,
    checks_of,
    chosen,
    recoded,
    strings_used,
    texts_of,
)

_GONE = object()
"""Stands in `ids` for a filter that was removed."""


_PUT_COST = 16
"""Laying one more filter into the table costs as much as this many when all are laid anew."""


class Entry(NamedTuple):
    """A filter as it was added."""

    id: Any
    filter: Filter
    destination: Any


def is_number(id: Hashable) -> bool:
    return type(id) is int and INT_MIN <= id <= INT_MAX


class Table:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = Growing(np.zeros(0, SLOT))
        self._checks = Growing(np.zeros(0, CHECK))
        self._places: dict[Hashable, list[int]] = {}
        self.coding = Coding()
        self.bitmaps = Bitmaps([], 0, 0)
        self.ids: list[Any] = []
        """The id of each slot's filter."""
        self._other_ids = self._several_boxes = False
        """Whether an id was seen that is no int, and a filter with several slots."""
        self.loose: dict[int, Filter] = {}
        """The filters of loose slots."""
        self.destinations: list[Any] = []
        self._destination_numbers: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: Hashable) -> bool:
        return id in self._places

    @property
    def slots(self) -> Array:
        return self._slots.rows

    @property
    def checks(self) -> Array:
        return self._checks.rows

    @property
    def nbytes(self) -> int:
        return self.bitmaps.nbytes + self._slots.nbytes + self._checks.nbytes

    def ids_of(self, slots: Array) -> list[Any]:
        """The ids of these slots' filters, ascending, each once though two of its boxes may match."""
        if not self._other_ids:  # straight from the slots, which the loop has just read: no object is looked up
            numbers = self.slots["id"][slots]
            ids: list[Any] = (np.unique(numbers) if self._several_boxes else np.sort(numbers)).tolist()
            return ids
        return sorted({self.ids[slot] for slot in slots.tolist()})

    def destinations_of(self, slots: Array) -> list[Any]:
        """The destinations of these slots, ascending, each once."""
        return sorted({self.destinations[number] for number in self.slots["destination"][slots].tolist()})

    def remove(self, id: Hashable) -> None:
        for slot in self._places.pop(id):
            self.ids[slot] = _GONE
            self.loose.pop(slot, None)
            self.bitmaps.release(slot)

    def fold(self, entries: list[Entry]) -> None:
        """Take in new filters: into the room that is left, or by laying everything anew."""
        many = len(entries) * _PUT_COST > len(self.ids)
        for count, entry in enumerate(entries):
            if many or not self._has_room(entry):
                self._lay_anew(entries[count:])
                return
            for slot in self._append(entry):
                row = self.slots[slot]
                self.bitmaps.put(slot, self.checks[row["first"] : row["last"]].tolist())

    def _has_room(self, entry: Entry) -> bool:
        """Whether there are slots for it, and codes for its strings (which it takes at once)."""
        boxes = entry.filter.boxes.union
        return len(self.ids) + len(boxes) <= self.bitmaps.capacity and all(
            self.coding.strings[self.coding.number(name)].extend(texts_of(states))
            for box in boxes
            for name, states in box.items()
        )

    def _append(self, entry: Entry) -> list[int]:
        """Slots and checks of a new filter, not yet in the bitmaps."""
        places = self._places[entry.id] = []
        self._other_ids = self._other_ids or not is_number(entry.id)
        self._several_boxes = self._several_boxes or len(entry.filter.boxes.union) > 1
        for box in entry.filter.boxes.union:
            rows: list[Check] = []
            loose = not entry.filter.boxes.exact
            for name, states in box.items():
                number = self.coding.number(name)
                checks, checks_are_loose = checks_of(number, states, self.coding.strings[number])
                rows += checks
                loose = loose or checks_are_loose
            slot, first = len(self.ids), len(self.checks)
            self._checks.extend(rows)
            number = entry.id if is_number(entry.id) else 0
            self._slots.extend([(first, first + len(rows), self._destination(entry.destination), loose, number)])
            self.ids.append(entry.id)
            places.append(slot)
            if loose:
                self.loose[slot] = entry.filter
        return places

    def _destination(self, destination: Any) -> int:
        number = self._destination_numbers.setdefault(destination, len(self.destinations))
        if number == len(self.destinations):
            self.destinations.append(destination)
        return number

    # -- laying anew: what is gone is dropped, strings are spaced evenly, similar slots become neighbours -------------

    def _lay_anew(self, entries: list[Entry]) -> None:
        self._choose(np.array([slot for slot, id in enumerate(self.ids) if id is not _GONE], np.intp))
        self._renumber()
        self._space_strings(entries)
        for entry in entries:
            self._append(entry)
        self.bitmaps, order = build(self.slots, self.checks, self._limits)
        self._choose(order)

    def _choose(self, order: Array) -> None:
        """Keep these slots, in this order."""
        slots, checks = chosen(self.slots, self.checks, order)
        self._slots, self._checks = Growing(slots), Growing(checks)
        old = order.tolist()
        self.ids = [self.ids[slot] for slot in old]
        self.loose = {new: self.loose[slot] for new, slot in enumerate(old) if slot in self.loose}
        self._places = {id: [] for id in self._places}
        for slot, id in enumerate(self.ids):
            self._places[id].append(slot)

    def _renumber(self) -> None:
        """Number the attributes and destinations that are still in use."""
        used, numbers = np.unique(self.checks["key"] // KINDS, return_inverse=True)
        names = list(self.coding.numbers)
        self.coding = Coding([names[old] for old in used], [self.coding.strings[old] for old in used])
        self.checks["key"] = numbers * KINDS + self.checks["key"] % KINDS
        used, numbers = np.unique(self.slots["destination"], return_inverse=True)
        self.destinations = [self.destinations[old] for old in used]
        self._destination_numbers = {destination: number for number, destination in enumerate(self.destinations)}
        self.slots["destination"] = numbers

    def _space_strings(self, entries: Iterable[Entry]) -> None:
        """New dictionaries with just the strings in use, those of new filters among them."""
        texts: dict[int, set[str]] = {}
        for entry in entries:
            for box in entry.filter.boxes.union:
                for name, states in box.items():
                    texts.setdefault(self.coding.number(name), set()).update(texts_of(states))
        checks = self.checks
        of_strings = np.flatnonzero(checks["key"] % KINDS == STRING)
        of_strings = of_strings[np.argsort(checks["key"][of_strings], kind="stable")]
        keys, starts = np.unique(checks["key"][of_strings], return_index=True)
        mine = dict(zip((keys // KINDS).tolist(), np.split(of_strings, starts[1:]), strict=True)) if len(keys) else {}
        for number, old in enumerate(self.coding.strings):
            if number not in mine:
                self.coding.strings[number] = Strings(texts.get(number, ()))
                continue
            bounds = np.concatenate([checks["low"][mine[number]], checks["high"][mine[number]]])
            used = strings_used(bounds[np.isfinite(bounds)], old)
            new = Strings(texts.get(number, set()).union(old.ordered[place] for place in used))
            self.coding.strings[number] = new
            checks["low"][mine[number]], checks["high"][mine[number]] = np.split(recoded(bounds, old, new), 2)
