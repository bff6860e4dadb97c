"""Functions made by hand: operations with what they touch, one after another, and what kesco makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kesco import dataflow
from kesco.ir.access import UNKNOWN, Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Iteration, Region, Role, Site, SiteKind
from kesco.pipeline import FunctionResult
from kesco.scheduling import levels as measure
from kesco.scheduling.strategies import STRATEGIES, default_streams
from kesco.source import Span
from kesco.synchronize import synchronize
from kesco.synchronize.fences import fences


@dataclass
class Op:
    """One operation: what it reads and writes by the names of buffers, in words."""

    label: str
    r: str = ""
    w: str = ""
    role: Role = Role.MOVABLE
    kind: SiteKind = SiteKind.KERNEL
    note: str = ""
    trip: tuple[int, int] | None = None  # iteration and trips
    operation: int = -1
    more: dict[str, object] = field(default_factory=dict)


def access(name: str, mode: AccessMode) -> Access:
    if name == "?":
        return Access(UNKNOWN, mode, "parameter 1 may point anywhere")
    return Access(Buffer(name, name, BufferKind.DEVICE), mode, f"gives {name}")


def region(ops: list[Op], loop: tuple[int, int] | None = None, **more: object) -> Region:
    """The operations one after another; `loop` is a back edge from one to an earlier one."""
    everything = [Op("entry", role=Role.ENTRY, kind=SiteKind.BOUNDARY), *ops]
    everything.append(Op("end", role=Role.EXIT, kind=SiteKind.BOUNDARY))
    sites, successors = [], []
    for number, op in enumerate(everything):
        both = set(op.r.split()) & set(op.w.split())
        names = dict.fromkeys((*op.r.split(), *op.w.split()))
        modes = [
            (
                n,
                AccessMode.READ_WRITE if n in both else AccessMode.READ if n in op.r.split() else AccessMode.WRITE,
            )
            for n in names
        ]
        trips = ()
        if op.trip:
            trips = (Iteration(1, "i", op.trip[0], op.trip[1], op.trip[0], 0, 1),)
        operation = op.operation if op.operation >= 0 else number
        line = 10 + operation if op.role is not Role.ENTRY else 3
        sites.append(
            Site(
                number, operation, op.label, op.kind, op.role, Span("a.cu", line, line + 1, line, 3), trips,
                tuple(access(n, m) for n, m in modes), op.note,
            )
        )  # fmt: skip
        after = {number + 1} if number + 1 < len(everything) else set()
        if loop and number == loop[0]:
            after.add(loop[1])
        successors.append(tuple(sorted(after)))
    return Region("work", Span("a.cu", 0, 999, 3, 1), tuple(sites), tuple(successors), **more)


def result(area: Region, streams: int = 0, left_because: str = "") -> FunctionResult:
    dfg = dataflow.build(area)
    schedule = STRATEGIES["kesco"](dfg, streams or default_streams(dfg))
    plan = replace(synchronize(dfg, schedule), fences=fences(area))
    return FunctionResult(area, dfg, schedule, plan, measure.width(dfg), left_because)


def diamond() -> list[Op]:
    return [
        Op("first", w="a"),
        Op("left", r="a", w="b"),
        Op("right", r="a", w="c"),
        Op("last", r="b c a", w="d"),
    ]
