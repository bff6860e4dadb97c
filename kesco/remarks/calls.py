"""Why the calls of a function keep independent operations apart, and what its author can do: ``advice(…)``.

In: the program, the regions of its functions, and a call of one of them that is a barrier. Out: the help of a
diagnostic. Apart from the other barriers because the reason is not at the call, but in the function, or at its other
calls.

1. A function that several files may have, from a header, is not edited. 2. One that does not follow its caller's stream
says why. 3. One that does has to be called in a statement of its own, unless it has streams of its own already.
"""

from __future__ import annotations

from collections.abc import Sequence

from kesco.ir.flow import Region, Role, Site, SiteKind
from kesco.ir.program import Call, Declare, Evaluate, Function, Launch, Program, walk
from kesco.remarks.independence import Pair

_BEGINS = "it begins and ends with a join: "
_ONE_FUNCTION = "launch from one function"


def advice(program: Program, regions: Sequence[Region], apart: Pair, call: Site) -> str:
    """What to do about a call of a function of the file, which is a barrier between two operations."""
    function = _called(program, call)
    region = next((r for r in regions if function is not None and r.span == function.span), None)
    if function is not None and not function.here and not function.internal:
        return f"other files may have it, too, and it must be one text in all: make it static, or {_ONE_FUNCTION}"
    if function is None or region is None:
        return _BEGINS + _ONE_FUNCTION
    inside = _barrier_in(region)
    if inside is not None:
        what = "waits for the device" if inside.role is Role.DEVICE_SYNC else "is a barrier"
        return f"'{inside.label}' in it {what} (line {inside.span.line}): {_without(inside)}"
    if region.not_followed:
        return f"it cannot be put on a stream, since {region.not_followed}"
    if not _stands_alone(program, call):
        return f"{_BEGINS}make each call of it a statement of its own, or {_ONE_FUNCTION}"
    return _BEGINS + _ONE_FUNCTION


def _without(barrier: Site) -> str:
    if barrier.kind is SiteKind.FREE:
        return "free memory behind all work"
    if barrier.kind in (SiteKind.COPY, SiteKind.MEMSET):
        return "move it out of the function, in front of all calls or behind them, or copy with '--copies move'"
    if barrier.kind is SiteKind.SYNC:
        return "if nothing depends on that, remove it"
    return "move it out of the function"


def _called(program: Program, site: Site) -> Function | None:
    """The function of the file that a site calls."""
    if site.kind is not SiteKind.CALL:
        return None
    nodes = (n for f in program.functions for n in walk(f.body))
    key = next((n.key for n in nodes if isinstance(n, Call) and n.operation == site.operation), None)
    return next((f for f in program.functions if f.key == key), None)


def _barrier_in(region: Region) -> Site | None:
    roles = (Role.DEVICE_SYNC, Role.LEGACY, Role.JOIN)
    return next((s for s in region.sites if s.role in roles and s.kind is not SiteKind.CALL), None)


def _stands_alone(program: Program, site: Site) -> bool:
    """Whether a call is a statement, an initial value or an assigned one, with no other call beside it."""
    for function in program.functions:
        for node in walk(function.body):
            whole = (
                node.expression if isinstance(node, Evaluate) else node.initial if isinstance(node, Declare) else None
            )
            inside = [n for n in walk(whole) if isinstance(n, (Call, Launch))] if whole is not None else []
            if len(inside) == 1 and inside[0].operation == site.operation:
                return True
    return False
