"""Reports: what was found in a program and what was done with it, as text, pictures and JSON.

In: the outcome of a compilation, seen through the protocols below. Out: text; only the command line prints
it. The protocols are here because imports go down only: `kesco.pipeline` knows the stages, and none of them
knows it. So is what words and pictures both say of a function, lest they say it differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kesco.report.layout import levels

if TYPE_CHECKING:
    from kesco.diagnostics import Diagnostic
    from kesco.ir.dfg import Dependence, Dfg
    from kesco.ir.flow import Region, Site
    from kesco.ir.schedule import Schedule
    from kesco.ir.syncplan import SyncPlan
    from kesco.ir.verdicts import Verdict


class Function(Protocol):
    """What was found in one function and done with it: `kesco.pipeline.FunctionResult` for a reader."""

    @property
    def region(self) -> Region:
        """Its operations and the paths between them."""

    @property
    def dfg(self) -> Dfg:
        """Their dependences."""

    @property
    def schedule(self) -> Schedule:
        """Their streams, also where the function was left as it is."""

    @property
    def plan(self) -> SyncPlan:
        """Their waits, also where the function was left as it is."""

    @property
    def width(self) -> int:
        """How many of them can run at once."""

    @property
    def left_because(self) -> str:
        """Why the function was left as it is, or an empty text."""

    @property
    def rewritten(self) -> bool:
        """Whether its text was changed."""

    @property
    def verdict(self) -> Verdict | None:
        """What became of its concurrency; None for one that launches nothing."""


class Outcome(Protocol):
    """The outcome for one file: `kesco.pipeline.Compilation` for a reader."""

    @property
    def path(self) -> str:
        """The file."""

    @property
    def functions(self) -> Sequence[Function]:
        """All functions of the file, in its order."""

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What a user should know."""


@dataclass(frozen=True, slots=True)
class Edge:
    """All dependences of one pair of operations.

    `kind` is ``wait`` (an event is awaited), ``stream`` (one stream, or the default stream, orders them) or
    ``removed`` (something else does). `carried` tells that the source comes first only around a loop.
    """

    source: int
    target: int
    kind: str
    carried: bool
    why: tuple[str, ...]


def edges_of(function: Function) -> list[Edge]:
    """The edges of a function, ordered by source and target."""
    pairs: dict[tuple[int, int], list[Dependence]] = {}
    for one in function.dfg.dependences:
        pairs.setdefault((one.source, one.target), []).append(one)
    stream_of = streams_of(function)
    waits = {(wait.source, wait.target) for wait in function.plan.waits}
    because = {(one.source, one.target): one.because for one in function.plan.removed}
    found = []
    for (source, target), dependences in sorted(pairs.items()):
        kind, how = "removed", f"no wait: {because.get((source, target), 'it is ordered already')}"
        if not function.rewritten:
            kind, how = "stream", "both are on the default stream"
        elif (source, target) in waits:
            kind, how = "wait", f"stream {stream_of[target]} waits for stream {stream_of[source]}"
        elif stream_of[source] == stream_of[target]:
            kind = "stream"
        why = tuple(dict.fromkeys(one.reason(function.region) for one in dependences))
        found.append(Edge(source, target, kind, all(one.carried for one in dependences), (*why, how)))
    for wait in function.plan.waits if function.rewritten else ():
        if not wait.dependences:
            how = f"stream {stream_of[wait.target]} waits for stream {stream_of[wait.source]}"
            found.append(Edge(wait.source, wait.target, "wait", False, (wait.why, how)))
    return sorted(found, key=lambda edge: (edge.source, edge.target))


def levels_of(function: Function) -> tuple[tuple[int, ...], ...]:
    """The movable operations by level: the first depends on nothing, each other on the one before it."""
    forward = ((d.source, d.target) for d in function.dfg.dependences if not d.carried and d.source != d.target)
    return levels(function.dfg.graph, forward)


def movable(function: Function) -> list[Site]:
    """The operations that dependences and schedule speak of."""
    return [site for site in function.region.sites if site.number in function.dfg.graph]


def streams_of(function: Function) -> dict[int, int]:
    """Site → the stream it was given; nothing for a function that was left as it is."""
    return function.schedule.as_dict() if function.rewritten else {}


def touched(site: Site) -> dict[str, list[str]]:
    """The names of the buffers of a site by mode (``r``, ``rw``, ``w``), each buffer once."""
    modes: dict[tuple[str, str], int] = {}
    for access in site.accesses:
        key = access.buffer.key, access.buffer.name
        modes[key] = modes.get(key, 0) | access.mode.value
    found: dict[str, list[str]] = {}
    for mode, text in ((1, "r"), (3, "rw"), (2, "w")):
        names = [name for (_, name), value in modes.items() if value == mode]
        if names:
            found[text] = list(dict.fromkeys(names))
    return found


def iteration_text(site: Site) -> str:
    """Which iteration of the unrolled loops around it a site is, such as ``i = 2, j = 0``; often empty."""
    return ", ".join(f"{one.counter} = {one.value}" for one in site.iterations)


def counted(number: int, noun: str) -> str:
    """A number with its noun: ``1 wait``, ``2 waits``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
