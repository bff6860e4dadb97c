"""Which loops of a file are worth walking trip by trip: ``paying(program)``.

In: a parsed file. Out: the numbers of loops in which something is done with the device or with pointers, a number is
set that the loop does not declare, or a function is called that does so with the device or with pointers. All others
only compute: they say nothing of what is where, and there may be millions of trips in them.
"""

from __future__ import annotations

from collections.abc import Collection

from kesco.frontend.api_table import is_cuda_name
from kesco.ir import program as ir


def paying(program: ir.Program) -> frozenset[int]:
    """See the module's docstring; a call of what is not in the file is one of a function that has to do with it."""
    bodies = {f.key: list(ir.walk(f.body)) for f in program.functions}
    found = {key for key, nodes in bodies.items() if any(_pays(node, bodies) for node in nodes)}
    calls = {key: {n.key for n in nodes if isinstance(n, ir.Call)} for key, nodes in bodies.items()}
    while more := {key for key, called in calls.items() if key not in found and not called.isdisjoint(found)}:
        found |= more
    loops = (n for key in found for n in bodies[key] if isinstance(n, ir.Loop))
    return frozenset(loop.number for loop in loops if _is_worth_it(loop, bodies, found))


def _is_worth_it(loop: ir.Loop, bodies: Collection[str], found: Collection[str]) -> bool:
    own = {n.variable.key for n in ir.walk(loop) if isinstance(n, ir.Declare)}
    inside = (n for part in (loop.body, loop.step) if part is not None for n in ir.walk(part))
    return any(_pays(n, bodies) or _counts(n, own) or (isinstance(n, ir.Call) and n.key in found) for n in inside)


def _counts(node: ir.Expr | ir.Stmt, own: Collection[str]) -> bool:
    """Whether an integer is set that is not one of these."""
    if not isinstance(node, ir.Assign):
        return False
    target = ir.bare(node.target)
    kind = _kind(target)
    alone = isinstance(target, ir.Name) and target.variable.key in own
    return kind is not None and kind.shape is ir.Shape.INTEGER and not alone


def _pays(node: ir.Expr | ir.Stmt, bodies: Collection[str]) -> bool:
    if isinstance(node, ir.Assign):
        return not _is_number(_kind(node.target))
    if isinstance(node, ir.Call):
        return is_cuda_name(node.name) if node.standard else node.key not in bodies
    if isinstance(node, ir.Declare) and isinstance(node.initial, ir.Unknown):
        return not _is_number(_without_references(node.variable.type, 0))
    return isinstance(node, (ir.Launch, ir.New, ir.Obstacle)) or (
        isinstance(node, ir.Unknown) and node.what != ir.RANGE_ELEMENT
    )


def _is_number(kind: ir.Type | None) -> bool:
    return kind is not None and kind.shape in (ir.Shape.INTEGER, ir.Shape.OTHER)


def _kind(target: ir.Expr) -> ir.Type | None:
    """The type of what is assigned, as far as the names tell."""
    depth = 0
    while isinstance(target, ir.Subscript):
        depth, target = depth + 1, ir.bare(target.base)
    if isinstance(target, (ir.Select, ir.Call)):
        kind = target.type
    else:
        kind = target.variable.type if isinstance(target, ir.Name) else None
    return _without_references(kind, depth)


def _without_references(kind: ir.Type | None, depth: int) -> ir.Type | None:
    """What a reference is to, or what so many subscripts lead to."""
    while kind is not None and depth + (kind.shape is ir.Shape.REFERENCE) > 0:
        depth -= kind.shape is not ir.Shape.REFERENCE
        kind = kind.element
    return kind
