"""Pointer parameters that a function certainly follows as soon as it is entered.

In: a function. Out: the keys of its parameters that point to an object of the host, whoever calls it. Apart from the
walk because it is about every path at once: what is inserted at the entry may look at ``s->a`` only if the function
itself is bound to do so before it could return, end the process, or find out that there is nothing behind the pointer.

1. Go through the function's outermost statements in order. 2. In each, what is evaluated in any case counts; the
branches of a conditional do not. 3. Stop at whatever may not come out at its end: branches, loops, calls of anything
but the CUDA runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

from kesco.analysis.state import is_kesco
from kesco.frontend.api_table import cuda_call
from kesco.ir import program as ir


def certainly_followed(function: ir.Function) -> frozenset[str]:
    """Parameters whose pointees' members are looked at in any case, and that always point where they did at entry."""
    found: set[str] = set()
    for statement in _in_order(function.body):
        nodes = list(_in_any_case(*_first_of(statement)))
        if any(_may_not_return(node) for node, _ in nodes):
            break
        for node, used in nodes:
            if used and isinstance(node, ir.Select) and node.arrow and isinstance(node.base, ir.Name):
                found.add(node.base.variable.key)
        if not isinstance(statement, (ir.Evaluate, ir.Declare)):
            break
    own = {p.key for p in function.parameters}
    return frozenset(found & own) - _changed(function)


def _in_order(statement: ir.Stmt) -> Iterator[ir.Stmt]:
    if isinstance(statement, ir.Block):
        for one in statement.body:
            yield from _in_order(one)
    else:
        yield statement


def _first_of(statement: ir.Stmt) -> tuple[ir.Expr, bool]:
    """What a statement evaluates first, and whether the value is used."""
    if isinstance(statement, ir.Evaluate):
        return statement.expression, False
    once = isinstance(statement, ir.Declare) and statement.variable.scope is ir.Scope.STATIC
    if isinstance(statement, ir.Declare) and statement.initial is not None and not once:
        return statement.initial, statement.variable.type.shape is not ir.Shape.REFERENCE
    if isinstance(statement, ir.If) and not statement.before:
        return statement.condition, True
    return ir.Literal(), False


def _in_any_case(expression: ir.Expr | ir.Stmt, used: bool) -> Iterator[tuple[ir.Expr | ir.Stmt, bool]]:
    """What evaluating an expression evaluates for certain, and whether its value, not only its place, is used."""
    yield expression, used
    for child in ir.children(expression):
        if isinstance(expression, ir.Branch) and child is not expression.condition:
            yield from ((n, False) for n in ir.walk(child) if not isinstance(n, ir.Select))  # may end the process
        else:
            yield from _in_any_case(child, _is_used(expression, child, used))


def _is_used(outer: ir.Expr | ir.Stmt, inner: ir.Expr | ir.Stmt, used: bool) -> bool:
    """Whether the value of a part of an expression is looked at (or replaced), given whether the expression's is."""
    if isinstance(outer, (ir.AddressOf, ir.Decay, ir.InitList, ir.Unknown)):
        return False
    if isinstance(outer, ir.Select):
        return used or outer.arrow
    if isinstance(outer, ir.Subscript):
        return used or not outer.array or inner is outer.index
    if isinstance(outer, ir.Binary) and outer.operator == ",":
        return used and inner is outer.right
    if isinstance(outer, ir.Cast):
        return used and outer.type.spelling != "void"
    return True


def _may_not_return(node: ir.Expr | ir.Stmt) -> bool:
    if isinstance(node, (ir.Unknown, ir.New)):
        return True
    if not isinstance(node, ir.Call):
        return False
    known = is_kesco(node.name) or (node.standard and node.constructs and node.name.startswith("dim3::"))
    return not known and (not node.standard or cuda_call(node.name, len(node.arguments)) is None)


def _changed(function: ir.Function) -> set[str]:
    """The variables that a function assigns, refers to or takes the address of."""
    found: set[str] = set()
    for node in ir.walk(function.body):
        targets: list[ir.Expr | None] = []
        if isinstance(node, (ir.Assign, ir.AddressOf)):
            targets = [node.target]
        elif isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.REFERENCE:
            targets = [node.initial]
        elif isinstance(node, ir.Call):
            targets = [a for a, r in zip(node.arguments, node.references, strict=False) if r]
        elif isinstance(node, ir.Unknown):  # a lambda mentions what it captures
            targets = [*node.parts]
        for target in filter(None, targets):
            found |= {n.variable.key for n in _designated(target)}
    return found


def _designated(target: ir.Expr) -> Iterator[ir.Name]:
    """The variables that an lvalue may be, or be a part of; not those that it is reached through."""
    if isinstance(target, ir.Name):
        yield target
    elif isinstance(target, ir.Select):
        yield from _designated(target.base) if target.base is not None and not target.arrow else ()
    elif isinstance(target, ir.Subscript):
        yield from _designated(target.base) if target.array else ()
    elif not isinstance(target, ir.Dereference):
        yield from (name for child in ir.children(target) if isinstance(child, ir.Expr) for name in _designated(child))
