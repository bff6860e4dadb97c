"""Statements that become one CUDA graph where they run again and again.

A *replay* is a run of statements of one block that do nothing but give the device work. The first time they run as they
stand; later a graph that was captured from them is launched instead, as long as the values that they use are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

STATUS = frozenset({"cudaGetLastError", "cudaPeekAtLastError"})
"""Calls that ask whether a launch failed; a graph in which one did is not used."""
ENDS = frozenset({"exit", "abort", "_Exit", "_exit", "quick_exit", "terminate"})
"""Functions that never come back: what leads there and what stands before it is never skipped by a replay."""
ALONE, AMONG_OTHERS = "kesco_replay_alone", "kesco_replay"
"""The conditions of the emitted loops: where nothing else runs on the device, and anywhere."""
REPLAYS = (ALONE, AMONG_OTHERS)
FILL = "kesco_memset"
"""``cudaMemsetAsync``, which is a kernel in a graph where it sets little memory."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The bytes ``[start, end)`` of the text, whole lines, and the sites in them.

    `values` are the expressions whose values decide what the statements do, as they are to be written before them.
    `rolled` tells that a loop of unknown trips is in them. The graph is launched on `stream`. `alone` tells that
    nothing can run beside it, whatever streams it uses. `again` tells of one with such a loop that it may
    directly follow itself.
    """

    start: int
    end: int
    sites: tuple[int, ...]
    values: tuple[str, ...]
    rolled: bool = False
    stream: int = 0
    alone: bool = False
    again: bool = False
