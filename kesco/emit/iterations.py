"""Numbers that differ from iteration to iteration of an unrolled loop, as C++ expressions over its counters.

In: for each iteration of one operation a number (a stream, an event). Out: the simplest expression that has these
values. Kept apart because it is arithmetic and nothing else.

1. All equal: the number. 2. In step with the counter: ``j + 3``, ``2 * j + 1``, ``j / 2``. 3. Repeating: ``j % n``.
4. Anything else, and where an inner loop begins or ends elsewhere each time: a chain of ``?:`` over the counters. Loops
that make no difference are left out first. Where only some iterations are meant, the condition for them is the shortest
of ``j < 5``, ``j >= 2``, ``j % 2 == 1`` and ``j == 3``, if one of these holds for them alone; of loops in each other,
one for each loop that makes a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import pairwise

from kesco.ir.flow import Iteration

Trip = tuple[Iteration, ...]


def index_text(trip: Trip) -> str:
    """The number of the iteration (from 0, over all unrolled loops around it) as an expression."""
    text = ""
    for level in trip:
        one = level.counter
        if level.step == -1:
            one = f"({level.first} - {one})"
        elif level.first:
            one = f"({one} - {level.first})" if level.first > 0 else f"({one} + {-level.first})"
        if level.step not in (1, -1):
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
    values = _without_idle_loops(values)
    some = next(iter(values))
    if len({tuple((level.first, level.step, level.trips) for level in trip) for trip in values}) > 1:
        return _chain(values)
    by_index = {index_of(trip): number for trip, number in values.items()}
    index = index_text(some)
    plain = "*" not in index and "/" not in index
    in_step = _in_step(by_index, index, plain)
    if in_step:
        return in_step
    modulus = max(distinct) + 1
    if all(number == at % modulus for at, number in by_index.items()):
        return f"{index} % {modulus}" if plain else f"({index}) % {modulus}"
    return _chain(values)


def _chain(values: Mapping[Trip, int]) -> str:
    distinct, single = sorted(set(values.values())), len(next(iter(values))) == 1
    text = str(distinct[-1])
    for number in distinct[:-1]:
        trips = [trip for trip, value in values.items() if value == number]
        test = " || ".join(
            condition_text(trip) if len(trips) == 1 or single else f"({condition_text(trip)})" for trip in trips
        )
        text = f"{test} ? {number} : {text}"
    return text


def truth_text(values: Mapping[Trip, bool]) -> str:
    """A condition over the counters with these values; all iterations belong to one operation."""
    if len(set(values.values())) == 1:
        return "true" if next(iter(values.values())) else "false"
    numbers = _without_idle_loops({trip: int(one) for trip, one in values.items()})
    short = only_in([trip for trip, one in numbers.items() if one], numbers)
    return short or f"({number_text(numbers)}) == 1"


def _without_idle_loops(values: Mapping[Trip, int]) -> Mapping[Trip, int]:
    """The values by the iterations of those loops only that make a difference."""
    for level in range(len(next(iter(values)))):
        fewer: dict[tuple[int, ...], tuple[Trip, int]] = {}
        for trip, one in values.items():
            rest = trip[:level] + trip[level + 1 :]
            fewer.setdefault(tuple(i.value for i in rest), (rest, one))
        if all(fewer[tuple(i.value for i in t[:level] + t[level + 1 :])][1] == one for t, one in values.items()):
            return _without_idle_loops(dict(fewer.values()))
    return values


def _in_step(by_index: Mapping[int, int], index: str, plain: bool) -> str:
    """``a * j + b`` or ``j / a + b`` with these values, or nothing."""
    (first, base), (second, after), *_ = sorted(by_index.items())
    apart, grown = second - first, after - base
    whole = index if plain else f"({index})"
    if grown % apart == 0:
        slope = grown // apart
        shift = base - slope * first
        if slope > 0 and all(number == slope * at + shift for at, number in by_index.items()):
            return _shifted(index if slope == 1 else f"{slope} * {whole}", shift)
    elif grown == 1:
        shift = base - first // apart
        if all(number == at // apart + shift for at, number in by_index.items()):
            return _shifted(f"{whole} / {apart}", shift)
    return ""


def _shifted(text: str, shift: int) -> str:
    return text if shift == 0 else f"{text} + {shift}" if shift > 0 else f"{text} - {-shift}"


def only_in(trips: Collection[Trip], among: Collection[Trip]) -> str:
    """A short condition that holds in these iterations and in no other of them; nothing if there is none.

    Of loops in each other it is a condition for each whose counter makes a difference.
    """
    levels = range(len(next(iter(among))))
    wanted = [{trip[n].value for trip in trips} for n in levels]
    if sum(all(trip[n].value in wanted[n] for n in levels) for trip in among) != len(trips):
        return ""
    texts = []
    for n, one in enumerate(next(iter(among))):
        every = {trip[n].value for trip in among}
        if wanted[n] != every or len(levels) == 1:
            texts.append(_only_values(one.counter, wanted[n], every))
    return " && ".join(texts) if all(texts) else ""


def _only_values(counter: str, wanted: set[int], every: set[int]) -> str:
    candidates = [(f"{counter} == {v}", {v}) for v in sorted(wanted)[:1]]
    candidates += [(f"{counter} < {limit + 1}", {v for v in every if v <= limit}) for limit in (max(wanted),)]
    candidates += [(f"{counter} >= {limit}", {v for v in every if v >= limit}) for limit in (min(wanted),)]
    if min(every) >= 0:
        steps = {b - a for a, b in pairwise(sorted(wanted))}
        candidates += [
            (f"{counter} % {n} == {min(wanted) % n}", {v for v in every if v % n == min(wanted) % n}) for n in steps
        ]
    return next((text for text, holds in candidates if holds == wanted), "")
