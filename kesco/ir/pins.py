"""Variables that hold where a block of the host's memory begins: ``holds_block(program, function, variable)``.

In: a program, a function and one of its variables. Out: whether it is a vector, which says itself where its block is,
or a pointer whose value is what ``malloc`` or the like gave, if not null. Apart because both what pins such blocks in a
loop and the proof of that ask it.

1. A vector has its elements in one block. 2. A pointer of the function's own is only ever set to what a call of
``malloc`` or ``calloc`` gives, or a function that returns such a value, and nothing else may change it. What ``new``
gives need not be a block of theirs.
"""

from __future__ import annotations

import re

from kesco.ir import program as ir
from kesco.ir.turns import PIN

_VECTOR = re.compile(r"(?:const )?std::vector<(?!bool\b)([^<>]+?)(?:, std::allocator<\1 ?>)? ?>")
_ALLOCATES = frozenset({"malloc", "calloc", "std::malloc", "std::calloc"})


def holds_block(program: ir.Program, function: ir.Function, variable: ir.Variable) -> bool:
    """Whether a variable of a function holds where a block begins, if anything."""
    kind = variable.type
    kind = kind.element if kind.shape is ir.Shape.REFERENCE and kind.element is not None else kind
    return _VECTOR.fullmatch(kind.spelling) is not None or _only_blocks(program, function, variable, 4)


def _only_blocks(program: ir.Program, function: ir.Function, variable: ir.Variable, depth: int) -> bool:
    """Whether a pointer of the function's own is only set to what an allocation gives."""
    own = (
        variable.scope is ir.Scope.LOCAL
        and variable.type.shape is ir.Shape.POINTER
        and "volatile" not in variable.type.spelling
    )
    values: list[ir.Expr] = []
    for node in ir.walk(function.body) if own else ():
        match node:
            case ir.Declare(initial=ir.Expr() as value) if node.variable.key == variable.key:
                values.append(value)
                continue
            case ir.Assign(operator="", target=target) if _is(target, variable.key):
                values.append(node.value)
                continue
            case ir.Assign(target=target) | ir.AddressOf(target=target):
                lent: list[ir.Expr | ir.Stmt] = [target]
            case ir.Declare(initial=ir.Expr() as value) if node.variable.type.shape is ir.Shape.REFERENCE:
                lent = [value]
            case ir.Unknown() | ir.Obstacle() | ir.InitList() | ir.New():
                lent = list(ir.children(node))
            case ir.Call() if node.name.rpartition("::")[2] != PIN:
                lent = [a for a, changes in zip(node.arguments, node.references, strict=False) if changes]
            case _:
                continue
        if any(_is_lent(one, variable.key) for one in lent):
            return False
    return bool(values) and all(_is_block(program, one, depth) for one in values)


def _is_block(program: ir.Program, value: ir.Expr, depth: int) -> bool:
    """Whether a value is null, or where a block begins: what an allocation gives, or a function that returns that."""
    given = ir.bare(value)
    if given in (ir.Constant(0), ir.Literal("nullptr")):
        return True
    if not isinstance(given, ir.Call):
        return False
    if given.standard:
        return given.name in _ALLOCATES
    function = next((f for f in program.functions if f.key == given.key), None)
    if function is None or function.virtual or function.template or not depth:
        return False
    results = [n.value for n in ir.walk(function.body) if isinstance(n, ir.Leave) and n.how == "return"]
    names = [ir.bare(one) for one in results if one is not None]
    return bool(names) and all(
        _only_blocks(program, function, one.variable, depth - 1)
        if isinstance(one, ir.Name)
        else _is_block(program, one, depth - 1)
        for one in names
    )


def _is_lent(node: ir.Expr | ir.Stmt, key: str) -> bool:
    """Whether a variable itself may be what is meant, and not only what it points to."""
    match node:
        case ir.Name():
            return node.variable.key == key
        case ir.Dereference():
            return False
        case ir.Subscript(array=False) | ir.Select(arrow=True):
            return False
    return any(_is_lent(one, key) for one in ir.children(node))


def _is(node: ir.Expr | ir.Stmt, key: str) -> bool:
    node = ir.bare(node) if isinstance(node, ir.Expr) else node
    return isinstance(node, ir.Name) and node.variable.key == key


def base_of(address: ir.Expr) -> ir.Variable | None:
    """The variable that an address is reckoned from: of ``p + i``, ``&p[i]``, ``v.data() + i``, ``&v[i]``."""
    one = ir.bare(address)
    match one:
        case ir.Name():
            return one.variable
        case ir.Binary(operator="+" | "-"):
            return base_of(one.left) or (base_of(one.right) if one.operator == "+" else None)
        case ir.AddressOf(target=ir.Subscript(array=False) as element):
            return base_of(element.base)
        case ir.AddressOf(target=ir.Expr() as target):
            return base_of(target) if isinstance(ir.bare(target), ir.Call) else None
        case ir.Call(receiver=ir.Expr() as receiver) if one.standard and one.name.rpartition("::")[2] in _PLACES:
            return base_of(receiver) if isinstance(ir.bare(receiver), ir.Name) else None
    return None


_PLACES = ("data", "operator[]", "front", "at")
