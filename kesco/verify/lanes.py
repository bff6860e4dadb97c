"""Loops that are come to again and again, turns of one number in order: what the text must be for that.

In: the rings of loops that share a variable, and the loop around them. Out: the rings, with their `lanes`, and what
speaks against them. Apart from other rings since what stands around the loops matters here.

1. In the loop around them nothing but these is of CUDA, and before a ``return`` in it stands ``kesco_turned(r)``. 2.
What ``kesco_lane`` is given is a variable that changes once in each turn, so that ranges tell of it
(`never_meet_in_lanes`); where the loop is over a range, one that is declared right before and counts its trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kesco.ir import program as ir
from kesco.ir.turns import LANE, TURNED
from kesco.verify.calls import call_in, is_of, is_of_cuda, is_streams, names, statements_of

if TYPE_CHECKING:
    from kesco.verify.rings import Ring


def left_by(outer: ir.Loop, ring: ir.Variable) -> dict[int, ir.Stmt]:
    """The ways out of a function before which the turns end: by the statement, what ends them right before."""
    found: dict[int, ir.Stmt] = {}
    for block in (n for n in ir.walk(outer) if isinstance(n, ir.Block)):
        for ends, leave in pairwise(statements_of(block)):
            call = call_in(ends, TURNED)
            if (
                isinstance(leave, ir.Leave)
                and leave.how == "return"
                and call is not None
                and is_of(call.arguments[0], ring)
            ):
                found[id(leave)] = ends
    return found


def in_lanes(rings: Sequence[Ring], outer: ir.Loop, left: Mapping[int, ir.Stmt]) -> list[Ring]:
    """The rings of loops that are come to again and again, in a loop around them; it is `left` where its turns end."""
    own = {id(n) for one in (*(r.loop for r in rings), *left.values()) for n in ir.walk(one)}
    rest = [n for n in ir.walk(outer) if id(n) not in own]
    wrong = []
    if any(is_of_cuda(n) or (isinstance(n, ir.Name) and is_streams(n.variable)) for n in rest):
        wrong.append("there is other work between its turns")
    if any(leaves_function(n, left) for n in rest):
        wrong.append("it may be left without what stands behind it")
    lanes = tuple((one.key, counter.name) for one in rings if (counter := _numbered(one, wrong)) is not None)
    if any(one.places or one.taken or one.pins or one.alike for one in rings):
        wrong.append("its turns have memory of their own")
    return [replace(one, problems=(*one.problems, *wrong), lanes=lanes, outer=outer, left=len(left)) for one in rings]


def leaves_function(node: ir.Expr | ir.Stmt, left: Mapping[int, ir.Stmt]) -> bool:
    """Whether control leaves the function there before the turns have ended."""
    return isinstance(node, ir.Leave) and node.how not in ("break", "continue") and id(node) not in left


def _numbered(ring: Ring, wrong: list[str]) -> ir.Variable | None:
    """The counter of a loop that numbers its turns; what speaks against it goes to `wrong`."""
    call = call_in(ring.statements[ring.begins], LANE) if ring.begins >= 0 else None
    name = ir.bare(call.arguments[1]) if call is not None and len(call.arguments) == 2 else None
    step = ring.loop.step
    counter = step.target.variable if isinstance(step, ir.Assign) and isinstance(step.target, ir.Name) else None
    if not isinstance(name, ir.Name):
        wrong.append("its turns are not numbered by a variable")
        return None
    if ring.loop.ranged:
        if not _counts_along(ring, name.variable):
            wrong.append("what its turns are numbered by does not count them")
        return counter
    ahead = [one for one in (ring.loop.condition, *ring.statements[: ring.begins + 1]) if one is not None]
    behind = [one for one in (ring.loop.step, *ring.statements[ring.begins + 1 :]) if one is not None]
    if any(_assigns(n, name.variable) for one in ahead for n in ir.walk(one)):
        wrong.append("what its turns are numbered by changes before they begin")
    if sum(_assigns(n, name.variable) for one in behind for n in ir.walk(one)) != 1:
        wrong.append("what its turns are numbered by does not change once in each")
    return name.variable  # of which ranges tell, as it is when a turn begins, where nothing else changes it


def _assigns(node: ir.Expr | ir.Stmt, variable: ir.Variable) -> bool:
    return isinstance(node, ir.Assign) and variable.key in names(node.target)


def _counts_along(ring: Ring, variable: ir.Variable) -> bool:
    """Whether a variable is declared right before a loop over a range, and counts its trips, and is nothing else."""
    if not ring.loop.ranged or sum(is_of(n, variable) for n in ir.walk(ring.function.body)) != 2:
        return False
    for block in (n for n in ir.walk(ring.function.body) if isinstance(n, ir.Block)):
        flat = statements_of(block)
        for one, behind in pairwise(flat):
            if isinstance(one, ir.Declare) and one.variable.key == variable.key:
                inner = behind.body[0] if isinstance(behind, ir.Block) and behind.body else behind
                plain = one.initial is not None and all(
                    isinstance(n, (ir.Constant, ir.Unary)) for n in ir.walk(one.initial)
                )
                return plain and inner is ring.loop and _is_step(ring.statements[0], variable)
    return False


def _is_step(statement: ir.Stmt, variable: ir.Variable) -> bool:
    """Whether a statement is ``++`` of a variable."""
    whole = ir.bare(statement.expression) if isinstance(statement, ir.Evaluate) else None
    if not isinstance(whole, ir.Assign) or whole.operator != "+" or whole.value != ir.Constant(1):
        return False
    return is_of(whole.target, variable)
