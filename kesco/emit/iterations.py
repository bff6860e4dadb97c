"""Numbers that differ from iteration to iteration of an unrolled loop, as C++ expressions over its counters.

In: for each iteration of one operation a number (a stream, an event). Out: the simplest expression that has these
values. Kept apart because it is arithmetic and nothing else.

1. All equal: the number. 2. Consecutive with the counter: ``base + j``. 3. Repeating: ``j % n``. 4. Anything else: a
chain of ``?:`` over the counters.
"""

from __future__ import annotations

from collections.abc import Mapping

from kesco.ir.flow import Iteration

Trip = tuple[Iteration, ...]


def index_text(trip: Trip) -> str:
    """The number of the iteration (from 0, over all unrolled loops around it) as an expression."""
    text = ""
    for level in trip:
        one = level.counter
        if level.first:
            one = f"({one} - {level.first})" if level.first > 0 else f"({one} + {-level.first})"
        if level.step != 1:
            one = f"{one} / {level.step}" if level.step > 0 else f"-{one} / {-level.step}"
        text = f"({text}) * {level.trips} + {one}" if text else one
    return text


def index_of(trip: Trip) -> int:
    """The number of the iteration, from 0."""
    value = 0
    for level in trip:
        value = value * level.trips + level.index
    return value


def condition_text(trip: Trip) -> str:
    """The condition under which the loops are in this iteration."""
    return " && ".join(f"{level.counter} == {level.value}" for level in trip)


def number_text(values: Mapping[Trip, int]) -> str:
    """An expression over the counters with these values; all iterations belong to one operation."""
    distinct = sorted(set(values.values()))
    if len(distinct) == 1:
        return str(distinct[0])
    some = next(iter(values))
    by_index = {index_of(trip): number for trip, number in values.items()}
    index = index_text(some)
    plain = "*" not in index and "/" not in index
    (first, base) = min(by_index.items())
    if all(number - base == at - first for at, number in by_index.items()):
        shift = base - first
        return index if shift == 0 else f"{index} + {shift}" if shift > 0 else f"{index} - {-shift}"
    modulus = max(distinct) + 1
    if all(number == at % modulus for at, number in by_index.items()):
        return f"{index} % {modulus}" if plain else f"({index}) % {modulus}"
    text = str(distinct[-1])
    for number in distinct[:-1]:
        trips = [trip for trip, value in values.items() if value == number]
        test = " || ".join(
            condition_text(trip) if len(trips) == 1 or len(some) == 1 else f"({condition_text(trip)})" for trip in trips
        )
        text = f"{test} ? {number} : {text}"
    return text
