"""Everything on one stream: ``serial(dfg, streams)`` turns a `Dfg` into the `Schedule` of the serial program.

In: the data-flow graph; the number of streams is ignored. Out: stream 0 for every movable site, in the text's
order. It is a strategy of its own because every other one must be comparable with it, and must be able to
fall back to it.

Method: 1. put every site on stream 0.

What it refuses to do: overlap anything.
"""

from __future__ import annotations

from kesco.ir.dfg import Dfg
from kesco.ir.schedule import Schedule


def serial(dfg: Dfg, streams: int) -> Schedule:
    """All movable sites on stream 0, however many `streams` there might be."""
    sites = tuple(sorted(dfg.graph.nodes))
    return Schedule("serial", 1 if sites else 0, tuple((site, 0) for site in sites), sites)
