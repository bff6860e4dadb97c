"""What ran when: the bars of a timeline, of a model's run or of a measured one.

A timeline is lanes from top to bottom, each with bars that do not overlap within the lane; times are in microseconds
from the timeline's beginning.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """One operation, or `count` of them drawn as one.

    `kind` is ``kernel``, ``copy``, ``memset``, ``sync`` or ``other``. `site` is the operation's number in its function,
    -1 where that is not known. `critical`: it is on the chain of operations that decides when the last one ends.
    `detail` is for people.
    """

    label: str
    kind: str
    start: float
    end: float
    site: int = -1
    critical: bool = False
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """Work in one order: a stream. `stream` is kesco's number of it, -1 for any other."""

    name: str
    bars: tuple[Bar, ...]
    stream: int = -1


@dataclass(frozen=True, slots=True)
class Timeline:
    """One run. `origin` says in words where the times come from; `exact` is False where they only weigh operations."""

    name: str
    lanes: tuple[Lane, ...]
    end: float
    origin: str = ""
    exact: bool = True

    @property
    def bars(self) -> tuple[Bar, ...]:
        """All bars, lane by lane."""
        return tuple(bar for lane in self.lanes for bar in lane.bars)
