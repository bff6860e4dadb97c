"""Pointer expressions that may be written a second time, right before a launch or before a loop around it.

In: an argument of a launch. Out: its text, if evaluating it once more changes nothing and gives the same; and whether
it has the same value, and may be evaluated, before a loop. Apart because it is about expressions only.

1. Names, elements and members, with indices of names, integers and arithmetic, are plain. 2. Before a loop, which may
run not even once, nothing may be read through a pointer that need not point anywhere then: there only names, members of
objects (``this`` is one) and elements with constant indices of arrays are taken. 3. The loop neither assigns their
variables nor hands them out.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir

_TEXT = re.compile(rb"[A-Za-z_][\w:]*(?:[\w\s\[\].()*/%+-]|->)*")


def spelled(expression: ir.Expr, text: bytes) -> str:
    """The text of a plain pointer expression, or nothing."""
    plain = without_casts(expression)
    if isinstance(plain, ir.Select) and plain.member.isidentifier():
        if plain.base is None:
            return plain.member
        base = spelled(plain.base, text)
        return f"{base}{'->' if plain.arrow else '.'}{plain.member}" if base else ""
    if not isinstance(plain, (ir.Name, ir.Subscript)) or not _is_plain(plain):
        return ""
    written = text[plain.span.start : plain.span.end]
    balanced = written.count(b"(") == written.count(b")") and written.count(b"[") == written.count(b"]")
    return " ".join(written.decode().split()) if balanced and _TEXT.fullmatch(written) else ""


def stays(loop: ir.Loop, expression: ir.Expr) -> bool:
    """Whether a plain expression may be evaluated before a loop and has the value that it has in it."""
    used: set[str] = set()
    if not _is_safe(without_casts(expression), used):
        return False
    for node in ir.walk(loop):
        changed: list[ir.Expr | None] = []
        if isinstance(node, (ir.Assign, ir.AddressOf)):
            changed = [node.target]
        elif isinstance(node, ir.Declare):
            if node.variable.key in used:
                return False
            changed = [node.initial] if node.variable.type.shape is ir.Shape.REFERENCE else []
        elif isinstance(node, ir.Call):
            changed = [node.receiver, *(a for a, given in zip(node.arguments, node.references, strict=False) if given)]
        if any(_named(n) in used for one in changed if one for n in ir.walk(one)):
            return False
    return True


def _named(node: ir.Expr | ir.Stmt) -> str:
    """The key of a variable, or the name of a member of ``this``."""
    if isinstance(node, ir.Select) and node.base is None:
        return node.member
    return node.variable.key if isinstance(node, ir.Name) else ""


def without_casts(expression: ir.Expr) -> ir.Expr:
    """An expression without the conversions around it."""
    while isinstance(expression, (ir.Cast, ir.Decay)):
        expression = expression.operand if isinstance(expression, ir.Cast) else expression.array
    return expression


def _is_plain(expression: ir.Expr) -> bool:
    """Whether an expression only reads, and is built in: no operator of a class, no call."""
    plain = without_casts(expression)
    if isinstance(plain, ir.Subscript):
        return _is_plain(plain.base) and _is_plain(plain.index)
    if isinstance(plain, ir.Select):
        return plain.member.isidentifier() and (plain.base is None or _is_plain(plain.base))
    if isinstance(plain, ir.Binary):
        return plain.operator in ("+", "-", "*", "/", "%") and _is_plain(plain.left) and _is_plain(plain.right)
    return isinstance(plain, ir.Constant) or (isinstance(plain, ir.Name) and not plain.variable.type.volatile)


def _is_safe(plain: ir.Expr, used: set[str]) -> bool:
    """Whether reading it is right wherever its variables are there, which are added to `used`."""
    if _named(plain):
        used.add(_named(plain))
        return True
    if isinstance(plain, ir.Select):
        return plain.base is not None and not plain.arrow and _is_safe(without_casts(plain.base), used)
    if isinstance(plain, ir.Subscript):
        return (
            plain.array
            and isinstance(without_casts(plain.index), ir.Constant)
            and _is_safe(without_casts(plain.base), used)
        )
    return False
