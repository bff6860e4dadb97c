"""Which functions of a file are worth walking trip by trip: ``paying(program)``.

In: a parsed file. Out: the keys of functions that have to do with the device or with pointers, or call one that has.
All others only compute: their loops say nothing of what is where, and there may be millions of trips in them.
"""

from __future__ import annotations

from kesco.frontend.api_table import is_cuda_name
from kesco.ir import program as ir


def paying(program: ir.Program) -> frozenset[str]:
    """See the module's docstring; a call of what is not in the file is one of a function that has."""
    bodies = {f.key: list(ir.walk(f.body)) for f in program.functions}
    found = {key for key, nodes in bodies.items() if any(_pays(node, bodies) for node in nodes)}
    calls = {key: {n.key for n in nodes if isinstance(n, ir.Call)} for key, nodes in bodies.items()}
    while more := {key for key, called in calls.items() if key not in found and not called.isdisjoint(found)}:
        found |= more
    return frozenset(found)


def _pays(node: ir.Expr | ir.Stmt, bodies: dict[str, list[ir.Expr | ir.Stmt]]) -> bool:
    if isinstance(node, ir.Assign):
        return not _is_number(node.target)
    if isinstance(node, ir.Call):
        return is_cuda_name(node.name) if node.standard else node.key not in bodies
    return isinstance(node, (ir.Launch, ir.New, ir.Unknown, ir.Obstacle))


def _is_number(target: ir.Expr) -> bool:
    """Whether what is assigned is a number, as far as the names tell."""
    depth = 0
    while isinstance(target, ir.Subscript):
        depth, target = depth + 1, ir.bare(target.base)
    if isinstance(target, ir.Select):
        kind: ir.Type | None = target.type
    else:
        kind = target.variable.type if isinstance(target, ir.Name) else None
    while kind is not None and depth + (kind.shape is ir.Shape.REFERENCE) > 0:
        depth -= kind.shape is not ir.Shape.REFERENCE
        kind = kind.element
    return kind is not None and kind.shape in (ir.Shape.INTEGER, ir.Shape.OTHER)
