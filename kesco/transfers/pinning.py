"""Blocks of the host's memory that may be pinned while a loop with turns runs: ``with_pins(program, region, turns)``.

In: such a loop, in a region with its copies on streams. Out: the loop, with the variables that hold such blocks
(`ir.pins`), and the copies from there and to there. Apart from `rings` because that is about the device's memory.

1. Nothing in the loop frees memory or makes a container move it. 2. The variable is there before the loop begins.
"""

from __future__ import annotations

from dataclasses import replace

from kesco.ir import program as ir
from kesco.ir.flow import Held, Region, Role
from kesco.ir.pins import base_of, holds_block
from kesco.ir.turns import Turns
from kesco.transfers.copies import is_flat
from kesco.transfers.harmless import Harmless


def with_pins(program: ir.Program, region: Region, turns: Turns) -> Turns:
    """The loop with what may be pinned in it."""
    function = next(f for f in program.functions if f.here and f.span == region.span)
    loop = next(n for n in ir.walk(function.body) if isinstance(n, ir.Loop) and str(n.number) == turns.loop)
    held = {s.operation: s.held for s in region.sites if s.role is Role.MOVABLE and s.held and is_flat(s)}
    if not Harmless(program, frozenset(held)).statement(loop):
        return turns
    inner = {n.variable.key for n in ir.walk(loop) if isinstance(n, ir.Declare)}
    found: dict[int, ir.Variable] = {}
    for node in ir.walk(loop):
        if isinstance(node, ir.Call) and node.operation in held:
            base = base_of(node.arguments[0 if held[node.operation] is Held.ALL else 1])
            if base is not None and base.key not in inner and holds_block(program, function, base):
                found[node.operation] = base
    return replace(turns, pins=tuple(sorted({one.name for one in found.values()})), pinned=frozenset(found))
