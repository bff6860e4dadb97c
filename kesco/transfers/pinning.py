"""Blocks of the host's memory that may be pinned while a loop with turns runs: ``with_pins(program, region, turns)``.

In: such a loop, in a region with its copies on streams. Out: the loop, with the variables that hold such blocks
(`ir.pins`), and the copies from there and to there, or calls with such. Apart from `rings` because that is about the
device's memory.

1. Nothing in the loop frees memory or makes a container move it. 2. The variable is there before the loop begins.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.flow import Held, Region, Role
from kesco.ir.pins import base_of, holds_block
from kesco.ir.turns import Turns
from kesco.transfers.called import Called
from kesco.transfers.copies import is_flat
from kesco.transfers.harmless import Harmless


def with_pins(program: ir.Program, region: Region, turns: Turns) -> Turns:
    """The loop with what may be pinned in it."""
    function = next(f for f in program.functions if f.here and f.span == region.span)
    loop = next(n for n in ir.walk(function.body) if isinstance(n, ir.Loop) and str(n.number) == turns.loop)
    held = {s.operation: s.held for s in region.sites if s.role is Role.MOVABLE and s.held and is_flat(s)}
    calls = {s.operation for s in region.sites if s.role is Role.MOVABLE and s.holds}
    if not Harmless(program, frozenset(held.keys() | calls)).statement(loop):
        return turns
    called = Called(program)
    inner = {n.variable.key for n in ir.walk(loop) if isinstance(n, ir.Declare)}
    found: dict[int, dict[str, str]] = {}
    for node in (n for n in ir.walk(loop) if isinstance(n, ir.Call)):
        sides: list[ir.Expr] = []
        if node.operation in held:
            sides = [node.arguments[0 if held[node.operation] is Held.ALL else 1]]
        elif node.operation in calls:
            sides = list(called.on_host(node))
        for base in filter(None, map(base_of, sides)):
            if base.key not in inner and holds_block(program, function, base):
                found.setdefault(node.operation, {})[base.key] = base.name
    names = {name for one in found.values() for name in one.values()}
    return replace(turns, pins=tuple(sorted(names)), pinned=frozenset(found))
