"""How many streams a graph can use: ``default_streams(dfg)``.

In: a `Dfg`. Out: a number. It is apart from the strategies because some of them ask it of parts of a graph.
"""

from __future__ import annotations

from kesco.ir.dfg import Dfg
from kesco.scheduling import lanes
from kesco.scheduling.distributor import memory, small
from kesco.scheduling.levels import levelize, phases, width

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
