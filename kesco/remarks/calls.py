"""Why the calls of a function keep independent operations apart, and what its author can do: ``advice(…)``.

In: the program, the regions of its functions, and a call of one of them that is a barrier. Out: the help of a
diagnostic. Apart from the other barriers because the reason is not at the call, but in the function, or at its other
calls.

1. A function that others may call is made static. 2. One that only main calls is scheduled with main, unless the
operations are two calls of it (each site has one stream), something in it is a barrier itself, or it is not followed.
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
    if function is None:
        return _BEGINS + _ONE_FUNCTION
    others = _other_callers(program, function, {function.key})
    if not function.internal or function.address_taken:
        return f"{_BEGINS}make it static and call it from main alone, or {_ONE_FUNCTION}"
    if others:
        return f"{_BEGINS}call it from main alone, and not from '{others[0]}', or {_ONE_FUNCTION}"
    region = next((r for r in regions if r.span == function.span), None)
    if region is not None and region.serial_because:
        return f"{_BEGINS}'{function.name}' stays serial, since {region.serial_because}"
    if _called(program, apart.first) is function and _called(program, apart.second) is function:
        return f"all calls of '{function.name}' use the same streams: launch from main itself, or copy the function"
    inside = _barrier_in(region)
    if inside is not None:
        what = "waits for the device" if inside.role is Role.DEVICE_SYNC else "is a barrier"
        return f"'{inside.label}' in it {what} (line {inside.span.line}): {_without(inside)}"
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


def _other_callers(program: Program, function: Function, seen: set[str]) -> list[str]:
    """The functions, other than main, from which others may reach it."""
    found = []
    for caller in program.functions:
        if caller.key in seen or caller.name == "main":
            continue
        if any(isinstance(n, Call) and n.key == function.key for n in walk(caller.body)):
            seen.add(caller.key)
            more = _other_callers(program, caller, seen)
            found += [caller.name] if not caller.internal or caller.address_taken else more
    return found


def _barrier_in(region: Region | None) -> Site | None:
    roles = (Role.DEVICE_SYNC, Role.LEGACY, Role.JOIN)
    sites = region.sites if region is not None else ()
    return next((s for s in sites if s.role in roles and s.kind is not SiteKind.CALL), None)


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
