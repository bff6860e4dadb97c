"""The table of strategies by name, and how many streams are worth having.

In: a `Dfg` and a number of streams. Out: a `Schedule`. It is apart from the strategies so that the command
line and the tests find them all in one place and a new one is one module and one line here.

Method: 1. look the name up; 2. call it with the number of streams asked for, or with `default_streams`.

What it refuses to do: guess a strategy from the program.
"""

from __future__ import annotations

from collections.abc import Callable

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Schedule
from kesco.scheduling import lanes
from kesco.scheduling.critical_path import critical_path
from kesco.scheduling.distributor import distribute, memory, small
from kesco.scheduling.levels import levelize, phases, width
from kesco.scheduling.serial import serial

STRATEGIES: dict[str, Callable[[Dfg, int], Schedule]] = {
    "kesco": distribute,
    "critical_path": critical_path,
    "serial": serial,
}
MOST_STREAMS = 16


def default_streams(dfg: Dfg) -> int:
    """As many streams as operations can run at once, and one for each direction of transfers; at most 16."""
    ways = lanes.transfers(dfg, small(dfg))
    apart = {*ways, *memory(dfg)}
    phase_of = {site: number for number, phase in enumerate(phases(dfg)) for site in phase}
    together: dict[tuple[int, int], int] = {}
    for level, sites in enumerate(levelize(dfg, apart)):
        for site in sites:
            slot = (phase_of[site], level)
            together[slot] = together.get(slot, 0) + 1
    if max(together.values(), default=0) >= MOST_STREAMS:
        return MOST_STREAMS  # the exact width would not change the answer
    return max(1, min(MOST_STREAMS, width(dfg, apart) + len({*ways.values()})))
