"""The filters of an index, laid out for the inner loop: slots and checks at once, bitmaps when they are needed.

A new filter becomes slots and checks, which wait at the end. Before a match those that wait are put into the bitmaps:
one by one while they are few and there is room, else everything is laid anew in one vectorised pass.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from mercast.content.boxes import Box
from mercast.content.filter import Filter
from mercast.content.values import INT_MAX, INT_MIN
from mercast.limits import Limits
from mercast.matching.bitmaps import Bitmaps
from mercast.matching.cells import Cells
from mercast.matching.codes import KINDS, STRING, Strings
from mercast.matching.coding import Coding
from mercast.matching.layout import build
from mercast.matching.loops import Found, Sort, events_of, kept
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
"""Stands in `_ids` for a filter that was removed."""

_PUT_COST = 16
"""Putting one slot into the bitmaps costs as much as this many when all are laid anew."""


def _is_number(id: Hashable) -> bool:
    return type(id) is int and INT_MIN <= id <= INT_MAX


def _split(found: Found) -> list[list[Any]]:
    values, ends = found[0].tolist(), found[1]
    return [values[first:last] for first, last in zip([0, *ends], ends, strict=False)]


class Table:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._slots = Growing(np.zeros(0, SLOT))
        self._checks = Growing(np.zeros(0, CHECK))
        self._ids: list[Any] = []
        """The id of each slot's filter."""
        self._int_ids = Growing(np.zeros(0, np.int64))
        """The same where they are ints, close together: every match looks them up."""
        self._places: dict[Hashable, list[int]] = {}
        """The slots of each id."""
        self._gone = 0
        """Slots of removed filters."""
        self._laid = 0
        """Slots that are in the bitmaps; the others wait."""
        self._destinations: list[Any] = []
        self._destination_numbers: dict[Hashable, int] = {}
        self._other_ids = self._several_boxes = False
        """Whether there was an id that is no int, and a filter with several slots."""
        self.coding = Coding()
        self.bitmaps = Bitmaps(Cells([], 1), 0)
        self.loose: dict[int, Filter] = {}
        """The filters of loose slots."""

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
    def destinations(self) -> int:
        """How many there are."""
        return len(self._destinations)

    @property
    def nbytes(self) -> int:
        return self.bitmaps.nbytes + self._slots.nbytes + self._checks.nbytes + self._int_ids.nbytes

    # -- answers -----------------------------------------------------------------------------------------------------

    def ids_of(self, found: Found, sort: Sort) -> list[list[Any]]:
        """The ids of the slots' filters, event by event, ascending, each once though two of its boxes may match."""
        if self._other_ids:
            return [sorted({self._ids[slot] for slot in slots}) for slots in _split(found)]
        return _split(self.numbers_of(found, sort))

    def numbers_of(self, found: Found, sort: Sort) -> Found:
        """The same of ids that are all ints, in one array."""
        slots, ends = found
        ids = sort((self._int_ids.rows[slots], ends))
        if self._several_boxes:
            event_of = events_of(found)
            new = np.ones(len(ids), np.bool_)
            new[1:] = (ids[1:] != ids[:-1]) | (event_of[1:] != event_of[:-1])
            return kept((ids, ends), new)
        return ids, ends

    def destinations_of(self, found: Found) -> list[list[Any]]:
        """The destinations of the slots, event by event, ascending, each once."""
        slots, ends = found
        numbers = self.slots["destination"][slots]
        packed, each = numbers.tobytes(), numbers.itemsize
        known: dict[bytes, list[Any]] = {}
        """By their numbers, as bytes: the same ones come again and again."""
        answers = []
        begin = 0
        for end in ends:
            some = packed[begin * each : end * each]
            answer = known.get(some)
            if answer is None:
                answer = known[some] = sorted({self._destinations[number] for number in numbers[begin:end].tolist()})
            answers.append(answer)
            begin = end
        return answers

    # -- changes -----------------------------------------------------------------------------------------------------

    def add(self, id: Hashable, filter: Filter, destination: Hashable) -> None:
        is_number, destination_number = _is_number(id), self._destination(destination)
        boxes = filter.boxes
        if self._gone > max(1024, len(self._ids) // 2):
            self._drop_what_is_gone()
        self._other_ids = self._other_ids or not is_number
        self._several_boxes = self._several_boxes or len(boxes.union) > 1
        self._places[id] = list(range(len(self._ids), len(self._ids) + len(boxes.union)))
        for box in boxes.union:
            checks, loose = self._checks_of(box)
            loose = loose or not boxes.exact
            if loose:
                self.loose[len(self._ids)] = filter
            first, last = len(self.checks), len(self.checks) + len(checks)
            self._slots.extend([(first, last, destination_number, loose)])
            self._checks.extend(checks)
            self._ids.append(id)
            self._int_ids.extend([id if is_number else 0])

    def remove(self, id: Hashable) -> None:
        for slot in self._places.pop(id):
            self._ids[slot] = _GONE
            self._gone += 1
            self.loose.pop(slot, None)
            if slot < self._laid:
                self.bitmaps.release(slot)

    def move(self, id: Hashable, destination: Hashable) -> None:
        """Its events go elsewhere: where it lies among the bitmaps has nothing to do with that."""
        self.slots["destination"][self._places[id]] = self._destination(destination)

    def _checks_of(self, box: Box) -> tuple[list[Check], bool]:
        rows: list[Check] = []
        loose = False
        for name, states in box.items():
            number = self.coding.number(name)
            texts = texts_of(states)
            if not self.coding.strings[number].extend(texts):
                self._space_strings(number, texts)
            checks, checks_are_loose = checks_of(number, states, self.coding.strings[number])
            rows += checks
            loose = loose or checks_are_loose
        return rows, loose

    def _destination(self, destination: Hashable) -> int:
        number = self._destination_numbers.setdefault(destination, len(self._destinations))
        if number == len(self._destinations):
            self._destinations.append(destination)
        return number

    # -- laying out --------------------------------------------------------------------------------------------------

    def lay(self) -> None:
        """Bring the bitmaps up to date."""
        waiting = len(self._ids) - self._laid
        if not waiting:
            return
        if len(self._ids) > self.bitmaps.capacity or waiting * _PUT_COST > self._laid:
            self._lay_anew()
        for slot in range(self._laid, len(self._ids)):
            if self._ids[slot] is not _GONE:
                row = self.slots[slot]
                self.bitmaps.put(slot, self.checks[row["first"] : row["last"]].tolist())
        self._laid = len(self._ids)

    def _lay_anew(self) -> None:
        """Similar slots become neighbours; what is gone is dropped."""
        self._drop_what_is_gone()
        self.bitmaps, order = build(self.slots, self.checks, self._limits)
        self._choose(order)
        self._laid = len(self._ids)

    def _drop_what_is_gone(self) -> None:
        """Slots, attributes, destinations and strings that no filter uses any more; everything waits again."""
        self._choose(np.array([slot for slot, id in enumerate(self._ids) if id is not _GONE], np.intp))
        self._gone = self._laid = 0
        self._other_ids = any(not _is_number(id) for id in self._ids)
        self._several_boxes = any(len(places) > 1 for places in self._places.values())
        used, numbers = np.unique(self.checks["key"] // KINDS, return_inverse=True)
        names = list(self.coding.numbers)
        self.coding = Coding([names[old] for old in used], [self.coding.strings[old] for old in used])
        self.checks["key"] = numbers * KINDS + self.checks["key"] % KINDS
        for number in np.unique(self.checks["key"][self.checks["key"] % KINDS == STRING] // KINDS).tolist():
            self._space_strings(number, [])
        used, numbers = np.unique(self.slots["destination"], return_inverse=True)
        self._destinations = [self._destinations[old] for old in used]
        self._destination_numbers = {destination: number for number, destination in enumerate(self._destinations)}
        self.slots["destination"] = numbers

    def _choose(self, order: Array) -> None:
        """Keep these slots, in this order."""
        slots, checks = chosen(self.slots, self.checks, order)
        self._slots, self._checks, self._int_ids = Growing(slots), Growing(checks), Growing(self._int_ids.rows[order])
        old = order.tolist()
        self._ids = [self._ids[slot] for slot in old]
        self.loose = {new: self.loose[slot] for new, slot in enumerate(old) if slot in self.loose}
        self._places = {id: [] for id in self._places}
        for slot, id in enumerate(self._ids):
            self._places[id].append(slot)

    def _space_strings(self, number: int, texts: list[str]) -> None:
        """A new dictionary for an attribute, evenly spaced: the strings in use and these. The bitmaps no longer fit."""
        old = self.coding.strings[number]
        mine = np.flatnonzero(self.checks["key"] == number * KINDS + STRING)
        bounds = np.concatenate([self.checks["low"][mine], self.checks["high"][mine]])
        used = np.unique(strings_used(bounds[np.isfinite(bounds)], old)).tolist()
        new = self.coding.strings[number] = Strings([*texts, *(old.ordered[place] for place in used)])
        self.checks["low"][mine], self.checks["high"][mine] = np.split(recoded(bounds, old, new), 2)
        self._laid = 0
