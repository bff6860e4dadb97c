"""Branches on parameters that are the same in all calls: ``void check(cudaError_t e, bool abort = true)``.

In: the functions of a file. Out: the same with such branches settled. Apart from the walk of the tree because it takes
all calls of the file to know.

1. A parameter is settled if the function is only called by name, in this file, and each time with an integer that is
not zero, or each time with zero; and if the function changes it nowhere. 2. ``if (abort) exit(code);`` is then what it
comes to. Other files may call the function in other ways: then nothing in it may be what is edited.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from clang.cindex import Cursor

from kesco.frontend import clang
from kesco.ir import program as ir
from kesco.ir.failures import NAMES_ERRORS

_ASKS = NAMES_ERRORS | {"cudaGetLastError", "cudaPeekAtLastError", "cudaDeviceReset"}
_SMALL = 127
"""What is no larger is the same in each type."""


def settled(functions: Sequence[ir.Function], others: Iterable[ir.Expr | ir.Stmt]) -> tuple[ir.Function, ...]:
    """The functions with their branches settled; `others` is where else calls may stand."""
    calls: defaultdict[str, list[tuple[ir.Expr, ...]]] = defaultdict(list)
    for body in (*(f.body for f in functions), *others):
        for node in ir.walk(body):
            if isinstance(node, ir.Call) and node.key:
                calls[node.key].append(node.arguments)
    return tuple(_settled(f, calls.get(f.key, [])) for f in functions)


def with_defaults(target: Cursor, parts: list[ir.Expr], lower: Callable[[Cursor], ir.Expr]) -> list[ir.Expr]:
    """What a function is given, with what is not written there if that is a constant."""
    return [_default_of(target, n, lower) if one == ir.DEFAULT else one for n, one in enumerate(parts)]


def _default_of(target: Cursor, number: int, lower: Callable[[Cursor], ir.Expr]) -> ir.Expr:
    parameters = list(target.get_arguments())[number : number + 1]
    written = [c for one in parameters for c in clang.children(one) if clang.kind_of(c).is_expression()]
    value = lower(written[0]) if len(written) == 1 else ir.DEFAULT
    return value if isinstance(ir.bare(value), ir.Constant) else ir.DEFAULT


def _settled(function: ir.Function, calls: list[tuple[ir.Expr, ...]]) -> ir.Function:
    nodes = list(ir.walk(function.body))
    launches = any(isinstance(n, ir.Launch) for n in nodes)
    if not calls or function.address_taken or function.virtual or launches or _acts_for_others(function, nodes):
        return function
    asked = {key for n in nodes if isinstance(n, ir.If) and (key := _name(n.condition))}
    if not asked:
        return function
    changed = {key for n in nodes if isinstance(n, ir.Assign) for key in ir.names(n.target)} | {*ir.lent(function.body)}
    known: dict[str, bool] = {}
    for at, parameter in enumerate(function.parameters):
        whole = parameter.type.shape is ir.Shape.INTEGER and not parameter.type.volatile
        if not whole or parameter.key not in asked - changed:
            continue
        given = [ir.bare(one[at]) if at < len(one) else None for one in calls]
        small = (isinstance(one, ir.Constant) and 0 <= one.value <= _SMALL for one in given)
        truths = {one.value != 0 if isinstance(one, ir.Constant) else None for one in given} if all(small) else {None}
        if len(truths) == 1 and (truth := truths.pop()) is not None:
            known[parameter.key] = truth
    return replace(function, body=_without(function.body, known)) if known else function


def _acts_for_others(function: ir.Function, nodes: Sequence[ir.Expr | ir.Stmt]) -> bool:
    """Whether other files may call a function whose calls of CUDA may be edited."""
    calls = {n.name for n in nodes if isinstance(n, ir.Call) and n.name.startswith("cu")}
    return function.here and not function.internal and not calls <= _ASKS


def _name(condition: ir.Expr) -> str:
    bare = ir.bare(condition)
    return bare.variable.key if isinstance(bare, ir.Name) else ""


def _without(statement: ir.Stmt, known: Mapping[str, bool]) -> ir.Stmt:
    """A statement without the branches that are not taken."""
    if (
        isinstance(statement, ir.If)
        and not statement.before
        and not any(isinstance(n, (ir.Case, ir.Obstacle)) for n in ir.walk(statement))
        and (truth := known.get(_name(statement.condition))) is not None
    ):
        taken = statement.then if truth else statement.other
        return _without(taken, known) if taken is not None else ir.Block(statement.span, ())
    changed: dict[str, Any] = {}
    for one in fields(statement):
        value = getattr(statement, one.name)
        if isinstance(value, ir.Stmt):
            changed[one.name] = _without(value, known)
        elif isinstance(value, tuple) and any(isinstance(each, ir.Stmt) for each in value):
            changed[one.name] = tuple(_without(each, known) if isinstance(each, ir.Stmt) else each for each in value)
    return replace(statement, **changed) if changed else statement
