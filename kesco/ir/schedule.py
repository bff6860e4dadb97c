"""Which stream each operation goes to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """A stream, counted from 0, for each movable site of one region.

    `streams` is how many are used; `stream_of` maps site number → stream as a tuple of pairs in site order; `order` is
    the order in which the distributor placed the sites. `urgent` are the streams whose work the GPU should prefer,
    ascending.
    """

    strategy: str
    streams: int
    stream_of: tuple[tuple[int, int], ...]
    order: tuple[int, ...] = ()
    urgent: tuple[int, ...] = ()

    def as_dict(self) -> dict[int, int]:
        """Site number → stream."""
        return dict(self.stream_of)
