"""Which events are recorded and awaited."""

from __future__ import annotations

from dataclasses import dataclass

from kesco.ir.dfg import Dependence
from kesco.ir.replay import Replay
from kesco.source import Span


@dataclass(frozen=True, slots=True)
class Wait:
    """Before site `target` is issued its stream waits for the event recorded after site `source`.

    It is for `dependences`; or, where there are none, for what `why` says: the order of tasks, or speed.
    """

    source: int
    target: int
    dependences: tuple[Dependence, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class RemovedWait:
    """A dependence that needs no event, with the reason, such as ``A and G are on one stream``."""

    source: int
    target: int
    because: str


@dataclass(frozen=True, slots=True)
class Join:
    """Before site `target` the default stream is made to wait for all that is pending on `streams`."""

    target: int
    streams: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """Events, waits, joins and fences of one region.

    `fences` are the movable sites (0: the entry) before which the default stream must be made a barrier once, because
    unseen code may have left work on blocking streams of its own. `events` are the sites after which an event is
    recorded, ascending;
    `needless` are the sites where the host waits and need not: nothing looks at the device before its next wait.
    `stretches` are the sites (0: the entry) behind which it pays to ask whether one stream is faster; `pauses` those
    where it is enough to stop the clock; `paces` are the first statements of loops, or the function, where the device
    is asked. `replays` are the
    runs of statements that become graphs, in the order of the text. The other fields are ordered by target.
    """

    events: tuple[int, ...]
    waits: tuple[Wait, ...]
    joins: tuple[Join, ...]
    removed: tuple[RemovedWait, ...] = ()
    fences: tuple[int, ...] = ()
    stretches: tuple[int, ...] = ()
    needless: tuple[int, ...] = ()
    replays: tuple[Replay, ...] = ()
    pauses: tuple[int, ...] = ()
    paces: tuple[Span, ...] = ()
