"""Behind the launches that a loop issues first: ``behind_launches(…)`` finds where a prefetch stands in its first trip.

In: a program, a region, the loops that a prefetch could stand before, and the launch it is for. Out: the statement that
it stands before instead, and the condition under which it is issued there. Apart from `insert` because it is about the
order of issue alone: what moves, and for whom, is known by then.

A prefetch keeps the host for tens of microseconds. In front of the loop those of all its launches come before the first
of them; by hand each stands behind the launches that do not need it.

1. The statements of the loop's body are passed one after the other while they do nothing but launch, ask for errors or
compute a little. 2. The prefetch stands before the first that does more, or has the launch in it, if something was
launched by then. 3. If that is a loop, too, before which the prefetch could stand, the same is asked of it. 4. Each
loop counts from a constant, in steps of a constant, and changes its counter nowhere else: ``i == 0`` is its first trip.

What it refuses to do: pass what the host may wait for, what may go on to the next trip, another loop, or what touches
the memory itself; and use a counter that another one hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kesco.ir import program as ir
from kesco.ir.access import Buffer, may_alias
from kesco.ir.failures import where_it_failed
from kesco.ir.flow import Region, Role
from kesco.source import Span
from kesco.transfers.pointers import stays, without_casts

_QUICK = frozenset({"dim3", "min", "max", "data", "size", "empty", "get", "operator[]", "c_str"})
_SLOW = (ir.Leave, ir.Obstacle, ir.New, ir.Unknown, ir.Switch)


@dataclass(frozen=True, slots=True)
class FirstTrip:
    """Before the statement at `statement`, where the `condition` holds: in the first trip of the loops around it."""

    statement: Span
    condition: str


def behind_launches(
    program: ir.Program, region: Region, loops: Sequence[ir.Loop], launch: ir.Launch, buffers: Iterable[Buffer]
) -> FirstTrip | None:
    """Where a prefetch of the buffers is issued, if that is behind launches of the loops, the outermost first.

    None where it stands before the loops.
    """
    found: list[tuple[str, int]] = []
    moved = tuple(buffers)
    for position, loop in enumerate(loops):
        first = _first(loop)
        body = loop.body
        if first is None or any(first[0] == name for name, _ in found) or not _is_braced(program, body):
            return None
        assert isinstance(body, ir.Block)
        if any(isinstance(n, ir.Declare) and n.variable.name == first[0] for n in ir.walk(body)):
            return None  # it may be hidden there
        found.append(first)
        one, launched = _passed(program, region, body, launch, moved)
        if one is None:
            return None
        if launched:
            return FirstTrip(one.span, " && ".join(f"{name} == {value}" for name, value in found))
        if position + 1 == len(loops) or one is not loops[position + 1]:
            return None
    return None


def _passed(
    program: ir.Program, region: Region, body: ir.Block, launch: ir.Launch, moved: Sequence[Buffer]
) -> tuple[ir.Stmt | None, bool]:
    """The first statement that a prefetch for the launch does not pass, and whether it passed a launch.

    None where one that it would pass touches the memory.
    """
    launched = False
    end = body.span.start
    for one in body.body:
        if one.span.start < end:
            return None, launched  # several statements that one macro makes
        end = one.span.end
        sites = [s for s in region.sites if one.span.start <= s.span.start < end]
        issues = all(s.role is Role.MOVABLE or s.failed or (s.role is Role.HOST and not s.accesses) for s in sites)
        if any(n is launch for n in ir.walk(one)) or not issues or not _is_quick(program, one, frozenset()):
            return one, launched
        if any(may_alias(a.buffer, b) for s in sites for a in s.accesses for b in moved):
            return None, launched
        certain = isinstance(one, ir.Evaluate) and not any(isinstance(n, ir.Branch) for n in ir.walk(one))
        launched |= certain and any(isinstance(n, ir.Launch) for n in ir.walk(one))
    return None, launched


def _is_quick(program: ir.Program, node: ir.Expr | ir.Stmt, within: frozenset[str]) -> bool:
    """Whether the host is done with a statement at once and goes on behind it, unless a call of CUDA has failed."""
    if isinstance(node, ir.If) and (which := where_it_failed(node.condition)) is not None:
        other = node.other if which else node.then
        rest = [*node.before, node.condition, *(() if other is None else (other,))]
        return all(_is_quick(program, one, within) for one in rest)
    if isinstance(node, _SLOW) or (isinstance(node, ir.Loop) and not _is_wrapper(node)):
        return False
    if isinstance(node, ir.Call):
        function = next((f for f in program.functions if f.key == node.key), None)
        if function is not None and not node.standard:
            if node.key in within or not _is_quick(program, function.body, within | {node.key}):
                return False
        elif not node.name.startswith("cuda") and node.name.rpartition("::")[2] not in _QUICK:
            return False
    return all(_is_quick(program, one, within) for one in ir.children(node))


def _is_wrapper(loop: ir.Loop) -> bool:
    """Whether it is the ``do … while (0)`` of a macro."""
    return loop.tested_after and loop.condition == ir.Constant(0)


def _is_braced(program: ir.Program, body: ir.Stmt) -> bool:
    """Whether it is a block with braces of its own in the text."""
    start, end = body.span.start, body.span.end
    text = program.text
    braces = text[start : start + 1] == b"{" and text[end - 1 : end] == b"}"
    return isinstance(body, ir.Block) and not body.declares and braces


def _first(loop: ir.Loop) -> tuple[str, int] | None:
    """The counter of a loop and its value in the first trip, which it has in no other."""
    step = loop.step
    if loop.tested_after or not isinstance(step, ir.Assign) or not isinstance(step.target, ir.Name):
        return None
    by, variable = without_casts(step.value), step.target.variable
    if step.operator not in ("+", "-") or not isinstance(by, ir.Constant) or by.value == 0:
        return None
    if variable.type.shape is not ir.Shape.INTEGER or variable.type.volatile:
        return None
    declared = (n for one in loop.before for n in ir.walk(one) if isinstance(n, ir.Declare))
    initial = next((n.initial for n in declared if n.variable == variable), None)
    value = without_casts(initial) if initial is not None else None
    if not isinstance(value, ir.Constant) or value.value < 0:
        return None
    return (variable.name, value.value) if stays(replace(loop, before=(), step=None), step.target) else None
