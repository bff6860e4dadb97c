"""Answers on the paths of an execution, as far as they say anything: drafts → steps.

In: all drafts of a walk. Out: frozen steps, numbered anew. Of the answers only those stay whose question is asked in
two places, or once more in the next trip: with them a path that would answer one question in two ways is none.

A question of the next trip is that of this one with what a loop counts replaced by what it counts next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kesco.analysis.host_order.steps import Draft, Scope
from kesco.ir.execution import Step, StepKind

_Question = tuple[Scope, str]
_COUNTED = re.compile(r"phi\(-?\w+, (\w+ int\d+\(#1, -?\w+\))\)")  # what begins so, and goes on so


def answered(drafts: Sequence[Draft]) -> tuple[Step, ...]:
    """The steps, with the answers that matter."""
    places: dict[_Question, set[int]] = {}
    for one in drafts:
        if one.kind is StepKind.ANSWER:
            places.setdefault((one.scope, one.name), set()).add(one.asked)
    carried = {one.number: dict(_carried(one.scope, places)) for one in drafts if one.kind is StepKind.LOOP}
    matter = {key for each in carried.values() for pair in each.items() for key in pair}
    matter |= {which for which, where in places.items() if len(where) > 1}
    gone = {one.number for one in drafts if one.kind is StepKind.ANSWER and (one.scope, one.name) not in matter}
    kept = [one for one in drafts if one.number not in gone]
    numbers = {one.number: index for index, one in enumerate(kept)}
    found = []
    for one in kept:
        after = tuple(sorted(numbers[number] for number in _behind(drafts, one, gone)))
        step = replace(one.frozen(), number=numbers[one.number], after=after)
        if one.kind is StepKind.ANSWER:
            step = replace(step, answer=(_key((one.scope, one.name)), one.answer))
        elif one.kind is StepKind.LOOP:
            pairs = ((_key(before), _key(then)) for before, then in carried[one.number].items())
            step = replace(step, carries=tuple(pairs))
        found.append(step)
    return tuple(found)


def _carried(scope: Scope, places: Iterable[_Question]) -> Iterator[tuple[_Question, _Question]]:
    """What the trip before asks of what the trip that begins asks: all but the first have the same steps."""
    activation, around = scope
    every = set(places)
    first = {then for (where, then), _ in every if where == activation and then[:-1] == around[:-1]}
    if not first <= {around, (*around[:-1], (around[-1][0], 0))}:
        return
    for where, words in every:
        then = _next(words) if where == scope else ""
        for before in first if then else ():
            if ((activation, before), then) in every:
                yield ((activation, before), then), (where, words)


def _key(one: _Question) -> str:
    return f"{one[0]}: {one[1]}"


def _next(words: str) -> str:
    """A question of a trip as the trip before would ask it; nothing where that is not known."""
    found = set(_COUNTED.findall(words))
    whole = {one[0] for one in _COUNTED.finditer(words)}
    if len(found) != 1 or len(whole) != 1 or "phi" in _COUNTED.sub("", words):
        return ""
    counted = whole.pop()
    return words.replace(counted, found.pop().replace("#1", counted))


def _behind(drafts: Sequence[Draft], one: Draft, gone: set[int]) -> set[int]:
    """What comes next, past what goes away."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = list(one.after)
    while todo:
        number = todo.pop()
        if number not in gone:
            found.add(number)
        elif number not in seen:
            seen.add(number)
            todo += drafts[number].after
    return found
