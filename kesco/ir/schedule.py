"""Which stream each operation goes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Barrier:
    """Site `target` waits for `source`, an earlier one, and `why`: for a task with a higher priority, or for speed.

    No dependence needs it. Between tasks none rests on it either: the program computes the same without it.
    """

    source: int
    target: int
    why: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Site `target` waits until `share` percent of the executions of `mark` that the host has issued are done.

    `mark` is in a loop of a task with a higher priority that the target is not in, and `why` says what that is for. No
    dependence rests on it: the program computes the same without it.
    """

    mark: int
    target: int
    share: int
    why: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stream, counted from 0, for each movable site of one region.

    `streams` is how many are used; `stream_of` maps site number → stream as a tuple of pairs in site order; `order` is
    the order in which the distributor placed the sites. `urgent` are the streams whose work the GPU should prefer,
    ascending. Where there are tasks, `ranks` has for each stream which comes first for the GPU, counted from 0;
    `barriers` order what no dependence does, by target; `holds` keep it back behind a part of a loop, by target; and
    `released` has sites that are not held further, with why.
    """

    strategy: str
    streams: int
    stream_of: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()
    urgent: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    barriers: tuple[Barrier, ...] = ()
    released: tuple[tuple[int, str], ...] = ()
    holds: tuple[Hold, ...] = ()

    @property
    def by_task(self) -> bool:
        """Whether it orders tasks by their priorities."""
        return self.strategy.startswith("zones")

    def as_dict(self) -> dict[int, int]:
        """Site number → stream."""
        return dict(self.stream_of)


def joined_ranks(schedules: Sequence[Schedule], streams: int) -> tuple[int, ...]:
    """The ranks of streams that several schedules share: that of the most urgent one, and the last where none has any.

    Empty where none of the schedules ranks its streams.
    """
    found: dict[int, int] = {}
    for one in schedules:
        for stream, rank in [*enumerate(one.ranks), *((stream, 0) for stream in one.urgent)]:
            found[stream] = min(rank, found.get(stream, rank))
    if not any(one.ranks for one in schedules):
        return ()
    return tuple(found.get(stream, max(found.values())) for stream in range(streams))
