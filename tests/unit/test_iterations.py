"""Expressions over loop counters: whatever they look like, they must have the values they were made for."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesco.emit.iterations import Trip, number_text, only_in
from kesco.ir.flow import Iteration


def loop(trips: int, first: int = 0, step: int = 1, counter: str = "i") -> list[Trip]:
    return [(Iteration(0, counter, n, trips, first + n * step, first, step),) for n in range(trips)]


def value(text: str, trip: Trip) -> int:
    """The expression's value in one iteration, with C's division of numbers that are not negative."""
    names = {level.counter: level.value for level in trip}
    *chain, last = text.replace("||", "or").replace("&&", "and").replace("/", "//").split(" : ")
    for part in chain:
        test, _, number = part.partition(" ? ")
        if eval(test, {}, names):
            return int(number)
    return int(eval(last, {}, names))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([3, 3, 3], "3"),
        ([0, 1, 2], "i"),
        ([4, 5, 6], "i + 4"),
        ([1, 3, 5], "2 * i + 1"),
        ([0, 0, 1, 1], "i == 0 || i == 1 ? 0 : 1"),
        ([0, 1, 0, 1], "i % 2"),
        ([2, 0, 1], "i == 2 ? 1 : i == 1 ? 0 : 2"),
        ([2, 1, 0], "i == 1 ? 1 : i == 2 ? 0 : 2"),
    ],
)
def test_the_simplest_expression(numbers: list[int], text: str) -> None:
    assert number_text(dict(zip(loop(len(numbers)), numbers, strict=True))) == text


def test_events_of_every_other_iteration() -> None:
    every = loop(6)
    assert number_text({every[0]: 7, every[2]: 8, every[4]: 9}) == "i / 2 + 7"
    assert number_text({every[1]: 7, every[3]: 8, every[5]: 9}) == "i / 2 + 7"
    assert number_text({every[3]: 5, every[5]: 6}) == "i / 2 + 4"


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([2], "i == 2"),
        ([0, 1, 2], "i < 3"),
        ([3, 4, 5], "i >= 3"),
        ([0, 2, 4], "i % 2 == 0"),
        ([1, 4], "i % 3 == 1"),
        ([0, 3, 4], ""),
        ([1, 2], ""),
    ],
)
def test_a_condition_for_some_iterations(chosen: list[int], text: str) -> None:
    every = loop(6)
    assert only_in([every[n] for n in chosen], every) == text


@pytest.mark.parametrize("chosen", [[3, 5], [2, 3], [0, 3, 5], [1, 2, 4], range(6)])
def test_an_inner_loop_that_begins_elsewhere_each_time(chosen: list[int]) -> None:
    """What counts its iterations is not one expression: once two of them were one, which ended in a traceback."""
    every = [(a[0], b[0]) for a in loop(3) for b in loop(3 - a[0].value, a[0].value, counter="j")]
    values = {every[at]: 2 * number + number % 2 for number, at in enumerate(chosen)}
    text = number_text(values)
    assert {trip: value(text, trip) for trip in values} == values


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([0], "i == 0 && j == 0"),
        ([1, 4], "j == 1"),
        ([3, 4, 5], "i == 1"),
        ([3, 5], "i == 1 && j % 2 == 0"),
        ([1, 2, 4, 5], "j >= 1"),
        ([0, 4], ""),
    ],
)
def test_a_condition_in_nested_loops_is_one_for_each_that_makes_a_difference(chosen: list[int], text: str) -> None:
    every = [(a[0], b[0]) for a in loop(2) for b in loop(3, counter="j")]
    assert only_in([every[n] for n in chosen], every) == text


@given(
    st.integers(1, 8), st.integers(-3, 5), st.sampled_from([1, 2, 3, -1, -2]), st.lists(st.integers(0, 9), min_size=8),
    st.sets(st.integers(0, 7), min_size=1),
)  # fmt: skip
def test_every_expression_has_its_values(
    trips: int, first: int, step: int, numbers: list[int], chosen: set[int]
) -> None:
    every = loop(trips, first, step)
    values = {every[n]: numbers[n] for n in sorted(chosen) if n < trips}
    if values:
        text = number_text(values)
        assert [value(text, trip) for trip in values] == list(values.values())
        condition = only_in(values, every)
        if condition:
            assert [bool(value(condition, trip)) for trip in every] == [trip in values for trip in every]


@given(st.integers(1, 3), st.integers(1, 3), st.lists(st.integers(0, 4), min_size=9))
def test_also_in_nested_loops(outer: int, inner: int, numbers: list[int]) -> None:
    every = [(a[0], b[0]) for a in loop(outer) for b in loop(inner, first=2, counter="j")]
    values = dict(zip(every, numbers, strict=False))
    text = number_text(values)
    assert not re.search(r"\bk\b", text)
    assert [value(text, trip) for trip in values] == list(values.values())
    if chosen := [trip for trip, one in values.items() if one]:
        some = {trip: values[trip] for trip in chosen}
        assert [value(number_text(some), trip) for trip in some] == list(some.values())
        if condition := only_in(chosen, every):
            assert [bool(value(condition, trip)) for trip in every] == [trip in chosen for trip in every]
