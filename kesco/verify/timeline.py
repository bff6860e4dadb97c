"""What two streams did lately, in the order in which it was issued: what a race is shown with.

In: each operation, record, wait and synchronize as it comes. Out: for a pair of agents the steps of both. Only the last
few of each are kept, so that a long run costs nothing.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_KEPT = 6  # of each agent


class Step(NamedTuple):
    """Something that was put on a stream, or that the host did; `number` counts all of them."""

    number: int
    agent: int
    what: str
    stack: int


class Lately:
    """The last steps of each agent."""

    def __init__(self) -> None:
        self._steps: dict[int, deque[Step]] = {}
        self._count = 0

    def note(self, agent: int, what: str, stack: int) -> Step:
        """One more."""
        self._count += 1
        step = Step(self._count, agent, what, stack)
        self._steps.setdefault(agent, deque(maxlen=_KEPT)).append(step)
        return step

    def between(self, first: Step, second: Step) -> tuple[Step, ...]:
        """What the two agents did from one step to another, both included; not all where it was much."""
        found = {first, second}
        for agent in (first.agent, second.agent):
            found |= {one for one in self._steps.get(agent, ()) if first.number <= one.number <= second.number}
        return tuple(sorted(found))
