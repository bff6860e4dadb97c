"""What a trace says in numbers: how busy the device was, what ran beside what, and where it stood idle.

In: `Activities`. Out: `Numbers`, and a `Timeline` to draw. All times are microseconds.

- *span*: from the first activity's beginning to the last one's end. - *busy*: the part of it in which anything ran.
- *work*: the lengths of all activities together. - *overlap*: work ÷ busy; 1 where never two ran at once.
- *hidden*: the part of all copies' time in which a kernel ran, too.
- A *gap* is a time within the span in which nothing ran on the device.
- The *critical path* of a measured run is a chain of activities, backwards from the last one to end: in front of each
  is the one that ended last before it began, on its own stream if two ended together. What depends on what is not in a
  trace, so this is what may have decided, and not a proof.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from kesco.ir.activity import Activities, Activity
from kesco.ir.timeline import Bar, Lane, Timeline

Interval = tuple[float, float]
TOLERANCE = 0.002
"""Microseconds: two nanoseconds, as exactly as a file keeps times."""
_TIED = 64  # activities that are looked at for one that ended together with the last


@dataclass(frozen=True, slots=True)
class StreamNumbers:
    """One stream: how many operations, how long they took together, and what of its copies a kernel elsewhere hid."""

    name: str
    operations: int
    busy: float
    idle: float
    """Between its first operation and its last."""
    copies: float
    hidden: float


@dataclass(frozen=True, slots=True)
class Numbers:
    """One run; see the module's docstring."""

    operations: int
    kernels: int
    span: float
    busy: float
    work: float
    copies: float
    hidden: float
    gaps: int
    longest_gap: float
    waiting: float
    """How long the host waited for the device."""
    streams: tuple[StreamNumbers, ...]

    @property
    def overlap(self) -> float:
        """Work ÷ busy: how many operations ran at once, on the mean, while any ran."""
        return self.work / self.busy if self.busy else 0.0

    def to_json(self) -> dict[str, Any]:
        """As plain data; times in microseconds."""
        return {
            "operations": self.operations, "kernels": self.kernels, "span_us": round(self.span, 3),
            "busy_us": round(self.busy, 3), "work_us": round(self.work, 3), "overlap": round(self.overlap, 4),
            "copies_us": round(self.copies, 3), "copies_hidden_us": round(self.hidden, 3), "gaps": self.gaps,
            "longest_gap_us": round(self.longest_gap, 3), "host_waits_us": round(self.waiting, 3),
            "streams": [
                {"name": one.name, "operations": one.operations, "busy_us": round(one.busy, 3),
                 "idle_us": round(one.idle, 3), "copies_us": round(one.copies, 3),
                 "copies_hidden_us": round(one.hidden, 3)}
                for one in self.streams
            ],
        }  # fmt: skip


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """The times that are in any of the intervals, apart from each other and ascending."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def common(one: Sequence[Interval], other: Sequence[Interval]) -> float:
    """How long both are; each as `union` gives it."""
    total, a, b = 0.0, 0, 0
    while a < len(one) and b < len(other):
        total += max(0.0, min(one[a][1], other[b][1]) - max(one[a][0], other[b][0]))
        if one[a][1] < other[b][1]:
            a += 1
        else:
            b += 1
    return total


def numbers(activities: Activities) -> Numbers:
    """What a run says in numbers."""
    work = activities.work
    busy = union((one.start, one.end) for one in work)
    kernels = union((one.start, one.end) for one in work if one.kind == "kernel")
    copies = union((one.start, one.end) for one in work if one.kind == "copy")
    holes = [b - a for (_, a), (b, _) in pairwise(busy)]
    return Numbers(
        len(work), sum(one.kind == "kernel" for one in work), busy[-1][1] - busy[0][0] if busy else 0.0,
        _length(busy), sum(one.end - one.start for one in work), _length(copies), common(copies, kernels),
        len(holes), max(holes, default=0.0),
        _length(union((one.start, one.end) for one in activities.all if one.kind == "wait")),
        tuple(_stream(name, mine, kernels) for name, mine in _by_stream(work)),
    )  # fmt: skip


def _length(intervals: Iterable[Interval]) -> float:
    return sum(end - start for start, end in intervals)


def _stream(name: str, mine: Sequence[Activity], kernels: Sequence[Interval]) -> StreamNumbers:
    busy = union((one.start, one.end) for one in mine)
    copies = union((one.start, one.end) for one in mine if one.kind == "copy")
    length = _length(busy)
    idle = busy[-1][1] - busy[0][0] - length
    return StreamNumbers(name, len(mine), length, idle, _length(copies), common(copies, kernels))


def _by_stream(work: Sequence[Activity]) -> list[tuple[str, list[Activity]]]:
    """The activities of each stream, with a name that says as much as is needed to tell them apart."""
    found: dict[tuple[int, int, int], list[Activity]] = {}
    for one in work:
        found.setdefault((one.device, one.context, one.stream), []).append(one)
    contexts, devices = {key[:2] for key in found}, {key[0] for key in found}
    named = []
    for (device, context, stream), mine in sorted(found.items()):
        where = f", GPU {device}" if len(devices) > 1 else ""
        where += f", context {context}" if len(contexts) > len(devices) else ""
        named.append((f"stream {stream}{where}", mine))
    return named


def timeline(name: str, activities: Activities) -> Timeline:
    """The run as it is drawn: a lane for each stream, one more where the host waited; a stream's bars by start."""
    work = activities.work
    begin = min((one.start for one in work), default=0.0)
    chain = critical(work)
    lanes = [Lane(title, _bars(mine, begin, chain), number) for number, (title, mine) in enumerate(_by_stream(work))]
    waits = [one for one in activities.all if one.kind == "wait"]
    if waits:
        lanes.append(Lane("host waits", _bars(waits, begin, frozenset())))
    end = max((bar.end for lane in lanes for bar in lane.bars), default=0.0)
    return Timeline(name, tuple(lanes), end, "measured")


def critical(work: Sequence[Activity]) -> frozenset[int]:
    """The critical path of a run, as the `id`s of its activities; empty where all are on one stream."""
    if len({(one.device, one.context, one.stream) for one in work}) < 2:
        return frozenset()
    ended = sorted(work, key=lambda one: (one.end, one.start))
    ends = [one.end for one in ended]
    found: set[int] = set()
    last = ended[-1]
    while True:
        found.add(id(last))
        at = bisect_right(ends, last.start + TOLERANCE)
        before = [one for one in ended[:at][-_TIED:] if one.start < last.start]
        if not before:
            return frozenset(found)
        own = [one for one in before if one.stream == last.stream and one.end >= before[-1].end - TOLERANCE]
        last = own[-1] if own else before[-1]


def _bars(mine: Sequence[Activity], begin: float, chain: frozenset[int]) -> tuple[Bar, ...]:
    return tuple(
        Bar(one.name, one.kind, max(0.0, one.start - begin), max(0.0, one.end - begin), -1, id(one) in chain,
            _detail(one))
        for one in sorted(mine, key=lambda one: one.start)
    )  # fmt: skip


def _detail(one: Activity) -> str:
    if one.kind not in ("copy", "memset"):
        return one.detail
    length = one.end - one.start
    speed = f", {one.bytes / length / 1000:.1f} GB/s" if length > 0 and one.kind == "copy" else ""
    return f"{one.bytes} bytes{speed}"
