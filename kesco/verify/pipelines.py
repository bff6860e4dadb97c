"""Pairs of operations that need no order because they never touch the same bytes but in one trip of a loop.

In: for each loop that both programs have, which pairs conflict in different trips, and the concurrent region. Out:
whether a doubt about a pair is none. Apart from the proof's rules because it only ever takes doubts away: all that is
ordered is found without it.

A pair is excused if it conflicts in no two different trips of one stay in a loop, and all executions of the first that
the second might overtake are of other trips of the stay that the second is in. What else there is, executions of this
trip, of earlier stays in the loop and outside of it, must be ordered as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kesco.ir.flow import Region
from kesco.verify.happens_before import HappensBefore
from kesco.verify.knowledge import Facts

_BUDGET = 5_000  # block visits spent on telling paths apart


class Pipelines:
    """What is known by the trips of loops."""

    def __init__(self, concurrent: Region, across: Mapping[str, Sequence[int]]) -> None:
        self._across = across  # by loop, for each site the mask of those that it conflicts with in other trips
        self._orders = {loop: HappensBefore(concurrent, loop=loop) for loop in across}
        self._facts: dict[str, dict[int, Facts]] = {}
        self._alone: dict[tuple[str, int], dict[int, list[Facts]] | None] = {}
        self._budget = _BUDGET

    def excuse(self, first: int, second: int) -> bool:
        """Whether `second` need not come behind the executions of `first` that it may overtake."""
        return any(
            not across[second] >> first & 1 and self._in_other_trips(loop, first, second)
            for loop, across in self._across.items()
        )

    def _in_other_trips(self, loop: str, first: int, second: int) -> bool:
        if loop not in self._facts:
            self._facts[loop] = self._orders[loop].run()
        if not self._facts[loop][second].near >> first & 1:
            return True
        if (loop, first) not in self._alone:
            found = self._orders[loop].run_alone(first, self._budget) if self._budget > 0 else None
            self._budget = found[1] if found is not None else self._budget // 2
            self._alone[loop, first] = found[0] if found is not None else None
        alone = self._alone[loop, first]
        return alone is not None and not any(f.near >> first & 1 for f in alone.get(second, ()))
