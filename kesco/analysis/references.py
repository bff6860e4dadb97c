"""Which variables an expression may name, and which have another name besides.

In: expressions and statements. Out: keys of variables. Apart from the loops, which ask this, because it is about text
and not about values.
"""

from __future__ import annotations

from kesco.ir import program as ir


def aliased(body: ir.Stmt, references: bool) -> frozenset[str]:
    """The variables of a function whose address is taken, or that are referred to by another name."""
    found: set[str] = set()
    for node in ir.walk(body):
        targets: list[ir.Expr | None] = []
        if isinstance(node, ir.AddressOf):
            targets = [node.target]
        elif isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.REFERENCE:
            targets = [node.initial]
        elif isinstance(node, ir.Call):
            targets = [a for a, r in zip(node.arguments, node.references, strict=False) if r]
        elif isinstance(node, (ir.InitList, ir.New)) and references:  # a member may refer to what stands here
            found |= {n.variable.key for n in ir.walk(node) if isinstance(n, ir.Name)}
        for target in targets:
            found |= referred(target)
    return frozenset(found)


def referred(target: ir.Expr | None) -> set[str]:
    """The variables that a reference bound to an expression may refer to; a subscript's index is not one."""
    if target is None or isinstance(target, ir.Subscript):
        return referred(target.base) if target is not None else set()
    if isinstance(target, ir.Name):
        return {target.variable.key}
    if isinstance(target, ir.Call) and target.standard and target.name.endswith(("::operator[]", "::at")):
        return referred(target.receiver)
    return {key for child in ir.children(target) if isinstance(child, ir.Expr) for key in referred(child)}


def changes(body: ir.Stmt, key: str) -> bool:
    """Whether code may assign a variable or take its address."""

    def it(expression: ir.Expr | None) -> bool:
        return key in referred(expression)

    for node in ir.walk(body):
        if isinstance(node, (ir.Assign, ir.AddressOf)) and it(node.target):
            return True
        if isinstance(node, ir.Declare) and node.variable.type.shape is ir.Shape.REFERENCE and it(node.initial):
            return True
        if isinstance(node, ir.Call) and any(
            r and it(a) for a, r in zip(node.arguments, node.references, strict=False)
        ):
            return True
    return False
